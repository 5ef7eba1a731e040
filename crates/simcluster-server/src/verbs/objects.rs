//! Create, update and patch of whole objects and their `/status`.

use serde_json::Value;

use super::options::{FieldValidation, WriteOptions};
use super::write::{Expected, Write, writing};
use super::{Call, Outcome, decode, idle, meta};
use crate::admission::Operation;
use crate::conversion::with_versions;
use crate::server::ApiServer;
use simcluster_model::builtin;
use simcluster_model::codec::{body, json, yaml};
use simcluster_model::error::{ApiError, Details};
use simcluster_model::fieldmanager::{self, OneVersion, Versions, Writing};
use simcluster_model::object;
use simcluster_model::patch::{self, PatchError};

/// POST to a collection.
pub(super) async fn create(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let options = WriteOptions::parse(call, "CreateOptions")?;
    let made = |versions: &dyn Versions| new_object(server, call, &options, versions);
    let object = with_versions(server, &call.resource, made).await?;
    let write = Write::new(server, call, &options);
    let name = object::name(&object).to_owned();
    let object = write.admit(Operation::Create, &name, object, None).await?;
    let created = write.create(&name, object).await?;
    if server.warns_of_idle_kinds()
        && let Some(text) = idle::warning(&call.resource.storage_key)
    {
        call.warnings.add(text);
    }
    Ok(Outcome::Object(201, created))
}

/// POST of an object that the server itself brings along.
pub(super) fn install(server: &ApiServer, call: &Call) -> Result<(), ApiError> {
    let options = WriteOptions::parse(call, "CreateOptions")?;
    let mut object = new_object(server, call, &options, &OneVersion)?;
    let write = Write::new(server, call, &options);
    write.prepare_create(&mut object)?;
    write.install(object)
}

/// The object of a POST that is answered and not stored.
pub(crate) fn posted(server: &ApiServer, call: &Call) -> Result<Value, ApiError> {
    new_object(server, call, &WriteOptions::parse(call, "CreateOptions")?, &OneVersion)
}

/// The object of a POST as it goes into admission.
fn new_object(
    server: &ApiServer,
    call: &Call,
    options: &WriteOptions,
    versions: &dyn Versions,
) -> Result<Value, ApiError> {
    let mut object = decode::request_body(call, options)?;
    meta::fill_namespace(&call.resource, &call.namespace, &mut object)?;
    meta::wipe(&mut object);
    fieldmanager::record_update(&writing(server, call, options, versions), None, &mut object);
    Ok(object)
}

/// PUT of an object, or of a subresource that takes the whole object.
pub(super) async fn update(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let options = WriteOptions::parse(call, "UpdateOptions")?;
    let resource = &call.resource;
    let mut object = decode::request_body(call, &options)?;
    meta::fill_namespace(resource, &call.namespace, &mut object)?;
    check_name(&object, &call.name)?;
    let transform = |existing: Option<&Value>, versions: &dyn Versions| {
        let mut object = object.clone();
        let writing = writing(server, call, &options, versions);
        fieldmanager::record_update(&writing, existing, &mut object);
        Ok(object)
    };
    let uid = object::uid(&object);
    let create_missing = may_create(call);
    let expected = Expected { create_missing, uid: Some(uid) };
    let write = Write::new(server, call, &options);
    let (code, answer) = write.update(&call.name, &expected, &transform).await?;
    Ok(Outcome::Object(code, answer))
}

/// Whether an update of a missing object creates it, be it by way of its status.
fn may_create(call: &Call) -> bool {
    matches!(call.subresource.as_str(), "" | "status")
        && call.resource.strategy.allow_create_on_update()
}

/// The ways to patch.
enum Kind {
    Json(json::Parsed),
    Merge(json::Parsed),
    Strategic(json::Parsed),
    Apply(yaml::Parsed),
}

/// PATCH of an object or its `/status`.
pub(super) async fn patch(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let media_type = call.content_type.as_str();
    let apply = media_type == "application/apply-patch+yaml";
    accept(call)?;
    let options = WriteOptions::parse_patch(call, apply)?;
    let kind = read_patch(call)?;
    let transform = |existing: Option<&Value>, versions: &dyn Versions| {
        let writing = writing(server, call, &options, versions);
        transform(&writing, call, &options, &kind, existing)
    };
    let create_missing = apply && (call.subresource.is_empty() || may_create(call));
    let expected = Expected { create_missing, uid: None };
    let write = Write::new(server, call, &options);
    let (code, answer) = write.update(&call.name, &expected, &transform).await?;
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

fn read_patch(call: &Call) -> Result<Kind, ApiError> {
    if call.content_type == "application/apply-patch+yaml" {
        return read_apply(call).map(Kind::Apply);
    }
    let parsed = read_json_patch(call)?;
    Ok(match call.content_type.as_str() {
        "application/json-patch+json" => Kind::Json(parsed),
        "application/strategic-merge-patch+json" => Kind::Strategic(parsed),
        _ => Kind::Merge(parsed),
    })
}

/// Reads a patch that is no apply.
pub(super) fn read_json_patch(call: &Call) -> Result<json::Parsed, ApiError> {
    json::parse(&call.body).map_err(|_| ApiError::bad_request("invalid JSON patch"))
}

/// What strict decoding says of the keys that stand twice in a patch.
pub(super) fn duplicate_fields(patch: &json::Parsed) -> Vec<String> {
    patch.duplicates.iter().map(|path| format!("duplicate field \"{path}\"")).collect()
}

/// Reads an apply configuration: YAML, of which JSON is a part.
pub(super) fn read_apply(call: &Call) -> Result<yaml::Parsed, ApiError> {
    let stage = if call.body.trim_ascii_start().starts_with(b"{") {
        "error decoding patch: error converting YAML to JSON"
    } else {
        "error encoding patch"
    };
    yaml::parse(&call.body).map_err(|why| ApiError::bad_request(format!("{stage}: {why}")))
}

/// Warns of the duplicate keys of an apply, or refuses it. The real server does this last.
pub(super) fn check_duplicates(
    call: &Call,
    options: &WriteOptions,
    duplicates: &[String],
) -> Result<(), ApiError> {
    match options.field_validation {
        FieldValidation::Strict if !duplicates.is_empty() => {
            return Err(ApiError::bad_request(format!(
                "error strict decoding patch: error converting YAML to JSON: yaml: unmarshal \
                 errors:\n  {}",
                duplicates.join("\n  ")
            )));
        }
        FieldValidation::Warn => duplicates.iter().for_each(|text| call.warnings.add(text)),
        FieldValidation::Strict | FieldValidation::Ignore => {}
    }
    Ok(())
}

/// What the patch makes of the stored object (`None`: there is none, and it is an apply).
fn transform(
    writing: &Writing<'_>,
    call: &Call,
    options: &WriteOptions,
    kind: &Kind,
    existing: Option<&Value>,
) -> Result<Value, ApiError> {
    let resource = &call.resource;
    let absent = Value::Null;
    let current = existing.unwrap_or(&absent);
    let patched = match kind {
        Kind::Json(patch) => patch::json_patch(current, &patch.value, options.looks_closely())?,
        Kind::Merge(patch) => patch::merge_patch(current, &patch.value)?,
        Kind::Strategic(patch) => patch::strategic_merge(current, &patch.value, &resource.schema)?,
        Kind::Apply(config) => {
            let (config, twice) = (&config.value, &config.duplicates);
            let merged = fieldmanager::apply(writing, existing, config, options.force)?;
            check_duplicates(call, options, twice)?;
            let object = decode::applied(resource, merged)?;
            check_uid_of_missing(call, existing, &object)?;
            return checked(call, object);
        }
    };
    let noted = match kind {
        Kind::Json(patch) => patch::notes(&patch.value, &patch.duplicates),
        Kind::Merge(patch) | Kind::Strategic(patch) => duplicate_fields(patch),
        Kind::Apply(_) => Vec::new(),
    };
    // Only a refusal shows what was patched, so it is patched again for that.
    let shown = || shown(call, kind, current).unwrap_or_default();
    let mut object = decode::patched(call, options, patched, noted, &shown)?;
    fieldmanager::record_update(writing, existing, &mut object);
    checked(call, object)
}

/// A patched object as a refusal shows it.
fn shown(call: &Call, kind: &Kind, current: &Value) -> Result<String, PatchError> {
    let resource = &call.resource;
    let definition = builtin::definition_name(&resource.api_version(), &resource.kind);
    Ok(match kind {
        Kind::Json(given) => {
            let patched = patch::json_patch(current, &given.value, false)?;
            patch::by_json_patch(&patched, &given.value, definition)
        }
        Kind::Merge(given) => {
            let patched = patch::merge_patch(current, &given.value)?;
            patch::by_merge_patch(&patched, &given.value, definition)
        }
        Kind::Strategic(given) => patch::by_strategic_patch(&given.value),
        Kind::Apply(_) => String::new(),
    })
}

fn checked(call: &Call, mut object: Value) -> Result<Value, ApiError> {
    meta::fill_namespace(&call.resource, &call.namespace, &mut object)?;
    check_name(&object, &call.name)?;
    Ok(object)
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
