//! Decoding as the real server decodes JSON into Go structs.
//!
//! Unknown fields are dropped and reported, nulls count as absent, empty values of fields with
//! `omitempty` vanish, fields without it are printed although empty, and a value of the wrong JSON type
//! is the error that Go's `encoding/json` would give. The first such error counts, but decoding goes on,
//! because a value that its own type cannot parse (a time, an amount) ends it with that type's error.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value, json};

use super::{base64 as base64_text, quantity, times};
use crate::golang::json_type_name;
use crate::resource::Decoded;
use crate::schema::{Codec, Presence, Schema, Type};

/// Decodes `value` as the Go type behind `schema`, which must come from the built-in definitions.
/// `path` is where the value stands in the object (empty for the whole, `metadata` for metadata alone):
/// it goes before the paths of unknown fields, but not into the error, which speaks of the Go type.
/// `Err` is the text that follows `... cannot be handled as a ...: `.
pub fn decode_typed(value: Value, schema: &Schema, path: &str) -> Result<Decoded, String> {
    let mut decoder = Decoder {
        unknown: Vec::new(),
        saved: None,
        path: if path.is_empty() { Vec::new() } else { vec![Step::Key(path.into())] },
        fields: Vec::new(),
        structs: Vec::new(),
    };
    let object = decoder.value(value, schema)?.unwrap_or_else(|| empty(schema));
    match decoder.saved {
        Some(error) => Err(error),
        None => Ok(Decoded { object, unknown: decoder.unknown, refused: None }),
    }
}

enum Step<'s> {
    Key(Cow<'s, str>),
    Index(usize),
}

/// Names of fields and structs are those of the schema: what goes well copies none.
struct Decoder<'s> {
    unknown: Vec<String>,
    /// The first error that did not end decoding.
    saved: Option<String>,
    /// Where the decoder is, for unknown fields.
    path: Vec<Step<'s>>,
    /// The struct fields on the way, for errors; map keys and list indices are not among them.
    fields: Vec<&'s str>,
    /// Names of the structs on the way.
    structs: Vec<&'s str>,
}

/// `Ok(None)` is a null: the zero value.
type Result<T, E = String> = std::result::Result<T, E>;

impl<'s> Decoder<'s> {
    fn value(&mut self, value: Value, schema: &'s Schema) -> Result<Option<Value>> {
        if value.is_null() && codec(schema) != Codec::Raw {
            return Ok(None);
        }
        match codec(schema) {
            Codec::Raw => Ok(Some(value)),
            Codec::Time => self
                .text(value)?
                .map(|text| times::normalise_seconds(&text))
                .transpose()
                .map(|time| time.map(Value::from)),
            Codec::MicroTime => self
                .text(value)?
                .map(|text| times::normalise_micros(&text))
                .transpose()
                .map(|time| time.map(Value::from)),
            Codec::Quantity => amount(&value).map(Some),
            Codec::IntOrString => self.int_or_string(value).map(Some),
            Codec::SchemaOr => schema_or(value, schema),
            Codec::Plain => self.plain(value, schema),
        }
    }

    fn plain(&mut self, value: Value, schema: &'s Schema) -> Result<Option<Value>> {
        match (value, schema.kind) {
            (Value::Object(map), Some(Type::Object)) if schema.additional_properties.is_some() => {
                self.map(map, schema).map(Some)
            }
            (Value::Object(map), Some(Type::Object)) => self.fields_of(map, schema).map(Some),
            (Value::Array(list), Some(Type::Array)) => self.list(list, schema).map(Some),
            (Value::String(text), Some(Type::String)) => Ok(self.string(text, schema)),
            (Value::Array(bytes), Some(Type::String)) if is_bytes(schema) => {
                Ok(Some(self.bytes(&bytes)))
            }
            (Value::Bool(flag), Some(Type::Boolean)) => Ok(Some(Value::Bool(flag))),
            (Value::Number(number), Some(Type::Integer)) => Ok(self.integer(&number, schema)),
            (Value::Number(number), Some(Type::Number)) => Ok(Some(Value::Number(number))),
            (value, _) => {
                self.mismatch(&value, type_name(schema));
                Ok(None)
            }
        }
    }

    fn fields_of(&mut self, map: Map<String, Value>, schema: &'s Schema) -> Result<Value> {
        let mut out = Map::new();
        for (name, value) in map {
            let Some((known, field)) = schema.properties.get_key_value(&name) else {
                self.report_unknown(&name);
                continue;
            };
            let depth = self.fields.len();
            let via = field.go.as_deref().map_or("", |go| go.via.as_str());
            self.fields.extend(via.split('.').filter(|step| !step.is_empty()));
            self.fields.push(known);
            self.structs.push(struct_name(schema));
            self.path.push(Step::Key(known.into()));
            let decoded = self.value(value, field)?;
            self.path.pop();
            self.structs.pop();
            self.fields.truncate(depth);
            if let Some(decoded) = decoded
                && is_printed(&decoded, field)
            {
                out.insert(name, decoded);
            }
        }
        fill_always(&mut out, schema);
        Ok(Value::Object(out))
    }

    fn map(&mut self, map: Map<String, Value>, schema: &'s Schema) -> Result<Value> {
        let Some(values) = &schema.additional_properties else { return Ok(json!({})) };
        let mut out = Map::new();
        for (key, value) in map {
            self.path.push(Step::Key(key.clone().into()));
            let decoded = self.value(value, values)?.unwrap_or_else(|| empty(values));
            self.path.pop();
            out.insert(key, decoded);
        }
        Ok(Value::Object(out))
    }

    fn list(&mut self, list: Vec<Value>, schema: &'s Schema) -> Result<Value> {
        let Some(items) = &schema.items else { return Ok(json!([])) };
        let mut out = Vec::with_capacity(list.len());
        for (index, value) in list.into_iter().enumerate() {
            self.path.push(Step::Index(index));
            out.push(self.value(value, items)?.unwrap_or_else(|| empty(items)));
            self.path.pop();
        }
        Ok(Value::Array(out))
    }

    fn string(&mut self, text: String, schema: &Schema) -> Option<Value> {
        if !is_bytes(schema) {
            return Some(Value::String(text));
        }
        match base64_text::decode(&text) {
            Ok(bytes) => Some(Value::String(STANDARD.encode(bytes))),
            Err(offset) => {
                self.save(format!("illegal base64 data at input byte {offset}"));
                None
            }
        }
    }

    /// A slice of bytes may be written as a list of numbers, too.
    fn bytes(&mut self, list: &[Value]) -> Value {
        let mut bytes = Vec::with_capacity(list.len());
        for item in list {
            let byte = match item {
                Value::Number(number) => number.as_u64().and_then(|one| u8::try_from(one).ok()),
                Value::Null => Some(0),
                Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
            };
            if byte.is_none() {
                let found = if item.is_number() {
                    format!("number {item}")
                } else {
                    json_type_name(item).to_owned()
                };
                let text = self.in_field(&found, "uint8");
                self.save(text);
            }
            bytes.push(byte.unwrap_or_default());
        }
        Value::String(STANDARD.encode(bytes))
    }

    fn integer(&mut self, number: &Number, schema: &Schema) -> Option<Value> {
        let narrow = schema.format.as_deref() == Some("int32");
        let value = number.as_i64().filter(|value| !narrow || i32::try_from(*value).is_ok());
        if value.is_none() {
            let text = self.in_field(&format!("number {number}"), type_name(schema));
            self.save(text);
        }
        value.map(Value::from)
    }

    /// Types that read a JSON string themselves: another JSON type ends decoding.
    fn text(&mut self, value: Value) -> Result<Option<String>> {
        let kind = json_type_name(&value);
        let text = if let Value::String(text) = value { Some(text) } else { None };
        text.map(Some).ok_or_else(|| self.in_field(kind, "string"))
    }

    fn int_or_string(&mut self, value: Value) -> Result<Value> {
        match &value {
            Value::String(_) => Ok(value),
            Value::Number(number) => {
                match number.as_i64().and_then(|one| i32::try_from(one).ok()) {
                    Some(number) => Ok(json!(number)),
                    None => Err(self.in_field(&format!("number {number}"), "int32")),
                }
            }
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                Err(self.in_field(json_type_name(&value), "int32"))
            }
        }
    }

    fn report_unknown(&mut self, name: &str) {
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Key(key) if path.is_empty() => path.push_str(key),
                Step::Key(key) => {
                    path.push('.');
                    path.push_str(key);
                }
                Step::Index(index) => path.extend(["[", &index.to_string(), "]"]),
            }
        }
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
        self.unknown.push(path);
    }

    fn mismatch(&mut self, value: &Value, type_name: &str) {
        let text = self.in_field(json_type_name(value), type_name);
        self.save(text);
    }

    fn in_field(&self, value: &str, type_name: &str) -> String {
        match self.structs.last() {
            Some(name) => format!(
                "json: cannot unmarshal {value} into Go struct field {name}.{} of type {type_name}",
                self.fields.join(".")
            ),
            None => format!("json: cannot unmarshal {value} into Go value of type {type_name}"),
        }
    }

    fn save(&mut self, error: String) {
        self.saved.get_or_insert(error);
    }
}

/// A schema, or a boolean, a list of schemas or a list of strings, as the type has it. The nested
/// schema is decoded on its own, so that unknown fields in it pass silently.
fn schema_or(value: Value, schema: &Schema) -> Result<Option<Value>> {
    let nested = |value: Value| match &schema.additional_properties {
        Some(target) => decode_typed(value, target, "").map(|decoded| decoded.object),
        None => Ok(value),
    };
    let name = type_name(schema);
    match value {
        Value::Object(_) => nested(value).map(Some),
        Value::Bool(_) if name.ends_with("OrBool") => Ok(Some(value)),
        _ if name.ends_with("OrBool") => Err("boolean or JSON schema expected".to_owned()),
        Value::Array(list) if name.ends_with("OrArray") => {
            let list: Result<Vec<Value>> = list.into_iter().map(nested).collect();
            Ok(Some(Value::Array(list?)))
        }
        Value::Array(list) => match list.iter().find(|one| !one.is_string()) {
            Some(wrong) => Err(format!(
                "json: cannot unmarshal {} into Go value of type string",
                json_type_name(wrong)
            )),
            None => Ok(Some(Value::Array(list))),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(None),
    }
}

fn is_bytes(schema: &Schema) -> bool {
    schema.format.as_deref() == Some("byte")
}

fn codec(schema: &Schema) -> Codec {
    schema.go.as_deref().map_or(Codec::Plain, |go| go.codec)
}

fn type_name(schema: &Schema) -> &str {
    schema.go.as_deref().map_or("", |go| go.type_name.as_str())
}

fn struct_name(schema: &Schema) -> &str {
    type_name(schema).rsplit('.').next().unwrap_or_default()
}

fn amount(value: &Value) -> Result<Value> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Ok(quantity::normalise(&text).map(Value::from)?)
}

/// Whether a field with this value is printed.
fn is_printed(value: &Value, field: &Schema) -> bool {
    match field.go.as_deref().map(|go| go.presence) {
        Some(Presence::NonEmpty) => !is_empty(value),
        Some(Presence::NonZero) => !value.is_null(),
        // What is kept as it came is printed as it came.
        Some(Presence::Always) => {
            codec(field) == Codec::Raw || !(is_empty(value) && value.is_object())
        }
        Some(Presence::Given | Presence::OrNull) | None => true,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// The zero value of a type, as it is printed.
fn empty(schema: &Schema) -> Value {
    match (codec(schema), schema.kind) {
        (Codec::Time | Codec::MicroTime | Codec::Raw | Codec::SchemaOr, _) => Value::Null,
        (Codec::Quantity, _) => json!("0"),
        (Codec::IntOrString, _) | (_, Some(Type::Integer | Type::Number)) => json!(0),
        (_, Some(Type::String)) => json!(""),
        (_, Some(Type::Boolean)) => json!(false),
        (_, Some(Type::Object)) if schema.additional_properties.is_none() => {
            let mut out = Map::new();
            fill_always(&mut out, schema);
            Value::Object(out)
        }
        (_, Some(Type::Object | Type::Array) | None) => Value::Null,
    }
}

/// Adds the fields that are printed although nobody gave them.
fn fill_always(out: &mut Map<String, Value>, schema: &Schema) {
    for (name, field) in &schema.properties {
        let zero = match field.go.as_deref().map(|go| go.presence) {
            Some(Presence::Always | Presence::OrNull) if out.contains_key(name) => continue,
            Some(Presence::Always) if is_bytes(field) => Value::Null,
            Some(Presence::Always) => empty(field),
            Some(Presence::OrNull) => Value::Null,
            Some(Presence::NonEmpty | Presence::Given | Presence::NonZero) | None => continue,
        };
        out.insert(name.clone(), zero);
    }
}
