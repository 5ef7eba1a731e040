//! The rules of `ObjectMeta` that hold wherever one stands: in an object of any kind and in one that is
//! embedded in a custom resource (`k8s.io/apimachinery/pkg/api/validation/objectmeta.go`).
//!
//! `path` is where the metadata stands, such as `metadata`.

use serde_json::{Map, Value, json};

use crate::field::FieldError;
use crate::names;

/// Annotations of an object together may hold so many bytes.
const ANNOTATIONS_MAX: usize = 256 * 1024;

/// Finalizer by which the garbage collector orphans dependents.
pub const ORPHAN: &str = "orphan";
/// Finalizer by which the garbage collector deletes dependents first.
pub const FOREGROUND: &str = "foregroundDeletion";

/// Whether a field of metadata holds nothing: Go does not print it then.
#[must_use]
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether all metadata is as Go prints it: no field is empty, and no label or annotation is null. An
/// applied custom resource need not be.
#[must_use]
pub fn is_tidy(metadata: &Map<String, Value>) -> bool {
    let has_null = |field: &str| {
        let map = metadata.get(field).and_then(Value::as_object);
        map.is_some_and(|map| map.values().any(Value::is_null))
    };
    !metadata.values().any(is_empty) && !has_null("labels") && !has_null("annotations")
}

/// Faults of labels, annotations and owner references: what the server looks at in every write.
#[must_use]
pub fn map_and_owner_faults(path: &str, metadata: &Map<String, Value>) -> Vec<FieldError> {
    let mut faults = label_faults(&format!("{path}.labels"), metadata.get("labels"));
    let annotations = metadata.get("annotations");
    faults.extend(annotation_faults(&format!("{path}.annotations"), annotations));
    faults.extend(owner_faults(&format!("{path}.ownerReferences"), metadata));
    faults
}

/// Faults of the finalizers' names, and of two that contradict each other.
pub fn finalizer_faults(path: &str, metadata: &Map<String, Value>) -> Vec<FieldError> {
    let field = format!("{path}.finalizers");
    let list = metadata.get("finalizers").and_then(Value::as_array).into_iter().flatten();
    let finalizers: Vec<&str> = list.filter_map(Value::as_str).collect();
    let mut faults = Vec::new();
    for finalizer in &finalizers {
        faults.extend(names::invalid(&field, finalizer, names::qualified_name(finalizer)));
    }
    if finalizers.contains(&ORPHAN) && finalizers.contains(&FOREGROUND) {
        let why = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        faults.push(FieldError::invalid(field, &json!(finalizers), &why));
    }
    faults
}

/// Faults of labels; `field` stands for each of them.
pub(crate) fn label_faults(field: &str, labels: Option<&Value>) -> Vec<FieldError> {
    names::labels(field, texts(labels))
}

/// Faults of the keys and the size of annotations.
pub(crate) fn annotation_faults(field: &str, annotations: Option<&Value>) -> Vec<FieldError> {
    let mut faults = Vec::new();
    let mut size = 0;
    for (key, value) in texts(annotations) {
        size += key.len() + value.len();
        faults.extend(names::invalid(field, key, names::qualified_name(&key.to_lowercase())));
    }
    if size > ANNOTATIONS_MAX {
        faults.push(FieldError::too_long(field, 262_144));
    }
    faults
}

/// The entries of a map of texts.
fn texts(map: Option<&Value>) -> impl Iterator<Item = (&str, &str)> {
    let map = map.and_then(Value::as_object).into_iter().flatten();
    map.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

fn owner_faults(field: &str, metadata: &Map<String, Value>) -> Vec<FieldError> {
    let mut faults = Vec::new();
    let Some(owners) = metadata.get("ownerReferences").and_then(Value::as_array) else {
        return faults;
    };
    let mut controller: Option<String> = None;
    for (index, owner) in owners.iter().enumerate() {
        let own_field = format!("{field}[{index}]");
        let text = |key: &str| owner.get(key).and_then(Value::as_str).unwrap_or_default();
        let api_version = text("apiVersion");
        for key in ["apiVersion", "kind", "name", "uid"] {
            let field = format!("{own_field}.{key}");
            if text(key).is_empty() {
                faults.push(FieldError::required(field, "must not be empty"));
            } else if key == "apiVersion" && !is_api_version(api_version) {
                let why = "must be <group>/<version> or <version>";
                faults.push(FieldError::invalid(field, &json!(api_version), why));
            }
        }
        if api_version == "v1" && text("kind") == "Event" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            faults.push(FieldError::invalid_shown(own_field, &shown_owner(owner), why));
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
