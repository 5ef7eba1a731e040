//! Validation of what a Pod says about the Nodes that it goes to.

use serde_json::{Value, json};

use crate::builtin::check::Faults;
use crate::builtin::selector::label_selector;
use crate::builtin::value::{at, int, items, text};
use crate::field::FieldError;
use crate::names;

/// Faults of the tolerations of a Pod.
pub(in crate::builtin) fn tolerations(list: &[Value], path: &str, faults: &mut Faults) {
    for (index, toleration) in list.iter().enumerate() {
        let here = format!("{path}[{index}]");
        let [key, operator, value, effect] =
            ["key", "operator", "value", "effect"].map(|field| text(toleration, &[field]));
        if !key.is_empty() {
            faults.texts(&format!("{here}.key"), key, names::qualified_name(key));
        } else if operator != "Exists" {
            let why = "operator must be Exists when `key` is empty, which means \"match all values and \
                       all keys\"";
            faults.invalid(format!("{here}.operator"), &json!(operator), why);
        }
        if at(toleration, &["tolerationSeconds"]).is_some() && effect != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            faults.invalid(format!("{here}.effect"), &json!(effect), why);
        }
        toleration_value(operator, value, &format!("{here}.operator"), faults);
        if !effect.is_empty() {
            let known = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
            faults.one_of(format!("{here}.effect"), effect, &known);
        }
    }
}

fn toleration_value(operator: &str, value: &str, field: &str, faults: &mut Faults) {
    match operator {
        "" | "Equal" => {
            let wrong = names::label_value(value);
            if !wrong.is_empty() {
                faults.invalid(field, &json!(value), &wrong.join(";"));
            }
        }
        "Exists" if value.is_empty() => {}
        "Exists" => {
            faults.invalid(field, &json!(value), "value must be empty when `operator` is 'Exists'");
        }
        // Comparisons are behind a gate that is closed.
        "Lt" | "Gt" => faults.add(FieldError::not_supported(
            field,
            &json!(operator),
            &["Equal", "Exists", "Lt", "Gt"].map(str::to_owned),
        )),
        _ => faults.supported(field, operator, &["Equal", "Exists"]),
    }
}

/// Faults of the topology spread constraints of a Pod.
pub(in crate::builtin) fn spread(list: &[Value], path: &str, faults: &mut Faults) {
    const WHEN: &str = "whenUnsatisfiable";
    for (index, constraint) in list.iter().enumerate() {
        let here = format!("{path}[{index}]");
        let (topology, when) = (text(constraint, &["topologyKey"]), text(constraint, &[WHEN]));
        let skew = int(constraint, &["maxSkew"]).unwrap_or_default();
        if skew <= 0 {
            faults.invalid(format!("{here}.maxSkew"), &json!(skew), "must be greater than zero");
        }
        if topology.is_empty() {
            faults.required(format!("{here}.topologyKey"), "can not be empty");
        }
        faults.supported(format!("{here}.{WHEN}"), when, &["DoNotSchedule", "ScheduleAnyway"]);
        let again = list
            .iter()
            .skip(index + 1)
            .any(|other| text(other, &["topologyKey"]) == topology && text(other, &[WHEN]) == when);
        if again {
            let pair = format!("{{{topology}, {when}}}");
            faults.duplicate(format!("{here}.{{topologyKey, {WHEN}}}"), &json!(pair));
        }
        min_domains(constraint, when, &format!("{here}.minDomains"), faults);
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if let Some(policy) = at(constraint, &[field]).and_then(Value::as_str) {
                faults.supported(format!("{here}.{field}"), policy, &["Honor", "Ignore"]);
            }
        }
        let selector = at(constraint, &["labelSelector"]).filter(|found| !found.is_null());
        let keys = items(constraint, &["matchLabelKeys"]);
        match_label_keys(keys, selector, &format!("{here}.matchLabelKeys"), faults);
        if let Some(selector) = selector {
            label_selector(selector, &format!("{here}.labelSelector"), faults);
        }
    }
}

fn min_domains(constraint: &Value, when: &str, field: &str, faults: &mut Faults) {
    let Some(count) = int(constraint, &["minDomains"]) else { return };
    if count <= 0 {
        faults.invalid(field, &json!(count), "must be greater than zero");
    }
    if when != "DoNotSchedule" {
        let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}");
        faults.invalid(field, &json!(count), &why);
    }
}

/// Faults of labels by which a selector is made more precise.
pub(super) fn match_label_keys(
    keys: &[Value],
    selector: Option<&Value>,
    field: &str,
    faults: &mut Faults,
) {
    if !keys.is_empty() && selector.is_none() {
        faults.forbidden(field, "must not be specified when labelSelector is not set");
        return;
    }
    for (index, key) in keys.iter().enumerate() {
        let key = key.as_str().unwrap_or_default();
        faults.texts(&format!("{field}[{index}]"), key, names::qualified_name(key));
    }
}
