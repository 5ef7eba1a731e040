//! Claims of persistent volumes, and what volumes have in common with them.

use serde_json::{Value, json};

use crate::builtin::cells::View;
use crate::builtin::check::Faults;
use crate::builtin::kind::Kind;
use crate::builtin::pod_template::claim_warnings;
use crate::builtin::quantity::Quantity;
use crate::builtin::selector::label_selector;
use crate::builtin::value::{at, items, text};
use crate::field::FieldError;
use crate::names;
use crate::object;

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// `persistentvolumeclaims`.
pub(super) static KIND: Kind = Kind {
    status_subresource: true,
    returns_deleted_object: true,
    prepare_for_create: |claim| object::put(claim, "status", json!({ "phase": "Pending" })),
    validate,
    validate_update: Some(validate_update),
    warnings: |claim, _| claim_warnings(at(claim, &["spec"]).unwrap_or(&Value::Null), "spec"),
    cells,
    ..Kind::new("", "persistentvolumeclaims")
};

fn validate(claim: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let spec = at(claim, &["spec"]).unwrap_or(&Value::Null);
    if items(spec, &["accessModes"]).is_empty() {
        faults.required("spec.accessModes", "at least 1 access mode is required");
    }
    if let Some(selector) = at(spec, &["selector"]) {
        label_selector(selector, "spec.selector", &mut faults);
    }
    access_modes(spec, &mut faults);
    let field = "spec.resources[storage]";
    match at(spec, &["resources", "requests", "storage"]).and_then(Value::as_str) {
        None => faults.required(field, ""),
        Some(amount) => positive(amount, field, &mut faults),
    }
    class_and_mode(spec, &mut faults);
    faults.0
}

/// The ways in which a volume may be used.
pub(super) fn access_modes(spec: &Value, faults: &mut Faults) {
    let modes = items(spec, &["accessModes"]).iter().filter_map(Value::as_str);
    let (mut alone, mut others) = (false, false);
    for mode in modes {
        faults.supported("spec.accessModes", mode, &MODES);
        alone |= mode == "ReadWriteOncePod";
        others |= mode != "ReadWriteOncePod" && MODES.contains(&mode);
    }
    if alone && others {
        let why = "may not use ReadWriteOncePod with other access modes";
        faults.forbidden("spec.accessModes", why);
    }
}

/// An amount that is more than nothing.
pub(super) fn positive(amount: &str, field: &str, faults: &mut Faults) {
    if Quantity::parse(amount).is_ok_and(|amount| amount.nanos() <= 0) {
        faults.invalid(field, &json!(amount), "must be greater than zero");
    }
}

/// The name of the class, and whether there is a file system.
pub(super) fn class_and_mode(spec: &Value, faults: &mut Faults) {
    let class = text(spec, &["storageClassName"]);
    if !class.is_empty() {
        faults.texts("spec.storageClassName", class, names::dns1123_subdomain(class));
    }
    if let Some(mode) = at(spec, &["volumeMode"]).and_then(Value::as_str) {
        faults.supported("spec.volumeMode", mode, &["Block", "Filesystem"]);
    }
}

fn validate_update(claim: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults(validate(claim));
    let storage = ["spec", "resources", "requests", "storage"];
    let bound = text(claim, &["status", "phase"]) == "Bound";
    // What may change is as it was in the comparison.
    let mut compared = at(claim, &["spec"]).cloned().unwrap_or_default();
    let mut keep = |path: &str| {
        if let Some(value) = object::at_path(old, &format!("spec.{path}")) {
            object::set_path(&mut compared, path, value.clone());
        }
    };
    if bound {
        keep("resources.requests.storage");
        keep("volumeAttributesClassName");
    }
    if text(old, &["spec", "volumeName"]).is_empty() {
        object::as_map(&mut compared).remove("volumeName");
    }
    if at(old, &["spec", "storageClassName"]).is_none() {
        object::as_map(&mut compared).remove("storageClassName");
    }
    if Some(&compared) != at(old, &["spec"]) {
        let why = "spec is immutable after creation except resources.requests and \
                   volumeAttributesClassName for bound claims";
        faults.forbidden("spec", why);
    }
    let amount = |one: &Value, path: &[&str]| {
        Quantity::parse(text(one, path)).map(Quantity::nanos).unwrap_or_default()
    };
    let (now, before) = (amount(claim, &storage), amount(old, &storage));
    if now < before && now <= amount(old, &["status", "capacity", "storage"]) {
        let why = "field can not be less than status.capacity";
        faults.forbidden("spec.resources.requests.storage", why);
    }
    let mode = |one| at(one, &["spec", "volumeMode"]);
    faults.immutable("volumeMode", mode(claim), mode(old));
    faults.0
}

/// Access modes in short.
pub(super) fn short_modes(modes: &[Value]) -> String {
    let short = |(mode, short): (&str, &'static str)| modes.contains(&json!(mode)).then_some(short);
    let all = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    all.into_iter().filter_map(short).collect::<Vec<_>>().join(",")
}

/// The phase, or that the object is going.
pub(super) fn phase(view: View<'_>) -> Value {
    if object::is_deleting(view.object) { json!("Terminating") } else { view.text("/status/phase") }
}

/// A text, or that it is not set.
pub(super) fn or_unset(view: View<'_>, pointer: &str) -> Value {
    match view.str(pointer) {
        "" => json!("<unset>"),
        other => json!(other),
    }
}

fn cells(view: View<'_>) -> Vec<Value> {
    let bound = !view.str("/spec/volumeName").is_empty();
    let capacity = match view.str("/status/capacity/storage") {
        "" if bound => "0",
        other if bound => other,
        _ => "",
    };
    let modes = short_modes(view.list("/status/accessModes"));
    view.named(vec![
        phase(view),
        view.text("/spec/volumeName"),
        json!(capacity),
        json!(if bound { modes } else { String::new() }),
        view.text("/spec/storageClassName"),
        or_unset(view, "/spec/volumeAttributesClassName"),
        view.age(),
        or_unset(view, "/spec/volumeMode"),
    ])
}
