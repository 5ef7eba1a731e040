//! Fields of a schema named by simple paths: `selectableFields`, and `fieldPath` of rules.

use serde_json::{Value, json};

use super::text;
use crate::field::{FieldError, FieldErrorKind};

/// So many fields may be selectable.
const FIELDS_MAX: usize = 8;

/// Faults of `selectableFields`.
pub(super) fn faults(fields: &Value, schema: &Value, path: &str) -> Vec<FieldError> {
    let mut faults = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for (index, field) in fields.as_array().into_iter().flatten().enumerate() {
        let place = format!("{path}[{index}].jsonPath");
        let json_path = text(field, "jsonPath");
        if json_path.is_empty() {
            faults.push(FieldError::required(place, ""));
            continue;
        }
        let found = match follow(&json_path, schema, false) {
            Ok(found) => found,
            Err(why) => {
                let why = format!("is an invalid path: {why}");
                faults.push(FieldError::invalid(place, &json!(json_path), &why));
                continue;
            }
        };
        if found.path == "metadata" || found.path.starts_with("metadata.") {
            let why = "must not point to fields in metadata";
            faults.push(FieldError::invalid(&*place, &json!(json_path), why));
        }
        let kind = text(found.schema, "type");
        if !matches!(kind.as_str(), "string" | "boolean" | "integer") {
            let why = "must point to a field of type string, boolean or integer. Enum string fields \
                       and strings with formats are allowed.";
            faults.push(FieldError::invalid(&*place, &json!(json_path), why));
        }
        if seen.contains(&found.path) {
            faults.push(FieldError::duplicate(place, &json!(json_path)));
        } else {
            seen.push(found.path);
        }
    }
    if seen.len() > FIELDS_MAX {
        let body = format!("Too many: {}: must have at most {FIELDS_MAX} items", seen.len());
        faults.push(FieldError { kind: FieldErrorKind::TooMany, field: path.to_owned(), body });
    }
    faults
}

/// A field that a path leads to.
pub(super) struct Found<'a> {
    /// The path as faults print it.
    pub(super) path: String,
    pub(super) schema: &'a Value,
}

/// Follows a path (`.a.b`, and `.a['b']` if `brackets`) through a schema.
pub(super) fn follow<'a>(
    json_path: &str,
    schema: &'a Value,
    brackets: bool,
) -> Result<Found<'a>, String> {
    let mut path = String::new();
    let mut node = schema;
    let mut rest = json_path;
    while !rest.is_empty() {
        let (name, after) = step(rest, brackets)?;
        let has = |key: &str| node.get(key).is_some_and(|value| !value.is_null());
        let next = if has("properties") {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&name);
            node.get("properties").and_then(|fields| fields.get(&*name))
        } else {
            path.push('[');
            path.push_str(&name);
            path.push(']');
            node.get("additionalProperties").filter(|schema| schema.is_object())
        };
        node = next.ok_or("does not refer to a valid field")?;
        rest = after;
    }
    Ok(Found { path, schema: node })
}

/// The first name of a path and what follows it.
fn step(rest: &str, brackets: bool) -> Result<(String, &str), String> {
    let end = "unexpected end of JSON path";
    if let Some(after) = rest.strip_prefix('.') {
        let length = after.find(['.', '[', ']']).unwrap_or(after.len());
        // After a dot, whatever comes is a name, even another dot.
        let (name, after) = after.split_at(if length == 0 { after.len().min(1) } else { length });
        return if name.is_empty() { Err(end.to_owned()) } else { Ok((name.to_owned(), after)) };
    }
    let Some(inner) = rest.strip_prefix('[') else {
        let token = rest.split(['.', '[', ']']).next().unwrap_or_default();
        return Err(format!("expected [ or . but got: {token}"));
    };
    if !brackets {
        return Err("array notation is not allowed".to_owned());
    }
    let Some(quoted) = inner.strip_prefix('\'') else {
        let token = inner.split(['.', '[', ']']).next().unwrap_or_default();
        return Err(format!("expected single quoted string but got {token}"));
    };
    let (name, after) = quoted.split_once('\'').ok_or(end)?;
    let after = after.strip_prefix(']').ok_or(end)?;
    Ok((name.to_owned(), after))
}
