//! The write path that create, update, patch and apply share: system metadata, rules of the kind,
//! managed fields, no-op detection, the compare-and-swap loop and what follows a write
//! (`k8s.io/apiserver/pkg/registry/generic/registry/store.go`).

use std::sync::Arc;

use serde_json::{Value, json};

use super::options::WriteOptions;
use super::{Call, meta};
use crate::server::{ApiServer, subject};
use crate::store;
use simcluster_model::allocation::Reservation;
use simcluster_model::error::{ApiError, Cause, Details, Names};
use simcluster_model::field::FieldError;
use simcluster_model::fieldmanager;
use simcluster_model::object;
use simcluster_model::resource::Resource;

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
}

/// What the object on which a write acts must be.
#[derive(Debug, Default)]
pub(super) struct Expected<'a> {
    /// Missing objects are created.
    pub(super) create_missing: bool,
    /// The UID that the object must have, if it exists.
    pub(super) uid: Option<&'a str>,
}

impl Write<'_> {
    fn resource(&self) -> &Resource {
        &self.call.resource
    }

    /// Creates the object, trying further names where the server makes them.
    pub(super) fn create(&self, mut object: Value) -> Result<Value, ApiError> {
        let prefix = object::meta_str(&object, "generateName").to_owned();
        let generated = object::name(&object).is_empty() && !prefix.is_empty();
        let mut chance =
            generated.then(|| self.server.chance("name", &subject(self.resource(), &object)));
        let mut tries = 0;
        loop {
            if let Some(chance) = &mut chance {
                let base: String = prefix.chars().take(58).collect();
                let name = format!("{base}{}", chance.name_suffix());
                object::metadata_mut(&mut object).insert("name".to_owned(), json!(name));
            }
            tries += 1;
            match self.insert(object.clone()) {
                Err(error) if generated && error.reason == "AlreadyExists" => {
                    if tries == NAME_TRIES_MAX {
                        return Err(exhausted(error));
                    }
                }
                outcome => return outcome,
            }
        }
    }

    /// The part of a create that comes after admission.
    fn insert(&self, mut object: Value) -> Result<Value, ApiError> {
        let resource = self.resource();
        let strategy = &resource.strategy;
        self.dedup_owners(&mut object);
        if strategy.has_generation() {
            object::metadata_mut(&mut object).insert("generation".to_owned(), json!(1));
        }
        let subject = subject(resource, &object);
        // Held until the object is stored.
        let mut reservation = self.server.services().reservation(self.options.dry_run);
        self.server.with_surroundings(&subject, &mut reservation, |around| {
            strategy.prepare_for_create(resource, &mut object, around)
        })?;
        meta::tidy(&mut object);
        let faults = meta::faults(resource, &object);
        self.refuse(&object, &strategy.create_faults(resource, &object, faults))?;
        self.warn_of_contents(&object, None);
        self.warn_of_finalizers(&object, None);
        self.store_new(object)
    }

    fn store_new(&self, mut object: Value) -> Result<Value, ApiError> {
        let resource = self.resource();
        let name = object::name(&object).to_owned();
        let key = store::key(object::namespace(&object), &name);
        let version_set =
            object::resource_version(&object).parse::<u64>().is_ok_and(|version| version != 0);
        if version_set && !self.options.dry_run {
            let why = "resourceVersion should not be set on objects to be created";
            return Err(ApiError::raw(why));
        }
        object::metadata_mut(&mut object).remove("resourceVersion");
        let stored = {
            let mut store = self.server.store();
            if let Some(existing) = store.get(&resource.storage_key, &key) {
                return Err(exists(resource, &name, &existing));
            }
            if self.options.dry_run {
                return Ok(object);
            }
            store.put(&resource.storage_key, &key, strategy_stored(resource, object))
        };
        self.server.after_write(self.call, None, Some(&stored));
        Ok(read(resource, &stored))
    }

    /// Changes an object: `transform` makes the new one of the stored one. Answers 201 where it
    /// created one.
    pub(super) fn update(
        &self,
        name: &str,
        expected: &Expected<'_>,
        transform: &dyn Fn(Option<&Value>) -> Result<Value, ApiError>,
    ) -> Result<(u16, Value), ApiError> {
        let resource = self.resource();
        let key = store::key(&self.call.namespace, name);
        loop {
            let stored = self.server.store().get(&resource.storage_key, &key);
            let Some(stored) = stored else {
                if !expected.create_missing {
                    return Err(ApiError::not_found(resource.names(), name));
                }
                let object = transform(None)?;
                let mut object = self.admit_create(object)?;
                // A version given for a missing object is ignored.
                object::metadata_mut(&mut object).remove("resourceVersion");
                return Ok((201, self.insert(object)?));
            };
            check_uid(resource, name, &key, expected.uid, &stored)?;
            let existing = read(resource, &stored);
            let object = transform(Some(&existing))?;
            // Held until the object is stored.
            let mut reservation = self.server.services().reservation(self.options.dry_run);
            let object = self.prepare_update(name, object, &existing, &mut reservation)?;
            if let Some(answer) = self.commit(&key, object, &existing, &stored) {
                return Ok((200, answer));
            }
        }
    }

    /// Admission and system metadata of an object that a PUT or an apply creates.
    fn admit_create(&self, mut object: Value) -> Result<Value, ApiError> {
        crate::admission::create(self.server, self.call, &object)?;
        meta::wipe(&mut object);
        self.server.fill_system_fields(self.resource(), &mut object);
        Ok(object)
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
        self.dedup_owners(&mut object);
        restore(&mut object, existing);
        if subresource.is_empty() {
            let subject = subject(resource, &object);
            self.server.with_surroundings(&subject, reservation, |around| {
                strategy.allocate_for_update(resource, &mut object, existing, around)
            })?;
        }
        strategy.prepare_for_update(resource, subresource, &mut object, existing);
        restore_after(&mut object, existing);
        meta::tidy(&mut object);
        let common = meta::faults(resource, &object);
        let changes = meta::update_faults(&object, existing);
        let mut faults = [common.clone(), changes.clone()].concat();
        if resource.custom {
            // The real server validates metadata once for all kinds, and once more for this one.
            faults.extend(common);
            faults.extend(changes);
        }
        let faults = strategy.update_faults(resource, subresource, &object, existing, faults);
        self.refuse(&object, &faults)?;
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
    fn commit(
        &self,
        key: &str,
        object: Value,
        existing: &Value,
        stored: &Arc<Value>,
    ) -> Option<Value> {
        let resource = self.resource();
        if self.gone_without_finalizers(&object, existing) {
            if !self.options.dry_run {
                {
                    let mut store = self.server.store();
                    let now = store.get(&resource.storage_key, key)?;
                    if !Arc::ptr_eq(&now, stored) {
                        return None;
                    }
                    store.remove(&resource.storage_key, key);
                }
                self.server.after_write(self.call, Some(stored), None);
            }
            return Some(object);
        }
        if self.options.dry_run {
            return Some(object);
        }
        let new = strategy_stored(resource, object);
        let written = {
            let mut store = self.server.store();
            match store.get(&resource.storage_key, key) {
                Some(now) if Arc::ptr_eq(&now, stored) => {}
                _ => return None,
            }
            if new == **stored {
                return Some(existing.clone());
            }
            store.put(&resource.storage_key, key, new)
        };
        self.server.after_write(self.call, Some(stored), Some(&written));
        Some(read(resource, &written))
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
        let text = object::resource_version(object);
        let version: u64 = if text.is_empty() {
            0
        } else {
            text.parse().map_err(|_| {
                let quoted = json!(text);
                ApiError::raw(format!("strconv.ParseUint: parsing {quoted}: invalid syntax"))
            })?
        };
        if version == 0 {
            if !resource.strategy.allow_unconditional_update() {
                let why = "must be specified for an update";
                let fault = FieldError::invalid("metadata.resourceVersion", &json!(0), why);
                let names = resource.names();
                return Err(ApiError::invalid_kind(names.group, names.plural, name, &[fault]));
            }
            let current = json!(object::resource_version(existing));
            object::metadata_mut(object).insert("resourceVersion".to_owned(), current);
        } else if text != object::resource_version(existing) {
            return Err(ApiError::conflict(resource.names(), name, MODIFIED));
        }
        Ok(())
    }

    fn dedup_owners(&self, object: &mut Value) {
        let repeated = meta::dedup_owners(object);
        if !repeated.is_empty() {
            self.call.warnings.add(format!(
                ".metadata.ownerReferences contains duplicate entries; API server dedups owner \
                 references in 1.20+, and may reject such requests as early as 1.24; please fix \
                 your requests; duplicate UID(s) observed: {}",
                repeated.join(", ")
            ));
        }
    }

    /// Warns of what is accepted but not good.
    fn warn_of_contents(&self, object: &Value, existing: Option<&Value>) {
        let resource = self.resource();
        for text in resource.strategy.warnings(resource, object, existing) {
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

    fn refuse(&self, object: &Value, faults: &[FieldError]) -> Result<(), ApiError> {
        if faults.is_empty() {
            return Ok(());
        }
        let resource = self.resource();
        let group = resource.strategy.invalid_group(resource);
        let names = Names { group, ..resource.names() };
        Err(ApiError::invalid(names, object::name(object), faults))
    }
}

/// The object as the resource's version shows it.
pub(super) fn read(resource: &Resource, stored: &Value) -> Value {
    resource.strategy.decode_stored(resource, stored.clone())
}

fn strategy_stored(resource: &Resource, object: Value) -> Value {
    resource.strategy.encode_stored(resource, object)
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

/// The precondition that a PUT's own UID makes (row UP08).
fn check_uid(
    resource: &Resource,
    name: &str,
    key: &str,
    uid: Option<&str>,
    stored: &Value,
) -> Result<(), ApiError> {
    let Some(uid) = uid.filter(|uid| !uid.is_empty()) else { return Ok(()) };
    let actual = object::uid(stored);
    if uid == actual {
        return Ok(());
    }
    let path = if resource.custom {
        format!("{}/{}", resource.group, resource.plural)
    } else {
        resource.plural.clone()
    };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{path}/{key}, ResourceVersion: 0, \
         AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: \
         {actual}"
    );
    Err(ApiError::conflict(resource.names(), name, &why))
}

/// Puts back what no update may set, before the kind's own rules.
fn restore(object: &mut Value, existing: &Value) {
    let old = object::metadata(existing);
    let metadata = object::metadata_mut(object);
    match old.get("generation") {
        Some(generation) => metadata.insert("generation".to_owned(), generation.clone()),
        None => metadata.remove("generation"),
    };
    metadata.remove("selfLink");
}

/// Puts back what no update may set, after the kind's own rules.
fn restore_after(object: &mut Value, existing: &Value) {
    let old = object::metadata(existing);
    let metadata = object::metadata_mut(object);
    let mut copy = |field: &str, always: bool| {
        if let Some(value) = old.get(field)
            && (always || metadata.get(field).is_none_or(Value::is_null))
        {
            metadata.insert(field.to_owned(), value.clone());
        }
    };
    copy("uid", false);
    copy("creationTimestamp", true);
    copy("deletionTimestamp", true);
    copy("deletionGracePeriodSeconds", false);
}

/// 403 of a create in a namespace that is being deleted (row CR19).
pub(crate) fn namespace_terminating(call: &Call, name: &str) -> ApiError {
    let namespace = &call.namespace;
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    let mut error = ApiError::forbidden(call.resource.names(), name, &why);
    let details = error.details.get_or_insert_with(Box::<Details>::default);
    details.causes.push(Cause {
        reason: "NamespaceTerminating".to_owned(),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".to_owned(),
    });
    error
}
