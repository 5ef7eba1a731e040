//! From JSON to the values that CEL rules see.
//!
//! The schema decides: undeclared fields do not exist, `number` is always a double, strings of some
//! formats become timestamps, durations or bytes, and names of fields are escaped.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use kube_cel::cel::objects::{Key, Map, Value as Cel};
use serde_json::Value;

use crate::schema::{Schema, Type};

/// Words that CEL keeps for itself; a field of such a name is `__word__` in rules.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The fields of `metadata` that rules may look at.
const METADATA_FIELDS: [&str; 2] = ["name", "generateName"];

/// A value as rules see it. `resource` says that the value is an object with `apiVersion`, `kind` and
/// `metadata`.
pub(in crate::schema) fn to_cel(value: &Value, schema: &Schema, resource: bool) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(number) => match (number.as_i64(), schema.kind) {
            (Some(integer), kind) if kind != Some(Type::Number) => Cel::Int(integer),
            _ => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => string(text, schema),
        Value::Array(items) => {
            let list = items.iter().map(|item| match &schema.items {
                Some(item_schema) => to_cel(item, item_schema, item_schema.embedded_resource),
                None => Cel::Null,
            });
            Cel::List(Arc::new(list.collect()))
        }
        Value::Object(fields) => {
            let mut map = HashMap::new();
            for (name, field) in fields {
                if resource && name == "metadata" {
                    map.insert(key(name), metadata(field));
                } else if let Some(field_schema) = schema.properties.get(name) {
                    let embedded = field_schema.embedded_resource;
                    map.insert(key(&escape(name)), to_cel(field, field_schema, embedded));
                } else if let Some(field_schema) = &schema.additional_properties {
                    let embedded = field_schema.embedded_resource;
                    map.insert(key(name), to_cel(field, field_schema, embedded));
                }
            }
            Cel::Map(Map { map: Arc::new(map) })
        }
    }
}

/// A value without a schema, as admission conditions see it: what JSON says.
pub(super) fn untyped(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => Cel::Int(integer),
            None => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(untyped).collect())),
        Value::Object(fields) => {
            let map = fields.iter().map(|(name, field)| (key(name), untyped(field)));
            Cel::Map(Map { map: Arc::new(map.collect()) })
        }
    }
}

fn key(name: &str) -> Key {
    Key::String(Arc::new(name.to_owned()))
}

fn metadata(value: &Value) -> Cel {
    let map = METADATA_FIELDS.iter().filter_map(|name| {
        let text = value.get(name)?.as_str()?;
        Some((key(name), Cel::String(Arc::new(text.to_owned()))))
    });
    Cel::Map(Map { map: Arc::new(map.collect()) })
}

fn string(text: &str, schema: &Schema) -> Cel {
    let plain = || Cel::String(Arc::new(text.to_owned()));
    if schema.int_or_string {
        return plain();
    }
    let converted = match schema.format.as_deref() {
        Some("date-time") => timestamp(text),
        Some("date") => timestamp(&format!("{text}T00:00:00Z")),
        Some("duration") => kube_cel::cel::functions::duration(Arc::new(text.to_owned())).ok(),
        Some("byte") => {
            let decoded = base64::engine::general_purpose::STANDARD.decode(text).ok();
            decoded.map(|bytes| Cel::Bytes(Arc::new(bytes)))
        }
        Some(_) | None => None,
    };
    converted.unwrap_or_else(plain)
}

fn timestamp(text: &str) -> Option<Cel> {
    kube_cel::cel::functions::timestamp(Arc::new(text.to_owned())).ok()
}

/// The name of a field in rules.
pub(super) fn escape(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}
