//! Events (`v1 Event`), written one after the other beside the work, with the counting and merging
//! that client-go's recorder does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Client;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::sync::mpsc;

use super::{Api, Load, Object, Tasks, Work, status_of};
use simcluster_clock::Clock;

/// So many different messages of one reason about one object within [`SIMILAR_FOR`] are written one by
/// one; further ones are merged.
const SIMILAR_MAX: usize = 10;
/// How long after the last one a message still counts as similar.
const SIMILAR_FOR: SignedDuration = SignedDuration::from_mins(10);
/// So many events about one object may come in a burst; one more each [`REFILL`].
const BURST: u32 = 25;
/// How often an object that used up its burst may have one more event.
const REFILL: SignedDuration = SignedDuration::from_mins(5);
/// So many objects and messages are remembered.
const REMEMBERED_MAX: usize = 4096;

/// Whether an event tells of something normal or of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    Normal,
    Warning,
}

impl Severity {
    fn text(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Something that happened to an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Note {
    pub(crate) object: ObjectReference,
    pub(crate) severity: Severity,
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// The reference that an event about an object holds.
pub(crate) fn reference<K: Object>(object: &K) -> ObjectReference {
    let meta = object.meta();
    ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        field_path: None,
    }
}

/// Takes notes of one controller.
#[derive(Clone)]
pub(crate) struct Recorder {
    notes: mpsc::UnboundedSender<Note>,
    open: Arc<Open>,
}

/// Hands out nanoseconds for the names of events, each once: virtual time may stand still between two.
#[derive(Clone, Default)]
pub(crate) struct Times(Arc<Mutex<i128>>);

impl Times {
    fn next(&self, now: Timestamp) -> i128 {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *last = now.as_nanosecond().max(*last + 1);
        *last
    }
}

/// Notes that are not written yet.
struct Open(AtomicUsize);

impl Load for Open {
    fn work(&self) -> Work {
        Work { busy: self.0.load(Ordering::Acquire), next: None }
    }
}

impl Recorder {
    /// A recorder that writes as `component` (the event's source), on one host if there is one.
    pub(crate) fn start(
        client: Client,
        clock: Clock,
        component: &str,
        manager: &'static str,
        tasks: &mut Tasks,
    ) -> Self {
        let (notes, mut heard) = mpsc::unbounded_channel::<Note>();
        let open = Arc::new(Open(AtomicUsize::new(0)));
        let load: Arc<dyn Load> = Arc::<Open>::clone(&open);
        tasks.watch_load(load);
        let recorder = Self { notes, open: Arc::clone(&open) };
        let mut correlator = Correlator::new(component, tasks.event_times());
        tasks.spawn(async move {
            while let Some(note) = heard.recv().await {
                if let Some(write) = correlator.next(&note, clock.now()) {
                    perform(&client, manager, &mut correlator, write).await;
                }
                open.0.fetch_sub(1, Ordering::AcqRel);
            }
        });
        recorder
    }

    /// Takes a note.
    pub(crate) fn note(&self, note: Note) {
        self.open.0.fetch_add(1, Ordering::AcqRel);
        if self.notes.send(note).is_err() {
            self.open.0.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Takes a note of something that happened to an object.
    pub(crate) fn about<K: Object>(
        &self,
        object: &K,
        severity: Severity,
        reason: &str,
        message: impl Into<String>,
    ) {
        self.note(Note {
            object: reference(object),
            severity,
            reason: reason.to_owned(),
            message: message.into(),
        });
    }
}

async fn perform(
    client: &Client,
    manager: &'static str,
    correlator: &mut Correlator,
    write: Write,
) {
    let namespace = write.event.metadata.namespace.clone().unwrap_or_default();
    let name = write.event.metadata.name.clone().unwrap_or_default();
    let api: Api<Event> = Api::namespaced(client.clone(), &namespace);
    let create = PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
    let result = if write.again {
        let patch = json!({
            "count": write.event.count,
            "lastTimestamp": write.event.last_timestamp,
            "message": write.event.message,
        });
        let params =
            PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        match api.patch(&name, &params, &Patch::Strategic(patch)).await {
            Err(error) if status_of(&error).is_some_and(kube::core::Status::is_not_found) => {
                api.create(&create, &write.event).await
            }
            result => result,
        }
    } else {
        api.create(&create, &write.event).await
    };
    if let Err(error) = result {
        tracing::debug!(%error, name, "an event was not written");
        correlator.forget(&write.key);
    }
}

/// What makes events one: source, object, kind of event, and the message unless it is a merged one.
type EventKey = (ObjectKey, &'static str, String, Option<String>);
/// Namespace, kind, name and UID of the object.
type ObjectKey = (String, String, String, String);

/// An event to create, or to count up again.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Write {
    pub(super) key: EventKey,
    pub(super) event: Event,
    pub(super) again: bool,
}

/// Decides which event a note becomes. It holds no client.
pub(super) struct Correlator {
    component: String,
    written: BTreeMap<EventKey, Event>,
    similar: BTreeMap<(ObjectKey, &'static str, String), Similar>,
    tokens: BTreeMap<ObjectKey, Tokens>,
    times: Times,
}

struct Similar {
    messages: BTreeSet<String>,
    last: Timestamp,
}

struct Tokens {
    left: u32,
    since: Timestamp,
}

impl Correlator {
    pub(super) fn new(component: &str, times: Times) -> Self {
        Self {
            component: component.to_owned(),
            written: BTreeMap::new(),
            similar: BTreeMap::new(),
            tokens: BTreeMap::new(),
            times,
        }
    }

    /// What to write for a note; nothing if there were too many about the object.
    pub(super) fn next(&mut self, note: &Note, now: Timestamp) -> Option<Write> {
        let object = object_key(&note.object);
        let (message, merged) = self.merge(&object, note, now);
        if !self.take_token(&object, now) {
            return None;
        }
        let key = (
            object,
            note.severity.text(),
            note.reason.clone(),
            (!merged).then(|| note.message.clone()),
        );
        let time = Some(Time(whole_seconds(now)));
        let (event, again) = match self.written.get(&key) {
            Some(before) => {
                let count = Some(before.count.unwrap_or(0).saturating_add(1));
                let message = Some(message);
                (Event { count, message, last_timestamp: time, ..before.clone() }, true)
            }
            None => (self.new_event(note, message, time, now), false),
        };
        if self.written.len() >= REMEMBERED_MAX {
            self.written.pop_first();
        }
        self.written.insert(key.clone(), event.clone());
        Some(Write { key, event, again })
    }

    /// Forgets an event that could not be written, so that the next one is created anew.
    pub(super) fn forget(&mut self, key: &EventKey) {
        self.written.remove(key);
    }

    fn merge(&mut self, object: &ObjectKey, note: &Note, now: Timestamp) -> (String, bool) {
        if self.similar.len() >= REMEMBERED_MAX {
            self.similar.pop_first();
        }
        let group = (object.clone(), note.severity.text(), note.reason.clone());
        let similar = self
            .similar
            .entry(group)
            .or_insert_with(|| Similar { messages: BTreeSet::new(), last: now });
        if now.duration_since(similar.last) > SIMILAR_FOR {
            similar.messages.clear();
        }
        similar.last = now;
        similar.messages.insert(note.message.clone());
        if similar.messages.len() < SIMILAR_MAX {
            return (note.message.clone(), false);
        }
        similar.messages.pop_first();
        (format!("(combined from similar events): {}", note.message), true)
    }

    fn take_token(&mut self, object: &ObjectKey, now: Timestamp) -> bool {
        if self.tokens.len() >= REMEMBERED_MAX {
            self.tokens.pop_first();
        }
        let tokens =
            self.tokens.entry(object.clone()).or_insert(Tokens { left: BURST, since: now });
        while tokens.left < BURST && now.duration_since(tokens.since) >= REFILL {
            tokens.left += 1;
            tokens.since = tokens.since.checked_add(REFILL).unwrap_or(now);
        }
        if tokens.left == BURST {
            tokens.since = now;
        }
        let Some(left) = tokens.left.checked_sub(1) else { return false };
        tokens.left = left;
        true
    }

    fn new_event(&self, note: &Note, message: String, time: Option<Time>, now: Timestamp) -> Event {
        let name = note.object.name.as_deref().unwrap_or_default();
        let namespace = note.object.namespace.clone().unwrap_or_else(|| "default".to_owned());
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{:016x}", self.times.next(now))),
                namespace: Some(namespace),
                ..ObjectMeta::default()
            },
            involved_object: note.object.clone(),
            reason: Some(note.reason.clone()),
            message: Some(message),
            type_: Some(note.severity.text().to_owned()),
            source: Some(EventSource { component: Some(self.component.clone()), host: None }),
            first_timestamp: time.clone(),
            last_timestamp: time,
            count: Some(1),
            reporting_component: Some(self.component.clone()),
            reporting_instance: Some(String::new()),
            ..Event::default()
        }
    }
}

fn object_key(object: &ObjectReference) -> ObjectKey {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    (text(&object.namespace), text(&object.kind), text(&object.name), text(&object.uid))
}

/// Times of `metav1.Time` have whole seconds.
pub(crate) fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
