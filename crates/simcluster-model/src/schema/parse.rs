//! From a CRD version's `openAPIV3Schema` to a [`Schema`].

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::facts::object_meta;
use super::{Checks, ListType, PatchStrategy, Schema, SchemaRef, Type};

/// Keywords that have a field of their own in [`Schema`].
const STRUCTURE: [&str; 14] = [
    "type",
    "format",
    "properties",
    "additionalProperties",
    "items",
    "required",
    "default",
    "nullable",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
];

impl Schema {
    /// Reads the schema of a CRD version. `apiVersion`, `kind` and `metadata` are added at the root,
    /// and everything that validation needs is compiled.
    #[must_use]
    pub fn parse(openapi_v3_schema: &Value) -> Arc<Self> {
        let mut root = node(openapi_v3_schema);
        root.properties.insert("apiVersion".to_owned(), scalar(Type::String));
        root.properties.insert("kind".to_owned(), scalar(Type::String));
        root.properties.insert("metadata".to_owned(), object_meta());
        root.checks = Some(Arc::new(Checks::compile(openapi_v3_schema)));
        Arc::new(root)
    }

    /// Reads the schema of a field: nothing is added and nothing compiled.
    pub(crate) fn parse_field(source: &Value) -> Self {
        node(source)
    }

    /// The schema of an object with one field.
    pub(crate) fn holding(name: &str, field: &Self) -> Self {
        let mut holder = Self { kind: Some(Type::Object), ..Self::default() };
        holder.properties.insert(name.to_owned(), SchemaRef::from(field.clone()));
        holder
    }
}

fn scalar(kind: Type) -> SchemaRef {
    SchemaRef::from(Schema { kind: Some(kind), ..Schema::default() })
}

/// Reads one node and what is below it.
pub(super) fn node(source: &Value) -> Schema {
    let flag = |key: &str| source.get(key).and_then(Value::as_bool).unwrap_or_default();
    let text = |key: &str| source.get(key).and_then(Value::as_str);
    let child = |key: &str| {
        source.get(key).filter(|value| value.is_object()).map(|value| SchemaRef::from(node(value)))
    };
    let embedded_resource = flag("x-kubernetes-embedded-resource");
    let mut properties: BTreeMap<String, SchemaRef> = source
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), SchemaRef::from(node(value))))
        .collect();
    if embedded_resource {
        properties.entry("apiVersion".to_owned()).or_insert_with(|| scalar(Type::String));
        properties.entry("kind".to_owned()).or_insert_with(|| scalar(Type::String));
        properties.insert("metadata".to_owned(), object_meta());
    }
    Schema {
        kind: text("type").and_then(Type::parse),
        format: text("format").map(str::to_owned),
        properties,
        additional_properties: child("additionalProperties").or_else(|| {
            // `true` and `false` keep the keys, but what is below them is not declared.
            let undeclared = Schema { nullable: true, ..Schema::default() };
            let is_bool = source.get("additionalProperties").is_some_and(Value::is_boolean);
            is_bool.then(|| SchemaRef::from(undeclared))
        }),
        items: child("items"),
        required: strings(source.get("required")),
        default: source.get("default").filter(|value| !value.is_null()).cloned(),
        nullable: flag("nullable"),
        preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
        embedded_resource,
        int_or_string: flag("x-kubernetes-int-or-string"),
        list_type: list_type(source),
        atomic_map: text("x-kubernetes-map-type") == Some("atomic"),
        patch: PatchStrategy::default(),
        rules: rest(source),
        go: None,
        checks: None,
    }
}

fn list_type(source: &Value) -> ListType {
    match source.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(strings(source.get("x-kubernetes-list-map-keys"))),
        Some(_) | None => ListType::Atomic,
    }
}

fn rest(source: &Value) -> Value {
    let rest: Map<String, Value> = source
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| !STRUCTURE.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    Value::Object(rest)
}

/// The strings of a list; empty if it is none.
pub(crate) fn strings(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

impl Type {
    /// The type of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let all =
            [Self::Object, Self::Array, Self::String, Self::Integer, Self::Number, Self::Boolean];
        all.into_iter().find(|kind| kind.name() == name)
    }

    /// The name in schemas.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}
