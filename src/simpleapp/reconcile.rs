//! One pass over one app: observe, plan, execute, and again until there is nothing left to do;
//! then report. The plan decides; what is in here only carries out.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Api, Client, core::DynamicObject};
use thiserror::Error;
use tracing::Instrument;

use crate::{
    api::simpleapp::{GROUP, KIND, VERSION},
    kernel::{
        audit::{CleanUp, CleanUpError},
        cache::Cache,
        clock::Clock,
        error::{ErrorClass, RequestError},
        events::{Event, EventSink, Severity},
        finalizer,
        key::Key,
        ownership::Child,
        work::Verdict,
    },
};

use super::{
    observed::{App, ChildKind, Observed},
    plan::{Plan, Settings, plan, settle},
    validate::validate,
};

/// Plans that one reconcile may carry out: children, pods, and one to spare.
const ROUNDS_MAX: usize = 4;

/// What a reconcile works with.
pub struct Context {
    /// Talks to the API server. Must not retry by itself.
    pub client: Client,
    /// The apps.
    pub apps: Arc<Cache<App>>,
    /// Everything that has, or could have, the name of a child.
    pub children: BTreeMap<ChildKind, Arc<Cache<Child>>>,
    /// Wall clock.
    pub clock: Clock,
    /// Takes Events.
    pub events: Arc<dyn EventSink>,
    /// What happens before an app may go.
    pub clean_up: Arc<dyn CleanUp>,
    /// What plans are told.
    pub settings: Settings,
    /// Plans are logged, not carried out.
    pub dry_run: bool,
}

impl Context {
    /// A context with empty caches.
    #[must_use]
    pub fn new(
        client: Client,
        clock: Clock,
        events: Arc<dyn EventSink>,
        clean_up: Arc<dyn CleanUp>,
        settings: Settings,
    ) -> Self {
        let children = ChildKind::ALL.into_iter().map(|kind| (kind, Arc::default())).collect();
        let apps = Arc::default();
        Self { client, apps, children, clock, events, clean_up, settings, dry_run: false }
    }

    pub(super) fn cache(&self, kind: ChildKind) -> &Cache<Child> {
        self.children.get(&kind).expect("there is a cache for every kind of child")
    }

    pub(super) fn api(&self, kind: ChildKind, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &kind.resource())
    }

    pub(super) fn apps_api(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &App::resource())
    }
}

/// Why a reconcile has to be tried again.
#[derive(Debug, Error)]
pub enum ReconcileError {
    /// A request failed.
    #[error(transparent)]
    Request(RequestError),
    /// The status could not be written.
    #[error(transparent)]
    Status(RequestError),
    /// The clean-up failed, and there is time for another attempt.
    #[error("clean-up: {error}")]
    CleanUp {
        /// What failed.
        error: CleanUpError,
        /// How long until the app is let go without it.
        left: Duration,
    },
    /// Operations kept coming after as many plans as one reconcile may make.
    #[error("a plan was not settled by carrying it out: {operations}")]
    Endless {
        /// The operations of the last plan.
        operations: String,
    },
}

impl ReconcileError {
    fn verdict(&self) -> Verdict {
        match self {
            Self::Request(error) | Self::Status(error) => Verdict::Failed {
                class: error.class(),
                retry_after: error.retry_after(),
                at_most: None,
            },
            Self::CleanUp { error, left } => Verdict::Failed {
                class: error.class(),
                retry_after: error.retry_after(),
                at_most: Some(*left),
            },
            Self::Endless { .. } => {
                Verdict::Failed { class: ErrorClass::Bug, retry_after: None, at_most: None }
            }
        }
    }

    fn log(&self) {
        match self {
            Self::Request(error) | Self::Status(error) if error.is_namespace_terminating() => {
                tracing::debug!(error = %self, "the namespace is going");
            }
            Self::Request(error) | Self::Status(error) if error.class() == ErrorClass::Conflict => {
                tracing::debug!(error = %self, "something changed meanwhile; looking again");
            }
            Self::Request(_) | Self::Status(_) | Self::CleanUp { .. } => {
                tracing::warn!(error = %self, "will be tried again");
            }
            Self::Endless { .. } => tracing::error!(error = %self, "gave up for now"),
        }
    }
}

/// Brings one app as far as it can be brought now.
pub async fn reconcile(key: Key, ctx: Arc<Context>) -> Verdict {
    let Some(app) = ctx.apps.get(&key) else {
        return Verdict::Done(None);
    };
    let span = tracing::info_span!("reconcile", app = %key, generation = app.generation);
    pass(app, &ctx).instrument(span).await
}

async fn pass(app: Arc<App>, ctx: &Context) -> Verdict {
    let observed = observe(app, ctx);
    let mut pass = Pass { ctx, observed, changes: Vec::new(), must_plan_anew: false };
    let outcome = pass.run().await;
    pass.report_changes().await;
    match outcome {
        Ok(requeue) => Verdict::Done(requeue),
        Err(error) => {
            error.log();
            pass.report_trouble().await;
            error.verdict()
        }
    }
}

fn observe(app: Arc<App>, ctx: &Context) -> Observed {
    let children =
        ctx.children.iter().filter_map(|(kind, cache)| Some((*kind, cache.get(&app.key)?)));
    let children = children.collect();
    Observed::new(app, children)
}

/// One reconcile while it goes on.
pub(super) struct Pass<'a> {
    pub(super) ctx: &'a Context,
    pub(super) observed: Observed,
    /// What was done to children, for one Event.
    pub(super) changes: Vec<String>,
    /// The rest of the plan was made for another outcome of the operation before.
    pub(super) must_plan_anew: bool,
}

impl Pass<'_> {
    async fn run(&mut self) -> Result<Option<Duration>, ReconcileError> {
        for _round in 0..ROUNDS_MAX {
            let plan = plan(&self.observed, self.ctx.settings, self.ctx.clock.now());
            if self.ctx.dry_run {
                if !plan.operations.is_empty() || plan.status.is_some() {
                    tracing::info!(?plan, "would do this");
                }
                return Ok(plan.requeue);
            }
            if plan.operations.is_empty() {
                self.report(&plan).await?;
                return Ok(plan.requeue);
            }
            for operation in plan.operations {
                self.execute(operation).await?;
                if self.must_plan_anew {
                    break;
                }
            }
            self.must_plan_anew = false;
        }
        let plan = plan(&self.observed, self.ctx.settings, self.ctx.clock.now());
        if plan.operations.is_empty() {
            self.report(&plan).await?;
            return Ok(plan.requeue);
        }
        Err(ReconcileError::Endless { operations: format!("{:?}", plan.operations) })
    }

    async fn report(&mut self, plan: &Plan) -> Result<(), ReconcileError> {
        if let Some(status) = &plan.status {
            let app = &self.observed.app;
            let phase = status.phase;
            if phase != app.status.phase {
                let text = status.message.as_deref();
                tracing::info!(?phase, text, "phase changed");
            }
            let value = serde_json::to_value(status).expect("a status is plain data");
            let patch = finalizer::status(&app.uid, &value);
            let request = format!("write the status of SimpleApp {}", app.key);
            self.patch_app(request, patch, true).await?;
        }
        for event in &plan.events {
            self.publish(event.clone()).await;
        }
        Ok(())
    }

    /// One Event for all that was done to children.
    async fn report_changes(&mut self) {
        if self.changes.is_empty() {
            return;
        }
        let mut note = std::mem::take(&mut self.changes).join(", ");
        if let Some(first) = note.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        let event = Event { severity: Severity::Normal, reason: "Applied", action: "Apply", note };
        self.publish(event).await;
    }

    /// Says what is wrong with a child of a spec that nothing has been said of yet. Later trouble
    /// is in the log only: it would come and go in the status.
    async fn report_trouble(&mut self) {
        let app = &self.observed.app;
        let is_told = app.status.observed_generation == Some(app.generation);
        if self.observed.trouble.is_none() || is_told {
            return;
        }
        let plan = settle(&self.observed, &validate(app), self.ctx.clock.now());
        if let Err(error) = self.report(&plan).await {
            tracing::debug!(%error, "the status could not be written either");
        }
    }

    pub(super) async fn publish(&self, event: Event) {
        self.ctx.events.publish(app_reference(&self.observed.app), event).await;
    }
}

fn app_reference(app: &App) -> ObjectReference {
    ObjectReference {
        api_version: Some(format!("{GROUP}/{VERSION}")),
        kind: Some(KIND.to_owned()),
        name: Some(app.key.name.clone()),
        namespace: Some(app.key.namespace.clone()),
        uid: Some(app.uid.clone()),
        ..ObjectReference::default()
    }
}
