//! The API server: a store, the resources it serves, a clock and a source of chance.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use serde_json::{Value, json};

use crate::lifecycle;
use crate::store::Store;
use crate::trace::Trace;
use simcluster_clock::Clock;
use simcluster_model::builtin;
use simcluster_model::object;
use simcluster_model::random::Random;
use simcluster_model::resource::{Resource, Surroundings};
use simcluster_model::time;

/// An API server without transport; `http::handle` speaks for it.
#[derive(Debug)]
pub struct ApiServer {
    store: Mutex<Store>,
    custom: RwLock<BTreeMap<Id, Arc<Resource>>>,
    clock: Clock,
    random: Mutex<Random>,
    trace: Trace,
    /// The form in which each CRD (group, plural) was last brought into force, and whether it is served.
    forms: Mutex<BTreeMap<(String, String), Form>>,
}

/// A CRD's spec, accepted names and time of deletion, and whether it is served.
type Form = ([Value; 3], bool);

/// Group, version and plural of a resource.
type Id = (String, String, String);

impl ApiServer {
    /// A server with the built-in resources and no objects.
    #[must_use]
    pub fn new(clock: Clock, seed: u64) -> Self {
        let mut store = Store::default();
        for resource in builtin::resources() {
            store.register(&resource.storage_key);
        }
        Self {
            store: Mutex::new(store),
            custom: RwLock::default(),
            clock,
            random: Mutex::new(Random::stream(seed, "apiserver")),
            trace: Trace::default(),
            forms: Mutex::default(),
        }
    }

    /// The server's clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The record of all requests.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// All served resources: built-in ones first, then those of CRDs by group, version and plural.
    #[must_use]
    pub fn resources(&self) -> Vec<Arc<Resource>> {
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        builtin::resources().iter().chain(custom.values()).cloned().collect()
    }

    /// The resource that a path names.
    #[must_use]
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        let id = (group.to_owned(), version.to_owned(), plural.to_owned());
        if let Some(resource) = custom.get(&id) {
            return Some(resource.clone());
        }
        builtin::resources()
            .iter()
            .find(|r| r.group == group && r.version == version && r.plural == plural)
            .cloned()
    }

    /// Any served resource that keeps its objects under a storage key.
    #[must_use]
    pub fn find_stored(&self, storage_key: &str) -> Option<Arc<Resource>> {
        self.resources()
            .into_iter()
            .filter(|resource| resource.storage_key == storage_key)
            .max_by_key(|resource| resource.version == resource.storage_version)
    }

    /// Replaces the resources of one CRD (`group`, `plural`) by those of its present form.
    pub(crate) fn serve_custom(&self, group: &str, plural: &str, resources: Vec<Resource>) {
        let mut custom = self.custom.write().unwrap_or_else(PoisonError::into_inner);
        custom.retain(|(g, _, p), _| g != group || p != plural);
        let key = format!("{group}/{plural}");
        // Open watches look whether their resource is still the same.
        self.store().touch(&key);
        for resource in resources {
            let id = (resource.group.clone(), resource.version.clone(), resource.plural.clone());
            custom.insert(id, Arc::new(resource));
        }
    }

    /// Serves what a CRD defines, unless that is served already.
    pub(crate) fn serve_if_changed(
        &self,
        group: &str,
        plural: &str,
        resources: Vec<Resource>,
        definition: &Value,
    ) {
        let parts = ["spec", "status.acceptedNames", "metadata.deletionTimestamp"];
        let form = parts.map(|path| object::at_path(definition, path).cloned().unwrap_or_default());
        let id = (group.to_owned(), plural.to_owned());
        let mut forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        let served = !resources.is_empty();
        if forms.get(&id).is_some_and(|(old, was)| *old == form && *was == served) {
            return;
        }
        forms.insert(id, (form, served));
        drop(forms);
        self.serve_custom(group, plural, resources);
    }

    /// What follows every write: CRDs come into force, their clean-up goes on.
    pub(crate) fn after_write(
        &self,
        resource: &Resource,
        before: Option<&Arc<Value>>,
        after: Option<&Arc<Value>>,
    ) {
        lifecycle::after_write(self, resource, before, after);
    }

    /// Gives a new object its UID and time.
    pub(crate) fn fill_system_fields(&self, object: &mut Value) {
        let uid = self.random().uuid();
        let metadata = object::metadata_mut(object);
        metadata.insert("uid".to_owned(), json!(uid));
        metadata
            .insert("creationTimestamp".to_owned(), json!(time::format_seconds(self.clock.now())));
    }

    /// A random number between two bounds, both possible.
    pub(crate) fn between(&self, low: u64, high: u64) -> u64 {
        low + self.random().next_u64() % (high.saturating_sub(low) + 1)
    }

    /// All stored objects of a resource, by storage key (`group/plural`), in the stored version.
    #[must_use]
    pub fn stored(&self, storage_key: &str) -> Vec<Arc<Value>> {
        self.store().all(storage_key)
    }

    /// The store, locked: never held across an await.
    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Five random characters for `generateName`.
    pub(crate) fn name_suffix(&self) -> String {
        self.random().name_suffix()
    }

    /// Calls `f` with what strategies may look at.
    pub(crate) fn with_surroundings<T>(&self, f: impl FnOnce(&mut Surroundings<'_>) -> T) -> T {
        let mut random = || self.random().next_u64();
        let stored = |key: &str| self.stored(key);
        f(&mut Surroundings { now: self.clock.now(), random: &mut random, stored: &stored })
    }

    /// Forgets the history of all objects up to a revision, as etcd does every few minutes.
    pub fn compact(&self, revision: u64) {
        self.store().compact(revision);
    }

    /// The revision of the last write.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.store().revision()
    }

    fn random(&self) -> MutexGuard<'_, Random> {
        self.random.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
