//! The `/scale` subresource: a view of replicas and selector as `autoscaling/v1 Scale`.

use serde_json::{Value, json};

use super::options::WriteOptions;
use super::read::{parse_version, wait_for};
use super::write::{Expected, Facet, Transform, Write, uid_fault, writing};
use super::{Call, Outcome, decode, meta, objects};
use crate::server::ApiServer;
use crate::store;
use simcluster_model::builtin;
use simcluster_model::error::{ApiError, Names};
use simcluster_model::field::FieldError;
use simcluster_model::fieldmanager::{self, Versions};
use simcluster_model::object;
use simcluster_model::patch;
use simcluster_model::resource::{Resource, ScalePaths};

/// GET of the scale.
pub(super) async fn get(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let resource = &call.resource;
    let version = call.param("resourceVersion").unwrap_or_default();
    wait_for(server, parse_version(version).map_err(ApiError::raw)?).await?;
    let key = store::key(&call.namespace, &call.name);
    let stored = server.store().get(&resource.storage_key, &key);
    let stored = stored.ok_or_else(|| ApiError::not_found(resource.names(), &call.name))?;
    let shown = server.decode(resource, &stored).await.map_err(|fault| fault.of_read())?;
    Ok(Outcome::made(200, view(resource, &shown)?))
}

/// PUT of the scale.
pub(super) async fn update(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let options = WriteOptions::parse(call, "UpdateOptions")?;
    let mut scale = decode::scale(call, &options)?;
    meta::fill_namespace(&call.resource, &call.namespace, &mut scale)?;
    objects::check_name(&scale, &call.name)?;
    let uid = object::uid(&scale).to_owned();
    write(server, call, &options, Some(&uid), &|_| Ok(scale.clone())).await
}

/// PATCH of the scale.
pub(super) async fn patch(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    objects::accept(call)?;
    let apply = call.content_type == "application/apply-patch+yaml";
    let options = WriteOptions::parse_patch(call, apply)?;
    if apply {
        return apply_config(server, call, &options).await;
    }
    let given = objects::read_json_patch(call)?;
    let json = call.content_type == "application/json-patch+json";
    let strategic = call.content_type == "application/strategic-merge-patch+json";
    write(server, call, &options, None, &|current| {
        let (patched, noted) = if json {
            let noted = patch::notes(&given.value, &given.duplicates);
            (patch::json_patch(current, &given.value, options.looks_closely())?, noted)
        } else if strategic {
            let merged = patch::strategic_merge(current, &given.value, &builtin::SCALE.schema())?;
            (merged, objects::duplicate_fields(&given))
        } else {
            (patch::merge_patch(current, &given.value)?, objects::duplicate_fields(&given))
        };
        let before = patched.clone();
        let shown = || {
            if strategic {
                return patch::by_strategic_patch(&given.value);
            }
            let show = if json { patch::by_json_patch } else { patch::by_merge_patch };
            show(&before, &given.value, Some(builtin::SCALE.definition()))
        };
        let mut scale = decode::patched_scale(call, &options, patched, noted, &shown)?;
        meta::fill_namespace(&call.resource, &call.namespace, &mut scale)?;
        objects::check_name(&scale, &call.name)?;
        Ok(scale)
    })
    .await
}

/// Server-side apply of a Scale.
async fn apply_config(
    server: &ApiServer,
    call: &Call,
    options: &WriteOptions,
) -> Result<Outcome, ApiError> {
    let resource = &call.resource;
    let config = objects::read_apply(call)?;
    let uid = object::uid(&config.value).to_owned();
    let transform = |existing: Option<&Value>, versions: &dyn Versions| {
        // That of a Scale is looked at before the storage is asked, and told of by another name.
        if let Some(why) = uid_fault(&uid, existing.unwrap_or(&Value::Null)) {
            let plural = format!("{}/scale", resource.plural);
            let names = Names { plural: &plural, kind: &plural, ..resource.names() };
            return Err(ApiError::conflict(names, &call.name, &why));
        }
        let writing = writing(server, call, options, versions);
        let object = fieldmanager::apply(&writing, existing, &config.value, options.force)?;
        objects::check_duplicates(call, options, &config.duplicates)?;
        let replicas = paths(resource)?;
        let replicas = object::at_path(&object, &replicas.spec_replicas).and_then(Value::as_i64);
        check_replicas(resource, &call.name, replicas)?;
        Ok(object)
    };
    finish(server, call, options, None, &transform).await
}

/// Applies a change of the view to the object; `change` gets the present view.
async fn write(
    server: &ApiServer,
    call: &Call,
    options: &WriteOptions,
    uid: Option<&str>,
    change: &(dyn Fn(&Value) -> Result<Value, ApiError> + Sync),
) -> Result<Outcome, ApiError> {
    let resource = &call.resource;
    let paths = paths(resource)?;
    let transform = |existing: Option<&Value>, versions: &dyn Versions| {
        let mut object = existing.cloned().unwrap_or_default();
        let present = view_or_zero(resource, &object)?;
        let scale = change(&present)?;
        let replicas = object::at_path(&scale, "spec.replicas").and_then(Value::as_i64);
        check_replicas(resource, &call.name, replicas)?;
        object::set_path(&mut object, &paths.spec_replicas, json!(replicas.unwrap_or_default()));
        let version = object::resource_version(&scale);
        if !version.is_empty() {
            object::metadata_mut(&mut object).insert("resourceVersion".to_owned(), json!(version));
        }
        let writing = writing(server, call, options, versions);
        fieldmanager::record_update(&writing, existing, &mut object);
        Ok(object)
    };
    finish(server, call, options, uid, &transform).await
}

/// Writes the object and answers its scale.
async fn finish(
    server: &ApiServer,
    call: &Call,
    options: &WriteOptions,
    uid: Option<&str>,
    transform: &Transform<'_>,
) -> Result<Outcome, ApiError> {
    let write = Write { facet: Facet::Scale, ..Write::new(server, call, options) };
    let (code, object) =
        write.update(&call.name, &Expected { create_missing: false, uid }, transform).await?;
    Ok(Outcome::made(code, view(&call.resource, &object)?))
}

/// Puts the replicas of a scale that admission may have changed into the object.
pub(super) fn put_back(
    resource: &Resource,
    object: Value,
    scale: &Value,
) -> Result<Value, ApiError> {
    let mut object = object;
    let path = &paths(resource)?.spec_replicas;
    let replicas = object::at_path(scale, "spec.replicas").cloned().unwrap_or(json!(0));
    if object::at_path(&object, path) != Some(&replicas) {
        object::set_path(&mut object, path, replicas);
    }
    Ok(object)
}

/// The Scale of a built-in kind is validated as such, before the object.
fn check_replicas(resource: &Resource, name: &str, replicas: Option<i64>) -> Result<(), ApiError> {
    let Some(count) = replicas.filter(|count| *count < 0 && !resource.custom) else {
        return Ok(());
    };
    let why = "must be greater than or equal to 0";
    let fault = FieldError::invalid("spec.replicas", &json!(count), why);
    Err(ApiError::invalid_kind("autoscaling", "Scale", name, &[fault]))
}

fn paths(resource: &Resource) -> Result<&ScalePaths, ApiError> {
    resource.scale.as_ref().ok_or_else(ApiError::no_such_resource)
}

/// The Scale of an object that is written: a missing replicas field can be set, though it cannot be read
/// (row ST03), and is 0 until then.
pub(super) fn view_or_zero(resource: &Resource, object: &Value) -> Result<Value, ApiError> {
    let path = &paths(resource)?.spec_replicas;
    if object::at_path(object, path).is_some() {
        return view(resource, object);
    }
    let mut counted = object.clone();
    object::set_path(&mut counted, path, json!(0));
    view(resource, &counted)
}

/// The Scale of an object.
pub(super) fn view(resource: &Resource, object: &Value) -> Result<Value, ApiError> {
    let paths = paths(resource)?;
    let Some(replicas) = object::at_path(object, &paths.spec_replicas) else {
        let path = &paths.spec_replicas;
        let why = format!("the spec replicas field {} does not exist", json!(path));
        return Err(ApiError::internal(&why));
    };
    let mut metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object::metadata(object).get(field) {
            object::put(&mut metadata, field, value.clone());
        }
    }
    let spec = if replicas == &json!(0) { json!({}) } else { json!({ "replicas": replicas }) };
    let counted = object::at_path(object, &paths.status_replicas).cloned().unwrap_or(json!(0));
    let mut status = json!({ "replicas": counted });
    if let Some(selector) = selector(paths, object).filter(|text| !text.is_empty()) {
        object::put(&mut status, "selector", json!(selector));
    }
    Ok(json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": metadata, "spec": spec, "status": status,
    }))
}

/// The selector as text: where a CRD's path points, or `spec.selector` of a built-in kind.
fn selector(paths: &ScalePaths, object: &Value) -> Option<String> {
    if let Some(path) = &paths.label_selector {
        return object::at_path(object, path).and_then(Value::as_str).map(str::to_owned);
    }
    // The oldest of these kinds selects by labels only.
    let is_oldest = object.get("kind").and_then(Value::as_str) == Some("ReplicationController");
    let labels = if is_oldest { "spec.selector" } else { "spec.selector.matchLabels" };
    let labels = object::at_path(object, labels)?.as_object()?;
    let terms: Vec<String> = labels
        .iter()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    Some(terms.join(","))
}
