//! Create, update and patch of whole objects and their `/status`.

use serde_json::Value;

use super::options::{FieldValidation, WriteOptions};
use super::write::{Expected, Write};
use super::{Call, Outcome, decode, meta};
use crate::admission;
use crate::server::ApiServer;
use simcluster_model::codec::{body, yaml};
use simcluster_model::error::{ApiError, Details};
use simcluster_model::fieldmanager;
use simcluster_model::object;
use simcluster_model::patch;

/// POST to a collection.
pub(super) fn create(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let options = WriteOptions::parse(call, "CreateOptions")?;
    let resource = &call.resource;
    let mut object = decode::request_body(call, &options)?;
    meta::fill_namespace(resource, &call.namespace, &mut object)?;
    meta::wipe(&mut object);
    server.fill_system_fields(resource, &mut object);
    let now = server.clock().now();
    fieldmanager::record_update(resource, None, &mut object, &options.manager, "", now);
    admission::create(server, call, &object)?;
    let write = Write { server, call, options: &options };
    Ok(Outcome::Object(201, write.create(object)?))
}

/// PUT of an object, or of a subresource that takes the whole object.
pub(super) fn update(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let options = WriteOptions::parse(call, "UpdateOptions")?;
    let resource = &call.resource;
    let mut object = decode::request_body(call, &options)?;
    meta::fill_namespace(resource, &call.namespace, &mut object)?;
    check_name(&object, &call.name)?;
    let transform = |existing: Option<&Value>| {
        let mut object = object.clone();
        let now = server.clock().now();
        let (manager, subresource) = (&options.manager, &call.subresource);
        fieldmanager::record_update(resource, existing, &mut object, manager, subresource, now);
        Ok(object)
    };
    let uid = object::uid(&object);
    let create_missing = call.subresource.is_empty() && resource.strategy.allow_create_on_update();
    let expected = Expected { create_missing, uid: Some(uid) };
    let write = Write { server, call, options: &options };
    let (code, answer) = write.update(&call.name, &expected, &transform)?;
    Ok(Outcome::Object(code, answer))
}

/// The ways to patch.
enum Kind {
    Json(Value),
    Merge(Value),
    Strategic(Value),
    Apply(Value),
}

/// PATCH of an object or its `/status`.
pub(super) fn patch(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let media_type = call.content_type.as_str();
    let apply = media_type == "application/apply-patch+yaml";
    accept(call)?;
    let options = WriteOptions::parse_patch(call, apply)?;
    let kind = read_patch(call, &options)?;
    let transform = |existing: Option<&Value>| transform(server, call, &options, &kind, existing);
    let expected = Expected { create_missing: apply && call.subresource.is_empty(), uid: None };
    let write = Write { server, call, options: &options };
    let (code, answer) = write.update(&call.name, &expected, &transform)?;
    Ok(Outcome::Object(code, answer))
}

/// 415 for patch types that the resource does not take (row PA01).
pub(super) fn accept(call: &Call) -> Result<(), ApiError> {
    const TYPES: [&str; 3] = [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/apply-patch+yaml",
    ];
    let given = call.content_type.as_str();
    if TYPES.contains(&given)
        || (!call.resource.custom && given == "application/strategic-merge-patch+json")
    {
        return Ok(());
    }
    if call.resource.custom {
        return Err(body::unsupported_media_type(&TYPES));
    }
    Err(ApiError::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")
        .with_details(Details::default()))
}

fn read_patch(call: &Call, options: &WriteOptions) -> Result<Kind, ApiError> {
    if call.content_type == "application/apply-patch+yaml" {
        return read_apply(call, options).map(Kind::Apply);
    }
    let value: Value = serde_json::from_slice(&call.body)
        .map_err(|_| ApiError::bad_request("invalid JSON patch"))?;
    Ok(match call.content_type.as_str() {
        "application/json-patch+json" => Kind::Json(value),
        "application/strategic-merge-patch+json" => Kind::Strategic(value),
        _ => Kind::Merge(value),
    })
}

/// Reads an apply configuration: YAML, of which JSON is a part.
pub(super) fn read_apply(call: &Call, options: &WriteOptions) -> Result<Value, ApiError> {
    let parsed = yaml::parse(&call.body)
        .map_err(|why| ApiError::bad_request(format!("error encoding patch: {why}")))?;
    let duplicates = parsed.duplicates;
    match options.field_validation {
        FieldValidation::Strict if !duplicates.is_empty() => {
            return Err(ApiError::bad_request(format!(
                "error strict decoding patch: error converting YAML to JSON: yaml: unmarshal \
                 errors:\n  {}",
                duplicates.join("\n  ")
            )));
        }
        FieldValidation::Warn => {
            for text in duplicates {
                call.warnings.add(text);
            }
        }
        FieldValidation::Strict | FieldValidation::Ignore => {}
    }
    Ok(parsed.value)
}

/// What the patch makes of the stored object (`None`: there is none, and it is an apply).
fn transform(
    server: &ApiServer,
    call: &Call,
    options: &WriteOptions,
    kind: &Kind,
    existing: Option<&Value>,
) -> Result<Value, ApiError> {
    let resource = &call.resource;
    let subresource = call.subresource.as_str();
    let now = server.clock().now();
    let absent = Value::Null;
    let current = existing.unwrap_or(&absent);
    let patched = match kind {
        Kind::Json(patch) => patch::json_patch(current, patch)?,
        Kind::Merge(patch) => patch::merge_patch(current, patch)?,
        Kind::Strategic(patch) => patch::strategic_merge(current, patch, &resource.schema)?,
        Kind::Apply(config) => {
            let mut config = config.clone();
            name_config(call, &mut config);
            let manager = &options.manager;
            let force = options.force;
            let merged =
                fieldmanager::apply(resource, existing, &config, manager, subresource, force, now)?;
            let object = decode::applied(resource, merged)?;
            check_uid_of_missing(call, existing, &object)?;
            return checked(call, object);
        }
    };
    let unknown = match kind {
        Kind::Json(patch) => patch::unknown_operation_fields(patch),
        Kind::Merge(_) | Kind::Strategic(_) | Kind::Apply(_) => Vec::new(),
    };
    let mut object = decode::patched(call, options, patched, unknown)?;
    let manager = &options.manager;
    fieldmanager::record_update(resource, existing, &mut object, manager, subresource, now);
    checked(call, object)
}

fn checked(call: &Call, mut object: Value) -> Result<Value, ApiError> {
    meta::fill_namespace(&call.resource, &call.namespace, &mut object)?;
    check_name(&object, &call.name)?;
    Ok(object)
}

/// An apply that names no object means the one of its path.
pub(super) fn name_config(call: &Call, config: &mut Value) {
    if config.is_object() && object::name(config).is_empty() {
        object::metadata_mut(config).insert("name".to_owned(), Value::from(call.name.as_str()));
    }
}

/// A UID says that the object exists (row SA12).
fn check_uid_of_missing(
    call: &Call,
    existing: Option<&Value>,
    object: &Value,
) -> Result<(), ApiError> {
    let uid = object::uid(object);
    if existing.is_some() || uid.is_empty() {
        return Ok(());
    }
    let why = format!(
        "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
    );
    Err(ApiError::conflict(call.resource.names(), &call.name, &why))
}

/// The name in the body must be the one of the path (row UP07).
pub(super) fn check_name(object: &Value, name: &str) -> Result<(), ApiError> {
    let own = object::name(object);
    if own.is_empty() {
        let why = format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        );
        return Err(ApiError::bad_request(why));
    }
    if own != name {
        let why =
            format!("the name of the object ({own}) does not match the name on the URL ({name})");
        return Err(ApiError::bad_request(why));
    }
    Ok(())
}
