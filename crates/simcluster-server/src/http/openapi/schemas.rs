//! Schemas as OpenAPI v3 publishes them.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::document::references;
use simcluster_model::builtin;
use simcluster_model::object::{child, put};
use simcluster_model::resource::Resource;

/// Where schemas stand in a document.
pub(super) const PREFIX: &str = "#/components/schemas/";

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// A reference to a schema.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("{PREFIX}{name}") })
}

/// A reference to a schema of `meta/v1`.
pub(super) fn meta(kind: &str) -> Value {
    reference(&format!("{META}.{kind}"))
}

/// All schemas that the paths refer to, directly or not; `own` are those that no built-in kind has.
pub(super) fn referred(paths: &Map<String, Value>, own: Map<String, Value>) -> Map<String, Value> {
    let mut schemas = own;
    let mut wanted = BTreeSet::new();
    paths.values().for_each(|path| references(path, &mut wanted));
    schemas.values().for_each(|schema| references(schema, &mut wanted));
    while let Some(name) = wanted.pop_first() {
        if schemas.contains_key(&name) {
            continue;
        }
        let schema = match builtin::openapi_definitions().get(&name) {
            Some(definition) => published(definition),
            // `Patch` and the like have no structure of their own.
            None => json!({ "type": "object" }),
        };
        references(&schema, &mut wanted);
        schemas.insert(name, schema);
    }
    schemas
}

/// A definition without the facts that are for this program only, and with full references.
fn published(definition: &Value) -> Value {
    match definition {
        Value::Object(map) => {
            let mut out: Map<String, Value> = map
                .iter()
                .filter(|(key, _)| !key.starts_with("x-go") && *key != "$ref")
                .map(|(key, value)| (key.clone(), published(value)))
                .collect();
            if let Some(Value::String(name)) = map.get("$ref") {
                if out.is_empty() {
                    return reference(name);
                }
                out.insert("allOf".to_owned(), json!([reference(name)]));
            }
            Value::Object(out)
        }
        Value::Array(list) => list.iter().map(published).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => definition.clone(),
    }
}

/// The schema of a custom resource: the written one with what every object has.
pub(super) fn of_custom_resource(resource: &Resource, written: Value) -> Value {
    let mut schema = written;
    with_alternatives(&mut schema);
    let properties = child(&mut schema, "properties");
    put(properties, "apiVersion", text_property(API_VERSION));
    put(properties, "kind", text_property(KIND));
    let metadata = json!({ "description": METADATA, "allOf": [meta("ObjectMeta")] });
    put(properties, "metadata", metadata);
    put(&mut schema, "type", json!("object"));
    put(&mut schema, "x-kubernetes-group-version-kind", kinds(resource, &resource.kind));
    schema
}

/// The schema of a list of custom resources.
pub(super) fn of_custom_list(resource: &Resource, item: &str) -> Value {
    json!({
        "description": format!("{} is a list of {}", resource.list_kind, resource.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": text_property(API_VERSION),
            "items": {
                "description": format!("List of {}.", resource.plural),
                "type": "array",
                "items": reference(item),
            },
            "kind": text_property(KIND),
            "metadata": { "description": METADATA, "allOf": [meta("ListMeta")] },
        },
        "x-kubernetes-group-version-kind": kinds(resource, &resource.list_kind),
    })
}

const API_VERSION: &str = "Group and version of the object's kind.";
const KIND: &str = "Kind of the object.";
const METADATA: &str = "Standard metadata.";

fn text_property(description: &str) -> Value {
    json!({ "description": description, "type": "string" })
}

fn kinds(resource: &Resource, kind: &str) -> Value {
    json!([{ "group": resource.group, "kind": kind, "version": resource.version }])
}

/// Fields that take integers and strings say so in a way that OpenAPI knows.
fn with_alternatives(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            let either = map.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true));
            if either && !map.contains_key("anyOf") {
                let types = json!([{ "type": "integer" }, { "type": "string" }]);
                map.insert("anyOf".to_owned(), types);
            }
            map.values_mut().for_each(with_alternatives);
        }
        Value::Array(list) => list.iter_mut().for_each(with_alternatives),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
