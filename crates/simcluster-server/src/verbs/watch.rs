//! Watch: a stream of the changes of a kind, from a revision on.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt};
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::time::Instant;

use super::options::ListOptions;
use super::read::{
    FUTURE_WAIT_SECONDS, Selection, at_least, converted, parse_version, too_large, wait_for,
};
use super::{Call, Outcome, Shown, WatchEvent};
use crate::conversion::Undecodable;
use crate::server::ApiServer;
use crate::store::{Change, Compacted};
use simcluster_model::builtin;
use simcluster_model::error::{ApiError, Details};
use simcluster_model::golang::seconds as go_seconds;
use simcluster_model::object;

/// Changes that a watch takes from the store at once.
const BATCH: usize = 500;

/// Time between bookmarks, in seconds (the real server: about a minute).
const BOOKMARK_SECONDS: u64 = 60;

/// Bookmarks come so long before the end of a watch, too, in seconds.
const LAST_BOOKMARK_SECONDS: u64 = 2;

/// Shortest watch that names no timeout, in seconds; the longest is twice that.
const TIMEOUT_MIN_SECONDS: u64 = 1800;

/// The pause before a change that could not be converted is looked at again.
const RETRY: Duration = Duration::from_secs(1);

/// How long an open watch outlives a change of its CRD, in seconds (row WA17).
const SCHEMA_CHANGE_SECONDS: u64 = 1;

/// GET of a collection with `watch=true`.
pub(super) async fn watch(server: &Arc<ApiServer>, call: Call) -> Result<Outcome, ApiError> {
    let options = ListOptions::parse(&call, true)?;
    let selection = Selection::parse(&call, &options)?;
    let version = parse_version(&options.resource_version).map_err(ApiError::raw)?;
    if server.version_caches().gave_up(&call.resource) {
        let all = server.store().all(&call.resource.storage_key);
        let all = all.into_iter().map(|stored| (String::new(), stored)).collect();
        converted(server, &call, all).await.map_err(|_| reinitializing())?;
    }
    let watcher = Watcher::start(server.clone(), call, options, selection, version);
    Ok(Outcome::Watch(watcher.into_stream()))
}

/// 429 of a version whose cache is being filled anew (row CV07).
fn reinitializing() -> ApiError {
    let details = Details { retry_after_seconds: Some(1), ..Details::default() };
    ApiError::new(429, "TooManyRequests", "storage is (re)initializing").with_details(details)
}

/// An open watch.
struct Watcher {
    server: Arc<ApiServer>,
    call: Call,
    options: ListOptions,
    selection: Selection,
    /// Changes up to this revision have been seen.
    cursor: u64,
    /// The version asked for, until it has been dealt with.
    asked: Option<u64>,
    changed: Arc<Notify>,
    pending: VecDeque<WatchEvent>,
    deadline: Instant,
    next_bookmark: Instant,
    /// What a bookmark shows beside its version.
    empty: Value,
    finished: bool,
    /// Whether a webhook converts the objects.
    converts: bool,
    /// Whether the next change could not be converted: nothing is sent before that works again.
    stuck: bool,
}

/// What a watch waits for.
enum Wake {
    Change,
    Bookmark,
    Deadline,
}

impl Watcher {
    fn start(
        server: Arc<ApiServer>,
        call: Call,
        options: ListOptions,
        selection: Selection,
        version: u64,
    ) -> Self {
        let asked = options.timeout_seconds.map_or(SignedDuration::ZERO, go_seconds);
        let timeout = if asked.is_zero() {
            random_timeout(&server, &call)
        } else {
            // A time that is over before it began ends the watch at once.
            Duration::try_from(asked).unwrap_or_default()
        };
        let now = Instant::now();
        let deadline = now + timeout;
        let changed = server.store().subscribe(&call.resource.storage_key);
        let next_bookmark = first_bookmark(now, deadline);
        let empty = builtin::empty_object(&call.resource);
        let converts = server.conversion_webhook(&call.resource).is_some();
        Self {
            server,
            call,
            options,
            selection,
            cursor: version,
            asked: Some(version),
            changed,
            pending: VecDeque::new(),
            deadline,
            next_bookmark,
            empty,
            finished: false,
            converts,
            stuck: false,
        }
    }

    fn into_stream(self) -> BoxStream<'static, WatchEvent> {
        stream::unfold(self, |mut watcher| async move {
            let event = watcher.next().await?;
            Some((event, watcher))
        })
        .boxed()
    }

    async fn next(&mut self) -> Option<WatchEvent> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            if self.finished {
                return None;
            }
            if let Some(version) = self.asked.take() {
                self.begin(version).await;
                continue;
            }
            // From here on no change goes unheard.
            let changed = self.changed.clone().notified_owned();
            if self.take_changes().await {
                continue;
            }
            if self.stuck && self.server.version_caches().gave_up(&self.call.resource) {
                self.finished = true;
                continue;
            }
            if self.resource_changed() {
                self.end_soon().await;
                continue;
            }
            match self.wait(changed).await {
                Wake::Change => {}
                Wake::Bookmark => {
                    // A bookmark vouches for what was sent: what came meanwhile goes first.
                    let heard = self.take_changes().await;
                    if !heard && !self.stuck {
                        self.bookmark();
                    }
                }
                Wake::Deadline => self.finished = true,
            }
        }
    }

    /// Deals with the version asked for: the objects that exist, if it is not a version to go on from.
    async fn begin(&mut self, version: u64) {
        let initial = self.options.send_initial_events.unwrap_or(version == 0);
        if !initial {
            if version == 0 {
                self.cursor = self.server.revision();
            }
            return;
        }
        if let Err(error) = wait_for(&self.server, version).await {
            self.fail(&error);
            return;
        }
        let objects = {
            let store = self.server.store();
            let enough = at_least(&self.options.resource_version, version);
            self.cursor = self.call.view.revision(store.revision(), enough);
            store.list_at(&self.call.resource.storage_key, &self.call.namespace, self.cursor)
        };
        let mut objects = objects.unwrap_or_default();
        if self.converts {
            match converted(&self.server, &self.call, objects).await {
                Ok(shown) => objects = shown,
                Err(_) => return self.fail_to_begin().await,
            }
        }
        for (_, stored) in objects {
            if self.selection.matches(&self.call, &stored) {
                self.pending.push_back(self.event("ADDED", &stored, None));
            }
        }
        if self.options.send_initial_events == Some(true) && self.options.bookmarks {
            let mut object = self.bookmark_object();
            let end = json!({ "k8s.io/initial-events-end": "true" });
            object::metadata_mut(&mut object).insert("annotations".to_owned(), end);
            self.pending.push_back(WatchEvent { kind: "BOOKMARK", object: Shown::Made(object) });
        }
    }

    /// The end of a watch that cannot begin: the cache does not come as far as it must (row WA21).
    async fn fail_to_begin(&mut self) {
        tokio::time::sleep(Duration::from_secs(FUTURE_WAIT_SECONDS)).await;
        let reached = self.server.version_caches().reached(&self.call.resource);
        self.fail(&too_large(self.cursor, reached));
    }

    /// Queues the events of new changes; whether there were changes. If there were none, nothing that
    /// concerns this watch happened up to the revision of that moment.
    async fn take_changes(&mut self) -> bool {
        let (changes, head) = {
            let store = self.server.store();
            let key = &self.call.resource.storage_key;
            (store.changes_after(key, self.cursor, BATCH), store.revision())
        };
        match changes {
            Ok(changes) if changes.is_empty() => {
                self.cursor = self.cursor.max(head);
                false
            }
            Ok(changes) => {
                let mut heard = false;
                for change in changes {
                    let revision = change.revision;
                    let Ok(change) = self.shown(change).await else {
                        self.set_stuck(true);
                        return heard;
                    };
                    heard = true;
                    self.cursor = revision;
                    let event = self.event_of(&change);
                    self.pending.extend(event);
                }
                self.set_stuck(false);
                true
            }
            Err(Compacted { oldest }) => {
                let asked = self.cursor;
                let why = format!("too old resource version: {asked} ({oldest})");
                self.fail(&ApiError::new(410, "Expired", why));
                true
            }
        }
    }

    /// A change of what is shown.
    async fn shown(&self, change: Change) -> Result<Change, Undecodable> {
        if !self.converts {
            return Ok(change);
        }
        let shown = async |object: Option<Arc<Value>>| match object {
            None => Ok(None),
            Some(stored) => self.server.cached(&self.call.resource, &stored).await.map(Some),
        };
        let (before, after) = (shown(change.before).await?, shown(change.after).await?);
        Ok(Change { before, after, ..change })
    }

    fn set_stuck(&mut self, stuck: bool) {
        if self.converts && self.stuck != stuck {
            self.server.version_caches().set_stuck(&self.call.resource, stuck);
        }
        self.stuck = stuck;
    }

    /// What a change looks like through the selection: an object that stops matching is deleted.
    fn event_of(&self, change: &Change) -> Option<WatchEvent> {
        let matches = |object: &Option<Arc<Value>>| {
            object
                .as_ref()
                .filter(|o| self.in_namespace(o) && self.selection.matches(&self.call, o))
                .cloned()
        };
        match (matches(&change.before), matches(&change.after)) {
            (None, None) => None,
            (None, Some(after)) => Some(self.event("ADDED", &after, None)),
            (Some(_), Some(after)) => Some(self.event("MODIFIED", &after, None)),
            (Some(before), None) => Some(self.event("DELETED", &before, Some(change.revision))),
        }
    }

    fn in_namespace(&self, object: &Value) -> bool {
        self.call.namespace.is_empty() || object::namespace(object) == self.call.namespace
    }

    fn event(&self, kind: &'static str, stored: &Arc<Value>, revision: Option<u64>) -> WatchEvent {
        let resource = Arc::clone(&self.call.resource);
        if self.converts {
            let mut object = Value::clone(stored);
            if let Some(revision) = revision {
                object::set_resource_version(&mut object, revision);
            }
            return WatchEvent { kind, object: Shown::Made(object) };
        }
        WatchEvent { kind, object: Shown::Stored(Arc::clone(stored), resource, revision) }
    }

    fn fail(&mut self, error: &ApiError) {
        let object = Shown::Made(error.to_status());
        self.pending.push_back(WatchEvent { kind: "ERROR", object });
        self.finished = true;
    }

    fn bookmark(&mut self) {
        let object = Shown::Made(self.bookmark_object());
        self.pending.push_back(WatchEvent { kind: "BOOKMARK", object });
        let now = Instant::now();
        let last = last_bookmark(self.deadline);
        let next = now + Duration::from_secs(BOOKMARK_SECONDS);
        // The last ones come close together.
        self.next_bookmark = match last {
            Some(last) if now >= last => now + Duration::from_secs(1),
            Some(last) => next.min(last),
            None => next,
        };
    }

    fn bookmark_object(&self) -> Value {
        let mut object = self.empty.clone();
        object::set_resource_version(&mut object, self.cursor);
        object
    }

    async fn wait(&self, changed: OwnedNotified) -> Wake {
        let bookmarks = self.options.bookmarks && self.next_bookmark < self.deadline;
        tokio::select! {
            biased;
            () = changed => Wake::Change,
            () = tokio::time::sleep(RETRY), if self.stuck => Wake::Change,
            () = tokio::time::sleep_until(self.next_bookmark), if bookmarks => Wake::Bookmark,
            () = tokio::time::sleep_until(self.deadline) => Wake::Deadline,
        }
    }

    /// Whether the CRD behind this watch has another form now, or is gone.
    fn resource_changed(&self) -> bool {
        let resource = &self.call.resource;
        if !resource.custom {
            return false;
        }
        let now = self.server.find(&resource.group, &resource.version, &resource.plural);
        !now.is_some_and(|now| Arc::ptr_eq(&now, resource))
    }

    async fn end_soon(&mut self) {
        tokio::time::sleep(Duration::from_secs(SCHEMA_CHANGE_SECONDS)).await;
        while self.take_changes().await && !self.finished {}
        self.finished = true;
    }
}

/// How long a watch lives that does not say it.
fn random_timeout(server: &ApiServer, call: &Call) -> Duration {
    let resource = &call.resource;
    let watch = format!("{}/{}/{}", call.user.name, resource.storage_key, call.namespace);
    let more = server.chance("watch", &watch).next_u64() % (TIMEOUT_MIN_SECONDS + 1);
    Duration::from_secs(TIMEOUT_MIN_SECONDS + more)
}

fn last_bookmark(deadline: Instant) -> Option<Instant> {
    deadline.checked_sub(Duration::from_secs(LAST_BOOKMARK_SECONDS))
}

fn first_bookmark(now: Instant, deadline: Instant) -> Instant {
    let regular = now + Duration::from_secs(BOOKMARK_SECONDS);
    match last_bookmark(deadline) {
        Some(last) if last > now => regular.min(last),
        _ => regular,
    }
}
