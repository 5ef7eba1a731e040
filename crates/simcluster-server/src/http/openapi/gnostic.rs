//! OpenAPI v2 documents in protobuf, in which clients written in Go ask for them.
//!
//! The messages are those of `openapi_v2/OpenAPIv2.proto` of github.com/google/gnostic-models, as far as
//! the documents of a cluster have them. Each is a table of its fields.

use serde_json::{Map, Value};

use simcluster_model::codec::yaml;

/// A field of a message: its name in JSON, its number, and what it holds.
struct Field(&'static str, u32, Holds);

/// Fields of one message, in the order of their numbers.
type Message = [Field];

/// What a field holds.
enum Holds {
    Text,
    Texts,
    Flag,
    Integer,
    Double,
    /// `Any`, which Go writes as YAML.
    Any,
    Anys,
    One(&'static Message),
    Each(&'static Message),
    /// A map of named messages in a message of its own.
    Named(&'static Message),
    /// Lists of scopes by name.
    NamedTexts,
    /// A schema type: one text or several.
    Type,
    /// A schema for each position, of which there is one.
    Items,
    /// A schema, or whether there may be any.
    SchemaOrFlag,
    /// A parameter of an operation or path.
    Parameters,
    /// A response within the two messages that allow for references and files.
    Responses,
    /// All keys that begin with `x-`.
    Extensions,
    /// All keys that begin with `/`.
    Paths,
}

static DOCUMENT: [Field; 6] = [
    Field("swagger", 1, Holds::Text),
    Field("info", 2, Holds::One(&INFO)),
    Field("paths", 8, Holds::One(&PATHS)),
    Field("definitions", 9, Holds::Named(&SCHEMA)),
    Field("security", 12, Holds::Each(&SECURITY)),
    Field("securityDefinitions", 13, Holds::Named(&SECURITY_DEFINITION)),
];

static INFO: [Field; 2] = [Field("title", 1, Holds::Text), Field("version", 2, Holds::Text)];

static PATHS: [Field; 1] = [Field("", 2, Holds::Paths)];

static SECURITY: [Field; 1] = [Field("", 1, Holds::NamedTexts)];

/// One of several kinds of security; this one is a key.
static SECURITY_DEFINITION: [Field; 1] = [Field("", 2, Holds::One(&KEY))];

static KEY: [Field; 4] = [
    Field("type", 1, Holds::Text),
    Field("name", 2, Holds::Text),
    Field("in", 3, Holds::Text),
    Field("description", 4, Holds::Text),
];

static PATH: [Field; 9] = [
    Field("get", 2, Holds::One(&OPERATION)),
    Field("put", 3, Holds::One(&OPERATION)),
    Field("post", 4, Holds::One(&OPERATION)),
    Field("delete", 5, Holds::One(&OPERATION)),
    Field("options", 6, Holds::One(&OPERATION)),
    Field("head", 7, Holds::One(&OPERATION)),
    Field("patch", 8, Holds::One(&OPERATION)),
    Field("parameters", 9, Holds::Parameters),
    Field("", 10, Holds::Extensions),
];

static OPERATION: [Field; 9] = [
    Field("tags", 1, Holds::Texts),
    Field("description", 3, Holds::Text),
    Field("operationId", 5, Holds::Text),
    Field("produces", 6, Holds::Texts),
    Field("consumes", 7, Holds::Texts),
    Field("parameters", 8, Holds::Parameters),
    Field("responses", 9, Holds::Responses),
    Field("schemes", 10, Holds::Texts),
    Field("", 13, Holds::Extensions),
];

static BODY_PARAMETER: [Field; 5] = [
    Field("description", 1, Holds::Text),
    Field("name", 2, Holds::Text),
    Field("in", 3, Holds::Text),
    Field("required", 4, Holds::Flag),
    Field("schema", 5, Holds::One(&SCHEMA)),
];

static QUERY_PARAMETER: [Field; 6] = [
    Field("required", 1, Holds::Flag),
    Field("in", 2, Holds::Text),
    Field("description", 3, Holds::Text),
    Field("name", 4, Holds::Text),
    Field("type", 6, Holds::Text),
    Field("uniqueItems", 20, Holds::Flag),
];

static PATH_PARAMETER: [Field; 6] = [
    Field("required", 1, Holds::Flag),
    Field("in", 2, Holds::Text),
    Field("description", 3, Holds::Text),
    Field("name", 4, Holds::Text),
    Field("type", 5, Holds::Text),
    Field("uniqueItems", 19, Holds::Flag),
];

static RESPONSE: [Field; 2] =
    [Field("description", 1, Holds::Text), Field("schema", 2, Holds::One(&SCHEMA_ITEM))];

static SCHEMA_ITEM: [Field; 1] = [Field("", 1, Holds::One(&SCHEMA))];

static SCHEMA: [Field; 26] = [
    Field("$ref", 1, Holds::Text),
    Field("format", 2, Holds::Text),
    Field("title", 3, Holds::Text),
    Field("description", 4, Holds::Text),
    Field("default", 5, Holds::Any),
    Field("multipleOf", 6, Holds::Double),
    Field("maximum", 7, Holds::Double),
    Field("exclusiveMaximum", 8, Holds::Flag),
    Field("minimum", 9, Holds::Double),
    Field("exclusiveMinimum", 10, Holds::Flag),
    Field("maxLength", 11, Holds::Integer),
    Field("minLength", 12, Holds::Integer),
    Field("pattern", 13, Holds::Text),
    Field("maxItems", 14, Holds::Integer),
    Field("minItems", 15, Holds::Integer),
    Field("uniqueItems", 16, Holds::Flag),
    Field("maxProperties", 17, Holds::Integer),
    Field("minProperties", 18, Holds::Integer),
    Field("required", 19, Holds::Texts),
    Field("enum", 20, Holds::Anys),
    Field("additionalProperties", 21, Holds::SchemaOrFlag),
    Field("type", 22, Holds::Type),
    Field("items", 23, Holds::Items),
    Field("properties", 25, Holds::Named(&SCHEMA)),
    Field("example", 30, Holds::Any),
    Field("", 31, Holds::Extensions),
];

/// A document in protobuf.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    encoded(&DOCUMENT, document)
}

fn encoded(message: &Message, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    let empty = Map::new();
    let map = value.as_object().unwrap_or(&empty);
    for Field(name, number, holds) in message {
        // Fields without a name look at the whole value.
        let held = if name.is_empty() { Some(value) } else { map.get(*name) };
        if let Some(held) = held {
            field(&mut out, *number, holds, held);
        }
    }
    out
}

fn field(out: &mut Vec<u8>, number: u32, holds: &Holds, value: &Value) {
    let list = || value.as_array().into_iter().flatten();
    let entries = || value.as_object().into_iter().flatten();
    match holds {
        Holds::Text => text(out, number, value),
        Holds::Texts => list().for_each(|one| text(out, number, one)),
        Holds::Flag if *value == Value::Bool(true) => integer(out, number, 1),
        Holds::Flag => {}
        // Negative numbers are written as they lie in memory.
        Holds::Integer => integer(out, number, value.as_i64().unwrap_or_default().cast_unsigned()),
        Holds::Double => {
            key(out, number, 1);
            out.extend(value.as_f64().unwrap_or_default().to_le_bytes());
        }
        Holds::Any => bytes(out, number, &any(value)),
        Holds::Anys => list().for_each(|one| bytes(out, number, &any(one))),
        Holds::One(message) => bytes(out, number, &encoded(message, value)),
        Holds::Each(message) => {
            list().for_each(|one| bytes(out, number, &encoded(message, one)));
        }
        Holds::Named(message) => {
            let all = all(entries().map(|(name, one)| named(name, &encoded(message, one))), 1);
            bytes(out, number, &all);
        }
        Holds::NamedTexts => entries().for_each(|(name, texts)| {
            let mut held = Vec::new();
            field(&mut held, 1, &Holds::Texts, texts);
            bytes(out, number, &named(name, &held));
        }),
        Holds::Type => {
            let mut types = Vec::new();
            text(&mut types, 1, value);
            list().for_each(|one| text(&mut types, 1, one));
            bytes(out, number, &types);
        }
        Holds::Items | Holds::SchemaOrFlag => {
            let mut item = Vec::new();
            match value.as_bool() {
                Some(allowed) => integer(&mut item, 2, u64::from(allowed)),
                None => bytes(&mut item, 1, &encoded(&SCHEMA, value)),
            }
            bytes(out, number, &item);
        }
        Holds::Parameters => list().for_each(|one| bytes(out, number, &parameter(one))),
        Holds::Responses => {
            let one = |(code, response): (&String, &Value)| {
                named(code, &within(1, &encoded(&RESPONSE, response)))
            };
            bytes(out, number, &all(entries().map(one), 1));
        }
        Holds::Extensions => {
            let extensions = entries().filter(|(name, _)| name.starts_with("x-"));
            extensions.for_each(|(name, value)| bytes(out, number, &named(name, &any(value))));
        }
        Holds::Paths => {
            entries().for_each(|(path, item)| {
                bytes(out, number, &named(path, &encoded(&PATH, item)));
            });
        }
    }
}

/// A parameter within the messages that tell its place: body, query or path.
fn parameter(value: &Value) -> Vec<u8> {
    let place = value.get("in").and_then(Value::as_str).unwrap_or_default();
    let parameter = match place {
        "body" => within(1, &encoded(&BODY_PARAMETER, value)),
        "path" => within(2, &within(4, &encoded(&PATH_PARAMETER, value))),
        _ => within(2, &within(3, &encoded(&QUERY_PARAMETER, value))),
    };
    within(1, &parameter)
}

/// A message with one field.
fn within(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    bytes(&mut out, number, content);
    out
}

/// A message with equal fields.
fn all(contents: impl Iterator<Item = Vec<u8>>, number: u32) -> Vec<u8> {
    let mut out = Vec::new();
    contents.for_each(|content| bytes(&mut out, number, &content));
    out
}

/// `NamedAny`, `NamedSchema` and their like.
fn named(name: &str, content: &[u8]) -> Vec<u8> {
    let mut out = within(1, name.as_bytes());
    bytes(&mut out, 2, content);
    out
}

fn any(value: &Value) -> Vec<u8> {
    within(2, yaml::write(value).as_bytes())
}

fn text(out: &mut Vec<u8>, number: u32, value: &Value) {
    if let Some(text) = value.as_str() {
        bytes(out, number, text.as_bytes());
    }
}

fn integer(out: &mut Vec<u8>, number: u32, value: u64) {
    key(out, number, 0);
    varint(out, value);
}

fn bytes(out: &mut Vec<u8>, number: u32, content: &[u8]) {
    key(out, number, 2);
    varint(out, u64::try_from(content.len()).unwrap_or(u64::MAX));
    out.extend_from_slice(content);
}

fn key(out: &mut Vec<u8>, number: u32, wire_type: u64) {
    varint(out, u64::from(number) << 3 | wire_type);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            return out.push(low & 0x7f);
        }
        out.push(low | 0x80);
    }
}
