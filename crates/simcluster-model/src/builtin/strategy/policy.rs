//! Validation of the smaller kinds: Leases, disruption budgets, autoscalers, quotas, priority classes.

use serde_json::{Value, json};

use super::check::Faults;
use super::value::{at, int, items, text};
use super::workload::{at_most_all, int_or_percent, label_selector};
use crate::builtin::quantity::Quantity;
use crate::field::FieldError;
use crate::names;
use crate::object;

pub(super) fn lease(lease: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let field = "spec.leaseDurationSeconds";
    if let Some(seconds) = int(lease, &["spec", "leaseDurationSeconds"]).filter(|one| *one <= 0) {
        faults.invalid(field, &json!(seconds), "must be greater than 0");
    }
    faults.not_negative("spec.leaseTransitions", int(lease, &["spec", "leaseTransitions"]));
    faults.0
}

pub(super) fn disruption_budget(budget: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let limits = ["minAvailable", "maxUnavailable"];
    if limits.iter().all(|field| at(budget, &["spec", field]).is_some()) {
        let why = "minAvailable and maxUnavailable cannot be both set";
        faults.invalid_shown("spec", &internal_budget(budget), why);
    }
    for field in limits {
        if let Some(value) = at(budget, &["spec", field]) {
            let field = format!("spec.{field}");
            int_or_percent(value, &field, &mut faults);
            at_most_all(value, &field, &mut faults);
        }
    }
    if let Some(selector) = at(budget, &["spec", "selector"]) {
        label_selector(selector, "spec.selector", &mut faults);
    }
    let policy = text(budget, &["spec", "unhealthyPodEvictionPolicy"]);
    if !policy.is_empty() {
        let field = "spec.unhealthyPodEvictionPolicy";
        faults.one_of(field, policy, &["AlwaysAllow", "IfHealthyBudget"]);
    }
    faults.0
}

/// The server prints its internal type, whose fields have no JSON names.
fn internal_budget(budget: &Value) -> String {
    let field = |name: &str| at(budget, &["spec", name]).cloned().unwrap_or_default();
    format!(
        r#"{{"MinAvailable":{},"Selector":{},"MaxUnavailable":{},"UnhealthyPodEvictionPolicy":{}}}"#,
        field("minAvailable"),
        field("selector"),
        field("maxUnavailable"),
        field("unhealthyPodEvictionPolicy"),
    )
}

/// The server appends the faults that declarative rules find to those that code finds.
pub(super) fn autoscaler(autoscaler: &Value) -> Vec<FieldError> {
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

pub(super) fn namespace_finalizers(namespace: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    for finalizer in items(namespace, &["spec", "finalizers"]) {
        let name = finalizer.as_str().unwrap_or_default();
        let field = "spec.finalizers";
        faults.texts(field, name, names::qualified_name(name));
        faults.extend(names::kube_finalizer(field, name));
    }
    faults.0
}

pub(super) fn priority_class(class: &Value) -> Vec<FieldError> {
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

pub(super) fn priority_class_update(class: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    if at(class, &["value"]) != at(old, &["value"]) {
        faults.forbidden("value", "may not be changed in an update.");
    }
    let policy = |one| at(one, &["preemptionPolicy"]);
    faults.immutable("preemptionPolicy", policy(class), policy(old));
    faults.0
}

pub(super) fn quota(quota: &Value) -> Vec<FieldError> {
    const COUNTED: [&str; 19] = [
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "persistentvolumeclaims",
        "configmaps",
        "services.nodeports",
        "services.loadbalancers",
    ];
    let mut faults = Faults::default();
    let hard = at(quota, &["spec", "hard"]).and_then(Value::as_object).into_iter().flatten();
    for (name, amount) in hard {
        let field = format!("spec.hard[{name}]");
        let wrong = names::qualified_name(name);
        let pages = name.starts_with("hugepages-") || name.starts_with("requests.hugepages-");
        if !wrong.is_empty() {
            faults.texts(&field, name, wrong);
        } else if !name.contains('/') && !COUNTED.contains(&name.as_str()) && !pages {
            if name != "storage" {
                let why = "must be a standard resource type or fully qualified";
                faults.invalid(field.as_str(), &json!(name), why);
            }
            faults.invalid(field.as_str(), &json!(name), "must be a standard resource for quota");
        }
        let amount = amount.as_str().unwrap_or_default();
        if Quantity::parse(amount).is_ok_and(|amount| amount.nanos() < 0) {
            faults.invalid(field, &json!(amount), "must be greater than or equal to 0");
        }
    }
    faults.0
}
