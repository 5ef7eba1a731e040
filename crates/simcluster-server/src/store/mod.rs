//! The multi-version store: what etcd is to the real server.
//!
//! One revision counts every write to anything. Each kind keeps its current objects and a log of
//! changes; an older state is the current one with the log undone. Objects carry the revision of
//! their last write as `metadata.resourceVersion`.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::watch;

use simcluster_model::object;

/// Changes that each kind remembers. The real server keeps minutes of history; a test that needs less
/// compacts. The limit bounds the memory of a long-lived sandbox.
const HISTORY_MAX: usize = 20_000;

/// All objects of a cluster, with history.
#[derive(Debug, Default)]
pub struct Store {
    revision: u64,
    kinds: BTreeMap<String, KindStore>,
}

/// The objects of one kind. Keys are `namespace/name`, or `name` where there is no namespace, in
/// the order of bytes, as etcd lists them.
#[derive(Debug)]
struct KindStore {
    objects: BTreeMap<String, Arc<Value>>,
    log: VecDeque<Change>,
    /// Changes up to this revision are forgotten.
    compacted: u64,
    changed: watch::Sender<u64>,
}

/// One write.
#[derive(Debug, Clone)]
pub struct Change {
    /// The revision it made.
    pub revision: u64,
    /// `namespace/name`.
    pub key: String,
    /// The object before, with its own resourceVersion; `None` for a create.
    pub before: Option<Arc<Value>>,
    /// The object after; `None` for a delete.
    pub after: Option<Arc<Value>>,
}

/// The revision asked for is no longer known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// The oldest revision whose successors are all known.
    pub oldest: u64,
}

/// The key of an object.
#[must_use]
pub fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

impl KindStore {
    fn new(compacted: u64) -> Self {
        Self {
            objects: BTreeMap::new(),
            log: VecDeque::new(),
            compacted,
            changed: watch::Sender::new(0),
        }
    }
}

impl Store {
    /// The revision of the last write.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The object under a key.
    #[must_use]
    pub fn get(&self, kind: &str, key: &str) -> Option<Arc<Value>> {
        self.kinds.get(kind)?.objects.get(key).cloned()
    }

    /// All objects of a kind, in key order.
    #[must_use]
    pub fn all(&self, kind: &str) -> Vec<Arc<Value>> {
        self.kinds.get(kind).map(|k| k.objects.values().cloned().collect()).unwrap_or_default()
    }

    /// Names of the kinds that have objects now.
    #[must_use]
    pub fn kinds(&self) -> Vec<String> {
        self.kinds.iter().filter(|(_, k)| !k.objects.is_empty()).map(|(n, _)| n.clone()).collect()
    }

    /// The objects of a kind in a namespace (all if empty), in key order, as they were at `revision`.
    pub fn list_at(
        &self,
        kind: &str,
        namespace: &str,
        revision: u64,
    ) -> Result<Vec<(String, Arc<Value>)>, Compacted> {
        let Some(store) = self.kinds.get(kind) else { return Ok(Vec::new()) };
        let range = namespace_range(namespace);
        let current = store.objects.range::<String, _>(range.clone());
        if revision >= self.revision {
            return Ok(current.map(|(key, object)| (key.clone(), object.clone())).collect());
        }
        if revision < store.compacted {
            return Err(Compacted { oldest: store.compacted });
        }
        let mut objects: BTreeMap<&String, Arc<Value>> =
            current.map(|(key, object)| (key, object.clone())).collect();
        for change in store.log.iter().rev().take_while(|change| change.revision > revision) {
            if !in_namespace(&change.key, namespace) {
                continue;
            }
            match &change.before {
                Some(object) => objects.insert(&change.key, object.clone()),
                None => objects.remove(&change.key),
            };
        }
        Ok(objects.into_iter().map(|(key, object)| (key.clone(), object)).collect())
    }

    /// The changes of a kind after `revision`, oldest first, at most `max`.
    pub fn changes_after(
        &self,
        kind: &str,
        revision: u64,
        max: usize,
    ) -> Result<Vec<Change>, Compacted> {
        let Some(store) = self.kinds.get(kind) else { return Ok(Vec::new()) };
        if revision < store.compacted {
            return Err(Compacted { oldest: store.compacted });
        }
        let start = store.log.partition_point(|change| change.revision <= revision);
        Ok(store.log.range(start..).take(max).cloned().collect())
    }

    /// A receiver that changes whenever the kind does.
    pub fn subscribe(&mut self, kind: &str) -> watch::Receiver<u64> {
        self.kind(kind).changed.subscribe()
    }

    /// Stores an object; returns it with its new resourceVersion.
    pub fn put(&mut self, kind: &str, key: &str, mut object: Value) -> Arc<Value> {
        self.revision += 1;
        let revision = self.revision;
        object::metadata_mut(&mut object)
            .insert("resourceVersion".to_owned(), json!(revision.to_string()));
        let object = Arc::new(object);
        let store = self.kind(kind);
        let before = store.objects.insert(key.to_owned(), object.clone());
        store.record(Change { revision, key: key.to_owned(), before, after: Some(object.clone()) });
        object
    }

    /// Removes an object; returns it as it was. A missing one is no change.
    pub fn remove(&mut self, kind: &str, key: &str) -> Option<Arc<Value>> {
        let before = self.kind(kind).objects.remove(key)?;
        self.revision += 1;
        let revision = self.revision;
        self.kind(kind).record(Change {
            revision,
            key: key.to_owned(),
            before: Some(before.clone()),
            after: None,
        });
        Some(before)
    }

    /// Forgets all history up to `revision`.
    pub fn compact(&mut self, revision: u64) {
        let revision = revision.min(self.revision);
        for store in self.kinds.values_mut() {
            let keep = store.log.partition_point(|change| change.revision <= revision);
            store.log.drain(..keep);
            store.compacted = store.compacted.max(revision);
        }
    }

    /// Makes room for a kind: its history starts now.
    pub fn register(&mut self, kind: &str) {
        self.kind(kind);
    }

    /// Wakes those who follow a kind, though none of its objects changed.
    pub fn touch(&mut self, kind: &str) {
        let store = self.kind(kind);
        store.changed.send_modify(|_| ());
    }

    fn kind(&mut self, kind: &str) -> &mut KindStore {
        let revision = self.revision;
        self.kinds.entry(kind.to_owned()).or_insert_with(|| KindStore::new(revision))
    }
}

impl KindStore {
    fn record(&mut self, change: Change) {
        let revision = change.revision;
        self.log.push_back(change);
        if self.log.len() > HISTORY_MAX
            && let Some(oldest) = self.log.pop_front()
        {
            self.compacted = oldest.revision;
        }
        self.changed.send_replace(revision);
    }
}

/// Whether a key lies in a namespace; an empty namespace holds everything.
fn in_namespace(key: &str, namespace: &str) -> bool {
    namespace.is_empty() || key.strip_prefix(namespace).is_some_and(|rest| rest.starts_with('/'))
}

fn namespace_range(namespace: &str) -> (Bound<String>, Bound<String>) {
    if namespace.is_empty() {
        (Bound::Unbounded, Bound::Unbounded)
    } else {
        // '0' is the character after '/'.
        (Bound::Included(format!("{namespace}/")), Bound::Excluded(format!("{namespace}0")))
    }
}

#[cfg(test)]
mod tests;
