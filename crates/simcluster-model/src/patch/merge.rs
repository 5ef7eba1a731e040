//! JSON merge patch (RFC 7386), as the server's library does it.

use serde_json::{Map, Value};

use super::PatchError;
use crate::golang;

/// The document with the patch merged in. The patch must be an object.
pub fn merge_patch(document: &Value, patch: &Value) -> Result<Value, PatchError> {
    let Value::Object(fields) = patch else {
        return Err(PatchError::Malformed(if patch.is_null() {
            "Invalid JSON Patch".to_owned()
        } else {
            format!(
                "error decoding patch: json: cannot unmarshal {} into Go value of type \
                 map[string]interface {{}}",
                golang::json_type_name(patch)
            )
        }));
    };
    Ok(match document.as_object() {
        Some(document) => Value::Object(merged(document, fields)),
        None => without_nulls(patch),
    })
}

fn merged(document: &Map<String, Value>, patch: &Map<String, Value>) -> Map<String, Value> {
    let mut out = document.clone();
    for (name, value) in patch {
        let current = out.get(name).unwrap_or(&Value::Null);
        let new = match (current, value) {
            (_, Value::Null) => {
                out.remove(name);
                continue;
            }
            (Value::Object(current), Value::Object(value)) => Value::Object(merged(current, value)),
            (Value::Object(_), value) => value.clone(),
            (_, value) => without_nulls(value),
        };
        out.insert(name.clone(), new);
    }
    out
}

/// What a patch brings where there was no object to merge into: without the null fields of its
/// objects, also of those in lists. The RFC leaves lists alone; the server does not.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.clone(), without_nulls(value)))
            .collect(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
