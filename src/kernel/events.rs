//! Kubernetes Events: what changed, for `kubectl describe`.
//!
//! Events are published through a thin trait of our own, because kube's recorder reads the real
//! clock. They are a courtesy: a failure to publish one is logged and nothing else.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event as Record},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde::Serialize;
use serde_json::json;

use super::{backoff::fingerprint, clock::Clock, ownership::FIELD_MANAGER, requests::send};

/// Longest note that the API server accepts, in bytes.
const NOTE_LENGTH_MAX: usize = 1024;
/// Namespace of events about objects that have none.
const CLUSTER_SCOPE: &str = "default";
/// Events that repeat within this time are counted on one record.
const SERIES_WINDOW: SignedDuration = SignedDuration::from_mins(6);
/// How many records are remembered for counting.
const SERIES_MAX: usize = 1024;

/// Whether somebody should worry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Severity {
    /// Things go as they should.
    Normal,
    /// Somebody should look.
    Warning,
}

/// Something that happened to an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Whether somebody should worry.
    pub severity: Severity,
    /// Why, in one word: `NameConflict`.
    pub reason: &'static str,
    /// What was done or attempted, in one word: `Apply`.
    pub action: &'static str,
    /// What happened, for a human.
    pub note: String,
}

/// Takes events.
pub trait EventSink: Send + Sync {
    /// Publishes `event` about the object `regarding`.
    fn publish(&self, regarding: ObjectReference, event: Event) -> BoxFuture<'_, ()>;
}

/// Publishes to the API server (`events.k8s.io/v1`).
pub struct ApiEvents {
    client: Client,
    clock: Clock,
    instance: String,
    recent: Mutex<BTreeMap<String, Series>>,
}

#[derive(Debug, Clone)]
struct Series {
    name: String,
    count: i32,
    last: Timestamp,
}

impl ApiEvents {
    /// Events of the operator instance named `instance` (its pod).
    #[must_use]
    pub fn new(client: Client, clock: Clock, instance: String) -> Self {
        Self { client, clock, instance, recent: Mutex::default() }
    }

    /// Counts the event; returns the record to continue, or the name of a new one.
    fn count(&self, identity: &str, object: &str, now: Timestamp) -> Series {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|_, series| now.duration_since(series.last) < SERIES_WINDOW);
        if recent.len() >= SERIES_MAX
            && let Some(oldest) =
                recent.iter().min_by_key(|(_, series)| series.last).map(|(key, _)| key.clone())
        {
            recent.remove(&oldest);
        }
        let series = recent.entry(identity.to_owned()).or_insert_with(|| Series {
            name: format!(
                "{object}.{:016x}",
                fingerprint(&format!("{identity}\n{}\n{}", self.instance, now.as_nanosecond()))
            ),
            count: 0,
            last: now,
        });
        series.count = series.count.saturating_add(1);
        series.last = now;
        series.clone()
    }

    async fn write(&self, regarding: ObjectReference, event: Event) {
        let now = self.clock.now();
        let object = regarding.name.clone().unwrap_or_default();
        let namespace = regarding.namespace.clone().unwrap_or_else(|| CLUSTER_SCOPE.to_owned());
        let uid = regarding.uid.clone().unwrap_or_default();
        let identity = format!("{namespace}/{object}/{uid}/{}/{}", event.reason, event.note);
        let series = self.count(&identity, &object, now);
        let api: Api<Record> = Api::namespaced(self.client.clone(), &namespace);
        let request = format!("record {} of {namespace}/{object}", event.reason);
        let sent = if series.count > 1 {
            let time = MicroTime(now);
            let patch = json!({"series": {"count": series.count, "lastObservedTime": time}});
            let params =
                PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
            send(request, api.patch(&series.name, &params, &Patch::Merge(patch))).await
        } else {
            let record = self.record(series.name, &namespace, regarding, event, now);
            let params =
                PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
            send(request, api.create(&params, &record)).await
        };
        if let Err(error) = sent {
            tracing::debug!(%error, "an event was lost");
        }
    }

    fn record(
        &self,
        name: String,
        namespace: &str,
        regarding: ObjectReference,
        event: Event,
        now: Timestamp,
    ) -> Record {
        let mut record = Record {
            action: Some(event.action.into()),
            event_time: Some(MicroTime(now)),
            note: Some(shorten(event.note, NOTE_LENGTH_MAX)),
            reason: Some(event.reason.into()),
            reporting_controller: Some(FIELD_MANAGER.into()),
            reporting_instance: Some(self.instance.clone()),
            type_: Some(format!("{:?}", event.severity)),
            ..Record::default()
        };
        record.metadata.name = Some(name);
        record.metadata.namespace = Some(namespace.to_owned());
        record.regarding = Some(regarding);
        record
    }
}

impl EventSink for ApiEvents {
    fn publish(&self, regarding: ObjectReference, event: Event) -> BoxFuture<'_, ()> {
        Box::pin(self.write(regarding, event))
    }
}

/// Cuts `text` to at most `length` bytes, at a character.
fn shorten(mut text: String, length: usize) -> String {
    let cut = text.floor_char_boundary(length);
    text.truncate(cut);
    text
}
