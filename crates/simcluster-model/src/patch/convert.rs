//! Whether a merged object fits the Go types of its kind.
//!
//! Strategic merge patches and applies of built-in kinds do not go through JSON again: the server
//! copies the merged maps into structs, and has texts of its own for what does not fit.

use serde_json::Value;

use crate::builtin::decode_typed;
use crate::golang;
use crate::schema::{Codec, Schema, Type};

/// The first fault of an object of a built-in kind; `None` if it fits.
pub(crate) fn conversion_fault(value: &Value, schema: &Schema) -> Option<String> {
    let go = schema.go.as_deref()?;
    if value.is_null() {
        return None;
    }
    if go.codec != Codec::Plain {
        return decode_typed(value.clone(), schema, "").err();
    }
    match (schema.kind?, &schema.additional_properties, value) {
        (Type::Object, Some(values), Value::Object(map)) => {
            map.values().find_map(|value| conversion_fault(value, values))
        }
        (Type::Object, Some(_), _) => Some(format!("cannot restore map from {}", kind_name(value))),
        (Type::Object, None, Value::Object(map)) => map
            .iter()
            .find_map(|(name, value)| conversion_fault(value, schema.properties.get(name)?)),
        (Type::Object, None, _) => {
            Some(format!("cannot restore struct from: {}", kind_name(value)))
        }
        (Type::Array, _, Value::Array(items)) => {
            let schema = schema.items.as_ref()?;
            items.iter().find_map(|item| conversion_fault(item, schema))
        }
        (Type::Array, _, _) => Some(format!("cannot restore slice from {}", kind_name(value))),
        (Type::String, _, _) if schema.format.as_deref() == Some("byte") => {
            if !value.is_string() {
                return Some(format!("cannot restore slice from {}", kind_name(value)));
            }
            let error = decode_typed(value.clone(), schema, "").err()?;
            Some(format!("error decoding from json: {error}"))
        }
        (kind, _, _) => scalar_fault(value, kind, &go.type_name),
    }
}

/// Numbers convert to each other where nothing is lost. Go would also convert integers to strings,
/// which the server refuses in words of its own.
fn scalar_fault(value: &Value, kind: Type, type_name: &str) -> Option<String> {
    let whole = value.as_f64().is_some_and(|number| number.fract() == 0.0);
    match (kind, value) {
        (Type::String, Value::String(_))
        | (Type::Boolean, Value::Bool(_))
        | (Type::Number, Value::Number(_)) => None,
        (Type::Integer, Value::Number(_)) if whole => None,
        (Type::Integer, Value::Number(_)) => Some(format!("cannot convert float64 to {type_name}")),
        (Type::String, Value::Number(number)) if !number.is_f64() => {
            Some(format!("cannot convert int64 to {type_name}"))
        }
        (Type::String, _) => Some("unrecognized type: string".to_owned()),
        (Type::Boolean, _) => Some("unrecognized type: bool".to_owned()),
        (Type::Integer | Type::Number | Type::Object | Type::Array, _) => {
            Some(format!("unrecognized type: {type_name}"))
        }
    }
}

/// `reflect.Kind` of a decoded value.
fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            golang::type_name(value)
        }
    }
}
