//! Label selectors as they stand in specs.

use serde_json::{Map, Value, json};

use crate::builtin::check::Faults;
use crate::builtin::value::{at, items, text};
use crate::names;

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
pub(super) fn shown_selector(selector: &Value) -> String {
    let parts: Vec<String> = ["matchLabels", "matchExpressions"]
        .iter()
        .filter_map(|key| Some(format!("\"{key}\":{}", at(selector, &[key])?)))
        .collect();
    format!("{{{}}}", parts.join(","))
}

pub(super) fn is_empty_selector(selector: &Value) -> bool {
    let no_labels =
        at(selector, &["matchLabels"]).and_then(Value::as_object).is_none_or(Map::is_empty);
    no_labels && items(selector, &["matchExpressions"]).is_empty()
}
