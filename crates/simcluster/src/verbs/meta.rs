//! The rules of `ObjectMeta` that hold for every kind: what the server fills, and what it refuses
//! (`k8s.io/apimachinery/pkg/api/validation/objectmeta.go`).

use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::field::FieldError;
use crate::names;
use crate::object;
use crate::resource::Resource;

/// Annotations of an object together may hold so many bytes.
const ANNOTATIONS_MAX: usize = 256 * 1024;

/// Finalizer by which the garbage collector orphans dependents.
pub(crate) const ORPHAN: &str = "orphan";
/// Finalizer by which the garbage collector deletes dependents first.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

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
pub(super) fn tidy(object: &mut Value) {
    let metadata = object::metadata_mut(object);
    metadata.retain(|_, value| match value {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::String(text) => !text.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    });
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
    faults.extend(label_faults(metadata));
    faults.extend(annotation_faults(metadata));
    faults.extend(owner_faults(metadata));
    faults.extend(finalizer_faults(object));
    if !resource.custom {
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

fn entries<'a>(
    metadata: &'a Map<String, Value>,
    field: &str,
) -> impl Iterator<Item = (&'a String, &'a str)> {
    let map = metadata.get(field).and_then(Value::as_object);
    map.into_iter().flatten().map(|(key, value)| (key, value.as_str().unwrap_or_default()))
}

fn label_faults(metadata: &Map<String, Value>) -> Vec<FieldError> {
    const FIELD: &str = "metadata.labels";
    let mut faults = Vec::new();
    for (key, value) in entries(metadata, "labels") {
        for text in names::qualified_name(key) {
            faults.push(FieldError::invalid(FIELD, &json!(key), &text));
        }
        for text in names::label_value(value) {
            faults.push(FieldError::invalid(FIELD, &json!(value), &text));
        }
    }
    faults
}

fn annotation_faults(metadata: &Map<String, Value>) -> Vec<FieldError> {
    const FIELD: &str = "metadata.annotations";
    let mut faults = Vec::new();
    let mut size = 0;
    for (key, value) in entries(metadata, "annotations") {
        size += key.len() + value.len();
        for text in names::qualified_name(&key.to_lowercase()) {
            faults.push(FieldError::invalid(FIELD, &json!(key), &text));
        }
    }
    if size > ANNOTATIONS_MAX {
        faults.push(FieldError::too_long(FIELD, 262_144));
    }
    faults
}

fn owner_faults(metadata: &Map<String, Value>) -> Vec<FieldError> {
    let mut faults = Vec::new();
    let Some(owners) = metadata.get("ownerReferences").and_then(Value::as_array) else {
        return faults;
    };
    let mut controller: Option<String> = None;
    for (index, owner) in owners.iter().enumerate() {
        let field = format!("metadata.ownerReferences[{index}]");
        let text = |key: &str| owner.get(key).and_then(Value::as_str).unwrap_or_default();
        let api_version = text("apiVersion");
        for key in ["apiVersion", "kind", "name", "uid"] {
            if text(key).is_empty() {
                faults.push(FieldError::required(format!("{field}.{key}"), "must not be empty"));
            } else if key == "apiVersion" && !is_api_version(api_version) {
                let why = "must be <group>/<version> or <version>";
                let field = format!("{field}.apiVersion");
                faults.push(FieldError::invalid(field, &json!(api_version), why));
            }
        }
        if api_version == "v1" && text("kind") == "Event" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            faults.push(FieldError::invalid_shown(field, &shown_owner(owner), why));
        }
        if owner.get("controller").and_then(Value::as_bool) == Some(true) {
            let name = format!("{}/{}", text("kind"), text("name"));
            if let Some(first) = &controller {
                let why = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in \
                     references for {first} and {name}"
                );
                let shown: Vec<String> = owners.iter().map(shown_owner).collect();
                let shown = format!("[{}]", shown.join(","));
                let field = "metadata.ownerReferences";
                faults.push(FieldError::invalid_shown(field, &shown, &why));
            } else {
                controller = Some(name);
            }
        }
    }
    faults
}

/// An owner reference as the server quotes it: its fields in the order of the Go type.
fn shown_owner(owner: &Value) -> String {
    let fields: Vec<String> =
        ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"]
            .into_iter()
            .filter_map(|key| owner.get(key).map(|value| format!("{}:{value}", json!(key))))
            .collect();
    format!("{{{}}}", fields.join(","))
}

fn is_api_version(text: &str) -> bool {
    match text.split('/').collect::<Vec<_>>().as_slice() {
        [version] | [_, version] => !version.is_empty(),
        _ => false,
    }
}

fn finalizer_faults(object: &Value) -> Vec<FieldError> {
    const FIELD: &str = "metadata.finalizers";
    let mut faults = Vec::new();
    let finalizers: Vec<&str> = object::meta_list(object, "finalizers").collect();
    for finalizer in &finalizers {
        for text in names::qualified_name(finalizer) {
            faults.push(FieldError::invalid(FIELD, &json!(finalizer), &text));
        }
    }
    if finalizers.contains(&ORPHAN) && finalizers.contains(&FOREGROUND) {
        let why = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        faults.push(FieldError::invalid(FIELD, &json!(finalizers), &why));
    }
    faults
}

/// Faults of a change of metadata, beside those of the new metadata itself.
pub(super) fn update_faults(object: &Value, old: &Value) -> Vec<FieldError> {
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
    faults.extend(label_faults(new_meta));
    faults.extend(annotation_faults(new_meta));
    faults.extend(owner_faults(new_meta));
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
        .filter(|name| !matches!(*name, ORPHAN | FOREGROUND))
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
