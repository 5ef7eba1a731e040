//! Deployments.

use serde_json::{Value, json};

use crate::builtin::cells::View;
use crate::builtin::check::Faults;
use crate::builtin::defaults::{Fields, field_text, inner, set};
use crate::builtin::kind::{Generation, Kind};
use crate::builtin::percent::{at_most_all, int_or_percent, number_of};
use crate::builtin::value::{at, int, text};
use crate::builtin::workload::{
    counted, internal_strategy, not_more_available, not_more_than_replicas, not_negative,
    replicated_template, replicated_warnings, usable_selector, with_immutable,
};
use crate::field::FieldError;
use crate::object;
use crate::resource::Resource;

/// `deployments`.
pub(super) static KIND: Kind = Kind {
    // Annotations are copied to the ReplicaSets, so a change of them is work to do, too.
    generation: Generation::SpecOrAnnotations,
    status_subresource: true,
    default,
    prepare_for_update,
    validate,
    validate_update: Some(validate_update),
    validate_status,
    warnings,
    cells,
    ..Kind::new("apps", "deployments")
};

fn default(deployment: &mut Fields) {
    let spec = inner(deployment, "spec");
    set(spec, "replicas", || json!(1));
    let strategy = inner(spec, "strategy");
    set(strategy, "type", || json!("RollingUpdate"));
    if field_text(strategy, "type") == "RollingUpdate" {
        let rolling = inner(strategy, "rollingUpdate");
        rolling.entry("maxUnavailable").or_insert_with(|| json!("25%"));
        rolling.entry("maxSurge").or_insert_with(|| json!("25%"));
    }
    set(spec, "revisionHistoryLimit", || json!(10));
    set(spec, "progressDeadlineSeconds", || json!(600));
}

/// A write to a Deployment's status leaves its labels alone.
fn prepare_for_update(
    _resource: &Resource,
    subresource: &str,
    deployment: &mut Value,
    old: &Value,
) {
    if subresource == "status" {
        let metadata = object::metadata_mut(deployment);
        match object::metadata(old).get("labels") {
            Some(labels) => metadata.insert("labels".to_owned(), labels.clone()),
            None => metadata.remove("labels"),
        };
    }
}

fn validate(object: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    faults.not_negative("spec.replicas", int(object, &["spec", "replicas"]));
    if usable_selector(object, "deployment", "invalid label selector", &mut faults) {
        replicated_template(object, &mut faults);
    }
    strategy(at(object, &["spec", "strategy"]).unwrap_or(&Value::Null), &mut faults);
    let min_ready = int(object, &["spec", "minReadySeconds"]);
    faults.not_negative("spec.minReadySeconds", min_ready);
    let limit = int(object, &["spec", "revisionHistoryLimit"]);
    faults.not_negative("spec.revisionHistoryLimit", limit);
    let field = "spec.progressDeadlineSeconds";
    if let Some(deadline) = int(object, &["spec", "progressDeadlineSeconds"]) {
        faults.not_negative(field, Some(deadline));
        if deadline <= min_ready.unwrap_or_default() {
            faults.invalid(field, &json!(deadline), "must be greater than minReadySeconds");
        }
    }
    faults.0
}

fn validate_update(object: &Value, old: &Value) -> Vec<FieldError> {
    with_immutable(validate(object), object, old, &["selector"])
}

fn strategy(strategy: &Value, faults: &mut Faults) {
    let field = "spec.strategy";
    let rolling = at(strategy, &["rollingUpdate"]);
    match text(strategy, &["type"]) {
        "Recreate" => {
            if rolling.is_some() {
                let why = "may not be specified when strategy `type` is 'Recreate'";
                faults.forbidden("spec.strategy.rollingUpdate", why);
            }
        }
        "RollingUpdate" => {
            if let Some(rolling) = rolling {
                rolling_update(rolling, faults);
            }
        }
        other => {
            let shown = internal_strategy(other, rolling);
            let mut fault = FieldError::not_supported(field, &Value::Null, &[]);
            fault.body = format!(
                r#"Unsupported value: {shown}: supported values: "Recreate", "RollingUpdate""#
            );
            faults.add(fault);
        }
    }
}

fn rolling_update(rolling: &Value, faults: &mut Faults) {
    let field = |name: &str| format!("spec.strategy.rollingUpdate.{name}");
    let zero = json!(0);
    let value = |name: &str| at(rolling, &[name]).unwrap_or(&zero);
    let (unavailable, surge) = (value("maxUnavailable"), value("maxSurge"));
    int_or_percent(unavailable, &field("maxUnavailable"), faults);
    int_or_percent(surge, &field("maxSurge"), faults);
    if number_of(unavailable) == 0 && number_of(surge) == 0 {
        let why = "may not be 0 when `maxSurge` is 0";
        faults.invalid(field("maxUnavailable"), unavailable, why);
    }
    at_most_all(unavailable, &field("maxUnavailable"), faults);
}

/// Counts in a status: none is negative, none above the replicas.
fn validate_status(object: &Value, old: &Value) -> Vec<FieldError> {
    const COUNTS: [&str; 7] = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
    ];
    const PARTS: [&str; 3] = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    let mut faults = Faults::default();
    not_negative(object, &COUNTS, &mut faults);
    not_negative(object, &["collisionCount"], &mut faults);
    not_more_than_replicas(object, &PARTS, &mut faults);
    not_more_available(object, "readyReplicas", &mut faults);
    let collisions = counted(object, "collisionCount");
    if int(old, &["status", "collisionCount"]).is_some_and(|before| collisions < before) {
        faults.invalid("status.collisionCount", &json!(collisions), "cannot be decremented");
    }
    faults.0
}

fn cells(view: View<'_>) -> Vec<Value> {
    let ready = view.number("/status/readyReplicas");
    let wanted = view.number("/spec/replicas");
    let [names, images] = view.containers();
    view.named(vec![
        json!(format!("{ready}/{wanted}")),
        view.count("/status/updatedReplicas"),
        view.count("/status/availableReplicas"),
        view.age(),
        names,
        images,
        view.selector(),
    ])
}

fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    replicated_warnings(object, old, KIND.generation)
}
