//! Resources inside of custom resources (`x-kubernetes-embedded-resource`): their type and metadata
//! are decoded and checked like those of real ones.

use serde_json::{Value, json};

use super::metadata;
use crate::field::FieldError;
use crate::names;
use crate::schema::{Path, Schema};

/// Decodes the metadata of embedded resources, drops unknown fields of it and answers their paths,
/// sorted. `Err` is the text of the first fault.
pub(super) fn coerce(object: &mut Value, schema: &Schema) -> Result<Vec<String>, String> {
    let mut unknown = Vec::new();
    walk(object, schema, &Path::ROOT, &mut |value, path| {
        for key in ["apiVersion", "kind"] {
            if let Some(found) = value.get(key).filter(|found| !found.is_string()) {
                let field = path.field(key).bracketed();
                return Err(FieldError::invalid(field, found, "must be a string").to_string());
            }
        }
        let Some(found) = value.get_mut("metadata") else { return Ok(()) };
        let place = path.field("metadata");
        let decoded = metadata::decode(found.clone(), &place.dotted())
            .map_err(|why| FieldError::invalid(place.bracketed(), found, &why).to_string())?;
        unknown.extend(decoded.unknown);
        *found = decoded.object;
        Ok(())
    })?;
    unknown.sort();
    Ok(unknown)
}

/// Faults of embedded resources.
pub(super) fn faults(object: &Value, schema: &Schema) -> Vec<FieldError> {
    let mut faults = Vec::new();
    check(object, schema, &Path::ROOT, &mut faults);
    faults
}

fn check(value: &Value, schema: &Schema, path: &Path<'_>, faults: &mut Vec<FieldError>) {
    match value {
        Value::Object(map) => {
            if schema.embedded_resource {
                resource_faults(value, path, faults);
            }
            for (key, child) in map {
                if let Some(field) = schema.properties.get(key) {
                    check(child, field, &path.field(key), faults);
                } else if let Some(field) = &schema.additional_properties {
                    check(child, field, &path.key(key), faults);
                }
            }
        }
        Value::Array(items) => {
            let Some(item_schema) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                check(item, item_schema, &path.index(index), faults);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn resource_faults(value: &Value, path: &Path<'_>, faults: &mut Vec<FieldError>) {
    for key in ["apiVersion", "kind"] {
        let field = path.field(key).bracketed();
        let text = match value.get(key) {
            None => {
                faults.push(FieldError::required(field, ""));
                continue;
            }
            Some(Value::String(text)) => text,
            Some(other) => {
                faults.push(FieldError::invalid(field, other, "must be a string"));
                continue;
            }
        };
        let why = match key {
            _ if text.is_empty() => vec!["must not be empty".to_owned()],
            "apiVersion" if text.matches('/').count() > 1 => {
                vec![format!("unexpected GroupVersion string: {text}")]
            }
            "apiVersion" => Vec::new(),
            _ => {
                let texts = names::dns1035_label(&text.to_lowercase());
                let prefix = "may have mixed case, but should otherwise match: ";
                if texts.is_empty() { texts } else { vec![format!("{prefix}{}", texts.join(","))] }
            }
        };
        for text_of_fault in why {
            faults.push(FieldError::invalid(field.clone(), &json!(text), &text_of_fault));
        }
    }
    if let Some(found) = value.get("metadata") {
        metadata::faults(found, &path.field("metadata").bracketed(), faults);
    }
}

/// Calls `visit` for every embedded resource below the object.
fn walk<E>(
    value: &mut Value,
    schema: &Schema,
    path: &Path<'_>,
    visit: &mut impl FnMut(&mut Value, &Path<'_>) -> Result<(), E>,
) -> Result<(), E> {
    if schema.embedded_resource && value.is_object() {
        visit(value, path)?;
    }
    match value {
        Value::Object(map) => {
            for (key, child) in map.iter_mut() {
                if let Some(field) = schema.properties.get(key) {
                    walk(child, field, &path.field(key), visit)?;
                } else if let Some(field) = &schema.additional_properties {
                    walk(child, field, &path.key(key), visit)?;
                }
            }
        }
        Value::Array(items) => {
            let Some(item_schema) = &schema.items else { return Ok(()) };
            for (index, item) in items.iter_mut().enumerate() {
                walk(item, item_schema, &path.index(index), visit)?;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(())
}
