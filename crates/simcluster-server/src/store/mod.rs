//! The multi-version store: what etcd is to the real server.
//!
//! One revision counts every write to anything. Each kind keeps its current objects and a log of
//! changes; an older state is the current one with the log undone. Objects carry the revision of
//! their last write as `metadata.resourceVersion`.

mod expiry;
mod history;
mod kept;
mod restore;
pub(crate) mod size;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use self::expiry::Expiry;
use self::history::History;
use self::kept::{Kept, Warm};
use simcluster_clock::Clock;
use simcluster_model::allocation::ServiceAllocator;
use simcluster_model::object;
use simcluster_model::resource::Resource;

/// Storage key of Services.
const SERVICES: &str = "/services";

/// All objects of a cluster, with history.
#[derive(Debug)]
pub struct Store {
    clock: Clock,
    revision: u64,
    kinds: BTreeMap<String, KindStore>,
    history: History,
    warm: Warm,
    services: ServiceAllocator,
}

/// The objects of one kind. Keys are `namespace/name`, or `name` where there is no namespace, in
/// the order of bytes, as etcd lists them.
#[derive(Debug)]
struct KindStore {
    name: Arc<str>,
    objects: BTreeMap<String, Arc<Kept>>,
    log: VecDeque<Entry>,
    /// For kinds whose objects do not stay.
    expiry: Option<Expiry>,
    /// There was nothing of this kind up to this revision.
    born: u64,
    /// The revision of the last change.
    last: u64,
    /// Changes up to this revision are forgotten.
    compacted: u64,
    /// Wakes those who follow the kind, in the order in which they wait; a `tokio::sync::watch` would
    /// wake them in an order that no seed chooses.
    changed: Arc<Notify>,
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

/// A change as it is remembered.
#[derive(Debug)]
struct Entry {
    revision: u64,
    key: String,
    before: Option<Arc<Kept>>,
    after: Option<Arc<Kept>>,
}

impl Entry {
    fn change(&self) -> Change {
        let value = |kept: &Option<Arc<Kept>>| kept.as_ref().map(|kept| kept.value());
        Change {
            revision: self.revision,
            key: self.key.clone(),
            before: value(&self.before),
            after: value(&self.after),
        }
    }
}

/// The revision asked for is no longer known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the history before revision {oldest} is forgotten")]
pub struct Compacted {
    /// The oldest revision whose successors are all known.
    pub oldest: u64,
}

/// What the storage says of an object that is not as it should be. A dry run of a change does not come to
/// where keys get the prefix of the cluster.
#[must_use]
pub fn invalid_object(resource: &Resource, key: &str, dry_run: bool, why: &str) -> String {
    let prefix = if dry_run { "" } else { "/registry" };
    let path = resource.strategy.registry_path(resource);
    format!(
        "StorageError: invalid object, Code: 4, Key: {prefix}/{path}/{key}, ResourceVersion: 0, \
         AdditionalErrorMsg: {why}"
    )
}

/// The key of an object.
#[must_use]
pub fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

impl KindStore {
    fn new(name: &str, born: u64) -> Self {
        Self {
            name: Arc::from(name),
            objects: BTreeMap::new(),
            log: VecDeque::new(),
            expiry: None,
            born,
            last: 0,
            compacted: born,
            changed: Arc::default(),
        }
    }

    /// What changed after a revision, as it was before.
    fn changed_since(
        &self,
        revision: u64,
    ) -> Result<BTreeMap<&String, Option<&Arc<Kept>>>, Compacted> {
        if revision < self.compacted {
            return Err(Compacted { oldest: self.compacted });
        }
        let later = self.log.iter().rev().take_while(|change| change.revision > revision);
        // The first change after the revision is the last to be seen here, and stays.
        Ok(later.map(|change| (&change.key, change.before.as_ref())).collect())
    }
}

impl Store {
    /// An empty store, whose history grows old by a clock; the allocator learns of every write to a
    /// Service.
    #[must_use]
    pub fn new(clock: Clock, services: ServiceAllocator) -> Self {
        let history = History::default();
        let warm = Warm::default();
        Self { clock, revision: 0, kinds: BTreeMap::new(), history, warm, services }
    }

    /// The revision of the last write.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The object under a key.
    #[must_use]
    pub fn get(&self, kind: &str, key: &str) -> Option<Arc<Value>> {
        self.kinds.get(kind)?.objects.get(key).map(|kept| self.warm.read(kept))
    }

    /// The object under a key as it was at a revision; as far back as history goes.
    #[must_use]
    pub fn get_at(&self, kind: &str, key: &str, revision: u64) -> Option<Arc<Value>> {
        let store = self.kinds.get(kind)?;
        let later = store.log.iter().find(|change| change.revision > revision && change.key == key);
        match later {
            Some(change) => change.before.as_ref().map(|kept| kept.value()),
            None => self.get(kind, key),
        }
    }

    /// Whether nobody has written or removed an object since it was read.
    #[must_use]
    pub fn is_current(&self, kind: &str, key: &str, read: &Arc<Value>) -> bool {
        self.get(kind, key).is_some_and(|now| Arc::ptr_eq(&now, read))
    }

    /// All objects of a kind, in key order.
    #[must_use]
    pub fn all(&self, kind: &str) -> Vec<Arc<Value>> {
        let objects = self.kinds.get(kind).into_iter().flat_map(|store| store.objects.values());
        objects.map(|kept| self.warm.read(kept)).collect()
    }

    /// The objects of a kind in a namespace (all if empty), in key order.
    #[must_use]
    pub fn in_namespace(&self, kind: &str, namespace: &str) -> Vec<Arc<Value>> {
        let Some(store) = self.kinds.get(kind) else { return Vec::new() };
        let range = store.objects.range::<String, _>(namespace_range(namespace));
        range.map(|(_, kept)| self.warm.read(kept)).collect()
    }

    /// The revision of the last write to any of these kinds; 0 if there was none.
    #[must_use]
    pub fn last_change<'a>(&self, kinds: impl IntoIterator<Item = &'a str>) -> u64 {
        let changes = kinds.into_iter().filter_map(|kind| self.kinds.get(kind));
        changes.map(|store| store.last).max().unwrap_or_default()
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
        self.list_from(kind, namespace, "", revision, usize::MAX).map(|(objects, _)| objects)
    }

    /// The first `limit` objects of the same list whose keys are not less than `from`, and how many come
    /// after them: these are counted, not copied, so that the pages of a long list cost what they show.
    pub fn list_from(
        &self,
        kind: &str,
        namespace: &str,
        from: &str,
        revision: u64,
        limit: usize,
    ) -> Result<(Vec<(String, Arc<Value>)>, usize), Compacted> {
        let Some(store) = self.kinds.get(kind) else { return Ok((Vec::new(), 0)) };
        let mut past =
            if revision < self.revision { store.changed_since(revision)? } else { BTreeMap::new() };
        past.retain(|key, _| in_namespace(key, namespace) && key.as_str() >= from);
        let mut past = past.into_iter().peekable();
        let (mut listed, mut more) = (Vec::new(), 0);
        let mut show = |key: &String, object: Option<&Arc<Kept>>| match object {
            None => {}
            Some(kept) if listed.len() < limit => listed.push((key.clone(), kept.value())),
            Some(_) => more += 1,
        };
        for (key, object) in store.objects.range::<String, _>(range_from(namespace, from)) {
            while let Some((gone, before)) = past.next_if(|(other, _)| *other < key) {
                show(gone, before);
            }
            match past.next_if(|(other, _)| *other == key) {
                Some((_, before)) => show(key, before),
                None => show(key, Some(object)),
            }
        }
        past.for_each(|(gone, before)| show(gone, before));
        Ok((listed, more))
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
        Ok(store.log.range(start..).take(max).map(Entry::change).collect())
    }

    /// What is notified whenever the kind changes.
    pub fn subscribe(&mut self, kind: &str) -> Arc<Notify> {
        self.kind(kind).changed.clone()
    }

    /// Stores an object; returns it with its new resourceVersion.
    pub fn put(&mut self, kind: &str, key: &str, mut object: Value) -> Arc<Value> {
        self.revision += 1;
        let revision = self.revision;
        object::metadata_mut(&mut object)
            .insert("resourceVersion".to_owned(), json!(revision.to_string()));
        let object = Arc::new(object);
        let after = self.warm.keep(Arc::clone(&object));
        let now = self.clock.now();
        let store = self.kind(kind);
        let before = store.objects.insert(key.to_owned(), Arc::clone(&after));
        if let Some(expiry) = &mut store.expiry {
            expiry.begin(key, revision, now);
        }
        if kind == SERVICES {
            let before = before.as_ref().map(|kept| kept.value());
            self.services.follow(before.as_deref(), Some(&object));
        }
        self.record(kind, Entry { revision, key: key.to_owned(), before, after: Some(after) });
        object
    }

    /// Removes an object; returns it as it was. A missing one is no change.
    pub fn remove(&mut self, kind: &str, key: &str) -> Option<Arc<Value>> {
        let before = self.kind(kind).objects.remove(key)?;
        let object = before.value();
        if kind == SERVICES {
            self.services.follow(Some(&object), None);
        }
        self.revision += 1;
        let (revision, key) = (self.revision, key.to_owned());
        self.record(kind, Entry { revision, key, before: Some(before), after: None });
        Some(object)
    }

    /// Makes room for a kind: its history starts now.
    pub fn register(&mut self, kind: &str) {
        self.kind(kind);
    }

    /// Wakes those who follow a kind, though none of its objects changed.
    pub fn touch(&mut self, kind: &str) {
        let store = self.kind(kind);
        store.changed.notify_waiters();
    }

    fn kind(&mut self, kind: &str) -> &mut KindStore {
        let revision = self.revision;
        self.kinds.entry(kind.to_owned()).or_insert_with(|| KindStore::new(kind, revision))
    }
}

/// Whether a key lies in a namespace; an empty namespace holds everything.
fn in_namespace(key: &str, namespace: &str) -> bool {
    namespace.is_empty() || key.strip_prefix(namespace).is_some_and(|rest| rest.starts_with('/'))
}

/// The keys of a namespace that are not less than another one.
fn range_from(namespace: &str, from: &str) -> (Bound<String>, Bound<String>) {
    let (start, end) = namespace_range(namespace);
    // A range must not begin after its end.
    let from = match &end {
        Bound::Excluded(last) if last.as_str() < from => last.clone(),
        Bound::Excluded(_) | Bound::Included(_) | Bound::Unbounded => from.to_owned(),
    };
    let start = match start {
        Bound::Included(first) => first.max(from),
        Bound::Excluded(_) | Bound::Unbounded => from,
    };
    (Bound::Included(start), end)
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
