//! Request bodies: media types, parsing, and the server's texts for what cannot be read.

use serde_json::{Map, Value};

use crate::codec::{json, nesting, protobuf, yaml};
use crate::error::ApiError;
use crate::golang;
use crate::object::put;
use crate::patch::steps;
use crate::resource::Resource;

/// The largest body that the server reads, in bytes.
pub const LIMIT_BYTES: usize = 3 * 1024 * 1024;

/// A request body as an object.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedBody {
    /// The object; `kind` and `apiVersion` are there for built-in kinds even if the body had none.
    pub value: Value,
    /// Duplicate keys.
    pub duplicates: Duplicates,
    /// What the body said of keys that stand twice; see [`json::Parsed`].
    earlier: Vec<(String, Value)>,
}

impl ParsedBody {
    /// Decodes the object, after what stood in its place before: the first fault counts.
    pub fn decode<T, E>(&mut self, decode: impl Fn(Value) -> Result<T, E>) -> Result<T, E> {
        self.check_earlier(|earlier| decode(earlier).map(drop))?;
        decode(std::mem::take(&mut self.value))
    }

    /// Lets somebody look at the object as it was each time that a key had been read which stands twice,
    /// in their order; the first fault counts.
    fn check_earlier<E>(&self, check: impl Fn(Value) -> Result<(), E>) -> Result<(), E> {
        self.earlier.iter().try_for_each(|(pointer, earlier)| {
            // A body may hold thousands of them: the whole object is looked at only if there is a fault.
            if check(self.alone(pointer, earlier)).is_ok() {
                return Ok(());
            }
            let mut object = self.value.clone();
            let Some(place) = object.pointer_mut(pointer) else { return Ok(()) };
            place.clone_from(earlier);
            check(object)
        })
    }

    /// An object of the same type in which nothing but this value is.
    fn alone(&self, pointer: &str, value: &Value) -> Value {
        let mut around = Some(&self.value);
        let mut keys = Vec::new();
        for step in steps(pointer) {
            let in_list = around.is_some_and(Value::is_array);
            around = around.and_then(|container| {
                if in_list {
                    container.get(step.parse::<usize>().ok()?)
                } else {
                    container.get(&step)
                }
            });
            keys.push((!in_list).then_some(step));
        }
        let mut object = keys.into_iter().rev().fold(value.clone(), |inner, key| match key {
            Some(key) => Value::Object(Map::from_iter([(key, inner)])),
            None => Value::Array(vec![inner]),
        });
        if let Value::Object(fields) = &mut object {
            for name in ["apiVersion", "kind"] {
                if let Some(own) = self.value.get(name) {
                    fields.entry(name).or_insert_with(|| own.clone());
                }
            }
        }
        object
    }
}

/// Keys that stood more than once in one map of a body.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Duplicates {
    yaml: bool,
    keys: Vec<String>,
}

impl Duplicates {
    /// The duplicates of a JSON text.
    #[must_use]
    pub fn of_json(paths: Vec<String>) -> Self {
        Self { yaml: false, keys: paths }
    }

    /// Forgets those at or below the fields of these paths.
    pub fn forget_below(&mut self, paths: &[String]) {
        if self.yaml {
            return;
        }
        self.keys.retain(|key| {
            !paths.iter().any(|path| {
                key.strip_prefix(path.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            })
        });
    }

    /// One text for each `Warning` header.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        if self.yaml {
            return self.keys.clone();
        }
        self.keys.iter().map(|path| format!("duplicate field \"{path}\"")).collect()
    }

    /// The texts as they stand in a `strict decoding error: ...`, to be joined by `, `.
    #[must_use]
    pub fn strict_faults(&self) -> Vec<String> {
        if self.yaml && !self.keys.is_empty() {
            return vec![format!("yaml: unmarshal errors:\n  {}", self.keys.join("\n  "))];
        }
        self.warnings()
    }
}

/// The formats that bodies of objects come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Yaml,
    Protobuf,
}

/// The media type of a `Content-Type` header without its parameters, in lower case.
#[must_use]
pub fn media_type(header: &str) -> String {
    header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// 415 with the list of what is understood.
#[must_use]
pub fn unsupported_media_type(accepted: &[&str]) -> ApiError {
    let list = accepted.join(", ");
    let message = format!(
        "the body of the request was in an unknown format - accepted media types include: {list}"
    );
    ApiError::new(415, "UnsupportedMediaType", message)
}

/// 413 for bodies over the limit.
pub fn check_size(bytes: &[u8]) -> Result<(), ApiError> {
    if bytes.len() <= LIMIT_BYTES {
        return Ok(());
    }
    let message = format!("Request entity too large: limit is {LIMIT_BYTES}");
    Err(ApiError::new(413, "RequestEntityTooLarge", message))
}

/// Reads the body of a POST or PUT on a resource. Built-in kinds may leave `kind` and `apiVersion`
/// out (each is then filled as the server does); custom resources must name a kind. Whether the kind
/// and version are the right ones is not checked here.
pub fn parse(
    bytes: &[u8],
    content_type: &str,
    resource: &Resource,
) -> Result<ParsedBody, ApiError> {
    let format = format_of(content_type)?;
    if format == Format::Protobuf && resource.custom {
        return Err(unsupported_media_type(&OBJECT_TYPES));
    }
    let own = (resource.api_version(), resource.kind.as_str());
    let mut parsed = read(bytes, format, (&own.0, own.1), resource.custom)
        .map_err(|why| unrecognized(&resource.kind, &interpret_fault(format, &why), bytes))?;
    parsed.check_earlier(|earlier| check_identity(bytes, &earlier, resource))?;
    check_identity(bytes, &parsed.value, resource)?;
    // Which kind it is was asked by itself, and of that only the last answer counts.
    parsed.earlier.retain(|(pointer, _)| pointer != "/apiVersion" && pointer != "/kind");
    if !resource.custom {
        fill_type(&mut parsed.value, resource);
    }
    Ok(parsed)
}

/// Reads the optional `DeleteOptions` in the body of a DELETE, to be decoded; an empty body is `None`.
pub fn parse_delete_options(
    bytes: &[u8],
    content_type: &str,
) -> Result<Option<ParsedBody>, ApiError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let format = format_of(content_type)?;
    let parsed = read(bytes, format, ("v1", "DeleteOptions"), false)
        .map_err(|why| ApiError::bad_request(interpret_fault(format, &why)))?;
    let check = |value: &Value| match type_fault(value) {
        Some(fault) => Err(ApiError::bad_request(interpret_fault(Format::Json, &fault))),
        None => Ok(()),
    };
    parsed.check_earlier(|earlier| check(&earlier))?;
    check(&parsed.value)?;
    Ok(Some(parsed))
}

/// What bodies of objects may be, as errors list it.
const OBJECT_TYPES: [&str; 3] = ["application/json", "application/yaml", protobuf::MEDIA_TYPE];

fn format_of(content_type: &str) -> Result<Format, ApiError> {
    match media_type(content_type).as_str() {
        "" | "application/json" => Ok(Format::Json),
        "application/yaml" => Ok(Format::Yaml),
        protobuf::MEDIA_TYPE => Ok(Format::Protobuf),
        _ => Err(unsupported_media_type(&OBJECT_TYPES)),
    }
}

/// `default` is the `(apiVersion, kind)` of a protobuf body that names none; `untyped` bodies become
/// no Go struct.
fn read(
    bytes: &[u8],
    format: Format,
    default: (&str, &str),
    untyped: bool,
) -> Result<ParsedBody, String> {
    match format {
        Format::Protobuf => {
            let value = protobuf::read(bytes, default)?;
            // JSON that stands in messages adds to their own depth.
            if nesting::depth(&value) > nesting::DEPTH_MAX {
                return Err("proto: nested too deeply".to_owned());
            }
            Ok(ParsedBody { value, duplicates: Duplicates::default(), earlier: Vec::new() })
        }
        Format::Json => {
            if untyped { json::parse(bytes) } else { json::parse_typed(bytes) }.map(|parsed| {
                ParsedBody {
                    value: parsed.value,
                    duplicates: Duplicates { yaml: false, keys: parsed.duplicates },
                    earlier: parsed.earlier,
                }
            })
        }
        Format::Yaml => yaml::parse(bytes).map(|parsed| ParsedBody {
            value: parsed.value,
            duplicates: Duplicates { yaml: true, keys: parsed.duplicates },
            earlier: Vec::new(),
        }),
    }
}

/// YAML and protobuf faults come from the converter, JSON faults from looking for the kind.
fn interpret_fault(format: Format, why: &str) -> String {
    match format {
        Format::Json => format!("couldn't get version/kind; json parse error: {why}"),
        Format::Yaml | Format::Protobuf => why.to_owned(),
    }
}

fn unrecognized(kind: &str, why: &str, bytes: &[u8]) -> ApiError {
    let summary = summary(bytes);
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({summary})"
    ))
}

/// The beginning of a body as errors show it: as it is if it looks like JSON, else in hex.
fn summary(bytes: &[u8]) -> String {
    const SHOWN_BYTES: usize = 30;
    if bytes.is_empty() {
        return "<empty>".to_owned();
    }
    let shown = bytes.get(..SHOWN_BYTES).unwrap_or(bytes);
    let text = if bytes.first() == Some(&b'{') {
        String::from_utf8_lossy(shown).into_owned()
    } else {
        golang::hex(shown)
    };
    if bytes.len() > SHOWN_BYTES { format!("{text} ...") } else { text }
}

/// Why the kind of an object cannot be read, as it is told of JSON.
#[must_use]
pub fn kind_fault(object: &Value) -> Option<String> {
    type_fault(object).map(|why| interpret_fault(Format::Json, &why))
}

/// Why the kind of a body cannot be read.
fn type_fault(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Object(map) => ["apiVersion", "kind"].iter().find_map(|key| {
            let found = map.get(*key)?;
            let wrong = !found.is_string() && !found.is_null();
            wrong.then(|| {
                let found = golang::json_type_name(found);
                format!("json: cannot unmarshal {found} into Go struct field .{key} of type string")
            })
        }),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            let found = golang::json_type_name(value);
            Some(format!(
                "json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \
                 \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
            ))
        }
    }
}

/// Refuses bodies whose kind cannot be read.
fn check_identity(bytes: &[u8], value: &Value, resource: &Resource) -> Result<(), ApiError> {
    if let Some(fault) = type_fault(value) {
        let why = interpret_fault(Format::Json, &fault);
        return Err(unrecognized(&resource.kind, &why, bytes));
    }
    if resource.custom && text(value, "kind").is_empty() {
        let body = String::from_utf8_lossy(bytes);
        let why = format!("Object 'Kind' is missing in '{body}'");
        return Err(unrecognized(&resource.kind, &why, bytes));
    }
    Ok(())
}

/// Fills what a body of a built-in kind leaves out.
fn fill_type(value: &mut Value, resource: &Resource) {
    if text(value, "kind").is_empty() {
        put(value, "kind", Value::from(resource.kind.as_str()));
    }
    if text(value, "apiVersion").is_empty() {
        put(value, "apiVersion", Value::from(resource.api_version()));
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
