//! The `/scale` subresource: a view of replicas and selector as `autoscaling/v1 Scale`.

use serde_json::{Value, json};

use super::options::WriteOptions;
use super::write::{Expected, Write, read};
use super::{Call, Outcome, objects};
use crate::server::ApiServer;
use crate::store;
use simcluster_model::codec::body;
use simcluster_model::error::ApiError;
use simcluster_model::fieldmanager;
use simcluster_model::object;
use simcluster_model::patch;
use simcluster_model::resource::{Resource, ScalePaths};

/// GET of the scale.
pub(super) fn get(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let resource = &call.resource;
    let key = store::key(&call.namespace, &call.name);
    let stored = server.store().get(&resource.storage_key, &key);
    let stored = stored.ok_or_else(|| ApiError::not_found(resource.names(), &call.name))?;
    Ok(Outcome::Object(200, view(resource, &read(resource, &stored))?))
}

/// PUT of the scale.
pub(super) fn update(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let options = WriteOptions::parse(call, "UpdateOptions")?;
    let scale = body::parse(&call.body, &call.content_type, &call.resource)?.value;
    if scale.get("kind").and_then(Value::as_str) != Some("Scale") {
        let why =
            r#"no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111""#;
        return Err(ApiError::bad_request(why));
    }
    objects::check_name(&scale, &call.name)?;
    write(server, call, &options, &|_| Ok(scale.clone()))
}

/// PATCH of the scale.
pub(super) fn patch(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    objects::accept(call)?;
    let apply = call.content_type == "application/apply-patch+yaml";
    let options = WriteOptions::parse_patch(call, apply)?;
    if apply {
        return apply_config(server, call, &options);
    }
    let given: Value = serde_json::from_slice(&call.body)
        .map_err(|_| ApiError::bad_request("invalid JSON patch"))?;
    let json = call.content_type == "application/json-patch+json";
    write(server, call, &options, &|current| {
        if json {
            Ok(patch::json_patch(current, &given)?)
        } else {
            Ok(patch::merge_patch(current, &given)?)
        }
    })
}

/// Server-side apply of a Scale.
fn apply_config(
    server: &ApiServer,
    call: &Call,
    options: &WriteOptions,
) -> Result<Outcome, ApiError> {
    let resource = &call.resource;
    let mut config = objects::read_apply(call, options)?;
    objects::name_config(call, &mut config);
    let transform = |existing: Option<&Value>| {
        let now = server.clock().now();
        let (manager, force) = (&options.manager, options.force);
        fieldmanager::apply(resource, existing, &config, manager, "scale", force, now)
    };
    let write = Write { server, call, options };
    let (code, object) = write.update(&call.name, &Expected::default(), &transform)?;
    Ok(Outcome::Object(code, view(resource, &object)?))
}

/// Applies a change of the view to the object; `change` gets the present view.
fn write(
    server: &ApiServer,
    call: &Call,
    options: &WriteOptions,
    change: &dyn Fn(&Value) -> Result<Value, ApiError>,
) -> Result<Outcome, ApiError> {
    let resource = &call.resource;
    let paths = paths(resource)?;
    let transform = |existing: Option<&Value>| {
        let mut object = existing.cloned().unwrap_or_default();
        // A missing replicas field can be set, though it cannot be read (row ST03).
        let present = view(resource, &object).unwrap_or_else(|_| json!({ "metadata": {} }));
        let scale = change(&present)?;
        let replicas = object::at_path(&scale, "spec.replicas").cloned().filter(|r| !r.is_null());
        object::set_path(&mut object, &paths.spec_replicas, replicas.unwrap_or(json!(0)));
        let version = object::resource_version(&scale);
        if !version.is_empty() {
            object::metadata_mut(&mut object).insert("resourceVersion".to_owned(), json!(version));
        }
        let now = server.clock().now();
        let manager = &options.manager;
        fieldmanager::record_update(resource, existing, &mut object, manager, "scale", now);
        Ok(object)
    };
    let write = Write { server, call, options };
    let expected = Expected { create_missing: false, uid: None };
    let (code, object) = write.update(&call.name, &expected, &transform)?;
    Ok(Outcome::Object(code, view(resource, &object)?))
}

fn paths(resource: &Resource) -> Result<&ScalePaths, ApiError> {
    resource.scale.as_ref().ok_or_else(ApiError::no_such_resource)
}

/// The Scale of an object.
fn view(resource: &Resource, object: &Value) -> Result<Value, ApiError> {
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
    let labels = object::at_path(object, "spec.selector.matchLabels")?.as_object()?;
    let terms: Vec<String> = labels
        .iter()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    Some(terms.join(","))
}
