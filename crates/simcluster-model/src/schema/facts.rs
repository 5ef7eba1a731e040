//! The structural facts of the built-in kinds, read from `kinds.json`.
//!
//! The file is generated (hack/builtin-schemas) from a real server's OpenAPI and discovery documents
//! and from the Go types behind them; nothing in it is typed by hand.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use super::{Codec, GoForm, ListType, PatchStrategy, Presence, Schema, SchemaRef, Type};

/// What `kinds.json` holds.
pub(crate) struct Data {
    /// Version of Kubernetes that the facts are from, such as `v1.37.2`.
    pub(crate) version: String,
    /// Groups with their versions, in the order of a real server's discovery; without the core group.
    pub(crate) groups: Vec<(String, Vec<String>)>,
    /// Entries of `APIResourceList.resources` by `group/version`.
    pub(crate) resources: Map<String, Value>,
    /// Name of the definition of a kind, by `group/version/Kind`.
    pub(crate) kinds: BTreeMap<String, String>,
    /// OpenAPI v3 schemas by definition name, without descriptions.
    pub(crate) definitions: Map<String, Value>,
    /// The same as structural schemas.
    pub(crate) schemas: BTreeMap<String, SchemaRef>,
}

/// Name of the definition of `ObjectMeta`.
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The schema of `ObjectMeta`.
#[must_use]
pub fn object_meta() -> SchemaRef {
    definition(OBJECT_META).unwrap_or_default()
}

/// The schema of a definition, such as `io.k8s.api.core.v1.PodSpec`.
#[must_use]
pub fn definition(name: &str) -> Option<SchemaRef> {
    DATA.schemas.get(name).cloned()
}

/// The facts, read on first use.
pub(crate) static DATA: LazyLock<Data> = LazyLock::new(|| {
    let text = include_str!("kinds.json");
    let mut all: Value = serde_json::from_str(text).expect("generated and checked by a test");
    let mut take = |pointer: &str| all.pointer_mut(pointer).map(Value::take).unwrap_or_default();
    let groups = take("/discovery/groups");
    let groups = groups.as_array().into_iter().flatten().map(group).collect();
    let resources = map(take("/discovery/resources"));
    let kinds = map(take("/kinds"));
    let mut definitions = map(take("/definitions"));
    let version = take("/version").as_str().unwrap_or_default().to_owned();
    let schemas = Builder::build(&definitions);
    definitions.values_mut().for_each(drop_go_facts);
    Data {
        version,
        groups,
        resources,
        kinds: kinds.into_iter().map(|(kind, name)| (kind, text_of(&name))).collect(),
        definitions,
        schemas,
    }
});

fn group(entry: &Value) -> (String, Vec<String>) {
    let versions = entry.get("versions").and_then(Value::as_array).into_iter().flatten();
    (entry.get("name").map(text_of).unwrap_or_default(), versions.map(text_of).collect())
}

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// What is published as OpenAPI does not speak of Go.
fn drop_go_facts(node: &mut Value) {
    match node {
        Value::Object(map) => {
            map.retain(|key, _| !key.starts_with("x-go"));
            map.values_mut().for_each(drop_go_facts);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_go_facts),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Turns definitions into schemas. Nodes that refer to a definition and add to it (a default, list
/// keys) are copies of it, made once all definitions are there.
struct Builder<'a> {
    schemas: BTreeMap<String, SchemaRef>,
    copies: Vec<(SchemaRef, String, &'a Value)>,
}

impl<'a> Builder<'a> {
    fn build(definitions: &'a Map<String, Value>) -> BTreeMap<String, SchemaRef> {
        let schemas =
            definitions.keys().map(|name| (name.clone(), SchemaRef::unresolved())).collect();
        let mut builder = Self { schemas, copies: Vec::new() };
        for (name, node) in definitions {
            let mut schema = builder.schema(node);
            schema.go = Some(Arc::new(go_form(node, &definition_type_name(name), codec(node))));
            if codec(node) == Codec::SchemaOr {
                builder.refer_to_schema(name, &mut schema);
            }
            if let Some(reference) = builder.schemas.get(name) {
                reference.set(Arc::new(schema));
            }
        }
        let copies = std::mem::take(&mut builder.copies);
        for (reference, name, node) in copies {
            let Some(target) = builder.schemas.get(&name) else { continue };
            let mut schema = Schema::clone(target.get());
            schema.default = node.get("default").cloned();
            if let Some(go) = &schema.go {
                schema.go = Some(Arc::new(go_form(node, &go.type_name, go.codec)));
            }
            schema.patch = patch_strategy(node);
            reference.set(Arc::new(schema));
        }
        builder.schemas
    }

    /// `JSONSchemaPropsOrBool` and its siblings say nothing of their form in OpenAPI: what may be a
    /// schema, a list of schemas or a list of strings is decoded through these two.
    fn refer_to_schema(&self, name: &str, schema: &mut Schema) {
        let package = name.rsplit_once('.').map_or("", |(package, _)| package);
        if let Some(target) = self.schemas.get(&format!("{package}.JSONSchemaProps")) {
            schema.additional_properties = Some(target.clone());
            if name.ends_with("OrArray") {
                schema.items = Some(target.clone());
            }
        }
        schema.preserve_unknown = true;
    }

    fn reference(&mut self, node: &'a Value) -> SchemaRef {
        let Some(name) = node.get("$ref").and_then(Value::as_str) else {
            let mut schema = self.schema(node);
            schema.go = Some(Arc::new(go_form(node, &go_type_name(node), codec(node))));
            return schema.into();
        };
        if node.as_object().is_some_and(|map| map.len() == 1) {
            return self.schemas.get(name).cloned().unwrap_or_default();
        }
        let reference = SchemaRef::unresolved();
        self.copies.push((reference.clone(), name.to_owned(), node));
        reference
    }

    fn schema(&mut self, node: &'a Value) -> Schema {
        let codec = codec(node);
        let text = |key: &str| node.get(key).and_then(Value::as_str);
        let mut properties = BTreeMap::new();
        for (name, property) in
            node.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            properties.insert(name.clone(), self.reference(property));
        }
        let declared = node.get("type").and_then(Value::as_str).and_then(type_of);
        let kind = match codec {
            Codec::Raw | Codec::IntOrString | Codec::SchemaOr => None,
            Codec::Quantity => Some(Type::String),
            Codec::Plain | Codec::Time | Codec::MicroTime => declared,
        };
        Schema {
            kind,
            format: text("format").map(str::to_owned),
            properties,
            additional_properties: node.get("additionalProperties").map(|one| self.reference(one)),
            items: node.get("items").map(|one| self.reference(one)),
            required: strings(node.get("required")),
            default: node.get("default").cloned(),
            preserve_unknown: codec == Codec::Raw,
            int_or_string: codec == Codec::IntOrString,
            list_type: list_type(node),
            // Raw JSON has one owner, whatever is in it.
            atomic_map: codec == Codec::Raw || text("x-kubernetes-map-type") == Some("atomic"),
            patch: patch_strategy(node),
            rules: rules(node),
            ..Schema::default()
        }
    }
}

fn type_of(name: &str) -> Option<Type> {
    Some(match name {
        "object" => Type::Object,
        "array" => Type::Array,
        "string" => Type::String,
        "integer" => Type::Integer,
        "number" => Type::Number,
        "boolean" => Type::Boolean,
        _ => return None,
    })
}

fn strings(list: Option<&Value>) -> Vec<String> {
    list.and_then(Value::as_array).into_iter().flatten().map(text_of).collect()
}

fn list_type(node: &Value) -> ListType {
    match node.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(strings(node.get("x-kubernetes-list-map-keys"))),
        _ => ListType::Atomic,
    }
}

fn patch_strategy(node: &Value) -> PatchStrategy {
    let strategies = node.get("x-kubernetes-patch-strategy").map(text_of).unwrap_or_default();
    PatchStrategy {
        merge: strategies.split(',').any(|one| one == "merge"),
        retain_keys: strategies.split(',').any(|one| one == "retainKeys"),
        replace: strategies.split(',').any(|one| one == "replace"),
        merge_key: node.get("x-kubernetes-patch-merge-key").map(text_of),
    }
}

/// What no field of `Schema` holds.
fn rules(node: &Value) -> Value {
    let rest = ["oneOf", "enum", "x-kubernetes-group-version-kind"];
    let kept = rest.iter().filter_map(|key| Some(((*key).to_owned(), node.get(*key)?.clone())));
    Value::Object(kept.collect())
}

fn codec(node: &Value) -> Codec {
    match node.get("x-go").and_then(Value::as_str).unwrap_or_default() {
        "time" => Codec::Time,
        "microtime" => Codec::MicroTime,
        "quantity" => Codec::Quantity,
        "int-or-string" => Codec::IntOrString,
        "raw" => Codec::Raw,
        "union" => Codec::SchemaOr,
        _ => Codec::Plain,
    }
}

fn go_form(node: &Value, type_name: &str, codec: Codec) -> GoForm {
    let presence = match node.get("x-go").and_then(Value::as_str).unwrap_or_default() {
        "opt" => Presence::NonEmpty,
        "zero" | "value" => Presence::Always,
        "null" => Presence::OrNull,
        "hidden" => Presence::NonZero,
        _ => Presence::Given,
    };
    let via = node.get("x-go-via").map(text_of).unwrap_or_default();
    GoForm { type_name: type_name.to_owned(), presence, codec, via }
}

/// `io.k8s.api.core.v1.PodSpec` is `v1.PodSpec` in Go.
fn definition_type_name(name: &str) -> String {
    let mut parts = name.rsplit('.');
    let (last, package) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    format!("{package}.{last}")
}

fn go_type_name(node: &Value) -> String {
    if let Some(named) = node.get("x-go-type") {
        return text_of(named);
    }
    if let Some(target) = node.get("$ref").and_then(Value::as_str) {
        return definition_type_name(target);
    }
    let format = node.get("format").map(text_of).unwrap_or_default();
    match node.get("type").and_then(Value::as_str).unwrap_or_default() {
        "array" => format!("[]{}", node.get("items").map(go_type_name).unwrap_or_default()),
        "object" => {
            let values = node.get("additionalProperties").map(go_type_name);
            format!("map[string]{}", values.unwrap_or_default())
        }
        "string" if format == "byte" => "[]uint8".to_owned(),
        "string" => "string".to_owned(),
        "boolean" => "bool".to_owned(),
        "number" => "float64".to_owned(),
        _ => format,
    }
}
