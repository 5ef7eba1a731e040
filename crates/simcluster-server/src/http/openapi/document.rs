//! One document: the paths of a group version's resources and the schemas that they speak of.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::paths::{self, Kind};
use super::schemas;
use simcluster_model::builtin;
use simcluster_model::object;
use simcluster_model::resource::Resource;

/// The document of built-in kinds.
pub(super) fn built_in(resources: &[&Arc<Resource>]) -> Value {
    let mut paths = Map::new();
    for resource in resources {
        let listed = builtin::discovery(&resource.api_version());
        let verbs_of = |name: &str| -> Vec<String> {
            let found = listed.and_then(|list| {
                list.iter().find(|one| one.get("name").and_then(Value::as_str) == Some(name))
            });
            let verbs = found.and_then(|one| one.get("verbs")).and_then(Value::as_array);
            verbs.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let schema = definition(&resource.api_version(), &resource.kind);
        let package = schema.strip_suffix(&resource.kind).unwrap_or_default();
        let kind = Kind { list_schema: format!("{package}{}", resource.list_kind), schema };
        paths::add(&mut paths, resource, &kind, &verbs_of);
    }
    let schemas = schemas::referred(&paths, Map::new());
    json!({
        "openapi": "3.0.0",
        "info": { "title": "Kubernetes", "version": "1.37" },
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

/// The document of custom resources, whose schemas stand in their definitions.
pub(super) fn custom(resources: &[&Arc<Resource>], definitions: &[Arc<Value>]) -> Value {
    let mut paths = Map::new();
    let mut own = Map::new();
    for resource in resources {
        let kind = Kind {
            schema: custom_name(resource, &resource.kind),
            list_schema: custom_name(resource, &resource.list_kind),
        };
        let written = written_schema(resource, definitions);
        own.insert(kind.schema.clone(), schemas::of_custom_resource(resource, written));
        own.insert(kind.list_schema.clone(), schemas::of_custom_list(resource, &kind.schema));
        let subresource_verbs = ["get", "patch", "update"].map(str::to_owned).to_vec();
        let verbs_of = |name: &str| -> Vec<String> {
            if name == resource.plural { resource.verbs.clone() } else { subresource_verbs.clone() }
        };
        paths::add(&mut paths, resource, &kind, &verbs_of);
    }
    let schemas = schemas::referred(&paths, own);
    json!({
        "openapi": "3.0.0",
        "info": { "title": "Kubernetes CRD Swagger", "version": "v0.1.0" },
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

fn definition(api_version: &str, kind: &str) -> String {
    builtin::definition_name(api_version, kind).unwrap_or_default().to_owned()
}

/// `com.example.v1.Widget`
fn custom_name(resource: &Resource, kind: &str) -> String {
    let mut labels: Vec<&str> = resource.group.split('.').collect();
    labels.reverse();
    format!("{}.{}.{kind}", labels.join("."), resource.version)
}

/// `openAPIV3Schema` of the version, as written.
fn written_schema(resource: &Resource, definitions: &[Arc<Value>]) -> Value {
    let name = format!("{}.{}", resource.plural, resource.group);
    let definition = definitions.iter().find(|one| object::name(one) == name);
    let versions = definition.and_then(|one| one.pointer("/spec/versions"));
    versions
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .find(|one| one.get("name").and_then(Value::as_str) == Some(&resource.version))
        .and_then(|one| one.pointer("/schema/openAPIV3Schema"))
        .cloned()
        .unwrap_or_else(|| json!({ "type": "object" }))
}

/// Names of the schemas that a value refers to.
pub(super) fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            let target = map.get("$ref").and_then(Value::as_str);
            if let Some(name) = target.and_then(|url| url.strip_prefix(schemas::PREFIX)) {
                found.insert(name.to_owned());
            }
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
