//! StatefulSets.

use serde_json::{Value, json};

use crate::builtin::cells::View;
use crate::builtin::check::Faults;
use crate::builtin::defaults::{Fields, field_text, inner, set};
use crate::builtin::kind::{Generation, Kind};
use crate::builtin::percent::{at_most_all, int_or_percent, number_of};
use crate::builtin::pod_template;
use crate::builtin::value::{at, int, items, objects_mut, text};
use crate::builtin::workload::{
    always_restarts, internal_strategy, matches_template, not_more_available,
    not_more_than_replicas, not_negative, template_warnings, usable_selector, with_immutable,
};
use crate::field::FieldError;
use crate::names;

/// `statefulsets`.
pub(super) static KIND: Kind = Kind {
    generation: Generation::Spec,
    status_subresource: true,
    // Pods are named after the set, and their names are labels.
    name_faults: names::dns1123_label,
    default,
    validate,
    validate_update: Some(validate_update),
    validate_status,
    warnings,
    cells,
    ..Kind::new("apps", "statefulsets")
};

fn default(stateful_set: &mut Fields) {
    let spec = inner(stateful_set, "spec");
    set(spec, "podManagementPolicy", || json!("OrderedReady"));
    let strategy = inner(spec, "updateStrategy");
    if field_text(strategy, "type").is_empty() {
        strategy.insert("type".to_owned(), json!("RollingUpdate"));
        set(strategy, "rollingUpdate", || json!({}));
    }
    if field_text(strategy, "type") == "RollingUpdate"
        && let Some(Value::Object(rolling)) = strategy.get_mut("rollingUpdate")
    {
        set(rolling, "partition", || json!(0));
        set(rolling, "maxUnavailable", || json!(1));
    }
    let retention = inner(spec, "persistentVolumeClaimRetentionPolicy");
    set(retention, "whenDeleted", || json!("Retain"));
    set(retention, "whenScaled", || json!("Retain"));
    set(spec, "replicas", || json!(1));
    set(spec, "revisionHistoryLimit", || json!(10));
    for claim in objects_mut(spec.get_mut("volumeClaimTemplates")) {
        claim.insert("apiVersion".to_owned(), json!("v1"));
        claim.insert("kind".to_owned(), json!("PersistentVolumeClaim"));
    }
}

fn validate(object: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let policy = text(object, &["spec", "podManagementPolicy"]);
    if !matches!(policy, "OrderedReady" | "Parallel") {
        let why = "must be 'OrderedReady' or 'Parallel'";
        faults.invalid("spec.podManagementPolicy", &json!(policy), why);
    }
    update_strategy(object, &mut faults);
    for field in ["whenDeleted", "whenScaled"] {
        let policy = text(object, &["spec", "persistentVolumeClaimRetentionPolicy", field]);
        let field = format!("spec.persistentVolumeClaimRetentionPolicy.{field}");
        faults.one_of(field, policy, &["Retain", "Delete"]);
    }
    faults.not_negative("spec.replicas", int(object, &["spec", "replicas"]));
    faults.not_negative("spec.minReadySeconds", int(object, &["spec", "minReadySeconds"]));
    faults.not_negative("spec.ordinals.start", int(object, &["spec", "ordinals", "start"]));
    let service = text(object, &["spec", "serviceName"]);
    if !service.is_empty() {
        faults.texts("spec.serviceName", service, names::dns1123_label(service));
    }
    let template = at(object, &["spec", "template"]).unwrap_or(&Value::Null);
    if usable_selector(object, "statefulset", "", &mut faults) {
        matches_template(object, template, &mut faults);
        let whole = with_claims(object, template);
        pod_template::validate(&whole, "spec.template", &mut faults);
    }
    let policy = text(template, &["spec", "restartPolicy"]);
    always_restarts(policy, &mut faults);
    if at(template, &["spec", "activeDeadlineSeconds"]).is_some() {
        let why = "activeDeadlineSeconds in StatefulSet is not Supported";
        faults.forbidden("spec.template.spec.activeDeadlineSeconds", why);
    }
    faults.0
}

fn validate_update(object: &Value, old: &Value) -> Vec<FieldError> {
    let fields = ["selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy"];
    with_immutable(validate(object), object, old, &fields)
}

/// The template of a stateful set with the volumes that its claims become.
fn with_claims(object: &Value, template: &Value) -> Value {
    let claims: Vec<&str> = items(object, &["spec", "volumeClaimTemplates"])
        .iter()
        .map(|claim| text(claim, &["metadata", "name"]))
        .collect();
    let mut whole = template.clone();
    let mut volumes: Vec<Value> = claims
        .iter()
        .map(|name| json!({ "name": name, "persistentVolumeClaim": { "claimName": name } }))
        .collect();
    let own = items(template, &["spec", "volumes"]).iter();
    volumes.extend(own.filter(|one| !claims.contains(&text(one, &["name"]))).cloned());
    if !claims.is_empty() {
        crate::object::set_path(&mut whole, "spec.volumes", json!(volumes));
    }
    whole
}

fn update_strategy(object: &Value, faults: &mut Faults) {
    let strategy = at(object, &["spec", "updateStrategy"]).unwrap_or(&Value::Null);
    let rolling = at(strategy, &["rollingUpdate"]);
    match text(strategy, &["type"]) {
        "RollingUpdate" => {
            let Some(rolling) = rolling else { return };
            let field = |name: &str| format!("spec.updateStrategy.rollingUpdate.{name}");
            faults.not_negative(field("partition"), int(rolling, &["partition"]));
            if let Some(unavailable) = at(rolling, &["maxUnavailable"]) {
                int_or_percent(unavailable, &field("maxUnavailable"), faults);
                if number_of(unavailable) == 0 {
                    faults.invalid(field("maxUnavailable"), unavailable, "cannot be 0");
                }
                at_most_all(unavailable, &field("maxUnavailable"), faults);
            }
        }
        "OnDelete" => {
            if let Some(rolling) = rolling {
                let why = "only allowed for updateStrategy 'RollingUpdate'";
                faults.invalid("spec.updateStrategy.rollingUpdate", rolling, why);
            }
        }
        _ => {
            let why = "must be 'RollingUpdate' or 'OnDelete'";
            let shown = internal_strategy(text(strategy, &["type"]), None);
            faults.invalid_shown("spec.updateStrategy", &shown, why);
        }
    }
}

fn validate_status(object: &Value, _old: &Value) -> Vec<FieldError> {
    const PARTS: [&str; 4] =
        ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    let mut faults = Faults::default();
    not_negative(object, &["replicas"], &mut faults);
    not_negative(object, &PARTS, &mut faults);
    not_negative(object, &["observedGeneration", "collisionCount"], &mut faults);
    not_more_than_replicas(object, &PARTS, &mut faults);
    not_more_available(object, "status.readyReplicas", &mut faults);
    faults.0
}

fn cells(view: View<'_>) -> Vec<Value> {
    let ready = view.number("/status/readyReplicas");
    let wanted = view.number("/spec/replicas");
    let [names, images] = view.containers();
    view.named(vec![json!(format!("{ready}/{wanted}")), view.age(), names, images])
}

fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut found = template_warnings(object, old, KIND.generation);
    // As the server writes the path, which differs in changes.
    let inner = if old.is_some() { ".Spec" } else { "" };
    for (index, claim) in items(object, &["spec", "volumeClaimTemplates"]).iter().enumerate() {
        let field = format!("spec.volumeClaimTemplates[{index}]{inner}");
        let spec = at(claim, &["spec"]).unwrap_or(&Value::Null);
        found.extend(pod_template::claim_warnings(spec, &field));
    }
    if int(object, &["spec", "revisionHistoryLimit"]).is_some_and(|limit| limit < 0) {
        let why = "a negative value retains all historical revisions; a value >= 0 is recommended";
        found.push(format!("spec.revisionHistoryLimit: {why}"));
    }
    found
}
