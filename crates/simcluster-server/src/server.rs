//! The API server: a store, the resources it serves, a clock and a source of chance.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::admission::{Chain, Plugin, count_quotas};
use crate::auth::User;
use crate::auth::account_tokens::SigningKey;
use crate::auth::policy::{Roles, Scope};
use crate::auth::rbac;
use crate::conversion::VersionCaches;
use crate::gate::Gate;
use crate::http::openapi;
use crate::http::texts::Texts;
use crate::lifecycle;
use crate::resources::Resources;
use crate::store::{self, Compacted, Store};
use crate::trace::Trace;
use crate::verbs::Call;
use crate::webhook::WebhookCaller;
use simcluster_clock::Clock;
use simcluster_model::allocation::{Reservation, ServiceAllocator, ServiceNetwork};
use simcluster_model::object;
use simcluster_model::random::Random;
use simcluster_model::registry;
use simcluster_model::resource::{Resource, Surroundings};
use simcluster_model::time;

/// An API server without transport; `http::handle` speaks for it.
#[derive(Debug)]
pub struct ApiServer {
    store: Mutex<Store>,
    custom: Mutex<BTreeMap<Id, Arc<Resource>>>,
    served: RwLock<Arc<Resources>>,
    texts: Texts,
    version_caches: VersionCaches,
    openapi_v2: openapi::Kept,
    /// What tokens of `ServiceAccounts` are signed with.
    token_key: RwLock<SigningKey>,
    /// What RBAC grants, by namespace, each with the last change that it takes into account.
    scopes: Mutex<BTreeMap<String, (u64, Arc<Scope>)>>,
    clock: Clock,
    seed: u64,
    /// How often chance was asked for each purpose and object.
    draws: Mutex<BTreeMap<u64, u64>>,
    trace: Trace,
    admission: RwLock<Arc<Chain>>,
    webhook_caller: RwLock<Option<Arc<dyn WebhookCaller>>>,
    has_controllers: AtomicBool,
    warns_of_idle_kinds: AtomicBool,
    gate: Gate,
    /// The form in which each CRD (group, plural) was last brought into force, and whether it is served.
    forms: Mutex<BTreeMap<(String, String), Form>>,
    services: ServiceAllocator,
    /// Held while CRDs come into force, so that what is served last is what was written last.
    lifecycle: Mutex<()>,
}

/// A CRD's spec, accepted names and time of deletion, and whether it is served.
type Form = ([Value; 3], bool);

/// Storage key of Events.
const EVENTS: &str = "/events";

/// How long Events stay after they were last written (`--event-ttl`).
const EVENTS_LIVE: SignedDuration = SignedDuration::from_hours(1);

/// So many namespaces at most have what RBAC grants in them remembered.
const SCOPES_MAX: usize = 1000;

/// Group, version and plural of a resource.
type Id = (String, String, String);

impl ApiServer {
    /// A server with the built-in resources and no objects.
    #[must_use]
    pub fn new(clock: Clock, seed: u64) -> Self {
        let services = ServiceAllocator::default();
        Self {
            store: Mutex::new(empty_store(clock, &services)),
            custom: Mutex::default(),
            served: RwLock::new(Arc::new(Resources::with_custom([]))),
            texts: Texts::default(),
            version_caches: VersionCaches::default(),
            openapi_v2: openapi::Kept::default(),
            token_key: RwLock::new(SigningKey::new(&format!("tokens/{seed}"))),
            scopes: Mutex::default(),
            clock,
            seed,
            draws: Mutex::default(),
            trace: Trace::default(),
            admission: RwLock::new(Arc::new(Chain::standard())),
            webhook_caller: RwLock::default(),
            has_controllers: AtomicBool::new(false),
            warns_of_idle_kinds: AtomicBool::new(false),
            gate: Gate::new(),
            forms: Mutex::default(),
            services,
            lifecycle: Mutex::default(),
        }
    }

    /// The seed of everything random.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Gives Services addresses of another network than `10.0.0.0/16`. For servers without objects.
    pub fn set_service_network(&mut self, network: ServiceNetwork) {
        self.services = ServiceAllocator::new(network);
        self.store = Mutex::new(empty_store(self.clock, &self.services));
    }

    /// What gives Services their addresses and node ports.
    #[must_use]
    pub fn services(&self) -> &ServiceAllocator {
        &self.services
    }

    /// The server's clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Signs tokens of `ServiceAccounts` with a secret from now on, so that whoever knows the seed can make
    /// none; those that were issued before are no longer good.
    pub fn sign_tokens_with(&self, secret: &str) {
        *self.token_key.write().unwrap_or_else(PoisonError::into_inner) = SigningKey::new(secret);
    }

    /// What tokens of `ServiceAccounts` are signed with.
    pub(crate) fn token_key(&self) -> SigningKey {
        self.token_key.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds a plugin to admission: it is asked after the built-in ones, before webhooks.
    pub fn add_admission_plugin(&self, plugin: Arc<dyn Plugin>) {
        self.change_admission(|chain| chain.add(plugin));
    }

    /// Takes a plugin out of admission; whether there was one of that name.
    pub fn disable_admission_plugin(&self, name: &str) -> bool {
        self.change_admission(|chain| chain.remove(name))
    }

    fn change_admission<T>(&self, change: impl FnOnce(&mut Chain) -> T) -> T {
        let mut chain = self.admission.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut chain))
    }

    /// The admission chain.
    pub(crate) fn admission(&self) -> Arc<Chain> {
        Arc::clone(&self.admission.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Says how webhooks are called; without it every call fails.
    pub fn set_webhook_caller(&self, caller: Arc<dyn WebhookCaller>) {
        *self.webhook_caller.write().unwrap_or_else(PoisonError::into_inner) = Some(caller);
    }

    /// How webhooks are called.
    pub(crate) fn webhook_caller(&self) -> Option<Arc<dyn WebhookCaller>> {
        self.webhook_caller.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether there are controllers beside the server. What quotas limit is then counted, which in a
    /// real cluster is the work of one: without it the status of quotas stays empty, and what they limit
    /// is refused.
    pub fn set_has_controllers(&self, has: bool) {
        self.has_controllers.store(has, Ordering::Relaxed);
    }

    /// Whether there are controllers beside the server.
    pub(crate) fn has_controllers(&self) -> bool {
        self.has_controllers.load(Ordering::Relaxed)
    }

    /// Whether a create of an object that nothing will act on is answered with a warning, which no real
    /// server sends.
    pub fn warn_of_idle_kinds(&self, warn: bool) {
        self.warns_of_idle_kinds.store(warn, Ordering::Relaxed);
    }

    pub(crate) fn warns_of_idle_kinds(&self) -> bool {
        self.warns_of_idle_kinds.load(Ordering::Relaxed)
    }

    /// A fresh UID.
    pub(crate) fn new_uid(&self) -> String {
        self.chance("review", "").uuid()
    }

    /// The record of all requests.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Texts of objects that lists and watches share.
    pub(crate) fn texts(&self) -> &Texts {
        &self.texts
    }

    /// Objects in the versions that webhooks make.
    pub(crate) fn version_caches(&self) -> &VersionCaches {
        &self.version_caches
    }

    /// The OpenAPI v2 document that was written last.
    pub(crate) fn openapi_v2(&self) -> &openapi::Kept {
        &self.openapi_v2
    }

    /// What every request and every event of a watch passes.
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Lets requests run in an order that the seed chooses, not in that in which they came.
    pub fn shuffle(&mut self) {
        self.gate.shuffle(self.seed);
    }

    /// All served resources: built-in ones first, then those of CRDs by group, version and plural.
    #[must_use]
    pub fn resources(&self) -> Vec<Arc<Resource>> {
        self.served().all().to_vec()
    }

    /// All served resources, to be found by name.
    #[must_use]
    pub fn served(&self) -> Arc<Resources> {
        Arc::clone(&self.served.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The resource that a path names.
    #[must_use]
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        self.served().find(group, version, plural).cloned()
    }

    /// Any served resource that keeps its objects under a storage key.
    #[must_use]
    pub fn find_stored(&self, storage_key: &str) -> Option<Arc<Resource>> {
        self.served().find_stored(storage_key).cloned()
    }

    /// Replaces the resources of one CRD (`group`, `plural`) by those of its present form.
    pub(crate) fn serve_custom(&self, group: &str, plural: &str, resources: Vec<Resource>) {
        let mut custom = self.custom.lock().unwrap_or_else(PoisonError::into_inner);
        custom.retain(|(g, _, p), _| g != group || p != plural);
        for resource in resources {
            let id = (resource.group.clone(), resource.version.clone(), resource.plural.clone());
            custom.insert(id, Arc::new(resource));
        }
        self.publish(Resources::with_custom(custom.values()));
        self.forget_versions();
        // Open watches look whether their resource is still the same.
        self.store().touch(&format!("{group}/{plural}"));
    }

    fn publish(&self, served: Resources) {
        *self.served.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(served);
    }

    /// What RBAC grants in a namespace, or in the whole cluster if it is empty: compiled anew only when a
    /// role or binding has changed.
    #[must_use]
    pub fn scope(&self, namespace: &str) -> Arc<Scope> {
        let kind = |plural: &str| format!("{}/{plural}", rbac::GROUP);
        let (bindings, roles) = if namespace.is_empty() {
            (kind("clusterrolebindings"), kind("clusterroles"))
        } else {
            (kind("rolebindings"), kind("roles"))
        };
        let cluster_roles = kind("clusterroles");
        let changed = self.store().last_change([&*bindings, &*roles, &*cluster_roles]);
        if let Some((known, scope)) = self.scopes().get(namespace)
            && *known == changed
        {
            return Arc::clone(scope);
        }
        let get = |namespace: &str, name: &str| {
            let kind = if namespace.is_empty() { &cluster_roles } else { &roles };
            self.get(kind, namespace, name)
        };
        let cluster = || self.stored(&cluster_roles);
        let bindings = self.store().in_namespace(&bindings, namespace);
        let roles = Roles { get: &get, cluster: &cluster };
        let scope = Arc::new(Scope::compile(namespace, bindings, roles));
        let mut scopes = self.scopes();
        if scopes.len() >= SCOPES_MAX {
            scopes.clear();
        }
        scopes.insert(namespace.to_owned(), (changed, Arc::clone(&scope)));
        scope
    }

    fn scopes(&self) -> MutexGuard<'_, BTreeMap<String, (u64, Arc<Scope>)>> {
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner)
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
        call: &Call,
        before: Option<&Arc<Value>>,
        after: Option<&Arc<Value>>,
    ) {
        lifecycle::after_write(self, &call.resource, before, after);
        call.changed.at(self.revision());
        if self.has_controllers() {
            count_quotas(self, &call.resource, before, after);
        }
    }

    /// Gives a new object its UID and time.
    pub(crate) fn fill_system_fields(&self, resource: &Resource, object: &mut Value) {
        let uid = self.chance("uid", &subject(resource, object)).uuid();
        let metadata = object::metadata_mut(object);
        metadata.insert("uid".to_owned(), json!(uid));
        metadata
            .insert("creationTimestamp".to_owned(), json!(time::format_seconds(self.clock.now())));
    }

    /// All objects in the order in which they were written last, each with its resource, for
    /// [`Self::adopt`] of another server.
    #[must_use]
    pub fn snapshot(&self) -> Vec<(Arc<Resource>, Arc<Value>)> {
        let served = self.served();
        let store = self.store();
        let all = store.kinds().into_iter().flat_map(|kind| {
            let resource = served.find_stored(&kind).cloned();
            let objects = store.all(&kind).into_iter();
            objects.filter_map(move |object| Some((resource.clone()?, object)))
        });
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|(_, object)| object::resource_version(object).parse::<u64>().unwrap_or(0));
        all
    }

    /// Stores an object of a built-in kind as if it had been created here and now as it was on another
    /// server, which checked it.
    pub fn adopt(&self, resource: &Resource, made: &Value) {
        let mut object = made.clone();
        self.fill_system_fields(resource, &mut object);
        let metadata = object::metadata_mut(&mut object);
        let time = metadata.get("creationTimestamp").cloned().unwrap_or_default();
        let fields = metadata.get_mut("managedFields").and_then(Value::as_array_mut);
        for entry in fields.into_iter().flatten() {
            object::put(entry, "time", time.clone());
        }
        let key = store::key(object::namespace(&object), object::name(&object));
        self.store().put(&resource.storage_key, &key, object);
    }

    /// All stored objects of a resource, by storage key (`group/plural`), in the stored version.
    #[must_use]
    pub fn stored(&self, storage_key: &str) -> Vec<Arc<Value>> {
        self.store().all(storage_key)
    }

    /// The stored object of a name, by storage key, in the stored version.
    #[must_use]
    pub fn get(&self, storage_key: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.store().get(storage_key, &store::key(namespace, name))
    }

    /// The store, locked: never held across an await.
    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Random numbers for a purpose and a subject, others each time. Each pair has its own, so that
    /// one more object, or one more watch, changes nothing for the others.
    pub(crate) fn chance(&self, purpose: &str, subject: &str) -> Random {
        let id = Random::stream(self.seed, &format!("{purpose}/{subject}")).next_u64();
        let mut draws = self.draws.lock().unwrap_or_else(PoisonError::into_inner);
        let draw = draws.entry(id).or_default();
        *draw += 1;
        Random::stream(id, &draw.to_string())
    }

    /// The right to bring CRDs into force.
    pub(crate) fn lifecycle(&self) -> MutexGuard<'_, ()> {
        self.lifecycle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `f` with what strategies may look at when they fill in a subject, and with what a Service
    /// may be given.
    pub(crate) fn with_surroundings<T>(
        &self,
        user: &User,
        subject: &str,
        reservation: &mut Reservation,
        f: impl FnOnce(&mut Surroundings<'_>) -> T,
    ) -> T {
        let mut chance = None;
        let mut random = || chance.get_or_insert_with(|| self.chance("fields", subject)).next_u64();
        let stored = |key: &str| self.stored(key);
        let get = |key: &str, namespace: &str, name: &str| self.get(key, namespace, name);
        let now = self.clock.now();
        let requester = || user.info();
        f(&mut Surroundings {
            now,
            random: &mut random,
            stored: &stored,
            get: &get,
            requester: &requester,
            reservation,
            allocates: true,
        })
    }

    /// Forgets the history of all objects up to a revision, as etcd does every few minutes.
    pub fn compact(&self, revision: u64) {
        self.store().compact(revision);
    }

    /// Sets all objects back to what they were at a revision, and serves the CRDs of that time.
    pub(crate) fn restore(&self, revision: u64) -> Result<(), Compacted> {
        self.store().restore(revision)?;
        self.forms.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.custom.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.publish(Resources::with_custom([]));
        lifecycle::serve_all(self);
        Ok(())
    }

    /// The revision of the last write.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.store().revision()
    }
}

/// Whom chance is asked for: an object by kind and name, or by the prefix of a name that is to be made.
pub(crate) fn subject(resource: &Resource, object: &Value) -> String {
    let name = match object::name(object) {
        "" => object::meta_str(object, "generateName"),
        name => name,
    };
    format!("{}/{}/{name}", resource.storage_key, object::namespace(object))
}

/// A store with room for the built-in kinds.
fn empty_store(clock: Clock, services: &ServiceAllocator) -> Store {
    let mut store = Store::new(clock, services.clone());
    store.let_expire(EVENTS, EVENTS_LIVE);
    for resource in registry::built_in() {
        store.register(&resource.storage_key);
    }
    store
}
