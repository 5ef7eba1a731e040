//! Horizontal autoscalers of Pods, in two versions.

mod v1;

use serde_json::{Value, json};

use crate::builtin::cells::{View, few};
use crate::builtin::check::Faults;
use crate::builtin::defaults::{Fields, inner, set};
use crate::builtin::kind::{Generation, Kind};
use crate::builtin::value::{at, int, items, text};
use crate::field::FieldError;
use crate::names;

pub(super) use self::v1::KIND_V1;

/// `horizontalpodautoscalers`.
pub(super) static KIND: Kind = Kind {
    generation: Generation::Spec,
    status_subresource: true,
    default,
    validate,
    cells,
    ..Kind::new("autoscaling", "horizontalpodautoscalers")
};

fn default(autoscaler: &mut Fields) {
    let spec = inner(autoscaler, "spec");
    set(spec, "minReplicas", || json!(1));
    if spec.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        spec.insert("metrics".to_owned(), json!([default_metric()]));
    }
    if let Some(Value::Object(behavior)) = spec.get_mut("behavior") {
        let up = inner(behavior, "scaleUp");
        set(up, "stabilizationWindowSeconds", || json!(0));
        set(up, "selectPolicy", || json!("Max"));
        set(up, "policies", || {
            json!([
                { "type": "Pods", "value": 4, "periodSeconds": 15 },
                { "type": "Percent", "value": 100, "periodSeconds": 15 },
            ])
        });
        let down = inner(behavior, "scaleDown");
        set(down, "selectPolicy", || json!("Max"));
        set(down, "policies", || json!([{ "type": "Percent", "value": 100, "periodSeconds": 15 }]));
    }
}

/// What scales where nothing else is said.
fn default_metric() -> Value {
    let target = json!({ "type": "Utilization", "averageUtilization": 80 });
    json!({ "type": "Resource", "resource": { "name": "cpu", "target": target } })
}

/// The server appends the faults that declarative rules find to those that code finds.
fn validate(autoscaler: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let mut declared = Faults::default();
    let min = int(autoscaler, &["spec", "minReplicas"]);
    let max = int(autoscaler, &["spec", "maxReplicas"]).unwrap_or_default();
    declared.not_negative("spec.minReplicas", min);
    let field = "spec.maxReplicas";
    if max == 0 {
        declared.required(field, "");
    } else if max < 0 {
        declared.invalid(field, &json!(max), "must be greater than or equal to 1");
    }
    if min.is_some_and(|min| max < min) {
        faults.invalid(field, &json!(max), "must be greater than or equal to `minReplicas`");
    }
    let target = at(autoscaler, &["spec", "scaleTargetRef"]).unwrap_or(&Value::Null);
    for name in ["kind", "name"] {
        let field = format!("spec.scaleTargetRef.{name}");
        match text(target, &[name]) {
            "" => faults.required(field, ""),
            value => faults.texts(&field, value, names::path_segment(value)),
        }
    }
    let version = text(target, &["apiVersion"]);
    let field = "spec.scaleTargetRef.apiVersion";
    match version.matches('/').count() {
        0 => faults.invalid(field, &json!(version), "apiVersion must specify API group"),
        1 => {}
        _ => {
            let why = format!("unexpected GroupVersion string: {version}");
            faults.invalid(field, &json!(version), &why);
        }
    }
    let kinds = ["ContainerResource", "External", "Object", "Pods", "Resource"];
    for (index, metric) in items(autoscaler, &["spec", "metrics"]).iter().enumerate() {
        let field = format!("spec.metrics[{index}].type");
        match text(metric, &["type"]) {
            "" => faults.required(field, "must specify a metric source type"),
            kind => faults.one_of(field, kind, &kinds),
        }
    }
    let scales_to_zero = items(autoscaler, &["spec", "metrics"])
        .iter()
        .any(|metric| matches!(text(metric, &["type"]), "Object" | "External"));
    if min == Some(0) && !scales_to_zero {
        let why = "must specify at least one Object or External metric to support scaling to zero \
                   replicas";
        faults.forbidden("spec.metrics", why);
    }
    for direction in ["scaleUp", "scaleDown"] {
        if let Some(rules) = at(autoscaler, &["spec", "behavior", direction]) {
            scaling_rules(rules, &format!("spec.behavior.{direction}"), &mut faults);
        }
    }
    faults.extend(declared.0);
    faults.0
}

fn scaling_rules(rules: &Value, path: &str, faults: &mut Faults) {
    let field = format!("{path}.stabilizationWindowSeconds");
    if let Some(seconds) = int(rules, &["stabilizationWindowSeconds"]) {
        if seconds < 0 {
            let why = "must be greater than or equal to zero";
            faults.invalid(field.as_str(), &json!(seconds), why);
        }
        if seconds > 3600 {
            faults.invalid(field, &json!(seconds), "must be less than or equal to 3600");
        }
    }
    let policy = text(rules, &["selectPolicy"]);
    faults.one_of(format!("{path}.selectPolicy"), policy, &["Disabled", "Max", "Min"]);
    let policies = items(rules, &["policies"]);
    if policies.is_empty() {
        faults.required(format!("{path}.policies"), "must specify at least one Policy");
    }
    for (index, policy) in policies.iter().enumerate() {
        let here = format!("{path}.policies[{index}]");
        faults.one_of(format!("{here}.type"), text(policy, &["type"]), &["Percent", "Pods"]);
        for name in ["value", "periodSeconds"] {
            if let Some(number) = int(policy, &[name]).filter(|number| *number <= 0) {
                faults.invalid(
                    format!("{here}.{name}"),
                    &json!(number),
                    "must be greater than zero",
                );
            }
        }
        if let Some(seconds) = int(policy, &["periodSeconds"]).filter(|seconds| *seconds > 1800) {
            let field = format!("{here}.periodSeconds");
            faults.invalid(field, &json!(seconds), "must be less than or equal to 1800");
        }
    }
}

/// Metrics shown before the rest is only counted.
const METRICS_MAX: usize = 2;

fn cells(view: View<'_>) -> Vec<Value> {
    let hpa = view.object;
    let number = |pointer: &str| hpa.pointer(pointer).and_then(Value::as_i64);
    let text = |pointer: &str| hpa.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let reference =
        format!("{}/{}", text("/spec/scaleTargetRef/kind"), text("/spec/scaleTargetRef/name"));
    let least = number("/spec/minReplicas").map_or_else(|| "<unset>".to_owned(), |n| n.to_string());
    view.named(vec![
        json!(reference),
        json!(metrics(hpa)),
        json!(least),
        json!(number("/spec/maxReplicas").unwrap_or_default()),
        json!(number("/status/currentReplicas").unwrap_or_default()),
        view.age(),
    ])
}

fn metrics(hpa: &Value) -> String {
    let list = |pointer: &str| hpa.pointer(pointer).and_then(Value::as_array);
    let specs = list("/spec/metrics").map(Vec::as_slice).unwrap_or_default();
    if specs.is_empty() {
        return "<none>".to_owned();
    }
    let statuses = list("/status/currentMetrics").map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<String> = specs
        .iter()
        .enumerate()
        .map(|(index, spec)| metric(spec, statuses.get(index).unwrap_or(&Value::Null)))
        .collect();
    few(&texts, METRICS_MAX, ", ")
}

fn metric(spec: &Value, status: &Value) -> String {
    let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default();
    let source = match kind {
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        "Pods" => "pods",
        "Object" => "object",
        "External" => "external",
        _ => return "<unknown type>".to_owned(),
    };
    let target = |field: &str| amount(spec.pointer(&format!("/{source}/target/{field}")));
    let current = |field: &str| {
        amount(status.pointer(&format!("/{source}/current/{field}")))
            .unwrap_or_else(|| "<unknown>".to_owned())
    };
    let name = spec.pointer(&format!("/{source}/name")).and_then(Value::as_str).unwrap_or_default();
    match (source, target("averageValue")) {
        ("resource" | "containerResource", Some(target)) => {
            format!("{name}: {}/{target}", current("averageValue"))
        }
        ("resource" | "containerResource", None) => {
            let target = target("averageUtilization")
                .map_or_else(|| "<auto>".to_owned(), |n| format!("{n}%"));
            let current = match current("averageUtilization").as_str() {
                "<unknown>" => "<unknown>".to_owned(),
                known => format!("{known}%"),
            };
            format!("{name}: {current}/{target}")
        }
        ("pods", target) => {
            format!("{}/{}", current("averageValue"), target.unwrap_or_else(|| "0".to_owned()))
        }
        (_, Some(target)) => format!("{}/{target} (avg)", current("averageValue")),
        (_, None) => {
            format!("{}/{}", current("value"), target("value").unwrap_or_else(|| "0".to_owned()))
        }
    }
}

fn amount(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
