//! Delete and deletecollection: preconditions, grace periods, finalizers, propagation.

use std::sync::Arc;

use serde_json::{Value, json};

use super::options::{DeleteOptions, ListOptions, UNREADABLE};
use super::read::{Page, Selection};
use super::{Call, Outcome};
use crate::admission::{Attributes, NAMESPACES, Operation};
use crate::auth::rbac;
use crate::lifecycle::{self, DEFINITIONS};
use crate::server::ApiServer;
use crate::store;
use simcluster_model::error::{ApiError, Names};
use simcluster_model::field::FieldError;
use simcluster_model::golang;
use simcluster_model::metadata;
use simcluster_model::object;
use simcluster_model::resource::Resource;
use simcluster_model::time;

/// DELETE of an object.
pub(super) async fn delete(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let options = DeleteOptions::read(call)?;
    if options.unreadable {
        return unreadable(server, call, &options).await;
    }
    let done = one(server, call, &call.name, &options, Some(&call.name)).await?;
    // The legacy option tells by the code whether the object is still there (row DE13).
    let code = if !done.gone && options.orphan_dependents == Some(false) { 202 } else { 200 };
    if done.gone && !call.resource.strategy.returns_deleted_object() {
        return Ok(Outcome::made(code, success(&call.resource, &done.object)));
    }
    let shown = server.decode(&call.resource, &done.object).await;
    Ok(Outcome::Object(code, shown.map_err(|fault| fault.of_read())?))
}

/// Deletes an object that cannot be read any more, past admission, preconditions and finalizers; no other
/// (`k8s.io/apiserver/pkg/registry/generic/registry/corrupt_obj_deleter.go`).
async fn unreadable(
    server: &ApiServer,
    call: &Call,
    options: &DeleteOptions,
) -> Result<Outcome, ApiError> {
    const VERB: &str = "unsafe-delete-ignore-read-errors";
    let resource = &call.resource;
    let wanted = rbac::Attributes {
        verb: VERB.to_owned(),
        group: resource.group.clone(),
        resource: resource.plural.clone(),
        namespace: call.namespace.clone(),
        name: call.name.clone(),
        ..rbac::Attributes::default()
    };
    let decision = rbac::authorize(&|namespace| server.scope(namespace), &call.user, &wanted);
    if !decision.allowed {
        let why = format!("not permitted to do {VERB:?}, reason: {}", decision.reason);
        return Err(ApiError::forbidden(resource.names(), &call.name, &why));
    }
    let key = store::key(&call.namespace, &call.name);
    loop {
        let stored = server.store().get(&resource.storage_key, &key);
        let stored = stored.ok_or_else(|| ApiError::not_found(resource.names(), &call.name))?;
        if server.decode(resource, &stored).await.is_ok() {
            let why = "unsafe deletion is not allowed because the object is decodable from storage";
            let why = store::invalid_object(resource, &key, false, why);
            return Err(ApiError::conflict(resource.names(), &call.name, &why));
        }
        if !options.dry_run {
            {
                let mut store = server.store();
                if !store.is_current(&resource.storage_key, &key, &stored) {
                    continue;
                }
                store.remove(&resource.storage_key, &key);
            }
            server.after_write(call, Some(&stored), None);
        }
        return Ok(Outcome::made(200, success(resource, &stored)));
    }
}

/// The Status of a delete that removed the object; it has no code (row DE01).
fn success(resource: &Resource, object: &Value) -> Value {
    let mut details = json!({ "name": object::name(object), "kind": resource.plural });
    if !resource.group.is_empty() {
        object::put(&mut details, "group", json!(resource.group));
    }
    object::put(&mut details, "uid", json!(object::uid(object)));
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": details,
    })
}

/// What a delete came to.
pub(super) struct Done {
    /// The object as it is or was.
    object: Arc<Value>,
    /// Whether it is removed (or would be, in a dry run).
    gone: bool,
}

/// What becomes of one object.
enum Fate {
    /// Nothing changes: it is being deleted already.
    Stays,
    /// It is marked and waits for finalizers or for its end.
    Marked(Value),
    /// It is removed.
    Removed,
    /// It is marked first and removed at once: watchers see both (a Pod without grace).
    MarkedAndRemoved(Value),
}

/// Deletes one object. `admitted_as` is the name under which admission hears of it: none for those of
/// a collection, and an eviction passed admission already (`None`).
pub(super) async fn one(
    server: &ApiServer,
    call: &Call,
    name: &str,
    options: &DeleteOptions,
    admitted_as: Option<&str>,
) -> Result<Done, ApiError> {
    let resource = &call.resource;
    let key = store::key(&call.namespace, name);
    loop {
        let stored = server.store().get(&resource.storage_key, &key);
        let stored = stored.ok_or_else(|| ApiError::not_found(resource.names(), name))?;
        check_preconditions(resource, name, options, &stored)?;
        let existing = existing(server, resource, &stored).await?;
        if let Some(admitted_as) = admitted_as {
            admit(server, call, admitted_as, options, &existing).await?;
        }
        let now = server.clock().now();
        // A webhook converts what is marked like any other change; else nothing needs to be converted.
        let converts = server.conversion_webhook(resource).is_some();
        let marked = if converts { &existing } else { &stored };
        let (mut object, gone) = match fate(resource, marked, options, now) {
            Fate::Stays => return Ok(Done { object: stored, gone: false }),
            Fate::Marked(object) => (Some(object), false),
            Fate::Removed => (None, true),
            Fate::MarkedAndRemoved(object) => (Some(object), true),
        };
        if converts && let Some(marked) = object.take() {
            object = Some(server.encode(resource, marked).await?);
        }
        if options.dry_run {
            let object = object.map_or(stored, Arc::new);
            return Ok(Done { object, gone });
        }
        let (written, removed) = {
            let mut store = server.store();
            if !store.is_current(&resource.storage_key, &key, &stored) {
                continue;
            }
            let written = match object {
                Some(object) if object == *stored && !gone => {
                    return Ok(Done { object: stored, gone });
                }
                Some(object) => Some(store.put(&resource.storage_key, &key, object)),
                None => None,
            };
            let removed = gone.then(|| {
                store.remove(&resource.storage_key, &key);
                with_version(written.as_ref().unwrap_or(&stored), store.revision())
            });
            (written, removed)
        };
        let left = written.as_ref().filter(|_| !gone);
        server.after_write(call, Some(&stored), left);
        return Ok(Done { object: removed.or(written).unwrap_or(stored), gone });
    }
}

/// The object that is to be deleted, as the version of the call shows it. What cannot be shown cannot be
/// deleted; if a cache has it, too, the real server writes that down as before any change.
async fn existing(
    server: &ApiServer,
    resource: &Arc<Resource>,
    stored: &Arc<Value>,
) -> Result<Arc<Value>, ApiError> {
    let existing = server.decode(resource, stored).await.map_err(|fault| fault.of_read())?;
    if let Some(cached) = server.version_caches().get(resource, stored) {
        server.encode(resource, Value::clone(&cached)).await?;
    }
    Ok(existing)
}

/// Both halves of admission of a deletion.
async fn admit(
    server: &ApiServer,
    call: &Call,
    name: &str,
    options: &DeleteOptions,
    existing: &Arc<Value>,
) -> Result<(), ApiError> {
    let mut attributes = Attributes::of(call, Operation::Delete, name);
    attributes.old_object = Some(Arc::clone(existing));
    attributes.options = options.to_json();
    attributes.dry_run = options.dry_run;
    let chain = server.admission();
    chain.admit(server, &mut attributes).await?;
    chain.validate(server, &attributes).await
}

/// The object that a deletion removed: its version is the deletion's.
fn with_version(object: &Value, revision: u64) -> Arc<Value> {
    let mut object = object.clone();
    object::set_resource_version(&mut object, revision);
    Arc::new(object)
}

/// 409 where a precondition does not hold; these name the Kind (rows DE06, DE07).
fn check_preconditions(
    resource: &Resource,
    name: &str,
    options: &DeleteOptions,
    stored: &Value,
) -> Result<(), ApiError> {
    let names = Names { group: &resource.group, plural: &resource.kind, kind: &resource.kind };
    let conflict = |why: &str| Err(ApiError::conflict(names, name, why));
    if let Some(uid) = &options.uid {
        let actual = object::uid(stored);
        if uid != actual {
            return conflict(&format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({actual}). \
                 The object might have been deleted and then recreated"
            ));
        }
    }
    if let Some(version) = &options.resource_version {
        let actual = object::resource_version(stored);
        if version != actual {
            return conflict(&format!(
                "the ResourceVersion in the precondition ({version}) does not match the \
                 ResourceVersion in record ({actual}). The object might have been modified"
            ));
        }
    }
    Ok(())
}

fn fate(
    resource: &Resource,
    stored: &Value,
    options: &DeleteOptions,
    now: jiff::Timestamp,
) -> Fate {
    if resource.storage_key == NAMESPACES {
        return namespace_fate(stored, now, &finalizers(resource, stored, options));
    }
    if resource.storage_key == DEFINITIONS && !object::is_deleting(stored) {
        return Fate::Marked(lifecycle::mark_definition(stored, now));
    }
    let deleting = object::is_deleting(stored);
    let pending =
        object::metadata(stored).get("deletionGracePeriodSeconds").and_then(Value::as_i64);
    let asked = options.grace_period_seconds;
    let mut object = stored.clone();
    let mut graceful = false;
    let strategy = &resource.strategy;
    if let Some(grace) = strategy.grace_period_seconds(stored, asked) {
        if !deleting {
            graceful = true;
            mark(&mut object, now, grace);
        } else if let Some(pending) = pending.filter(|seconds| *seconds > 0) {
            // Only a shorter period counts now.
            if asked.is_none_or(|asked| asked >= pending) {
                return Fate::Stays;
            }
            graceful = true;
            shorten(&mut object, now, pending, asked.unwrap_or_default());
        }
    }
    let finalizers = finalizers(resource, stored, options);
    let waits = !finalizers.is_empty();
    if waits {
        object::metadata_mut(&mut object).insert("finalizers".to_owned(), json!(finalizers));
    } else {
        object::metadata_mut(&mut object).remove("finalizers");
    }
    if !graceful && waits {
        mark(&mut object, now, 0);
    }
    let grace = object::metadata(&object).get("deletionGracePeriodSeconds").and_then(Value::as_i64);
    if waits || (graceful && grace.unwrap_or_default() > 0) {
        Fate::Marked(object)
    } else if graceful {
        Fate::MarkedAndRemoved(object)
    } else {
        Fate::Removed
    }
}

/// Sets the time of deletion; the first time raises the generation.
fn mark(object: &mut Value, now: jiff::Timestamp, grace_seconds: i64) {
    let generation = object::generation(object);
    let first = !object::is_deleting(object);
    let metadata = object::metadata_mut(object);
    if first {
        if generation > 0 {
            metadata.insert("generation".to_owned(), json!(generation.saturating_add(1)));
        }
        let end = now.checked_add(golang::seconds(grace_seconds)).unwrap_or(now);
        metadata.insert("deletionTimestamp".to_owned(), json!(time::format_seconds(end)));
    }
    metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(grace_seconds));
}

/// Moves the time of deletion back, but not before now (row DE16).
fn shorten(object: &mut Value, now: jiff::Timestamp, pending: i64, asked: i64) {
    let old: jiff::Timestamp = object::meta_str(object, "deletionTimestamp").parse().unwrap_or(now);
    let moved = old.checked_sub(golang::seconds(pending));
    let mut end = moved.and_then(|start| start.checked_add(golang::seconds(asked))).unwrap_or(now);
    let mut grace = asked;
    if end < now {
        end = now;
        grace = grace.min(1);
    }
    let metadata = object::metadata_mut(object);
    metadata.insert("deletionTimestamp".to_owned(), json!(time::format_seconds(end)));
    metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(grace));
}

/// The finalizers after the propagation policy has had its say (rows DE04, DE08 to DE10).
fn finalizers(resource: &Resource, stored: &Value, options: &DeleteOptions) -> Vec<String> {
    let present: Vec<&str> = object::meta_list(stored, "finalizers").collect();
    let asked = match (options.orphan_dependents, options.propagation_policy.as_deref()) {
        (Some(true), _) => Some("Orphan"),
        (Some(false), _) => Some("Background"),
        (None, policy) => policy,
    };
    let policy = asked.unwrap_or_else(|| {
        let gc =
            present.iter().find(|name| matches!(**name, metadata::ORPHAN | metadata::FOREGROUND));
        match gc.copied() {
            Some(metadata::ORPHAN) => "Orphan",
            Some(_) => "Foreground",
            None => resource.strategy.default_propagation_policy(),
        }
    });
    let wanted = match policy {
        "Orphan" => Some(metadata::ORPHAN),
        "Foreground" => Some(metadata::FOREGROUND),
        _ => None,
    };
    let gc = |name: &str| matches!(name, metadata::ORPHAN | metadata::FOREGROUND);
    if present.iter().copied().filter(|name| gc(name)).eq(wanted) {
        return present.into_iter().map(str::to_owned).collect();
    }
    present.into_iter().filter(|name| !gc(name)).chain(wanted).map(str::to_owned).collect()
}

/// Namespaces are marked first; they go when their content and finalizers are gone (row NS04).
fn namespace_fate(stored: &Value, now: jiff::Timestamp, finalizers: &[String]) -> Fate {
    if !object::is_deleting(stored) {
        let mut object = stored.clone();
        let metadata = object::metadata_mut(&mut object);
        metadata.insert("deletionTimestamp".to_owned(), json!(time::format_seconds(now)));
        if finalizers.is_empty() {
            metadata.remove("finalizers");
        } else {
            metadata.insert("finalizers".to_owned(), json!(finalizers));
        }
        object::set_path(&mut object, "status.phase", json!("Terminating"));
        return Fate::Marked(object);
    }
    let own = object::at_path(stored, "spec.finalizers").and_then(Value::as_array);
    let waits = own.is_some_and(|list| !list.is_empty())
        || object::meta_list(stored, "finalizers").next().is_some();
    if waits { Fate::Stays } else { Fate::Removed }
}

/// DELETE of a collection.
pub(super) async fn delete_collection(
    server: &ApiServer,
    call: &Call,
) -> Result<Outcome, ApiError> {
    let mut list_options = ListOptions::parse(call, false)?;
    if list_options.limit == 0 {
        // The real server reads in pages of its own, and a page of a version is of exactly that one.
        list_options.limit = usize::MAX;
    }
    let selection = Selection::parse(call, &list_options)?;
    let options = DeleteOptions::read(call)?;
    if options.unreadable {
        let why = "is not allowed with DELETECOLLECTION, try again after removing the option";
        let fault = FieldError::invalid(UNREADABLE, &json!(true), why);
        return Err(ApiError::invalid_options("DeleteOptions", &[fault]));
    }
    let page = Page::wanted(server, call, &list_options).await?;
    let list = page.read(server, call, &selection).await?;
    for item in &list.items {
        let name = object::name(item);
        match one(server, call, name, &options, Some("")).await {
            Err(error) if error.code != 404 => return Err(error),
            _ => {}
        }
    }
    Ok(Outcome::List(list))
}
