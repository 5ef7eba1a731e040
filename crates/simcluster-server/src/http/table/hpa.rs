//! The cells of a `HorizontalPodAutoscaler`.

use serde_json::{Value, json};

use super::format::few;

/// Metrics shown before the rest is only counted.
const METRICS_MAX: usize = 2;

/// The cells after the name.
pub(super) fn cells(hpa: &Value, age: &Value) -> Vec<Value> {
    let number = |pointer: &str| hpa.pointer(pointer).and_then(Value::as_i64);
    let text = |pointer: &str| hpa.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let reference =
        format!("{}/{}", text("/spec/scaleTargetRef/kind"), text("/spec/scaleTargetRef/name"));
    let least = number("/spec/minReplicas").map_or_else(|| "<unset>".to_owned(), |n| n.to_string());
    vec![
        json!(reference),
        json!(metrics(hpa)),
        json!(least),
        json!(number("/spec/maxReplicas").unwrap_or_default()),
        json!(number("/status/currentReplicas").unwrap_or_default()),
        age.clone(),
    ]
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
