//! What a controller knows of the objects of a kind: filled by an informer, read by passes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Resource;
use tokio::sync::SetOnce;

use super::{Key, Written};

/// A place in the history of a kind: a write that this store may not have heard of yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    version: u64,
    lists_begun: u64,
}

/// The objects of a kind, in order of their keys.
pub(crate) struct Store<K> {
    state: Mutex<State<K>>,
    /// Wakes those who wait in the order in which they do.
    synced: SetOnce<()>,
    index: fn(&K) -> Vec<String>,
}

struct State<K> {
    objects: BTreeMap<Key, Arc<K>>,
    indexed: BTreeMap<String, BTreeSet<Key>>,
    heard_version: u64,
    /// The highest version that the list under way has shown. It counts as heard when the list is
    /// complete: a page may show a later write before the next one shows an earlier.
    listed_version: Option<u64>,
    lists_begun: u64,
    last_list: u64,
}

impl<K: Resource> Store<K> {
    /// An empty store; `index` names the groups that an object is found under by [`Store::group`].
    pub(crate) fn new(index: fn(&K) -> Vec<String>) -> Self {
        let state = State {
            objects: BTreeMap::new(),
            indexed: BTreeMap::new(),
            heard_version: 0,
            listed_version: None,
            lists_begun: 0,
            last_list: 0,
        };
        Self { state: Mutex::new(state), synced: SetOnce::new(), index }
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object of a key.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.lock().objects.get(key).cloned()
    }

    /// All objects.
    pub(crate) fn all(&self) -> Vec<Arc<K>> {
        self.lock().objects.values().cloned().collect()
    }

    /// The objects that the index puts into this group.
    pub(crate) fn group(&self, name: &str) -> Vec<Arc<K>> {
        self.smallest_group([name.to_owned()])
    }

    /// The objects of that one of these groups which has the fewest: where an object must be in all of
    /// them, the others need not be looked at.
    pub(crate) fn smallest_group(&self, names: impl IntoIterator<Item = String>) -> Vec<Arc<K>> {
        let state = self.lock();
        let of = |name: String| state.indexed.get(&name);
        let groups = names.into_iter().map(of);
        let smallest = groups.min_by_key(|keys| keys.map_or(0, BTreeSet::len)).flatten();
        let keys = smallest.into_iter().flatten();
        keys.filter_map(|key| state.objects.get(key).cloned()).collect()
    }

    /// Waits until the first list is in.
    pub(crate) async fn synced(&self) {
        self.synced.wait().await;
    }

    /// Marks a write.
    pub(crate) fn mark(&self, written: &Written) -> Mark {
        let version = number_of(written.metadata.resource_version.as_deref());
        Mark { version, lists_begun: self.lock().lists_begun }
    }

    /// Whether the store has heard of what happened up to the mark.
    pub(crate) fn has_heard(&self, mark: Mark) -> bool {
        let state = self.lock();
        state.heard_version >= mark.version || state.last_list > mark.lists_begun
    }

    /// A new list begins: it shows everything written until now.
    pub(super) fn begin_list(&self) {
        let mut state = self.lock();
        state.lists_begun += 1;
        state.listed_version = Some(0);
    }

    /// Puts an object in; returns the one that was there.
    pub(super) fn insert(&self, object: Arc<K>) -> Option<Arc<K>> {
        let mut state = self.lock();
        state.hear(version_of(object.as_ref()));
        let key = Key::of(object.as_ref());
        let groups = (self.index)(&object);
        let old = state.objects.insert(key.clone(), object);
        let before = old.as_ref().map(|old| (self.index)(old)).unwrap_or_default();
        if groups != before {
            state.unindex(before, &key);
            for group in groups {
                state.indexed.entry(group).or_default().insert(key.clone());
            }
        }
        old
    }

    /// Takes an object out; `last` is its last state.
    pub(super) fn remove(&self, last: &K) -> Option<Arc<K>> {
        let mut state = self.lock();
        state.hear(version_of(last));
        let key = Key::of(last);
        let old = state.objects.remove(&key);
        if let Some(old) = &old {
            state.unindex((self.index)(old), &key);
        }
        old
    }

    /// A list is complete: what it did not show is gone. Returns the objects to be taken out.
    pub(super) fn end_list(&self, listed: &BTreeSet<Key>) -> Vec<Arc<K>> {
        let mut state = self.lock();
        state.last_list = state.lists_begun;
        let listed_version = state.listed_version.take().unwrap_or(0);
        state.hear(listed_version);
        let gone = state
            .objects
            .iter()
            .filter(|(key, _)| !listed.contains(key))
            .map(|(_, object)| Arc::clone(object))
            .collect();
        drop(state);
        gone
    }

    /// Says that the first list is in.
    pub(super) fn set_synced(&self) {
        // It may be in already.
        let _ = self.synced.set(());
    }
}

impl<K> State<K> {
    fn hear(&mut self, version: u64) {
        let heard = self.listed_version.as_mut().unwrap_or(&mut self.heard_version);
        *heard = version.max(*heard);
    }

    fn unindex(&mut self, groups: Vec<String>, key: &Key) {
        for group in groups {
            if let Some(keys) = self.indexed.get_mut(&group) {
                keys.remove(key);
                if keys.is_empty() {
                    self.indexed.remove(&group);
                }
            }
        }
    }
}

fn version_of<K: Resource>(object: &K) -> u64 {
    number_of(object.meta().resource_version.as_deref())
}

/// A resource version as a number; 0 if it is none. Kubernetes promises since 1.35 that versions of one
/// resource can be compared this way.
fn number_of(version: Option<&str>) -> u64 {
    version.and_then(|text| text.parse().ok()).unwrap_or(0)
}
