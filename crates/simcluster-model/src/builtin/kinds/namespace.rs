//! Namespaces.

use serde_json::{Value, json};

use crate::builtin::check::Faults;
use crate::builtin::defaults::{Fields, field_text, inner, set};
use crate::builtin::kind::Kind;
use crate::builtin::value::{items, text};
use crate::field::FieldError;
use crate::names;
use crate::object;
use crate::resource::Resource;

/// `namespaces`.
pub(super) static KIND: Kind = Kind {
    status_subresource: true,
    returns_deleted_object: true,
    name_faults: names::dns1123_label,
    default,
    prepare_for_create,
    prepare_for_update,
    validate,
    validate_status: |namespace, _| status(namespace),
    may_be_removed,
    cells: |view| view.named(vec![view.text("/status/phase"), view.age()]),
    field_labels: &[("status.phase", &["status.phase"])],
    ..Kind::new("", "namespaces")
};

fn default(fields: &mut Fields) {
    let metadata = inner(fields, "metadata");
    let name = field_text(metadata, "name").to_owned();
    if !name.is_empty() {
        inner(metadata, "labels").insert("kubernetes.io/metadata.name".to_owned(), json!(name));
    }
    set(inner(fields, "status"), "phase", || json!("Active"));
}

/// A namespace is active, and kept by a finalizer in its spec until its content is gone.
fn prepare_for_create(namespace: &mut Value) {
    object::put(namespace, "status", json!({ "phase": "Active" }));
    let mut finalizers = items(namespace, &["spec", "finalizers"]).to_vec();
    if !finalizers.contains(&json!("kubernetes")) {
        finalizers.push(json!("kubernetes"));
    }
    object::set_path(namespace, "spec.finalizers", json!(finalizers));
    label_namespace(namespace);
}

fn prepare_for_update(_resource: &Resource, subresource: &str, namespace: &mut Value, old: &Value) {
    if subresource == "finalize" {
        let status = old.get("status").cloned().unwrap_or_else(|| json!({}));
        object::put(namespace, "status", status);
    } else if subresource.is_empty() {
        let spec = old.get("spec").cloned().unwrap_or_else(|| json!({}));
        object::put(namespace, "spec", spec);
    }
    label_namespace(namespace);
}

/// The label that selects a namespace by its name cannot be changed.
fn label_namespace(namespace: &mut Value) {
    let name = object::name(namespace).to_owned();
    if !name.is_empty() {
        let labels = object::metadata_mut(namespace).entry("labels").or_insert(Value::Null);
        object::put(labels, "kubernetes.io/metadata.name", json!(name));
    }
}

/// The phase says whether a namespace is going. The path is that of the real server.
fn status(namespace: &Value) -> Vec<FieldError> {
    let phase = text(namespace, &["status", "phase"]);
    let (wanted, when) = if object::is_deleting(namespace) {
        ("Terminating", "is not empty")
    } else {
        ("Active", "is empty")
    };
    if phase == wanted {
        return Vec::new();
    }
    let why = format!("may only be '{wanted}' if `deletionTimestamp` {when}");
    vec![FieldError::invalid("status.Phase", &json!(phase), &why)]
}

/// Whether nothing in the spec keeps a deleted namespace.
fn may_be_removed(namespace: &Value) -> bool {
    items(namespace, &["spec", "finalizers"]).is_empty()
}

fn validate(namespace: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    for finalizer in items(namespace, &["spec", "finalizers"]) {
        let name = finalizer.as_str().unwrap_or_default();
        let field = "spec.finalizers";
        faults.texts(field, name, names::qualified_name(name));
        faults.extend(names::kube_finalizer(field, name));
    }
    faults.0
}
