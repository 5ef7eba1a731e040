//! Autoscalers as `autoscaling/v1` has them: what that version cannot express stands in annotations
//! (`pkg/apis/autoscaling/v1/conversion.go`).

use serde_json::{Value, json};

use super::{KIND, default_metric, validate};
use crate::builtin::cells::View;
use crate::builtin::defaults::{Fields, inner, set};
use crate::builtin::kind::{Generation, Kind, shaped};
use crate::builtin::selector::shown_selector;
use crate::builtin::value::{at, items, text};
use crate::object;
use crate::resource::Resource;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
/// What no client of this version is shown, and nothing is made of.
const DROPPED: [&str; 6] = [
    METRICS,
    CURRENT_METRICS,
    BEHAVIOR,
    CONDITIONS,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

/// `horizontalpodautoscalers` in their first version.
pub(in crate::builtin::kinds) static KIND_V1: Kind = Kind {
    version: "v1",
    generation: Generation::SpecOf(|autoscaler| to_v2(autoscaler.clone())),
    status_subresource: true,
    default,
    validate: |autoscaler| validate(&to_v2(autoscaler.clone())),
    cells: |view| (KIND.cells)(View { object: &to_v2(view.object.clone()), ..view }),
    storage_version: Some("v2"),
    encode_stored: |_: &Resource, autoscaler| to_v2(autoscaler),
    decode_stored: Some(|_: &Resource, autoscaler| from_v2(&autoscaler)),
    ..Kind::new("autoscaling", "horizontalpodautoscalers")
};

/// What scales where nothing else is said is the CPU, also in this version.
fn default(autoscaler: &mut Fields) {
    let noted = inner(autoscaler, "metadata").get("annotations").and_then(|all| all.get(METRICS));
    let noted = noted.and_then(Value::as_str).and_then(|text| serde_json::from_str(text).ok());
    let noted = noted.is_some_and(|list: Vec<Value>| !list.is_empty());
    let spec = inner(autoscaler, "spec");
    set(spec, "minReplicas", || json!(1));
    if !noted {
        set(spec, "targetCPUUtilizationPercentage", || json!(80));
    }
}

/// A field of a metric in the first version (in the order of its Go type), where it stands in the
/// second, and what is printed if it is not there.
type Field = (&'static str, &'static str, Option<&'static str>);

/// The sources of metrics, as a spec has them.
const SOURCES: [(&str, &[Field]); 5] = [
    (
        "object",
        &[
            ("target", "describedObject", None),
            ("metricName", "metric.name", Some("")),
            ("targetValue", "target.value", Some("0")),
            ("selector", "metric.selector", None),
            ("averageValue", "target.averageValue", None),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "metric.name", Some("")),
            ("targetAverageValue", "target.averageValue", Some("0")),
            ("selector", "metric.selector", None),
        ],
    ),
    (
        "resource",
        &[
            ("name", "name", Some("")),
            ("targetAverageUtilization", "target.averageUtilization", None),
            ("targetAverageValue", "target.averageValue", None),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "name", Some("")),
            ("targetAverageUtilization", "target.averageUtilization", None),
            ("targetAverageValue", "target.averageValue", None),
            ("container", "container", Some("")),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "metric.name", Some("")),
            ("metricSelector", "metric.selector", None),
            ("targetValue", "target.value", None),
            ("targetAverageValue", "target.averageValue", None),
        ],
    ),
];

/// The sources of metrics, as a status has them.
const CURRENT: [(&str, &[Field]); 5] = [
    (
        "object",
        &[
            ("target", "describedObject", None),
            ("metricName", "metric.name", Some("")),
            ("currentValue", "current.value", Some("0")),
            ("selector", "metric.selector", None),
            ("averageValue", "current.averageValue", None),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "metric.name", Some("")),
            ("currentAverageValue", "current.averageValue", Some("0")),
            ("selector", "metric.selector", None),
        ],
    ),
    (
        "resource",
        &[
            ("name", "name", Some("")),
            ("currentAverageUtilization", "current.averageUtilization", None),
            ("currentAverageValue", "current.averageValue", Some("0")),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "name", Some("")),
            ("currentAverageUtilization", "current.averageUtilization", None),
            ("currentAverageValue", "current.averageValue", Some("0")),
            ("container", "container", Some("")),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "metric.name", Some("")),
            ("metricSelector", "metric.selector", None),
            ("currentValue", "current.value", Some("0")),
            ("currentAverageValue", "current.averageValue", None),
        ],
    ),
];

/// An object with its fields in this order; those without value are left out.
fn ordered(fields: impl IntoIterator<Item = (&'static str, Option<String>)>) -> String {
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let fields: Vec<String> = fields.map(|(name, value)| format!("{name:?}:{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// A value as Go prints it; objects have the order of their type.
fn shown(name: &str, value: &Value) -> String {
    match name {
        "describedObject" => ordered(
            ["kind", "name", "apiVersion"]
                .map(|key| (key, at(value, &[key]).map(Value::to_string))),
        ),
        "metric.selector" => shown_selector(value),
        _ => value.to_string(),
    }
}

/// A metric as the first version writes it into an annotation.
fn old_metric(metric: &Value, sources: &[(&'static str, &'static [Field])]) -> String {
    let kind = at(metric, &["type"]).map(Value::to_string);
    let sources = sources.iter().map(|(source, fields)| {
        let own = at(metric, &[source]);
        let body = own.map(|own| {
            ordered(fields.iter().map(|(old, new, missing)| {
                let value = object::at_path(own, new).filter(|value| !value.is_null());
                let value = value.map(|value| shown(new, value));
                (*old, value.or_else(|| missing.map(|text| format!("{text:?}"))))
            }))
        });
        (*source, body)
    });
    ordered(std::iter::once(("type", kind)).chain(sources))
}

/// The metric that an annotation describes.
fn new_metric(metric: &Value, sources: &[(&'static str, &'static [Field])]) -> Value {
    let mut made = json!({ "type": text(metric, &["type"]) });
    for (source, fields) in sources {
        let Some(own) = at(metric, &[source]) else { continue };
        let mut body = json!({});
        for (old, new, _) in *fields {
            if let Some(value) = at(own, &[old]) {
                object::set_path(&mut body, new, value.clone());
            }
        }
        if fields.iter().any(|(_, new, _)| new.starts_with("target.")) {
            type_of_target(source, &mut body);
        }
        object::put(&mut made, source, body);
    }
    made
}

fn type_of_target(source: &str, body: &mut Value) {
    let has = |field: &str| at(body, &["target", field]).is_some();
    let kind = match source {
        "resource" | "containerResource" if has("averageUtilization") => "Utilization",
        "object" if !has("averageValue") => "Value",
        "external" if has("value") => "Value",
        _ => "AverageValue",
    };
    // Zero stands for no value here: this version cannot leave it out.
    let no_value =
        source == "object" && kind == "AverageValue" && text(body, &["target", "value"]) == "0";
    let target = object::as_map(object::child(body, "target"));
    if no_value {
        target.remove("value");
    }
    target.insert("type".to_owned(), json!(kind));
}

/// The behavior as the server's internal type prints it, whose fields have no JSON names.
fn old_behavior(behavior: &Value) -> String {
    let or_null = |value: Option<&Value>| value.map_or_else(|| "null".to_owned(), Value::to_string);
    let rules = |name: &str| {
        let Some(rules) = at(behavior, &[name]) else { return "null".to_owned() };
        let policies = items(rules, &["policies"]).iter().map(|policy| {
            let field = |name: &str| Some(or_null(at(policy, &[name])));
            ordered([
                ("Type", field("type")),
                ("Value", field("value")),
                ("PeriodSeconds", field("periodSeconds")),
            ])
        });
        let field = |name: &str| Some(or_null(at(rules, &[name])));
        ordered([
            ("StabilizationWindowSeconds", field("stabilizationWindowSeconds")),
            ("SelectPolicy", field("selectPolicy")),
            ("Policies", Some(list(policies))),
            ("Tolerance", field("tolerance")),
        ])
    };
    ordered([("ScaleUp", Some(rules("scaleUp"))), ("ScaleDown", Some(rules("scaleDown")))])
}

fn new_behavior(behavior: &Value) -> Value {
    match behavior {
        Value::Object(map) => map
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| {
                let mut letters = name.chars();
                let first = letters.next().map(|letter| letter.to_ascii_lowercase());
                (first.into_iter().chain(letters).collect::<String>(), new_behavior(value))
            })
            .collect(),
        Value::Array(list) => list.iter().map(new_behavior).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => behavior.clone(),
    }
}

fn old_condition(condition: &Value) -> String {
    ordered(
        ["type", "status", "lastTransitionTime", "reason", "message"]
            .map(|key| (key, at(condition, &[key]).map(Value::to_string))),
    )
}

/// The percentage of the CPU metric, which this version has a field for.
fn utilization<'a>(metric: &'a Value, of: &str) -> Option<&'a Value> {
    let is_cpu =
        text(metric, &["type"]) == "Resource" && text(metric, &["resource", "name"]) == "cpu";
    at(metric, &["resource", of, "averageUtilization"]).filter(|_| is_cpu)
}

fn from_v2(v2: &Value) -> Value {
    let mut v1 = v2.clone();
    drop_annotations(&mut v1);
    let metrics = items(v2, &["spec", "metrics"]);
    let others = metrics.iter().filter(|metric| utilization(metric, "target").is_none());
    let others: Vec<String> = others.map(|metric| old_metric(metric, &SOURCES)).collect();
    let current = items(v2, &["status", "currentMetrics"]);
    let conditions = items(v2, &["status", "conditions"]);
    let notes = [
        (METRICS, (!others.is_empty()).then(|| list(others.into_iter()))),
        (
            CURRENT_METRICS,
            (!current.is_empty())
                .then(|| list(current.iter().map(|one| old_metric(one, &CURRENT)))),
        ),
        (BEHAVIOR, at(v2, &["spec", "behavior"]).map(old_behavior)),
        (CONDITIONS, (!conditions.is_empty()).then(|| list(conditions.iter().map(old_condition)))),
    ];
    for (name, note) in notes {
        if let Some(note) = note {
            let annotations =
                object::metadata_mut(&mut v1).entry("annotations").or_insert(Value::Null);
            object::put(annotations, name, json!(note));
        }
    }
    if let Some(percent) = metrics.iter().find_map(|metric| utilization(metric, "target")) {
        object::set_path(&mut v1, "spec.targetCPUUtilizationPercentage", percent.clone());
    }
    if let Some(percent) =
        current.iter().filter_map(|metric| utilization(metric, "current")).next_back()
    {
        object::set_path(&mut v1, "status.currentCPUUtilizationPercentage", percent.clone());
    }
    shaped(v1, "autoscaling/v1", "io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler")
}

fn to_v2(v1: Value) -> Value {
    let note = |name: &str| -> Option<Value> {
        let text = at(&v1, &["metadata", "annotations", name])?.as_str()?;
        serde_json::from_str(text).ok()
    };
    let noted = |name: &str, sources: &[(&'static str, &'static [Field])]| -> Option<Vec<Value>> {
        let list = note(name)?.as_array()?.iter().map(|one| new_metric(one, sources)).collect();
        Some(list)
    };
    let cpu = |of: &str, percent: &Value| {
        let mut metric = default_metric();
        object::set_path(
            &mut metric,
            &format!("resource.{of}.averageUtilization"),
            percent.clone(),
        );
        metric
    };
    let mut metrics = noted(METRICS, &SOURCES).unwrap_or_default();
    let target = at(&v1, &["spec", "targetCPUUtilizationPercentage"]);
    metrics.extend(target.map(|percent| cpu("target", percent)));
    if metrics.is_empty() {
        metrics.push(default_metric());
    }
    let percent = at(&v1, &["status", "currentCPUUtilizationPercentage"]);
    let current = noted(CURRENT_METRICS, &CURRENT).or_else(|| {
        let mut metric = json!({ "type": "Resource", "resource": { "name": "cpu" } });
        object::set_path(&mut metric, "resource.current.averageUtilization", percent?.clone());
        Some(vec![metric])
    });
    let behavior = note(BEHAVIOR).map(|behavior| new_behavior(&behavior));
    let behavior = behavior.filter(|one| one.as_object().is_some_and(|rules| !rules.is_empty()));
    let conditions = note(CONDITIONS).filter(Value::is_array);
    let mut v2 = v1;
    drop_annotations(&mut v2);
    object::set_path(&mut v2, "spec.metrics", json!(metrics));
    for (path, value) in [
        ("status.currentMetrics", current.map(Value::Array)),
        ("spec.behavior", behavior),
        ("status.conditions", conditions),
    ] {
        if let Some(value) = value {
            object::set_path(&mut v2, path, value);
        }
    }
    shaped(v2, "autoscaling/v2", "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler")
}

fn drop_annotations(autoscaler: &mut Value) {
    let metadata = object::metadata_mut(autoscaler);
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.retain(|name, _| !DROPPED.contains(&name.as_str()));
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_first_version_cannot_express_survives_it() {
        let v2 = json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": { "name": "a", "annotations": { "x": "y" } },
            "spec": {
                "maxReplicas": 3, "scaleTargetRef": { "kind": "Deployment", "name": "web" },
                "metrics": [
                    { "type": "Pods", "pods": {
                        "metric": { "name": "m", "selector": { "matchLabels": { "a": "b" } } },
                        "target": { "type": "AverageValue", "averageValue": "5" } } },
                    { "type": "Object", "object": {
                        "describedObject": { "apiVersion": "v1", "kind": "Service", "name": "s" },
                        "metric": { "name": "m" }, "target": { "type": "Value", "value": "5" } } },
                    { "type": "External", "external": {
                        "metric": { "name": "m" },
                        "target": { "type": "AverageValue", "averageValue": "5" } } },
                    { "type": "ContainerResource", "containerResource": {
                        "container": "c", "name": "memory",
                        "target": { "type": "AverageValue", "averageValue": "5" } } },
                    { "type": "Resource", "resource": {
                        "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 60 } } },
                ],
                "behavior": { "scaleDown": {
                    "selectPolicy": "Max",
                    "policies": [{ "type": "Pods", "value": 1, "periodSeconds": 15 }] } },
            },
            "status": {
                "currentReplicas": 1, "desiredReplicas": 1,
                "currentMetrics": [{ "type": "Resource", "resource": {
                    "name": "cpu", "current": { "averageUtilization": 3, "averageValue": "1" } } }],
                "conditions": [{ "type": "AbleToScale", "status": "True", "reason": "r",
                    "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z" }],
            },
        });
        let v2 = shaped(v2, "autoscaling/v2", "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler");
        let v1 = from_v2(&v2);
        assert_eq!(v1["spec"]["targetCPUUtilizationPercentage"], 60);
        assert_eq!(v1["status"]["currentCPUUtilizationPercentage"], 3);
        assert_eq!(to_v2(v1), v2);
    }
}
