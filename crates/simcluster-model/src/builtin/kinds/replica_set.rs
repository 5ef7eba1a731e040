//! ReplicaSets.

use serde_json::{Value, json};

use crate::builtin::cells::View;
use crate::builtin::check::Faults;
use crate::builtin::defaults::{inner, set};
use crate::builtin::kind::{Generation, Kind};
use crate::builtin::value::int;
use crate::builtin::workload::{
    replica_counts, replicated_template, replicated_warnings, usable_selector, with_immutable,
};
use crate::field::FieldError;

/// `replicasets`.
pub(super) static KIND: Kind = Kind {
    generation: Generation::Spec,
    status_subresource: true,
    default: |replica_set| set(inner(replica_set, "spec"), "replicas", || json!(1)),
    validate,
    validate_update: Some(validate_update),
    validate_status,
    warnings,
    cells,
    ..Kind::new("apps", "replicasets")
};

fn validate(object: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    faults.not_negative("spec.replicas", int(object, &["spec", "replicas"]));
    faults.not_negative("spec.minReadySeconds", int(object, &["spec", "minReadySeconds"]));
    if usable_selector(object, "deployment", "invalid label selector", &mut faults) {
        replicated_template(object, &mut faults);
    }
    faults.0
}

fn validate_update(object: &Value, old: &Value) -> Vec<FieldError> {
    with_immutable(validate(object), object, old, &["selector"])
}

fn validate_status(object: &Value, _old: &Value) -> Vec<FieldError> {
    replica_counts(object, &["observedGeneration", "terminatingReplicas"])
}

fn cells(view: View<'_>) -> Vec<Value> {
    let [names, images] = view.containers();
    view.named(vec![
        view.count("/spec/replicas"),
        view.count("/status/replicas"),
        view.count("/status/readyReplicas"),
        view.age(),
        names,
        images,
        view.selector(),
    ])
}

fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    replicated_warnings(object, old, KIND.generation)
}
