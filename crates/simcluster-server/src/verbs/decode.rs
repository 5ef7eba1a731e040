//! From a request body to an object of the resource.

use serde_json::Value;

use super::Call;
use super::options::{FieldValidation, WriteOptions};
use simcluster_model::codec::body::{self, Duplicates};
use simcluster_model::error::ApiError;
use simcluster_model::field::FieldError;
use simcluster_model::patch::undecodable;
use simcluster_model::resource::Resource;

/// Reads the body of a POST or PUT: decoded, with defaults, unknown fields dealt with.
pub(super) fn request_body(call: &Call, options: &WriteOptions) -> Result<Value, ApiError> {
    let resource = &call.resource;
    let parsed = body::parse(&call.body, &call.content_type, resource)?;
    let decoded = resource.strategy.decode(resource, parsed.value)?;
    match strictness(call, options, &parsed.duplicates, unknown_fields(&decoded.unknown)) {
        Some(fault) => Err(not_handled(resource, &fault)),
        None => Ok(with_defaults(resource, decoded.object)),
    }
}

/// Reads what a JSON, merge or strategic merge patch made of an object. `unknown` are texts about the
/// patch itself.
pub(super) fn patched(
    call: &Call,
    options: &WriteOptions,
    patched: Value,
    unknown: Vec<String>,
) -> Result<Value, ApiError> {
    let resource = &call.resource;
    if resource.custom {
        check_type(resource, &patched)?;
    }
    let shown = patched.to_string();
    let decoded = resource
        .strategy
        .decode(resource, patched)
        .map_err(|error| unpatchable(resource, &shown, error))?;
    let unknown = [unknown, unknown_fields(&decoded.unknown)].concat();
    match strictness(call, options, &Duplicates::default(), unknown) {
        Some(fault) => Err(undecodable(&shown, &fault)),
        None => Ok(with_defaults(resource, decoded.object)),
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
fn not_handled(resource: &Resource, why: &str) -> ApiError {
    let kind = &resource.kind;
    let version = &resource.version;
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
