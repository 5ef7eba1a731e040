//! Priority classes.

use serde_json::{Value, json};

use crate::builtin::check::Faults;
use crate::builtin::defaults::set;
use crate::builtin::kind::{Generation, Kind};
use crate::builtin::value::{at, int};
use crate::field::FieldError;
use crate::object;

/// `priorityclasses`.
pub(super) static KIND: Kind = Kind {
    generation: Generation::Constant,
    default: |class| set(class, "preemptionPolicy", || json!("PreemptLowerPriority")),
    validate,
    validate_update: Some(validate_update),
    cells: |view| {
        view.named(vec![
            json!(view.number("/value")),
            json!(view.flag("/globalDefault")),
            view.age(),
            view.text("/preemptionPolicy"),
        ])
    },
    ..Kind::new("scheduling.k8s.io", "priorityclasses")
};

fn validate(class: &Value) -> Vec<FieldError> {
    const HIGHEST: i64 = 1_000_000_000;
    let mut faults = Faults::default();
    let name = object::name(class);
    let known = matches!(name, "system-node-critical" | "system-cluster-critical");
    if name.starts_with("system-") && !known {
        let why = format!(
            "priority class names with 'system-' prefix are reserved for system use only. error: \
             {name} is not a known system priority class"
        );
        faults.forbidden("metadata.name", &why);
    } else if !known && int(class, &["value"]).is_some_and(|value| value > HIGHEST) {
        let why = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        faults.forbidden("value", &why);
    }
    faults.0
}

fn validate_update(class: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    if at(class, &["value"]) != at(old, &["value"]) {
        faults.forbidden("value", "may not be changed in an update.");
    }
    let policy = |one| at(one, &["preemptionPolicy"]);
    faults.immutable("preemptionPolicy", policy(class), policy(old));
    faults.0
}
