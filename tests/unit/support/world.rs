//! A reconcile's surroundings: caches filled by hand, a clock that stands, events that are kept.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Client, runtime::watcher};
use serde_json::Value;
use simpleapp_operator::{
    kernel::{
        audit::AuditRecord,
        clock::Clock,
        events::{Event, EventSink},
        key::Key,
        ownership::Child,
        work::Verdict,
    },
    simpleapp::{
        observed::{App, ChildKind},
        plan::Settings,
        reconcile::{Context, reconcile},
    },
};

use super::{
    fixtures::{NAMESPACE, dynamic},
    script::{Step, play},
};

pub(crate) const NOW: &str = "2026-01-01T00:10:00Z";
pub(crate) const SETTINGS: Settings = Settings { cleanup_timeout: Duration::from_mins(5) };

pub(crate) fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// Keeps events.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Vec<String>>);

impl EventSink for Kept {
    fn publish(&self, regarding: ObjectReference, event: Event) -> BoxFuture<'_, ()> {
        let object = format!("{} {}", regarding.kind.unwrap(), regarding.name.unwrap());
        let text = format!("{:?} {} {object}: {}", event.severity, event.reason, event.note);
        self.0.lock().unwrap().push(text);
        Box::pin(std::future::ready(()))
    }
}

/// What a reconcile did.
pub(crate) struct Done {
    pub(crate) verdict: Verdict,
    pub(crate) conversation: String,
    pub(crate) events: Vec<String>,
    pub(crate) ctx: Arc<Context>,
}

/// What the operator knows before a reconcile.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) app: Value,
    pub(crate) children: Vec<(ChildKind, Value)>,
    pub(crate) operator_namespace: Option<String>,
    pub(crate) now: Timestamp,
    /// The app went before the reconcile began.
    pub(crate) is_gone: bool,
    pub(crate) dry_run: bool,
}

impl World {
    pub(crate) fn new(app: Value) -> Self {
        Self {
            app,
            children: Vec::new(),
            operator_namespace: None,
            now: now(),
            is_gone: false,
            dry_run: false,
        }
    }

    pub(crate) fn with(mut self, children: Vec<(ChildKind, Value)>) -> Self {
        self.children = children;
        self
    }

    pub(crate) fn at(mut self, now: &str) -> Self {
        self.now = now.parse().unwrap();
        self
    }

    pub(crate) fn key(&self) -> Key {
        Key::new(NAMESPACE, self.app["metadata"]["name"].as_str().unwrap())
    }

    fn context(&self, client: Client, events: Arc<Kept>) -> Context {
        let now = self.now;
        let clean_up = AuditRecord::new(client.clone(), self.operator_namespace.clone());
        let mut ctx =
            Context::new(client, Clock::new(move || now), events, Arc::new(clean_up), SETTINGS);
        ctx.dry_run = self.dry_run;
        if !self.is_gone {
            ctx.apps.absorb("", watcher::Event::Apply(App::of(&dynamic(&self.app))));
        }
        for (kind, child) in &self.children {
            let child = Child::of(&dynamic(child));
            ctx.children[kind].absorb("", watcher::Event::Apply(child));
        }
        ctx
    }

    /// Reconciles once, with a server that follows `script`.
    pub(crate) async fn reconcile(&self, script: Vec<Step>) -> Done {
        let events = Arc::new(Kept::default());
        let kept = events.clone();
        let ((verdict, ctx), conversation) = play(script, |client| async move {
            let ctx = Arc::new(self.context(client, kept));
            (reconcile(self.key(), ctx.clone()).await, ctx)
        })
        .await;
        let events = events.0.lock().unwrap().clone();
        Done { verdict, conversation, events, ctx }
    }
}
