//! The write path that create, update, patch and apply share: system metadata, rules of the kind,
//! managed fields, no-op detection, the compare-and-swap loop and what follows a write
//! (`k8s.io/apiserver/pkg/registry/generic/registry/store.go`).

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::options::WriteOptions;
use super::{Call, meta, scale};
use crate::admission::{Attributes, ObjectKind, Operation};
use crate::auth::escalation;
use crate::conversion::with_versions;
use crate::server::{ApiServer, subject};
use crate::store;
use simcluster_model::allocation::Reservation;
use simcluster_model::error::{ApiError, Names};
use simcluster_model::field::FieldError;
use simcluster_model::fieldmanager::{self, Versions, Writing};
use simcluster_model::metadata;
use simcluster_model::object;
use simcluster_model::resource::Resource;
use simcluster_model::schema::prune;

/// The text of a 409 of optimistic locking.
const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// Names that the server tries for a `generateName` before it gives up.
const NAME_TRIES_MAX: u32 = 8;

/// A write under way.
pub(super) struct Write<'a> {
    pub(super) server: &'a ApiServer,
    pub(super) call: &'a Call,
    pub(super) options: &'a WriteOptions,
    /// What admission sees of the object.
    pub(super) facet: Facet,
}

/// What of an object a write is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Facet {
    /// The object.
    Whole,
    /// Its `Scale`.
    Scale,
    /// The server's own part of something that passed admission already (a binding).
    Admitted,
}

/// What becomes of a version that a client gave an object which is not there yet. The last webhooks see
/// it in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GivenVersion {
    /// A create with one fails.
    Refused,
    /// A change of a missing object drops it.
    Ignored,
}

/// The object on which a write acts.
struct Existing {
    object: Arc<Value>,
    /// Whether the cache of its version had it.
    is_cached: bool,
}

/// How a write makes the new object of the stored one (`None`: there is none).
pub(super) type Transform<'a> =
    dyn Fn(Option<&Value>, &dyn Versions) -> Result<Value, ApiError> + Sync + 'a;

/// Whose fields a call writes.
pub(super) fn writing<'a>(
    server: &ApiServer,
    call: &'a Call,
    options: &'a WriteOptions,
    versions: &'a dyn Versions,
) -> Writing<'a> {
    Writing {
        resource: &call.resource,
        versions,
        manager: &options.manager,
        subresource: &call.subresource,
        now: server.clock().now(),
    }
}

/// What the object on which a write acts must be.
#[derive(Debug, Default)]
pub(super) struct Expected<'a> {
    /// Missing objects are created.
    pub(super) create_missing: bool,
    /// The UID that the object must have, if it exists.
    pub(super) uid: Option<&'a str>,
}

impl<'a> Write<'a> {
    /// A write of whole objects.
    pub(super) fn new(server: &'a ApiServer, call: &'a Call, options: &'a WriteOptions) -> Self {
        Self { server, call, options, facet: Facet::Whole }
    }

    fn resource(&self) -> &Resource {
        &self.call.resource
    }

    /// The first half of admission: plugins may change the object.
    pub(super) async fn admit(
        &self,
        operation: Operation,
        name: &str,
        object: Value,
        old: Option<&Arc<Value>>,
    ) -> Result<Value, ApiError> {
        let mut object = object;
        if !self.call.content_type.contains("-patch+") {
            // Patches are looked at only once, and late.
            self.dedup_owners(&mut object, "");
        }
        let mut object = match self.facet {
            Facet::Admitted => return Ok(object),
            Facet::Whole => self.admitted(operation, name, object, old.cloned()).await?,
            Facet::Scale => {
                let resource = self.resource();
                let shown = scale::view_or_zero(resource, &object)?;
                let old = old.map(|old| scale::view_or_zero(resource, old)).transpose()?;
                let admitted = self.admitted(operation, name, shown, old.map(Arc::new)).await?;
                scale::put_back(resource, object, &admitted)?
            }
        };
        self.dedup_owners(&mut object, " after mutating admission happens");
        escalation::check(self.server, self.call, &object, old.map(|old| &**old))?;
        Ok(object)
    }

    async fn admitted(
        &self,
        operation: Operation,
        name: &str,
        shown: Value,
        old: Option<Arc<Value>>,
    ) -> Result<Value, ApiError> {
        let mut attributes = self.attributes(operation, name, shown, old);
        self.server.admission().admit(self.server, &mut attributes).await?;
        Ok(attributes.object.unwrap_or_default())
    }

    /// The second half: plugins accept or refuse what is to be stored.
    pub(super) async fn validate(
        &self,
        operation: Operation,
        name: &str,
        object: Value,
        old: Option<&Arc<Value>>,
    ) -> Result<Value, ApiError> {
        let (shown, old) = match self.facet {
            Facet::Admitted => return Ok(object),
            Facet::Whole => {
                let attributes = self.attributes(operation, name, object, old.cloned());
                self.server.admission().validate(self.server, &attributes).await?;
                let mut object = attributes.object.unwrap_or_default();
                if self.resource().custom {
                    // What webhooks added beside the schema was shown to all of them (row AD16).
                    prune(&mut object, &self.resource().schema);
                }
                return Ok(object);
            }
            Facet::Scale => {
                let view = |object: &Value| scale::view_or_zero(self.resource(), object);
                (view(&object)?, old.map(|old| view(old)).transpose()?.map(Arc::new))
            }
        };
        let attributes = self.attributes(operation, name, shown, old);
        self.server.admission().validate(self.server, &attributes).await?;
        Ok(object)
    }

    fn attributes(
        &self,
        operation: Operation,
        name: &str,
        shown: Value,
        old: Option<Arc<Value>>,
    ) -> Attributes {
        let mut attributes = Attributes::of(self.call, operation, name);
        if self.facet == Facet::Scale {
            attributes.kind = ObjectKind::new("autoscaling", "v1", "Scale");
        }
        attributes.object = Some(shown);
        attributes.old_object = old;
        attributes.options = self.options.to_json(self.call, operation);
        attributes.dry_run = self.options.dry_run;
        attributes
    }

    /// Creates the object, trying further names where the server makes them.
    /// `asked_as` is the name that the client gave it, by which admission knows it whatever becomes of it.
    pub(super) async fn create(
        &self,
        asked_as: &str,
        object: Value,
    ) -> Result<Arc<Value>, ApiError> {
        let has_prefix = !object::meta_str(&object, "generateName").is_empty();
        if !has_prefix {
            return self.insert(asked_as, object, GivenVersion::Refused).await;
        }
        let generated = object::name(&object).is_empty();
        let mut tries = 0;
        loop {
            tries += 1;
            match self.insert(asked_as, object.clone(), GivenVersion::Refused).await {
                // The real server gives up at once on a name that it did not make, and says the same.
                Err(error) if error.reason == "AlreadyExists" => {
                    if !generated || tries == NAME_TRIES_MAX {
                        return Err(exhausted(error));
                    }
                }
                outcome => return outcome,
            }
        }
    }

    /// The part of a create that comes after mutating admission.
    async fn insert(
        &self,
        asked_as: &str,
        mut object: Value,
        given: GivenVersion,
    ) -> Result<Arc<Value>, ApiError> {
        // Held until the object is stored.
        let _reservation = self.prepare_create(&mut object)?;
        let resource = self.resource();
        let name = object::name(&object).to_owned();
        let known_as = if asked_as.is_empty() { &name } else { asked_as };
        let object = self.validate(Operation::Create, known_as, object, None).await?;
        let object = self.new_version(object, given)?;
        let encoded = self.server.encode(resource, object).await?;
        let stored = self.store_new(&name, encoded)?;
        self.shown(&stored).await
    }

    /// A stored object as it is answered.
    async fn shown(&self, stored: &Arc<Value>) -> Result<Arc<Value>, ApiError> {
        let shown = self.server.decode(self.resource(), stored).await;
        shown.map_err(|fault| fault.of_write())
    }

    /// Stores an object that the server itself brings along.
    pub(super) fn install(&self, object: Value) -> Result<(), ApiError> {
        let name = object::name(&object).to_owned();
        let object = self.new_version(object, GivenVersion::Refused)?;
        let resource = self.resource();
        self.store_new(&name, resource.strategy.encode_stored(resource, object))?;
        Ok(())
    }

    /// System metadata and the rules of the kind. What is reserved is so until the object is stored.
    pub(super) fn prepare_create(&self, object: &mut Value) -> Result<Reservation, ApiError> {
        let resource = self.resource();
        let strategy = &resource.strategy;
        meta::fill_namespace(resource, &self.call.namespace, object)?;
        self.server.fill_system_fields(resource, object);
        self.generate_name(object);
        if strategy.has_generation() {
            object::metadata_mut(object).insert("generation".to_owned(), json!(1));
        }
        let subject = subject(resource, object);
        let mut reservation = self.server.services().reservation(self.options.dry_run);
        let user = &self.call.user;
        self.server.with_surroundings(user, &subject, &mut reservation, |around| {
            around.allocates = self.call.subresource.is_empty();
            strategy.prepare_for_create(resource, object, around)
        })?;
        meta::tidy(resource, object);
        let faults = meta::faults(resource, object);
        self.refuse(object, &strategy.create_faults(resource, object, faults))?;
        self.warn_of_contents(object, None);
        self.warn_of_finalizers(object, None);
        Ok(reservation)
    }

    fn generate_name(&self, object: &mut Value) {
        let prefix = object::meta_str(object, "generateName");
        if object::name(object).is_empty() && !prefix.is_empty() {
            let base: String = prefix.chars().take(58).collect();
            let mut chance = self.server.chance("name", &subject(self.resource(), object));
            let name = format!("{base}{}", chance.name_suffix());
            object::metadata_mut(object).insert("name".to_owned(), json!(name));
        }
    }

    /// A new object has no version yet.
    fn new_version(&self, mut object: Value, given: GivenVersion) -> Result<Value, ApiError> {
        let version_set =
            object::resource_version(&object).parse::<u64>().is_ok_and(|version| version != 0);
        if version_set && given == GivenVersion::Refused && !self.options.dry_run {
            let why = "resourceVersion should not be set on objects to be created";
            return Err(ApiError::raw(why));
        }
        // A dry run gives no version, and shows the one that came.
        if !self.options.dry_run {
            object::metadata_mut(&mut object).remove("resourceVersion");
        }
        Ok(object)
    }

    /// Stores an encoded object, if nobody has its name.
    fn store_new(&self, name: &str, encoded: Value) -> Result<Arc<Value>, ApiError> {
        let resource = self.resource();
        let key = store::key(object::namespace(&encoded), name);
        let stored = {
            let mut store = self.server.store();
            if let Some(existing) = store.get(&resource.storage_key, &key) {
                return Err(exists(resource, name, &existing));
            }
            if self.options.dry_run {
                return Ok(Arc::new(encoded));
            }
            store::size::check(&encoded)?;
            store.put(&resource.storage_key, &key, encoded)
        };
        self.server.after_write(self.call, None, Some(&stored));
        Ok(stored)
    }

    /// Changes an object: `transform` makes the new one of the stored one. Answers 201 where it
    /// created one.
    pub(super) async fn update(
        &self,
        name: &str,
        expected: &Expected<'_>,
        transform: &Transform<'_>,
    ) -> Result<(u16, Arc<Value>), ApiError> {
        let resource = self.resource();
        let key = store::key(&self.call.namespace, name);
        loop {
            let stored = self.server.store().get(&resource.storage_key, &key);
            let Some(stored) = stored else {
                if !expected.create_missing {
                    return Err(ApiError::not_found(resource.names(), name));
                }
                self.check_uid(name, &key, expected.uid, &Value::Null)?;
                let made = |versions: &dyn Versions| transform(None, versions);
                let mut object = with_versions(self.server, resource, made).await?;
                version_of(&object)?;
                meta::wipe(&mut object);
                let object = self.admit(Operation::Create, name, object, None).await?;
                match self.insert(name, object, GivenVersion::Ignored).await {
                    // Somebody was faster; the object is there now, and this is a change of it.
                    Err(error) if error.reason == "AlreadyExists" && self.is_stored(&key) => {
                        continue;
                    }
                    outcome => return Ok((201, outcome?)),
                }
            };
            self.check_uid(name, &key, expected.uid, &stored)?;
            let existing = self.existing(&stored).await?;
            match self.change(name, transform, &key, &stored, &existing.object).await {
                Ok(Some(answer)) => return Ok((200, answer)),
                Ok(None) => {}
                Err(error) => {
                    // The real server looks whether its cache was behind before it says so.
                    if existing.is_cached {
                        self.shown(&stored).await?;
                    }
                    return Err(error);
                }
            }
        }
    }

    /// The object that is to be changed. If a cache has it the real server takes it from there, and
    /// writes it down to compare it with what comes out.
    async fn existing(&self, stored: &Arc<Value>) -> Result<Existing, ApiError> {
        let resource = &self.call.resource;
        if let Some(object) = self.server.version_caches().get(resource, stored) {
            self.server.encode(resource, Value::clone(&object)).await?;
            return Ok(Existing { object, is_cached: true });
        }
        Ok(Existing { object: self.shown(stored).await?, is_cached: false })
    }

    /// One attempt to change an object; `None` if somebody else was faster.
    async fn change(
        &self,
        name: &str,
        transform: &Transform<'_>,
        key: &str,
        stored: &Arc<Value>,
        existing: &Arc<Value>,
    ) -> Result<Option<Arc<Value>>, ApiError> {
        let made = |versions: &dyn Versions| transform(Some(existing), versions);
        let object = with_versions(self.server, self.resource(), made).await?;
        let object = self.admit(Operation::Update, name, object, Some(existing)).await?;
        // Held until the object is stored.
        let mut reservation = self.server.services().reservation(self.options.dry_run);
        let object = self.prepare_update(name, object, existing, &mut reservation)?;
        let object = self.validate(Operation::Update, name, object, Some(existing)).await?;
        self.commit(key, object, existing, stored).await
    }

    fn is_stored(&self, key: &str) -> bool {
        self.server.store().get(&self.resource().storage_key, key).is_some()
    }

    /// Checks the version, restores what may not change, validates and counts the generation.
    fn prepare_update(
        &self,
        name: &str,
        mut object: Value,
        existing: &Value,
        reservation: &mut Reservation,
    ) -> Result<Value, ApiError> {
        let resource = self.resource();
        let strategy = &resource.strategy;
        let subresource = self.call.subresource.as_str();
        self.check_version(name, &mut object, existing)?;
        meta::fill_namespace(resource, &self.call.namespace, &mut object)?;
        restore(&mut object, existing);
        let subject = subject(resource, &object);
        self.server.with_surroundings(&self.call.user, &subject, reservation, |around| {
            strategy.allocate_for_update(resource, subresource, &mut object, existing, around)
        })?;
        strategy.prepare_for_update(resource, subresource, &mut object, existing);
        restore_after(&mut object, existing);
        meta::tidy(resource, &mut object);
        let common = meta::faults(resource, &object);
        let changes = meta::update_faults(resource, &object, existing);
        let mut faults = [common, changes.clone()].concat();
        if resource.custom {
            // The real server validates changes once for all kinds, and once more for this one.
            faults.extend(changes);
        }
        let verdict = strategy.update_verdict(resource, subresource, &object, existing, faults);
        self.refuse(&object, &verdict.faults)?;
        verdict.forgiven.iter().for_each(|fault| self.call.warnings.add(fault.to_string()));
        self.warn_of_contents(&object, Some(existing));
        self.warn_of_finalizers(&object, Some(existing));
        // Neither a status nor a binding says what somebody wants, whatever metadata comes with it.
        let counts = strategy.has_generation() && !matches!(subresource, "status" | "binding");
        if counts && strategy.generation_changes(&object, existing) {
            let generation = object::generation(existing).saturating_add(1);
            object::metadata_mut(&mut object).insert("generation".to_owned(), json!(generation));
        }
        fieldmanager::ignore_time_changes(existing, &mut object);
        Ok(object)
    }

    /// Stores a change; `None` if somebody else was faster.
    async fn commit(
        &self,
        key: &str,
        object: Value,
        existing: &Value,
        stored: &Arc<Value>,
    ) -> Result<Option<Arc<Value>>, ApiError> {
        let resource = self.resource();
        if self.gone_without_finalizers(&object, existing) {
            if !self.options.dry_run {
                {
                    let mut store = self.server.store();
                    if !store.is_current(&resource.storage_key, key, stored) {
                        return Ok(None);
                    }
                    store.remove(&resource.storage_key, key);
                }
                self.server.after_write(self.call, Some(stored), None);
            }
            return Ok(Some(Arc::new(object)));
        }
        let mut object = object;
        if !self.options.dry_run {
            // Admission sees it; only the storage drops it.
            object::metadata_mut(&mut object).remove("selfLink");
        }
        let new = self.server.encode(resource, object).await?;
        if self.options.dry_run {
            return self.shown(&Arc::new(new)).await.map(Some);
        }
        // Empty metadata that no read shows makes every write a change.
        let is_same = new == **stored && metadata::is_tidy(object::metadata(&new));
        let written = {
            let mut store = self.server.store();
            if !store.is_current(&resource.storage_key, key, stored) {
                return Ok(None);
            }
            if is_same {
                Arc::clone(stored)
            } else {
                store::size::check(&new)?;
                store.put(&resource.storage_key, key, new)
            }
        };
        if !is_same {
            self.server.after_write(self.call, Some(stored), Some(&written));
        }
        self.shown(&written).await.map(Some)
    }

    /// Whether this write takes the last finalizer off an object that is being deleted.
    fn gone_without_finalizers(&self, object: &Value, existing: &Value) -> bool {
        let grace = |object: &Value| {
            object::metadata(object).get("deletionGracePeriodSeconds").and_then(Value::as_i64)
        };
        object::is_deleting(existing)
            && object::meta_list(object, "finalizers").next().is_none()
            && grace(existing).unwrap_or_default() == 0
            && self.resource().strategy.may_be_removed(object)
    }

    fn check_version(
        &self,
        name: &str,
        object: &mut Value,
        existing: &Value,
    ) -> Result<(), ApiError> {
        let resource = self.resource();
        let version = version_of(object)?;
        if version == 0 {
            if !resource.strategy.allow_unconditional_update() {
                let why = "must be specified for an update";
                let fault = FieldError::invalid("metadata.resourceVersion", &json!(0), why);
                let names = resource.names();
                return Err(ApiError::invalid_kind(names.group, names.plural, name, &[fault]));
            }
            let current = json!(object::resource_version(existing));
            object::metadata_mut(object).insert("resourceVersion".to_owned(), current);
        } else if object::resource_version(object) != object::resource_version(existing) {
            return Err(ApiError::conflict(resource.names(), name, MODIFIED));
        }
        Ok(())
    }

    fn dedup_owners(&self, object: &mut Value, when: &str) {
        let repeated = meta::dedup_owners(object);
        if !repeated.is_empty() {
            self.call.warnings.add(format!(
                ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner \
                 references in 1.20+, and may reject such requests as early as 1.24; please fix \
                 your requests; duplicate UID(s) observed: {}",
                repeated.join(", ")
            ));
        }
    }

    /// Warns of what is accepted but not good.
    fn warn_of_contents(&self, object: &Value, existing: Option<&Value>) {
        let resource = self.resource();
        let subresource = self.call.subresource.as_str();
        for text in resource.strategy.warnings(resource, subresource, object, existing) {
            self.call.warnings.add(text);
        }
    }

    fn warn_of_finalizers(&self, object: &Value, old: Option<&Value>) {
        let known = old.map(meta::finalizer_warnings).unwrap_or_default();
        for text in meta::finalizer_warnings(object) {
            if self.resource().custom && !known.contains(&text) {
                self.call.warnings.add(text);
            }
        }
    }

    /// The precondition that a PUT's own UID makes (row UP08).
    fn check_uid(
        &self,
        name: &str,
        key: &str,
        uid: Option<&str>,
        stored: &Value,
    ) -> Result<(), ApiError> {
        let Some(why) = uid_fault(uid.unwrap_or_default(), stored) else { return Ok(()) };
        let resource = self.resource();
        let why = store::invalid_object(resource, key, self.options.dry_run, &why);
        Err(ApiError::conflict(resource.names(), name, &why))
    }

    fn refuse(&self, object: &Value, faults: &[FieldError]) -> Result<(), ApiError> {
        if faults.is_empty() {
            return Ok(());
        }
        let resource = self.resource();
        let group = resource.strategy.invalid_group(resource);
        let names = Names { group, ..resource.names() };
        // Of a built-in kind, which is validated by generated rules, too, equal faults are told once.
        let mut told = BTreeSet::new();
        let news = |fault: &&FieldError| resource.custom || told.insert(fault.to_string());
        let faults: Vec<FieldError> = faults.iter().filter(news).cloned().collect();
        Err(ApiError::invalid(names, object::name(object), &faults))
    }
}

/// The object as the resource's version shows it.
pub(super) fn read(resource: &Resource, stored: &Value) -> Value {
    resource.strategy.decode_stored(resource, stored.clone())
}

fn exists(resource: &Resource, name: &str, existing: &Value) -> ApiError {
    let mut error = ApiError::already_exists(resource.names(), name);
    if object::is_deleting(existing) {
        error.message = format!("object is being deleted: {}", error.message);
    }
    error
}

fn exhausted(mut error: ApiError) -> ApiError {
    error.message.push_str(", the server was not able to generate a unique name for the object");
    if let Some(details) = &mut error.details {
        details.retry_after_seconds = Some(1);
    }
    error
}

/// Why an object is not the one with a UID, if there is one.
pub(super) fn uid_fault(uid: &str, object: &Value) -> Option<String> {
    let actual = object::uid(object);
    (!uid.is_empty() && uid != actual).then(|| {
        format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {actual}")
    })
}

/// The version that an object names; none is 0.
fn version_of(object: &Value) -> Result<u64, ApiError> {
    let text = object::resource_version(object);
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        let quoted = json!(text);
        ApiError::raw(format!("strconv.ParseUint: parsing {quoted}: invalid syntax"))
    })
}

/// Puts back what no update may set, before the kind's own rules.
fn restore(object: &mut Value, existing: &Value) {
    let old = object::metadata(existing);
    let metadata = object::metadata_mut(object);
    match old.get("generation") {
        Some(generation) => metadata.insert("generation".to_owned(), generation.clone()),
        None => metadata.remove("generation"),
    };
}

/// Whether a field of metadata is the zero value of its type in Go.
fn is_unset(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(str::is_empty)
}

/// Puts back what no update may set, after the kind's own rules.
fn restore_after(object: &mut Value, existing: &Value) {
    let old = object::metadata(existing);
    let metadata = object::metadata_mut(object);
    let mut copy = |field: &str, always: bool| {
        if let Some(value) = old.get(field)
            && (always || metadata.get(field).is_none_or(is_unset))
        {
            metadata.insert(field.to_owned(), value.clone());
        }
    };
    copy("uid", false);
    copy("creationTimestamp", true);
    copy("deletionTimestamp", true);
    copy("deletionGracePeriodSeconds", false);
}
