//! Field management: `metadata.managedFields` of every write, and server-side apply.
//!
//! Works on objects in the version of the request, after decoding and defaulting, before admission
//! and validation. Knows nothing of the store.

mod blank;
mod check;
mod compare;
mod conflict;
mod last_applied;
mod managers;
mod merge;
mod ownership;
mod path;
mod remove;
mod reset;
mod scale;
mod set;
mod shape;
#[cfg(test)]
mod tests;
mod versions;
mod walk;

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::Value;

use self::check::{Duplicates, check, check_beside};
use self::managers::{Managed, encode};
use self::ownership::{Applied, Endpoint, Refusal, applier, updater};
use self::reset::reset_fields;
use self::shape::Node;
pub use self::versions::{OneVersion, VersionFault, Versioned, Versions};
use crate::error::ApiError;
use crate::golang;
use crate::object::{metadata, metadata_mut, name, namespace, same_but, set_path, uid};
use crate::patch::convert::conversion_fault;
use crate::resource::Resource;
use crate::schema::{Schema, definition};
use crate::time::format_seconds;

/// The manager of the fields that an object had before its managers were recorded.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Who writes, where and when.
#[derive(Clone, Copy)]
pub struct Writing<'a> {
    /// The resource, in the version that is written.
    pub resource: &'a Resource,
    /// What its objects are in other versions.
    pub versions: &'a dyn Versions,
    /// The field manager.
    pub manager: &'a str,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The time.
    pub now: Timestamp,
}

/// Computes `new.metadata.managedFields` after a create (`live` is `None`), an update or a patch that
/// is no apply.
///
/// The entries start from those that the client sent, if they can be read, else from the stored ones;
/// a single empty entry clears them, and an object whose entries are cleared is not tracked until the
/// next apply. If the objects do not fit their schema the stored entries stay as they are: that they
/// do not fit is for validation to say. So they do if another version is not to be had.
pub fn record_update(writing: &Writing<'_>, live: Option<&Value>, new: &mut Value) {
    let Writing { resource, manager, subresource, now, .. } = *writing;
    let sent = metadata_mut(new).remove("managedFields");
    if subresource == "scale" {
        return record_scale(writing, live, new);
    }
    let sent = sent.filter(|_| subresource.is_empty());
    // An empty list clears as well, but is lost on the way where custom resources are decoded.
    let clears =
        !resource.custom && sent.as_ref().and_then(Value::as_array).is_some_and(Vec::is_empty);
    let mut entries =
        if clears { Managed::default() } else { starting_entries(live, sent.as_ref()) };
    if entries.is_empty() && live.is_some_and(|live| !uid(live).is_empty()) {
        return;
    }
    let endpoint = endpoint(writing);
    let live_or_blank = live.map_or_else(|| Cow::Owned(blank::object(resource)), Cow::Borrowed);
    let fits = |object: &Value, fitting: &Value| {
        check_beside(endpoint.node, object, fitting, Duplicates::Allowed).is_ok()
    };
    let writer = updater(manager, resource.api_version(), subresource);
    let now = format_seconds(now);
    let done = fits(new, &Value::Null)
        && fits(&live_or_blank, new)
        && ownership::update(&endpoint, &live_or_blank, new, &mut entries, writer, &now).is_ok();
    if done {
        put_entries(new, encode(entries.into_entries()));
    } else if let Some(stored) = live.and_then(|live| metadata(live).get("managedFields")) {
        metadata_mut(new).insert("managedFields".to_owned(), stored.clone());
    }
}

/// What is wrong with `metadata.managedFields`; nothing if there are none.
pub fn check_managed_fields(entries: Option<&Value>) -> Result<(), String> {
    let entries = entries.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    Managed::decode(entries).map(|_| ())
}

/// Merges an applied configuration into the stored object (`live` is `None` if there is none) and
/// computes `metadata.managedFields`. The object comes back with defaults, before admission and
/// validation; if the apply changes nothing, it equals `live`.
///
/// For the subresource `scale` the configuration is a `Scale`, and the object comes back with the new
/// replicas.
///
/// # Errors
/// 400 for another version or kind and for a configuration with managed fields, 409 for conflicts
/// with other managers (unless forced), 500 where the configuration does not fit the schema.
pub fn apply(
    writing: &Writing<'_>,
    live: Option<&Value>,
    config: &Value,
    force: bool,
) -> Result<Value, ApiError> {
    let Writing { resource, manager, subresource, now, .. } = *writing;
    if !config.is_object() && !config.is_null() {
        return Err(ApiError::bad_request(format!(
            "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal \
             {} into Go value of type map[string]interface {{}}",
            golang::json_type_name(config)
        )));
    }
    let is_scale = subresource == "scale";
    let (expected_version, expected_kind) = if is_scale {
        (scale::API_VERSION.to_owned(), scale::KIND)
    } else {
        (resource.api_version(), resource.kind.as_str())
    };
    let found = ObjectType::of(config);
    if found != ObjectType::new(&expected_version, expected_kind) {
        return Err(ApiError::bad_request(format!("invalid object type: {}", found.shown())));
    }
    if names_managers(config) {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let request = Request { writing, config, force, now: format_seconds(now) };
    if is_scale {
        return apply_scale(&request, live);
    }
    let entries = stored_entries(live)?;
    let live = live.map_or_else(|| Cow::Owned(blank::object(resource)), Cow::Borrowed);
    let applied = apply_at(&request, &endpoint(writing), &live, entries)?;
    let mut object = match applied.object {
        Some(mut merged) => {
            check_conversion(resource, config, &merged)?;
            resource.strategy.default(resource, &mut merged);
            merged
        }
        None => live.into_owned(),
    };
    put_entries(&mut object, encode(applied.managed.into_entries()));
    if manager == last_applied::MANAGER {
        last_applied::refresh(&mut object, config);
    }
    Ok(object)
}

/// Whether a configuration has managed fields. What Go cannot read as such is none: that it does not fit
/// the schema is said later.
fn names_managers(config: &Value) -> bool {
    let entries = metadata(config).get("managedFields").and_then(Value::as_array);
    let schema = definition("io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry");
    let fits = |entry: &Value| {
        entry.is_object()
            && schema.as_ref().is_none_or(|schema| conversion_fault(entry, schema).is_none())
    };
    entries.is_some_and(|entries| entries.iter().all(fits))
}

/// Puts the times of the managed fields back if nothing else differs between the stored object and
/// the one that is about to be stored. To be called when the object has its final form, that is
/// after the strategy's `prepare_for_update`.
pub fn ignore_time_changes(live: &Value, new: &mut Value) {
    let (old_entries, new_entries) = (entries_of(live), entries_of(new));
    if old_entries.is_empty() || old_entries == new_entries {
        return;
    }
    let mut pairs = old_entries.iter().zip(new_entries);
    let same_entries = old_entries.len() == new_entries.len()
        && pairs.all(|(old, new)| same_but(old, new, "time"));
    if same_entries && same_but_entries(live, new) {
        let entries = Value::from(old_entries);
        metadata_mut(new).insert("managedFields".to_owned(), entries);
    }
}

fn same_but_entries(a: &Value, b: &Value) -> bool {
    let both = a.get("metadata").zip(b.get("metadata"));
    same_but(a, b, "metadata") && both.is_some_and(|(a, b)| same_but(a, b, "managedFields"))
}

/// An apply, apart from the object that it goes to.
struct Request<'a> {
    writing: &'a Writing<'a>,
    config: &'a Value,
    force: bool,
    now: String,
}

fn apply_at(
    request: &Request<'_>,
    endpoint: &Endpoint<'_>,
    live: &Value,
    mut managed: Managed,
) -> Result<Applied, ApiError> {
    let Request { writing, config, force, now } = request;
    let Writing { resource, manager, subresource, .. } = **writing;
    let version = ObjectType::of(config).api_version();
    check(endpoint.node, config, Duplicates::Refused).map_err(|error| {
        ApiError::raw(format!("failed to create typed patch object ({}): {error}", shown(config)))
    })?;
    check(endpoint.node, live, Duplicates::Allowed).map_err(|error| {
        ApiError::raw(format!("failed to create typed live object ({}): {error}", shown(live)))
    })?;
    if managed.is_empty() {
        let before = updater(BEFORE_FIRST_APPLY, version.clone(), subresource);
        let blank = blank::object(resource);
        ownership::update(endpoint, &blank, live, &mut managed, before, now)
            .map_err(version_error)?;
    }
    let writer = applier(manager, version.clone(), subresource);
    let attempt =
        |force| ownership::apply(endpoint, live, config, managed.clone(), &writer, force, now);
    let mut conflicts = match attempt(*force) {
        Ok(applied) => return Ok(applied),
        Err(Refusal::Conflicts(conflicts)) => conflicts,
        Err(refusal) => return Err(refusal_error(refusal)),
    };
    if manager == last_applied::MANAGER
        && let Some(allowed) = last_applied::unchanged_fields(endpoint.node, live, &version)
    {
        conflicts.allow(&allowed);
        if conflicts.is_empty() {
            return attempt(true).map_err(refusal_error);
        }
    }
    Err(conflicts.into_error())
}

fn refusal_error(refusal: Refusal) -> ApiError {
    match refusal {
        Refusal::Conflicts(conflicts) => conflicts.into_error(),
        Refusal::Version(fault) => version_error(fault),
    }
}

/// The answer where another version is not to be had. Only a failed conversion is ever answered.
fn version_error(fault: VersionFault) -> ApiError {
    ApiError::raw(match fault {
        VersionFault::Failed(why) => why,
        VersionFault::Missing => "there is no such version".to_owned(),
        VersionFault::Unknown => "an object of another version is not known yet".to_owned(),
    })
}

fn apply_scale(request: &Request<'_>, live: Option<&Value>) -> Result<Value, ApiError> {
    let resource = request.writing.resource;
    let (Some(live), Some(paths)) = (live, &resource.scale) else {
        return Err(ApiError::not_found(resource.names(), name(request.config)));
    };
    let entries_of_object = stored_entries(Some(live))?;
    let schema = scale::schema(resource);
    let endpoint = scale_endpoint(&schema, request.writing);
    let view = scale::view(paths, live);
    let entries = scale::entries_of_scale(paths, &entries_of_object);
    // The real server knows no way from the Scale of a custom resource and back, and finds that out
    // whenever it would have to go it.
    let unconvertible = |what: &str| {
        let version = scale::API_VERSION;
        ApiError::raw(format!(
            "failed to {what} to proper version: request to convert CR to an invalid group/version: \
             {version}"
        ))
    };
    if entries.is_empty() && resource.custom {
        let what = "create manager for existing fields: failed to convert live object (/; \
                    autoscaling/v1, Kind=Scale)";
        return Err(unconvertible(what));
    }
    let applied = apply_at(request, &endpoint, &view, entries)?;
    if applied.object.is_some() && resource.custom {
        return Err(unconvertible(&format!("convert new object ({})", shown(request.config))));
    }
    let mut object = live.clone();
    if let Some(scaled) = applied.object {
        let replicas = scaled.pointer("/spec/replicas").cloned().unwrap_or_else(|| 0.into());
        set_path(&mut object, &paths.spec_replicas, replicas);
    }
    let version = resource.api_version();
    let entries = scale::entries_of_object(paths, &version, entries_of_object, applied.managed);
    put_entries(&mut object, encode(entries));
    Ok(object)
}

/// A built-in kind must take the merged object into its Go types.
fn check_conversion(resource: &Resource, config: &Value, merged: &Value) -> Result<(), ApiError> {
    let fault = if resource.custom { None } else { conversion_fault(merged, &resource.schema) };
    fault.map_or(Ok(()), |fault| {
        Err(ApiError::raw(format!(
            "failed to convert new object ({}) to proper version: unable to convert unstructured \
             object to {}: {fault}",
            shown(config),
            ObjectType::new(&resource.api_version(), &resource.kind).shown()
        )))
    })
}

fn record_scale(writing: &Writing<'_>, live: Option<&Value>, new: &mut Value) {
    let Writing { resource, manager, now, .. } = *writing;
    let (Some(live), Some(paths)) = (live, &resource.scale) else { return };
    let entries = starting_entries(Some(live), None);
    let mut scaled = scale::entries_of_scale(paths, &entries);
    if !scaled.is_empty() {
        let schema = scale::schema(resource);
        let endpoint = scale_endpoint(&schema, writing);
        let (old_view, new_view) = (scale::view(paths, live), scale::view(paths, new));
        let writer = updater(manager, scale::API_VERSION.to_owned(), "scale");
        let now = format_seconds(now);
        let done = ownership::update(&endpoint, &old_view, &new_view, &mut scaled, writer, &now);
        // A Scale has one version, so none is ever missing.
        if done.is_err() {
            return;
        }
    }
    let version = resource.api_version();
    put_entries(new, encode(scale::entries_of_object(paths, &version, entries, scaled)));
}

fn endpoint<'a>(writing: &Writing<'a>) -> Endpoint<'a> {
    let Writing { resource, versions, subresource, .. } = *writing;
    Endpoint {
        version: resource.api_version(),
        node: Node::root(&resource.schema),
        reset: reset_fields(resource, subresource),
        versions,
    }
}

fn scale_endpoint<'a>(schema: &'a Schema, writing: &Writing<'a>) -> Endpoint<'a> {
    Endpoint {
        version: scale::API_VERSION.to_owned(),
        node: Node::root(schema),
        reset: set::FieldSet::default(),
        versions: writing.versions,
    }
}

fn entries_of(object: &Value) -> &[Value] {
    metadata(object).get("managedFields").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn stored_entries(live: Option<&Value>) -> Result<Managed, ApiError> {
    Managed::decode(live.map(entries_of).unwrap_or_default())
        .map_err(|error| ApiError::raw(format!("failed to decode managed fields: {error}")))
}

/// The entries that an update starts from: the client's own, if it sent any that can be read.
fn starting_entries(live: Option<&Value>, sent: Option<&Value>) -> Managed {
    let sent = sent.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if let [Value::Object(only)] = sent
        && only.is_empty()
    {
        return Managed::default();
    }
    match Managed::decode(sent) {
        Ok(managed) if !managed.is_empty() => managed,
        Ok(_) | Err(_) => stored_entries(live).unwrap_or_default(),
    }
}

fn put_entries(object: &mut Value, entries: Option<Value>) {
    let metadata = metadata_mut(object);
    match entries {
        Some(entries) => metadata.insert("managedFields".to_owned(), entries),
        None => metadata.remove("managedFields"),
    };
}

/// An object as errors name it. The namespace is the one in the object, not that of the request.
fn shown(object: &Value) -> String {
    format!("{}/{}; {}", namespace(object), name(object), ObjectType::of(object).shown())
}

/// Group, version and kind of an object.
#[derive(Debug, Default, PartialEq)]
struct ObjectType {
    group: String,
    version: String,
    kind: String,
}

impl ObjectType {
    fn of(object: &Value) -> Self {
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        Self::new(text("apiVersion"), text("kind"))
    }

    /// A version with several slashes is none, and takes the kind with it.
    fn new(api_version: &str, kind: &str) -> Self {
        let parts: Vec<&str> = api_version.split('/').collect();
        let (group, version) = match parts.as_slice() {
            [version] => ("", *version),
            [group, version] => (*group, *version),
            _ => return Self::default(),
        };
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }

    fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    fn shown(&self) -> String {
        format!("{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}
