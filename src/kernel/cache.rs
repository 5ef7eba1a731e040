//! What we know of the objects of one kind: what the watch told us, and what we wrote since.
//!
//! A watch runs behind. Deciding on what it said last would repeat a write that has just been made.
//! So the answer to each write is kept until the watch has caught up with it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use kube::runtime::watcher::Event;

use super::key::Key;

/// An object that can be cached.
pub trait Cached {
    /// Which object.
    fn key(&self) -> &Key;
    /// Its identity: an object made anew under the same key has another.
    fn uid(&self) -> &str;
    /// Its version.
    fn resource_version(&self) -> &str;
}

/// What one event changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Change<T> {
    /// What was known before, from the watch or from our own writes.
    pub old: Option<Arc<T>>,
    /// What is known now; `None`: the object is gone.
    pub new: Option<Arc<T>>,
}

/// The objects of one kind. Cheap reads; never locked across an await.
#[derive(Debug)]
pub struct Cache<T> {
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    watched: BTreeMap<Key, Arc<T>>,
    written: BTreeMap<Key, Written<T>>,
    /// Lists that are being received, by scope: a namespace, or empty for all.
    listing: BTreeMap<String, BTreeMap<Key, Arc<T>>>,
}

#[derive(Debug)]
struct Written<T> {
    answer: Answer<T>,
    /// Versions that our writes made since the watch was last level with us.
    own_versions: BTreeSet<String>,
    /// A list was begun after this write, so its result includes the write.
    listed_since: bool,
}

#[derive(Debug)]
enum Answer<T> {
    /// The object as the server returned it.
    Object(Arc<T>),
    /// The object with this UID is gone.
    Gone(String),
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                watched: BTreeMap::new(),
                written: BTreeMap::new(),
                listing: BTreeMap::new(),
            }),
        }
    }
}

impl<T: Cached> Cache<T> {
    /// The newest that we know of the object.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Arc<T>> {
        self.with(|state| state.get(key))
    }

    /// All keys that the watch knows, in order.
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        self.with(|state| state.watched.keys().cloned().collect())
    }

    /// Notes the answer to a write of ours.
    pub fn wrote(&self, object: T) -> Arc<T> {
        let object = Arc::new(object);
        let kept = object.clone();
        self.with(|state| {
            let behind =
                state.watched.get(object.key()).is_none_or(|seen| !is_at(&**seen, &*object));
            if behind {
                let key = kept.key().clone();
                let before = state.written.remove(&key);
                let mut own_versions =
                    before.map(|written| written.own_versions).unwrap_or_default();
                own_versions.insert(kept.resource_version().to_owned());
                let answer = Answer::Object(object);
                state.written.insert(key, Written { answer, own_versions, listed_since: false });
            }
        });
        kept
    }

    /// Notes that a delete of ours removed the object with this UID.
    pub fn removed(&self, key: &Key, uid: &str) {
        self.with(|state| {
            if state.watched.get(key).is_some_and(|seen| seen.uid() == uid) {
                let answer = Answer::Gone(uid.to_owned());
                let own_versions = BTreeSet::new();
                let written = Written { answer, own_versions, listed_since: false };
                state.written.insert(key.clone(), written);
            } else {
                state.written.remove(key);
            }
        });
    }

    /// Takes in an event of the watch over `scope` (a namespace, or empty for all) and says what
    /// it changed. A list says so at its end.
    pub fn absorb(&self, scope: &str, event: Event<T>) -> Vec<Change<T>> {
        self.with(|state| match event {
            Event::Apply(object) => state.seen(Arc::new(object)).into_iter().collect(),
            Event::Delete(object) => state.gone(&object).into_iter().collect(),
            Event::Init => {
                state.listing.insert(scope.to_owned(), BTreeMap::new());
                for (_, written) in state.written.iter_mut().filter(|(key, _)| covers(scope, key)) {
                    written.listed_since = true;
                }
                Vec::new()
            }
            Event::InitApply(object) => {
                let list = state.listing.entry(scope.to_owned()).or_default();
                list.insert(object.key().clone(), Arc::new(object));
                Vec::new()
            }
            Event::InitDone => state.listed(scope),
        })
    }

    fn with<R>(&self, work: impl FnOnce(&mut State<T>) -> R) -> R {
        // Nothing in here panics half-way, so a poisoned lock guards a sound state.
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T: Cached> State<T> {
    fn get(&self, key: &Key) -> Option<Arc<T>> {
        let watched = self.watched.get(key);
        match self.written.get(key).map(|written| &written.answer) {
            Some(Answer::Object(object)) => Some(object.clone()),
            Some(Answer::Gone(uid)) => watched.filter(|seen| seen.uid() != uid).cloned(),
            None => watched.cloned(),
        }
    }

    fn seen(&mut self, object: Arc<T>) -> Option<Change<T>> {
        let key = object.key().clone();
        let old = self.get(&key);
        let caught_up = match self.written.get(&key).map(|written| &written.answer) {
            Some(Answer::Object(answer)) => is_at(&*object, &**answer),
            Some(Answer::Gone(uid)) => object.uid() != uid,
            None => true,
        };
        // Somebody else wrote before us, and the answer to our write holds their change already. It is
        // told now: when the watch is level with us there will be nothing new to see.
        let strange = self
            .written
            .get(&key)
            .is_some_and(|written| !written.own_versions.contains(object.resource_version()));
        let seen_before = self.watched.insert(key.clone(), object);
        if !caught_up {
            let new = self.get(&key);
            return (strange && new.is_some()).then_some(Change { old: seen_before, new });
        }
        self.written.remove(&key);
        let new = self.get(&key);
        let same = match (&old, &new) {
            (Some(old), Some(new)) => same_version(&**old, &**new),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        (!same).then_some(Change { old, new })
    }

    fn gone(&mut self, object: &T) -> Option<Change<T>> {
        let key = object.key();
        let old = self.get(key);
        self.watched.remove(key);
        let newer_write = match self.written.get(key).map(|written| &written.answer) {
            Some(Answer::Object(answer)) => {
                answer.uid() != object.uid() && !is_at(object, &**answer)
            }
            Some(Answer::Gone(_)) | None => false,
        };
        if newer_write {
            return None;
        }
        self.written.remove(key);
        Some(Change { old, new: None })
    }

    fn listed(&mut self, scope: &str) -> Vec<Change<T>> {
        let list = self.listing.remove(scope).unwrap_or_default();
        let before: Vec<Key> =
            self.watched.keys().filter(|key| covers(scope, key)).cloned().collect();
        self.written.retain(|key, written| !(covers(scope, key) && written.listed_since));
        let mut changes = Vec::new();
        for key in before.into_iter().filter(|key| !list.contains_key(key)) {
            let old = self.watched.remove(&key);
            if !self.written.contains_key(&key) {
                changes.push(Change { old, new: None });
            }
        }
        changes.extend(list.into_values().filter_map(|object| self.seen(object)));
        changes
    }
}

fn covers(scope: &str, key: &Key) -> bool {
    scope.is_empty() || scope == key.namespace
}

fn same_version<T: Cached>(one: &T, other: &T) -> bool {
    one.uid() == other.uid() && one.resource_version() == other.resource_version()
}

/// Whether `seen` is `answer` or newer. Versions of one kind can be compared as numbers; should one
/// not be a number, the watch is believed.
fn is_at<T: Cached>(seen: &T, answer: &T) -> bool {
    match (seen.resource_version().parse::<u64>(), answer.resource_version().parse::<u64>()) {
        (Ok(seen), Ok(answer)) => seen >= answer,
        (Err(_), _) | (_, Err(_)) => true,
    }
}
