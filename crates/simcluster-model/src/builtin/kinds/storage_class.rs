//! Storage classes.

use serde_json::{Value, json};

use crate::builtin::cells::View;
use crate::builtin::check::Faults;
use crate::builtin::defaults::{Fields, set};
use crate::builtin::kind::Kind;
use crate::builtin::value::{at, flag, text};
use crate::field::FieldError;
use crate::names;

/// `storageclasses`.
pub(super) static KIND: Kind = Kind {
    returns_deleted_object: true,
    default,
    validate,
    validate_update: Some(validate_update),
    cells,
    ..Kind::new("storage.k8s.io", "storageclasses")
};

fn default(class: &mut Fields) {
    set(class, "reclaimPolicy", || json!("Delete"));
    set(class, "volumeBindingMode", || json!("Immediate"));
}

fn validate(class: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let mut declared = Faults::default();
    let provisioner = text(class, &["provisioner"]);
    if provisioner.is_empty() {
        declared.required("provisioner", "");
    } else {
        let wrong = names::qualified_name(&provisioner.to_lowercase());
        faults.texts("provisioner", &provisioner.to_lowercase(), wrong);
    }
    let policy = text(class, &["reclaimPolicy"]);
    faults.supported("reclaimPolicy", policy, &["Delete", "Retain"]);
    let mode = text(class, &["volumeBindingMode"]);
    faults.supported("volumeBindingMode", mode, &["Immediate", "WaitForFirstConsumer"]);
    faults.extend(declared.0);
    faults.0
}

fn validate_update(class: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    for field in ["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"] {
        if at(class, &[field]) != at(old, &[field]) {
            faults.invalid(field, &Value::Null, "field is immutable");
        }
    }
    faults.0
}

fn cells(view: View<'_>) -> Vec<Value> {
    view.named(vec![
        view.text("/provisioner"),
        view.text("/reclaimPolicy"),
        view.text("/volumeBindingMode"),
        json!(flag(view.object, &["allowVolumeExpansion"])),
        view.age(),
    ])
}
