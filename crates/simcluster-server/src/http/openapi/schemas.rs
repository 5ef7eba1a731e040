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
            Some(definition) => described(&name, published(definition)),
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

/// A schema with what the built-in types say of themselves and their properties.
fn described(definition: &str, mut schema: Value) -> Value {
    let Some(known) = builtin::documentation(definition) else { return schema };
    for (name, said) in known {
        let place = match name.as_str() {
            "" => Some(&mut schema),
            name => schema.get_mut("properties").and_then(|properties| properties.get_mut(name)),
        };
        let Some(place) = place else { continue };
        // Nothing stands beside a reference.
        if place.get("$ref").is_some() {
            *place = json!({ "allOf": [place.take()] });
        }
        put(place, "description", json!(said.text));
        if !said.values.is_empty() {
            put(place, "enum", json!(said.values));
        }
    }
    schema
}

/// The schema of a custom resource: the written one with what every object has.
pub(super) fn of_custom_resource(resource: &Resource, written: Value) -> Value {
    let mut schema = written;
    with_alternatives(&mut schema);
    let properties = child(&mut schema, "properties");
    for name in ["apiVersion", "kind"] {
        put(properties, name, json!({ "description": text_of("Pod", name), "type": "string" }));
    }
    let description = text_of("Pod", "metadata");
    put(
        properties,
        "metadata",
        json!({ "description": description, "allOf": [meta("ObjectMeta")] }),
    );
    put(&mut schema, "type", json!("object"));
    put(&mut schema, "x-kubernetes-group-version-kind", kinds(resource, &resource.kind));
    schema
}

/// The schema of a list of custom resources.
pub(super) fn of_custom_list(resource: &Resource, item: &str) -> Value {
    let text = |name: &str| json!({ "description": text_of("PodList", name), "type": "string" });
    json!({
        "description": format!("{} is a list of {}", resource.list_kind, resource.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": text("apiVersion"),
            "items": {
                "description": format!("List of {}. More info: {CONVENTIONS}", resource.plural),
                "type": "array",
                "items": reference(item),
            },
            "kind": text("kind"),
            "metadata": {
                "description": text_of("PodList", "metadata"),
                "allOf": [meta("ListMeta")],
            },
        },
        "x-kubernetes-group-version-kind": kinds(resource, &resource.list_kind),
    })
}

const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

/// What all kinds say of the fields that all have: as one of the core group says it.
fn text_of(kind: &str, property: &str) -> &'static str {
    let texts = builtin::documentation(&format!("io.k8s.api.core.v1.{kind}"));
    texts.and_then(|texts| texts.get(property)).map_or("", |said| said.text.as_str())
}

/// A schema of v3 as v2 has it. What v2 cannot say is left out, and what kubectl does not understand, as
/// `k8s.io/apiextensions-apiserver/pkg/controller/openapi/v2` and the defaults' pruning do it.
pub(super) fn in_v2(schema: Value) -> Value {
    let Value::Object(mut schema) = schema else { return schema };
    let is = |schema: &Map<String, Value>, key: &str| schema.get(key) == Some(&Value::Bool(true));
    let open = is(&schema, "x-kubernetes-preserve-unknown-fields");
    if open && schema.contains_key("x-kubernetes-group-version-kind") {
        schema.retain(|key, _| matches!(key.as_str(), "type" | "x-kubernetes-group-version-kind"));
        return Value::Object(schema);
    }
    let nullable = is(&schema, "nullable");
    let alternatives = schema.contains_key("oneOf");
    let referred = schema.get("$ref").or_else(|| schema.get("allOf")?.get(0)?.get("$ref"));
    let referred = referred.and_then(Value::as_str).and_then(|url| url.strip_prefix(PREFIX));
    let referred = referred.map(|name| json!(format!("#/definitions/{name}")));
    schema.retain(|key, _| {
        !matches!(key.as_str(), "allOf" | "anyOf" | "default" | "not" | "nullable" | "oneOf")
    });
    if let Some(url) = referred {
        schema.insert("$ref".to_owned(), url);
    }
    if nullable || open {
        schema.retain(|key, _| !matches!(key.as_str(), "items" | "properties"));
    }
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    let misunderstood = (kind == "array" && !schema.contains_key("items"))
        || (kind == "object" && open)
        || nullable;
    if misunderstood {
        schema.remove("type");
    } else if kind.is_empty() && alternatives && !is(&schema, "x-kubernetes-int-or-string") {
        // Quantities and the like: texts or numbers.
        schema.insert("type".to_owned(), json!("string"));
    }
    without_nullable_required(&mut schema);
    for key in ["additionalProperties", "items"] {
        if let Some(below) = schema.get_mut(key) {
            *below = in_v2(below.take());
        }
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().for_each(|property| *property = in_v2(property.take()));
    }
    Value::Object(schema)
}

/// What may be null cannot be required where null has no type.
fn without_nullable_required(schema: &mut Map<String, Value>) {
    let nullable = |value: Option<&Value>| {
        value.and_then(|value| value.get("nullable")) == Some(&Value::Bool(true))
    };
    if nullable(schema.get("additionalProperties")) {
        schema.remove("required");
    }
    let Some(Value::Array(mut required)) = schema.remove("required") else { return };
    let properties = schema.get("properties");
    required.retain(|name| {
        let property = name.as_str().and_then(|name| properties?.get(name));
        !nullable(property)
    });
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
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
