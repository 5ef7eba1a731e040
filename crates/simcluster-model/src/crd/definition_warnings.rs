//! What a definition may hold but had better not.

use serde_json::Value;

use super::{list, text};
use crate::object::at_path;
use crate::schema::is_format_checked;

/// Warnings about the schemas of all versions: formats that are not checked, then sets of objects or
/// lists.
pub(super) fn all(crd: &Value) -> Vec<String> {
    let mut formats = Vec::new();
    let mut sets = Vec::new();
    for version in list(crd.get("spec").unwrap_or(&Value::Null), "versions") {
        if let Some(schema) = at_path(version, "schema.openAPIV3Schema") {
            walk(schema, &mut formats, &mut sets);
        }
    }
    sets.sort();
    formats.extend(sets);
    let mut warnings: Vec<String> = Vec::new();
    for text in formats {
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    }
    warnings
}

fn walk(schema: &Value, formats: &mut Vec<String>, sets: &mut Vec<String>) {
    let format = text(schema, "format");
    if !format.is_empty() && !is_format_checked(&text(schema, "type"), &format) {
        formats.push(format!("unrecognized format {format:?}"));
    }
    let items = schema.get("items").filter(|items| items.is_object());
    if text(schema, "x-kubernetes-list-type") == "set"
        && let Some(kind @ ("object" | "array")) =
            items.and_then(|items| items.get("type")).and_then(Value::as_str)
    {
        sets.push(format!(
            "x-kubernetes-list-type: set for items of type {kind:?} is not supported by server-side \
             apply or CEL validation rules"
        ));
    }
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let object = |key: &str| schema.get(key).filter(|node| node.is_object());
    let branches = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|key| list(schema, key));
    let below = items
        .into_iter()
        .chain(branches)
        .chain(object("not"))
        .chain(fields.map(|(_, field)| field))
        .chain(object("additionalProperties"));
    for node in below {
        walk(node, formats, sets);
    }
}
