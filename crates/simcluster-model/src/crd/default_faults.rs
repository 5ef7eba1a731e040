//! Defaults of a schema must be valid and pruned themselves.

use serde_json::{Value, json};

use super::embedded;
use crate::field::FieldError;
use crate::schema::{Schema, default_value_faults, prune_unknown};

/// Faults of all defaults of a structural schema. Defaults inside of metadata are not looked at.
pub(super) fn all(schema: &Value, path: &str) -> Vec<FieldError> {
    let mut faults = Vec::new();
    walk(schema, path, true, &mut faults);
    faults
}

fn walk(schema: &Value, path: &str, resource: bool, faults: &mut Vec<FieldError>) {
    if let Some(default) = schema.get("default").filter(|value| !value.is_null()) {
        check(schema, default, &format!("{path}.default"), faults);
    }
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        walk(items, &format!("{path}.items"), is_resource(items), faults);
    }
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    for (name, field) in fields {
        if resource && matches!(name.as_str(), "metadata" | "apiVersion" | "kind") {
            continue;
        }
        walk(field, &format!("{path}.properties[{name}]"), is_resource(field), faults);
    }
}

fn is_resource(schema: &Value) -> bool {
    schema.get("x-kubernetes-embedded-resource").and_then(Value::as_bool) == Some(true)
}

fn check(source: &Value, default: &Value, path: &str, faults: &mut Vec<FieldError>) {
    // The schema is read as that of a field: its own meta fields have no special place.
    let schema = Schema::parse_field(source);
    // A holder makes the value a field of something, so that pruning does not take it for an object.
    let holder = Schema::holding("value", &schema);
    let mut pruned = json!({ "value": default });
    prune_unknown(&mut pruned, &holder);
    if pruned.get("value") != Some(default) {
        faults.push(FieldError::invalid(path, default, "must not have unknown fields"));
    }
    let below = embedded::faults(default, &schema);
    if !below.is_empty() {
        faults.extend(
            below
                .into_iter()
                .map(|fault| FieldError { field: format!("{path}.{}", fault.field), ..fault }),
        );
        return;
    }
    faults.extend(default_value_faults(source, default, &schema, path));
}
