//! Validation of Deployments, Jobs and the sets.

use serde_json::{Map, Value, json};

use super::check::Faults;
use super::pod_spec;
use super::value::{at, flag, int, items, text};
use crate::field::FieldError;
use crate::names;

pub(super) fn deployment(object: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    faults.not_negative("spec.replicas", int(object, &["spec", "replicas"]));
    if selector(object, "deployment", "invalid label selector", &mut faults) {
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

pub(super) fn deployment_update(object: &Value, old: &Value) -> Vec<FieldError> {
    with_immutable(deployment(object), object, old, &["selector"])
}

pub(super) fn replica_set(object: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    faults.not_negative("spec.replicas", int(object, &["spec", "replicas"]));
    faults.not_negative("spec.minReadySeconds", int(object, &["spec", "minReadySeconds"]));
    if selector(object, "deployment", "invalid label selector", &mut faults) {
        replicated_template(object, &mut faults);
    }
    faults.0
}

pub(super) fn replica_set_update(object: &Value, old: &Value) -> Vec<FieldError> {
    with_immutable(replica_set(object), object, old, &["selector"])
}

pub(super) fn stateful_set(object: &Value) -> Vec<FieldError> {
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
    if selector(object, "statefulset", "", &mut faults) {
        matches_template(object, template, &mut faults);
        let whole = with_claims(object, template);
        pod_spec::template(&whole, "spec.template", &mut faults);
    }
    let policy = text(template, &["spec", "restartPolicy"]);
    always_restarts(policy, &mut faults);
    if at(template, &["spec", "activeDeadlineSeconds"]).is_some() {
        let why = "activeDeadlineSeconds in StatefulSet is not Supported";
        faults.forbidden("spec.template.spec.activeDeadlineSeconds", why);
    }
    faults.0
}

pub(super) fn stateful_set_update(object: &Value, old: &Value) -> Vec<FieldError> {
    let fields = ["selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy"];
    with_immutable(stateful_set(object), object, old, &fields)
}

pub(super) fn job(object: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
    ] {
        faults.not_negative(format!("spec.{field}"), int(object, &["spec", field]));
    }
    let template = at(object, &["spec", "template"]).unwrap_or(&Value::Null);
    let mut of_template = Faults::default();
    pod_spec::template(template, "spec.template", &mut of_template);
    let policy_field = "spec.template.spec.restartPolicy";
    faults.extend(of_template.0);
    match text(template, &["spec", "restartPolicy"]) {
        "OnFailure" | "Never" => {}
        "" | "Always" => faults.required(policy_field, r#"valid values: "OnFailure", "Never""#),
        other => {
            let supported = ["OnFailure".to_owned(), "Never".to_owned()];
            faults.add(FieldError::not_supported(policy_field, &json!(other), &supported));
        }
    }
    match at(object, &["spec", "selector"]) {
        None => faults.required("spec.selector", ""),
        Some(found) => label_selector(found, "spec.selector", &mut faults),
    }
    matches_template(object, template, &mut faults);
    faults.0
}

pub(super) fn job_update(object: &Value, old: &Value) -> Vec<FieldError> {
    let indexed = text(object, &["spec", "completionMode"]) == "Indexed";
    let suspended = flag(old, &["spec", "suspend"]);
    let mut fields = vec!["selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex"];
    if !indexed {
        fields.insert(0, "completions");
    }
    if !suspended {
        fields.push("template");
    }
    with_immutable(job(object), object, old, &fields)
}

/// A selector as it stands in a spec.
pub(super) fn label_selector(selector: &Value, path: &str, faults: &mut Faults) {
    faults.labels(&format!("{path}.matchLabels"), at(selector, &["matchLabels"]));
    for (index, expression) in items(selector, &["matchExpressions"]).iter().enumerate() {
        let here = format!("{path}.matchExpressions[{index}]");
        let values = items(expression, &["values"]);
        match text(expression, &["operator"]) {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                faults.required(format!("{here}.values"), why);
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                faults.forbidden(format!("{here}.values"), why);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                let field = format!("{here}.operator");
                faults.invalid(field, &json!(other), "not a valid selector operator");
            }
        }
        let key = text(expression, &["key"]);
        faults.texts(&format!("{here}.key"), key, names::qualified_name(key));
        for (position, value) in values.iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            faults.texts(&format!("{here}.values[{position}]"), value, names::label_value(value));
        }
    }
}

/// Whether a selector selects labels. A selector that is not there selects nothing.
pub(super) fn selects(selector: Option<&Value>, labels: Option<&Value>) -> bool {
    let empty = Map::new();
    let labels = labels.and_then(Value::as_object).unwrap_or(&empty);
    let Some(selector) = selector else { return false };
    let equal = at(selector, &["matchLabels"])
        .and_then(Value::as_object)
        .is_none_or(|wanted| wanted.iter().all(|(key, value)| labels.get(key) == Some(value)));
    equal
        && items(selector, &["matchExpressions"]).iter().all(|expression| {
            let value = labels.get(text(expression, &["key"]));
            let listed = value.is_some_and(|value| items(expression, &["values"]).contains(value));
            match text(expression, &["operator"]) {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => value.is_some(),
                _ => value.is_none(),
            }
        })
}

/// Labels before expressions, as the Go type has them.
fn shown_selector(selector: &Value) -> String {
    let parts: Vec<String> = ["matchLabels", "matchExpressions"]
        .iter()
        .filter_map(|key| Some(format!("\"{key}\":{}", at(selector, &[key])?)))
        .collect();
    format!("{{{}}}", parts.join(","))
}

/// Checks the selector; returns whether it can be used at all.
fn selector(object: &Value, kind: &str, unusable: &str, faults: &mut Faults) -> bool {
    let field = "spec.selector";
    let Some(selector) = at(object, &["spec", "selector"]) else {
        faults.required(field, "");
        return true;
    };
    let mut wrong = Faults::default();
    label_selector(selector, field, &mut wrong);
    let usable = wrong.is_empty();
    faults.extend(wrong.0);
    if !usable {
        let shown = shown_selector(selector);
        let detail = if unusable.is_empty() { shown } else { format!("{shown}: {unusable}") };
        faults.add(FieldError::invalid_omitted(field, &detail));
    }
    if is_empty_selector(selector) {
        let why = format!("empty selector is invalid for {kind}");
        faults.invalid_shown(field, &shown_selector(selector), &why);
    }
    usable
}

fn is_empty_selector(selector: &Value) -> bool {
    let no_labels =
        at(selector, &["matchLabels"]).and_then(Value::as_object).is_none_or(Map::is_empty);
    no_labels && items(selector, &["matchExpressions"]).is_empty()
}

fn matches_template(object: &Value, template: &Value, faults: &mut Faults) {
    let selector = at(object, &["spec", "selector"]);
    let labels = at(template, &["metadata", "labels"]);
    if !selector.is_some_and(is_empty_selector) && !selects(selector, labels) {
        let why = "`selector` does not match template `labels`";
        let value = labels.unwrap_or(&Value::Null);
        faults.invalid("spec.template.metadata.labels", value, why);
    }
}

fn replicated_template(object: &Value, faults: &mut Faults) {
    let template = at(object, &["spec", "template"]).unwrap_or(&Value::Null);
    matches_template(object, template, faults);
    pod_spec::template(template, "spec.template", faults);
    always_restarts(text(template, &["spec", "restartPolicy"]), faults);
    if at(template, &["spec", "activeDeadlineSeconds"]).is_some() {
        let why = "activeDeadlineSeconds in ReplicaSet is not Supported";
        faults.forbidden("spec.template.spec.activeDeadlineSeconds", why);
    }
}

fn always_restarts(policy: &str, faults: &mut Faults) {
    if policy != "Always" {
        let field = "spec.template.spec.restartPolicy";
        faults.add(FieldError::not_supported(field, &json!(policy), &["Always".to_owned()]));
    }
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

/// A strategy as the server's internal type prints it.
fn internal_strategy(kind: &str, rolling: Option<&Value>) -> String {
    let rolling = rolling.map_or("null".to_owned(), |rolling| {
        let field = |name: &str| at(rolling, &[name]).unwrap_or(&Value::Null).to_string();
        format!(
            r#"{{"MaxUnavailable":{},"MaxSurge":{}}}"#,
            field("maxUnavailable"),
            field("maxSurge")
        )
    });
    format!(r#"{{"Type":{kind:?},"RollingUpdate":{rolling}}}"#)
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

/// A number or a percentage, not negative.
pub(super) fn int_or_percent(value: &Value, field: &str, faults: &mut Faults) {
    match value.as_str() {
        Some(percent) => faults.texts(field, percent, names::percent(percent)),
        None => faults.not_negative(field, value.as_i64()),
    }
}

/// A percentage of at most 100.
pub(super) fn at_most_all(value: &Value, field: &str, faults: &mut Faults) {
    let percent = value.as_str().filter(|text| names::percent(text).is_empty());
    if percent.is_some() && number_of(value) > 100 {
        faults.invalid(field, value, "must not be greater than 100%");
    }
}

fn number_of(value: &Value) -> i64 {
    let text = value.as_str().map(|text| text.trim_end_matches('%'));
    text.map_or_else(|| value.as_i64().unwrap_or_default(), |text| text.parse().unwrap_or_default())
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

fn with_immutable(
    faults: Vec<FieldError>,
    object: &Value,
    old: &Value,
    fields: &[&str],
) -> Vec<FieldError> {
    let mut faults = Faults(faults);
    for name in fields {
        let (new, old) = (at(object, &["spec", name]), at(old, &["spec", name]));
        let field = format!("spec.{name}");
        match new {
            Some(new) if *name == "selector" && Some(new) != old => {
                faults.invalid_shown(field, &shown_selector(new), "field is immutable");
            }
            _ => faults.immutable(&field, new, old),
        }
    }
    faults.0
}

/// Counts in a status: none is negative, none above the replicas.
pub(super) fn deployment_status(object: &Value, old: &Value) -> Vec<FieldError> {
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

pub(super) fn replica_set_status(object: &Value, _old: &Value) -> Vec<FieldError> {
    const PARTS: [&str; 3] = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    let mut faults = Faults::default();
    not_negative(object, &["replicas"], &mut faults);
    not_negative(object, &PARTS, &mut faults);
    not_negative(object, &["observedGeneration", "terminatingReplicas"], &mut faults);
    not_more_than_replicas(object, &PARTS, &mut faults);
    not_more_available(object, "readyReplicas", &mut faults);
    faults.0
}

pub(super) fn stateful_set_status(object: &Value, _old: &Value) -> Vec<FieldError> {
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

/// A count in the status; one that is not there is zero.
fn counted(object: &Value, field: &str) -> i64 {
    int(object, &["status", field]).unwrap_or_default()
}

fn not_negative(object: &Value, fields: &[&str], faults: &mut Faults) {
    for field in fields {
        faults.not_negative(format!("status.{field}"), int(object, &["status", field]));
    }
}

fn not_more_than_replicas(object: &Value, fields: &[&str], faults: &mut Faults) {
    let replicas = counted(object, "replicas");
    for field in fields {
        let count = counted(object, field);
        if count > replicas {
            let why = "cannot be greater than status.replicas";
            faults.invalid(format!("status.{field}"), &json!(count), why);
        }
    }
}

/// `ready` is what the text calls the ready ones.
fn not_more_available(object: &Value, ready: &str, faults: &mut Faults) {
    let available = counted(object, "availableReplicas");
    if available > counted(object, "readyReplicas") {
        let why = format!("cannot be greater than {ready}");
        faults.invalid("status.availableReplicas", &json!(available), &why);
    }
}
