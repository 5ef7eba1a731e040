//! Lists that are sets or maps must not hold an element twice.

use serde_json::{Map, Value};

use super::path::Path;
use super::{ListType, Schema};
use crate::field::FieldError;

/// The faults of all set and map lists of an object, in field order.
pub(super) fn validate(object: &Value, schema: &Schema) -> Vec<FieldError> {
    let mut faults = Vec::new();
    walk(object, schema, &Path::ROOT, &mut faults);
    faults
}

fn walk(value: &Value, schema: &Schema, path: &Path<'_>, faults: &mut Vec<FieldError>) {
    match value {
        Value::Object(map) => {
            let resource = path.is_root() || schema.embedded_resource;
            for (key, child) in map {
                // Metadata has rules of its own.
                if resource && key == "metadata" {
                    continue;
                }
                if let Some(field) = schema.properties.get(key) {
                    walk(child, field, &path.field(key), faults);
                } else if let Some(field) = &schema.additional_properties {
                    walk(child, field, &path.key(key), faults);
                }
            }
        }
        Value::Array(items) => {
            match &schema.list_type {
                ListType::Atomic => {}
                ListType::Set => {
                    for (index, item) in repeated(items.iter()) {
                        faults.push(FieldError::duplicate(path.index(index).bracketed(), item));
                    }
                }
                ListType::Map(keys) => map_list(items, keys, path, faults),
            }
            if let Some(item_schema) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    walk(item, item_schema, &path.index(index), faults);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn map_list(items: &[Value], keys: &[String], path: &Path<'_>, faults: &mut Vec<FieldError>) {
    let stranger = items.iter().enumerate().find(|(_, item)| !item.is_null() && !item.is_object());
    if let Some((index, item)) = stranger {
        let detail = "must be an object for an array of list-type map";
        faults.push(FieldError::invalid(path.index(index).bracketed(), item, detail));
        return;
    }
    let identities: Vec<Value> = items.iter().map(|item| identity(item, keys)).collect();
    for (index, identity) in repeated(identities.iter()) {
        faults.push(FieldError::duplicate(path.index(index).bracketed(), identity));
    }
}

/// The keys of an item, as far as it has them.
fn identity(item: &Value, keys: &[String]) -> Value {
    let named = keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
    Value::Object(named.collect::<Map<_, _>>())
}

/// The second occurrence of every value that occurs more than once.
fn repeated<'a>(values: impl Iterator<Item = &'a Value> + Clone) -> Vec<(usize, &'a Value)> {
    let earlier = values.clone();
    values
        .enumerate()
        .filter(|(index, value)| {
            earlier.clone().take(*index).filter(|before| before == value).count() == 1
        })
        .collect()
}
