//! Filling defaults of a structural schema.

use serde_json::Value;

use super::Schema;

/// Gives every missing field that has a default its value, also in list items and map values, and
/// replaces explicit nulls of fields that are not nullable. A missing parent gets nothing.
pub fn fill_defaults(object: &mut Value, schema: &Schema) {
    match object {
        Value::Object(map) => {
            for (name, field) in &schema.properties {
                let Some(default) = &field.default else { continue };
                match map.get_mut(name) {
                    Some(value) if value.is_null() && !field.nullable => *value = default.clone(),
                    Some(_) => {}
                    None => {
                        map.insert(name.clone(), default.clone());
                    }
                }
            }
            for (key, value) in map.iter_mut() {
                if let Some(field) = schema.properties.get(key) {
                    fill_defaults(value, field);
                } else if let Some(field) = &schema.additional_properties {
                    replace_null(value, field);
                    fill_defaults(value, field);
                }
            }
        }
        Value::Array(list) => {
            let Some(item) = &schema.items else { return };
            for value in list {
                replace_null(value, item);
                fill_defaults(value, item);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn replace_null(value: &mut Value, schema: &Schema) {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
    {
        *value = default.clone();
    }
}
