//! Validation of what a Pod says about the Nodes and Pods that it wants to be near to, or far from.

use serde_json::{Value, json};

use super::scheduling::match_label_keys;
use crate::builtin::check::Faults;
use crate::builtin::selector::label_selector;
use crate::builtin::value::{at, int, items, text};
use crate::names;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Faults of the affinity of a Pod.
pub(super) fn validate(affinity: &Value, path: &str, faults: &mut Faults) {
    if let Some(nodes) = at(affinity, &["nodeAffinity"]) {
        node_affinity(nodes, &format!("{path}.nodeAffinity"), faults);
    }
    for field in ["podAffinity", "podAntiAffinity"] {
        if let Some(pods) = at(affinity, &[field]) {
            pod_affinity(pods, &format!("{path}.{field}"), faults);
        }
    }
}

fn node_affinity(affinity: &Value, path: &str, faults: &mut Faults) {
    if let Some(required) = at(affinity, &[REQUIRED]) {
        node_selector(required, &format!("{path}.{REQUIRED}"), faults);
    }
    for (index, term) in items(affinity, &[PREFERRED]).iter().enumerate() {
        let here = format!("{path}.{PREFERRED}[{index}]");
        weight(term, &here, faults);
        let preference = at(term, &["preference"]).unwrap_or(&Value::Null);
        node_term(preference, false, &format!("{here}.preference"), faults);
    }
}

/// Faults of a selector of Nodes, of which one term must hold.
pub(in crate::builtin) fn node_selector(selector: &Value, path: &str, faults: &mut Faults) {
    let terms = items(selector, &["nodeSelectorTerms"]);
    let path = format!("{path}.nodeSelectorTerms");
    if terms.is_empty() {
        faults.required(path.as_str(), "must have at least one node selector term");
    }
    for (index, term) in terms.iter().enumerate() {
        node_term(term, true, &format!("{path}[{index}]"), faults);
    }
}

fn node_term(term: &Value, checks_values: bool, path: &str, faults: &mut Faults) {
    for (index, expression) in items(term, &["matchExpressions"]).iter().enumerate() {
        node_labels(
            expression,
            checks_values,
            &format!("{path}.matchExpressions[{index}]"),
            faults,
        );
    }
    for (index, expression) in items(term, &["matchFields"]).iter().enumerate() {
        node_fields(expression, &format!("{path}.matchFields[{index}]"), faults);
    }
}

fn node_labels(expression: &Value, checks_values: bool, path: &str, faults: &mut Faults) {
    let values = items(expression, &["values"]);
    let field = format!("{path}.values");
    match text(expression, &["operator"]) {
        "In" | "NotIn" if values.is_empty() => {
            faults.required(field.as_str(), "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            faults.forbidden(field.as_str(), why);
        }
        "Gt" | "Lt" if values.len() != 1 => {
            let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            faults.required(field.as_str(), why);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => unknown_operator(other, path, faults),
    }
    let key = text(expression, &["key"]);
    faults.texts(&format!("{path}.key"), key, names::qualified_name(key));
    // A preference may name what no label can be: it is never met then.
    for (index, value) in values.iter().enumerate().filter(|_| checks_values) {
        let value = value.as_str().unwrap_or_default();
        faults.texts(&format!("{field}[{index}]"), value, names::label_value(value));
    }
}

fn node_fields(expression: &Value, path: &str, faults: &mut Faults) {
    let values = items(expression, &["values"]);
    match text(expression, &["operator"]) {
        "In" | "NotIn" if values.len() == 1 => {}
        "In" | "NotIn" => {
            let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field \
                       selector";
            faults.required(format!("{path}.values"), why);
        }
        other => unknown_operator(other, path, faults),
    }
    match text(expression, &["key"]) {
        "metadata.name" => {
            for (index, name) in values.iter().enumerate() {
                let name = name.as_str().unwrap_or_default();
                let field = format!("{path}.values[{index}]");
                faults.texts(&field, name, names::dns1123_subdomain(name));
            }
        }
        other => {
            faults.invalid(format!("{path}.key"), &json!(other), "not a valid field selector key");
        }
    }
}

fn unknown_operator(operator: &str, path: &str, faults: &mut Faults) {
    faults.invalid(format!("{path}.operator"), &json!(operator), "not a valid selector operator");
}

fn pod_affinity(affinity: &Value, path: &str, faults: &mut Faults) {
    for (index, term) in items(affinity, &[REQUIRED]).iter().enumerate() {
        pod_term(term, &format!("{path}.{REQUIRED}[{index}]"), faults);
    }
    for (index, weighted) in items(affinity, &[PREFERRED]).iter().enumerate() {
        let here = format!("{path}.{PREFERRED}[{index}]");
        weight(weighted, &here, faults);
        let term = at(weighted, &["podAffinityTerm"]).unwrap_or(&Value::Null);
        pod_term(term, &format!("{here}.podAffinityTerm"), faults);
    }
}

fn pod_term(term: &Value, path: &str, faults: &mut Faults) {
    let selector = |field: &str| at(term, &[field]).filter(|found| !found.is_null());
    for field in ["labelSelector", "namespaceSelector"] {
        if let Some(selector) = selector(field) {
            label_selector(selector, &format!("{path}.{field}"), faults);
        }
    }
    for name in items(term, &["namespaces"]) {
        let name = name.as_str().unwrap_or_default();
        faults.texts(&format!("{path}.namespace"), name, names::dns1123_label(name));
    }
    for list in ["matchLabelKeys", "mismatchLabelKeys"] {
        let keys = items(term, &[list]);
        match_label_keys(keys, selector("labelSelector"), &format!("{path}.{list}"), faults);
    }
    let others = items(term, &["mismatchLabelKeys"]);
    for (index, key) in items(term, &["matchLabelKeys"]).iter().enumerate() {
        if others.contains(key) {
            let why = "exists in both matchLabelKeys and mismatchLabelKeys";
            faults.invalid(format!("{path}.matchLabelKeys[{index}]"), key, why);
        }
    }
    let (key, field) = (text(term, &["topologyKey"]), format!("{path}.topologyKey"));
    if key.is_empty() {
        faults.required(field.as_str(), "can not be empty");
    }
    faults.texts(&field, key, names::qualified_name(key));
}

fn weight(term: &Value, path: &str, faults: &mut Faults) {
    let weight = int(term, &["weight"]).unwrap_or_default();
    if !(1..=100).contains(&weight) {
        faults.invalid(format!("{path}.weight"), &json!(weight), "must be in the range 1-100");
    }
}
