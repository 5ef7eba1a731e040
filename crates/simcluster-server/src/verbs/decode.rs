//! From a request body to an object of the resource.

use serde_json::Value;

use super::Call;
use super::options::{FieldValidation, WriteOptions};
use simcluster_model::builtin::{self, Beside};
use simcluster_model::codec::body::{self, Duplicates};
use simcluster_model::error::ApiError;
use simcluster_model::field::FieldError;
use simcluster_model::patch::undecodable;
use simcluster_model::resource::Resource;

/// Reads the body of a POST or PUT: decoded, with defaults, unknown fields dealt with.
pub(super) fn request_body(call: &Call, options: &WriteOptions) -> Result<Value, ApiError> {
    let resource = &call.resource;
    let mut parsed = body::parse(&call.body, &call.content_type, resource)?;
    let decoded = parsed.decode(|value| resource.strategy.decode(resource, value))?;
    let mut duplicates = parsed.duplicates;
    if !resource.custom {
        // Go skips what it does not know without looking into it.
        duplicates.forget_below(&decoded.unknown);
    }
    match strictness(call, options, &duplicates, unknown_fields(&decoded.unknown)) {
        Some(fault) => Err(not_handled(resource, &decoded.object, &fault)),
        None => match decoded.refused {
            Some(refused) => Err(refused),
            None => Ok(with_defaults(resource, decoded.object)),
        },
    }
}

/// Reads what a JSON, merge or strategic merge patch made of an object. `noted` are texts about the
/// patch itself, `shown` makes what a refusal shows.
pub(super) fn patched(
    call: &Call,
    options: &WriteOptions,
    patched: Value,
    noted: Vec<String>,
    shown: &dyn Fn() -> String,
) -> Result<Value, ApiError> {
    let resource = &call.resource;
    if resource.custom {
        check_type(resource, &patched)?;
    } else if let Some(fault) = body::kind_fault(&patched) {
        return Err(undecodable(&shown(), &fault));
    }
    let decoded = resource
        .strategy
        .decode(resource, patched)
        .map_err(|error| unpatchable(resource, &shown(), error))?;
    let unknown = [noted, unknown_fields(&decoded.unknown)].concat();
    match strictness(call, options, &Duplicates::default(), unknown) {
        Some(fault) => Err(undecodable(&shown(), &fault)),
        None => Ok(with_defaults(resource, decoded.object)),
    }
}

/// Reads the body of a PUT of a Scale. The real server knows no Scale of a custom resource that it
/// could not read, and says so.
pub(super) fn scale(call: &Call, options: &WriteOptions) -> Result<Value, ApiError> {
    let custom = call.resource.custom;
    let refused = |error: ApiError| {
        if custom {
            let scheme = r#"in scheme "pkg/runtime/scheme.go:111""#;
            let why = format!("no kind is registered for the type v1.Scale {scheme}");
            return ApiError::bad_request(why);
        }
        error
    };
    refusable(call, options, &builtin::SCALE, &refused)
}

/// Reads a body of a kind that is not the resource's.
pub(super) fn beside(
    call: &Call,
    options: &WriteOptions,
    expected: &Beside,
) -> Result<Value, ApiError> {
    refusable(call, options, expected, &|error| error)
}

/// Reads a body of a kind that is not the resource's; `refused` words refusals of all of it.
fn refusable(
    call: &Call,
    options: &WriteOptions,
    expected: &Beside,
    refused: &dyn Fn(ApiError) -> ApiError,
) -> Result<Value, ApiError> {
    let resource = expected.resource(&call.resource);
    let mut parsed = body::parse(&call.body, &call.content_type, &resource).map_err(refused)?;
    let text = |key: &str| parsed.value.get(key).and_then(Value::as_str).unwrap_or_default();
    let version = text("apiVersion").rsplit('/').next().unwrap_or_default();
    let (kind, version) = (text("kind").to_owned(), version.to_owned());
    let decoded = parsed.decode(|value| expected.decode(value)).map_err(|why| {
        let wanted = &resource.kind;
        refused(ApiError::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {wanted}: {why}"
        )))
    })?;
    match strictness(call, options, &parsed.duplicates, unknown_fields(&decoded.unknown)) {
        Some(fault) => Err(not_handled(&resource, &decoded.object, &fault)),
        None => Ok(decoded.object),
    }
}

/// Reads what a patch made of a Scale.
pub(super) fn patched_scale(
    call: &Call,
    options: &WriteOptions,
    patched: Value,
    noted: Vec<String>,
    shown: &dyn Fn() -> String,
) -> Result<Value, ApiError> {
    let decoded = builtin::SCALE.decode(patched).map_err(|why| undecodable(&shown(), &why))?;
    let unknown = [noted, unknown_fields(&decoded.unknown)].concat();
    match strictness(call, options, &Duplicates::default(), unknown) {
        Some(fault) => Err(undecodable(&shown(), &fault)),
        None => Ok(decoded.object),
    }
}

/// Brings a merged object of an apply into the form of a built-in kind. Custom resources have theirs
/// already: what does not fit is for validation to say.
pub(super) fn applied(resource: &Resource, merged: Value) -> Result<Value, ApiError> {
    if resource.custom {
        return Ok(merged);
    }
    let decoded = resource.strategy.decode(resource, merged)?;
    Ok(with_defaults(resource, decoded.object))
}

fn with_defaults(resource: &Resource, mut object: Value) -> Value {
    resource.strategy.default(resource, &mut object);
    object
}

fn unknown_fields(paths: &[String]) -> Vec<String> {
    paths.iter().map(|path| format!("unknown field \"{path}\"")).collect()
}

/// Warns of dropped fields, or returns the text that refuses them.
fn strictness(
    call: &Call,
    options: &WriteOptions,
    duplicates: &Duplicates,
    unknown: Vec<String>,
) -> Option<String> {
    match options.field_validation {
        FieldValidation::Ignore => None,
        FieldValidation::Warn => {
            for text in duplicates.warnings().into_iter().chain(unknown) {
                call.warnings.add(text);
            }
            None
        }
        FieldValidation::Strict => {
            let faults = [duplicates.strict_faults(), unknown].concat();
            if faults.is_empty() {
                return None;
            }
            Some(format!("strict decoding error: {}", faults.join(", ")))
        }
    }
}

/// 400 of a body that is not an object of the kind.
fn not_handled(resource: &Resource, object: &Value, why: &str) -> ApiError {
    let kind = &resource.kind;
    let version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let version = version.rsplit('/').next().unwrap_or_default();
    let text = format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}");
    ApiError::bad_request(text)
}

fn unpatchable(resource: &Resource, shown: &str, error: ApiError) -> ApiError {
    if error.reason != "BadRequest" {
        return error;
    }
    let kind = &resource.kind;
    let marker = format!("cannot be handled as a {kind}: ");
    let why = error.message.split_once(&marker).map_or(&*error.message, |(_, why)| why);
    undecodable(shown, why)
}

/// A patch of a custom resource may change neither version nor kind (row PA13).
fn check_type(resource: &Resource, patched: &Value) -> Result<(), ApiError> {
    let expected = [("apiVersion", resource.api_version()), ("kind", resource.kind.clone())];
    let mut faults = Vec::new();
    for (field, expected) in &expected {
        let actual = patched.get(field).unwrap_or(&Value::Null);
        if actual.as_str() != Some(expected) {
            faults.push(FieldError::invalid(*field, actual, &format!("must be {expected}")));
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    let kind = patched.get("kind").and_then(Value::as_str).unwrap_or_default();
    let name = simcluster_model::object::name(patched);
    Err(ApiError::invalid_kind(&resource.group, kind, name, &faults))
}
