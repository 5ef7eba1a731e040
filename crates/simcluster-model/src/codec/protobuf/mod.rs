//! Reading protobuf bodies of built-in kinds, as kubectl sends them for imperative commands.
//!
//! The field numbers are data from Kubernetes' own definitions (`fields.json`, see
//! `hack/protobuf-fields`). Bodies become the JSON that the same client would have sent. Answers are
//! never written as protobuf: clients that ask for it take JSON, too.

mod wire;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::wire::{Fields, Wire};
use crate::builtin;

/// The media type.
pub(super) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// What every body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// Messages nested deeper than this are refused.
const DEPTH_MAX: usize = 64;

/// Number, name (empty: the message's fields stand in this one's place) and type of a field.
#[derive(Debug, Deserialize)]
pub(crate) struct Field(u64, String, String);

impl Field {
    /// Its name in JSON; empty if its fields stand in its place.
    pub(crate) fn name(&self) -> &str {
        &self.1
    }

    /// Its type: `=definition`, `[]item`, `{}value`, or the name of a simple one.
    pub(crate) fn kind(&self) -> &str {
        &self.2
    }
}

/// The fields of a definition in the order in which its Go type declares them; none if it has no
/// protobuf form.
pub(crate) fn fields(definition: &str) -> &'static [Field] {
    DEFINITIONS.get(definition).map(Vec::as_slice).unwrap_or_default()
}

static DEFINITIONS: LazyLock<BTreeMap<String, Vec<Field>>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("fields.json"))
        .expect("the field numbers are part of this program and parse")
});

/// A body with its envelope: `k8s\0`, then a `runtime.Unknown`. `default` names the kind of bodies
/// that do not name theirs, as `(apiVersion, kind)`.
pub(super) fn read(bytes: &[u8], default: (&str, &str)) -> Result<Value, String> {
    let unknown = bytes
        .strip_prefix(MAGIC)
        .ok_or_else(|| "provided data does not appear to be a protobuf message".to_owned())?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for field in Fields::new(unknown) {
        match field? {
            (1, Wire::Bytes(type_meta)) => {
                for field in Fields::new(type_meta) {
                    match field? {
                        (1, Wire::Bytes(text)) => api_version = text_of(text),
                        (2, Wire::Bytes(text)) => kind = text_of(text),
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    if api_version.is_empty() && kind.is_empty() {
        (api_version, kind) = (default.0.to_owned(), default.1.to_owned());
    }
    let definition = definition_of(&api_version, &kind).ok_or_else(|| {
        format!("no kind \"{kind}\" is registered for version \"{api_version}\" in scheme")
    })?;
    let mut object = message(&definition, raw, 0)?;
    object.insert("apiVersion".to_owned(), json!(api_version));
    object.insert("kind".to_owned(), json!(kind));
    Ok(Value::Object(object))
}

fn definition_of(api_version: &str, kind: &str) -> Option<String> {
    let options = ["DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions"];
    if options.contains(&kind) {
        return Some(format!("io.k8s.apimachinery.pkg.apis.meta.v1.{kind}"));
    }
    let known = match (api_version, kind) {
        ("policy/v1", "Eviction") => "io.k8s.api.policy.v1.Eviction",
        ("authentication.k8s.io/v1", "TokenRequest") => "io.k8s.api.authentication.v1.TokenRequest",
        ("autoscaling/v1", "Scale") => "io.k8s.api.autoscaling.v1.Scale",
        ("v1", "Binding") => "io.k8s.api.core.v1.Binding",
        _ => builtin::definition_name(api_version, kind)?,
    };
    Some(known.to_owned())
}

fn message(definition: &str, bytes: &[u8], depth: usize) -> Result<Map<String, Value>, String> {
    if depth > DEPTH_MAX {
        return Err("proto: nested too deeply".to_owned());
    }
    let known = DEFINITIONS
        .get(definition)
        .ok_or_else(|| format!("no protobuf form of {definition} is known"))?;
    let mut out = Map::new();
    for field in Fields::new(bytes) {
        let (number, wire) = field?;
        let Some(Field(_, name, kind)) = known.iter().find(|one| one.0 == number) else { continue };
        if let Some(item) = kind.strip_prefix("[]") {
            let item = value(item, wire, depth)?;
            if let Value::Array(list) = out.entry(name.as_str()).or_insert_with(|| json!([])) {
                list.push(item);
            }
        } else if let Some(item) = kind.strip_prefix("{}") {
            let (key, item) = entry(item, wire, depth)?;
            crate::object::put(out.entry(name.as_str()).or_insert(Value::Null), &key, item);
        } else if name.is_empty() {
            if let Value::Object(inlined) = value(kind, wire, depth)? {
                out.extend(inlined);
            }
        } else {
            out.insert(name.clone(), value(kind, wire, depth)?);
        }
    }
    Ok(out)
}

/// An entry of a map with keys that are strings.
fn entry(kind: &str, wire: Wire<'_>, depth: usize) -> Result<(String, Value), String> {
    let Wire::Bytes(bytes) = wire else { return Err(wrong_type(kind)) };
    let (mut key, mut item) = (String::new(), None);
    for field in Fields::new(bytes) {
        match field? {
            (1, Wire::Bytes(text)) => key = text_of(text),
            (2, wire) => item = Some(value(kind, wire, depth)?),
            _ => {}
        }
    }
    let item = match item {
        Some(item) => item,
        None if kind.starts_with('=') => value(kind, Wire::Bytes(&[]), depth)?,
        None => json!(""),
    };
    Ok((key, item))
}

fn value(kind: &str, wire: Wire<'_>, depth: usize) -> Result<Value, String> {
    match (kind, wire) {
        ("bool", Wire::Varint(number)) => Ok(json!(number != 0)),
        ("int", Wire::Varint(number)) => Ok(json!(number.cast_signed())),
        ("double", Wire::Fixed64(bits)) => Ok(json!(f64::from_bits(bits))),
        ("string", Wire::Bytes(text)) => Ok(json!(text_of(text))),
        ("bytes", Wire::Bytes(bytes)) => Ok(json!(STANDARD.encode(bytes))),
        (kind, Wire::Bytes(bytes)) => match kind.strip_prefix('=') {
            Some(definition) => special(definition, bytes, depth + 1),
            None => Err(wrong_type(kind)),
        },
        (kind, _) => Err(wrong_type(kind)),
    }
}

/// Messages whose JSON is not an object of their fields.
fn special(definition: &str, bytes: &[u8], depth: usize) -> Result<Value, String> {
    let object = || message(definition, bytes, depth);
    let field = |name: &str| Ok::<_, String>(object()?.remove(name).unwrap_or_default());
    match definition.rsplit('.').next().unwrap_or_default() {
        "Time" => time(&object()?, "%Y-%m-%dT%H:%M:%SZ"),
        "MicroTime" => time(&object()?, "%Y-%m-%dT%H:%M:%S%.6fZ"),
        "Quantity" => field("string"),
        "ExtraValue" | "Verbs" => field("items"),
        "FieldsV1" | "RawExtension" | "JSON" => raw(bytes),
        "IntOrString" => {
            let is_text = field("type")? == json!(1);
            field(if is_text { "strVal" } else { "intVal" })
        }
        _ => object().map(Value::Object),
    }
}

/// A time; the zero time is null.
fn time(fields: &Map<String, Value>, format: &str) -> Result<Value, String> {
    let number = |name: &str| fields.get(name).and_then(Value::as_i64).unwrap_or_default();
    if fields.is_empty() {
        return Ok(Value::Null);
    }
    let nanos = i32::try_from(number("nanos")).unwrap_or_default();
    let time = Timestamp::new(number("seconds"), nanos).map_err(|error| error.to_string())?;
    Ok(json!(time.strftime(format).to_string()))
}

/// JSON that stands in a message as it is, in its first field.
fn raw(bytes: &[u8]) -> Result<Value, String> {
    for field in Fields::new(bytes) {
        if let (1, Wire::Bytes(text)) = field? {
            return serde_json::from_slice(text).map_err(|error| error.to_string());
        }
    }
    Ok(Value::Null)
}

fn wrong_type(kind: &str) -> String {
    format!("proto: wrong wireType for a field of type {kind}")
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
