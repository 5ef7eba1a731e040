//! The metadata of a request's object: what the server fills, what it refuses and what it warns of.

use serde_json::{Value, json};

use simcluster_model::error::ApiError;
use simcluster_model::field::FieldError;
use simcluster_model::metadata;
use simcluster_model::names;
use simcluster_model::object;
use simcluster_model::resource::Resource;

/// Removes what a client may not set on create.
pub(super) fn wipe(object: &mut Value) {
    let metadata = object::metadata_mut(object);
    for field in
        ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"]
    {
        metadata.remove(field);
    }
}

/// Drops `metadata` fields that hold nothing, as Go's omitempty does when an object is printed.
/// Custom resources are stored as they were applied: only reads drop theirs.
pub(super) fn tidy(resource: &Resource, object: &mut Value) {
    if !resource.custom {
        object::metadata_mut(object).retain(|_, value| !metadata::is_empty(value));
    }
}

/// Puts the path's namespace into the object, or refuses another one (row CR09).
pub(super) fn fill_namespace(
    resource: &Resource,
    namespace: &str,
    object: &mut Value,
) -> Result<(), ApiError> {
    let metadata = object::metadata_mut(object);
    if !resource.namespaced {
        metadata.remove("namespace");
        return Ok(());
    }
    match metadata.get("namespace").and_then(Value::as_str).unwrap_or_default() {
        "" => {
            metadata.insert("namespace".to_owned(), json!(namespace));
            Ok(())
        }
        own if own == namespace => Ok(()),
        _ => Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
    }
}

/// Faults of a new object's metadata.
pub(super) fn faults(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let metadata = object::metadata(object);
    let mut faults = name_faults(resource, object);
    faults.extend(metadata::map_and_owner_faults("metadata", metadata));
    faults.extend(metadata::finalizer_faults("metadata", metadata));
    if resource.strategy.knows_finalizers() {
        for (index, finalizer) in object::meta_list(object, "finalizers").enumerate() {
            let field = format!("metadata.finalizers[{index}]");
            faults.extend(names::kube_finalizer(&field, finalizer));
        }
    }
    faults
}

fn name_faults(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let mut faults = Vec::new();
    let prefix = object::meta_str(object, "generateName");
    if !prefix.is_empty() {
        for text in resource.strategy.name_faults(prefix, true) {
            faults.push(FieldError::invalid("metadata.generateName", &json!(prefix), &text));
        }
    }
    let name = object::name(object);
    if name.is_empty() {
        let why = "name or generateName is required";
        faults.push(FieldError::required("metadata.name", why));
    } else {
        for text in resource.strategy.name_faults(name, false) {
            faults.push(FieldError::invalid("metadata.name", &json!(name), &text));
        }
    }
    faults
}

/// Faults of a change of metadata, beside those of the new metadata itself.
pub(super) fn update_faults(resource: &Resource, object: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Vec::new();
    let (new_meta, old_meta) = (object::metadata(object), object::metadata(old));
    if object::is_deleting(old) {
        let known: Vec<&str> = object::meta_list(old, "finalizers").collect();
        let mut added: Vec<&str> =
            object::meta_list(object, "finalizers").filter(|one| !known.contains(one)).collect();
        added.sort_unstable();
        if !added.is_empty() {
            let list: Vec<String> = added.iter().map(|one| format!("{one:?}")).collect();
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{{{}}}",
                list.join(", ")
            );
            faults.push(FieldError::forbidden("metadata.finalizers", &why));
        }
    }
    for field in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        let (new, old) = (new_meta.get(field), old_meta.get(field));
        if new != old {
            let value = new.unwrap_or(&Value::Null);
            let field = format!("metadata.{field}");
            faults.push(FieldError::invalid(field, value, "field is immutable"));
        }
    }
    if resource.custom {
        // Those of the new metadata once more.
        faults.extend(metadata::map_and_owner_faults("metadata", new_meta));
    }
    faults
}

/// Drops repeated owner references (wholly equal ones); returns the UIDs to warn of (row CR16).
pub(super) fn dedup_owners(object: &mut Value) -> Vec<String> {
    let Some(owners) =
        object::metadata_mut(object).get_mut("ownerReferences").and_then(Value::as_array_mut)
    else {
        return Vec::new();
    };
    let mut kept: Vec<Value> = Vec::new();
    let mut repeated = Vec::new();
    for owner in owners.drain(..) {
        if kept.contains(&owner) {
            let uid = owner.get("uid").and_then(Value::as_str).unwrap_or_default().to_owned();
            if !repeated.contains(&uid) {
                repeated.push(uid);
            }
        } else {
            kept.push(owner);
        }
    }
    *owners = kept;
    repeated
}

/// Warnings about finalizers that others might use, too (row CR17).
pub(super) fn finalizer_warnings(object: &Value) -> Vec<String> {
    object::meta_list(object, "finalizers")
        .filter(|name| !matches!(*name, metadata::ORPHAN | metadata::FOREGROUND | "kubernetes"))
        .filter(|name| names::qualified_name(name).is_empty() && !name.contains('/'))
        .map(|name| {
            let how = if name.contains('.') {
                "prefer a domain-qualified finalizer name including a path (/)"
            } else {
                "prefer a domain-qualified finalizer name"
            };
            let why = "to avoid accidental conflicts with other finalizer writers";
            format!("metadata.finalizers: {name:?}: {how} {why}")
        })
        .collect()
}
