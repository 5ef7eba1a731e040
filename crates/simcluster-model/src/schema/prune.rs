//! Dropping what a structural schema does not know.
//!
//! The order of things is the server's (`unstructuredSchemaCoercer.apply`): first unknown fields go,
//! then nulls of fields that are neither nullable nor have a default.

use serde_json::Value;

use super::Schema;
use super::path::Path;

/// Fields of every object and embedded resource that pruning leaves alone.
const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Drops unknown fields and nulls of non-nullable fields of a whole object. Answers the paths of the
/// unknown fields, sorted, as the server warns of them. `metadata` is left alone, here and in
/// embedded resources.
pub fn prune(object: &mut Value, schema: &Schema) -> Vec<String> {
    let unknown = prune_unknown(object, schema);
    prune_nulls(object, schema);
    unknown
}

/// Drops unknown fields of a whole object; answers their sorted paths.
pub fn prune_unknown(object: &mut Value, schema: &Schema) -> Vec<String> {
    let mut unknown = Vec::new();
    let pruner = Pruner { root: true, known: schema.preserve_unknown };
    pruner.prune(object, Some(schema), &Path::ROOT, &mut unknown);
    unknown.sort();
    unknown
}

/// How one node is pruned.
#[derive(Clone, Copy)]
struct Pruner {
    /// Whether the node is the object itself, whose meta fields are known without a schema.
    root: bool,
    /// Whether unknown fields stay here.
    known: bool,
}

impl Pruner {
    fn prune(
        self,
        value: &mut Value,
        schema: Option<&Schema>,
        path: &Path<'_>,
        unknown: &mut Vec<String>,
    ) {
        match value {
            Value::Object(map) => {
                let resource = self.root || schema.is_some_and(|node| node.embedded_resource);
                map.retain(|key, child| {
                    if resource && META_FIELDS.contains(&key.as_str()) {
                        return true;
                    }
                    if let Some(child_schema) = schema.and_then(|node| field(node, key)) {
                        below(child_schema).prune(
                            child,
                            Some(child_schema),
                            &path.field(key),
                            unknown,
                        );
                        return true;
                    }
                    if !self.known {
                        unknown.push(path.field(key).dotted());
                    }
                    self.known
                });
            }
            Value::Array(items) => {
                let item_schema = schema.and_then(|node| node.items.as_deref());
                for (index, item) in items.iter_mut().enumerate() {
                    let path = path.index(index);
                    // Below a preserving list the items are preserved too, and what they declare is
                    // pruned.
                    let known = self.known || item_schema.is_some_and(|node| node.preserve_unknown);
                    Self { root: false, known }.prune(item, item_schema, &path, unknown);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

fn below(schema: &Schema) -> Pruner {
    Pruner { root: false, known: schema.preserve_unknown }
}

/// The schema of a field, declared or of a map.
fn field<'a>(schema: &'a Schema, key: &str) -> Option<&'a Schema> {
    schema.properties.get(key).or(schema.additional_properties.as_ref()).map(|node| &**node)
}

/// Drops explicit nulls of fields that are neither nullable nor have a default.
pub fn prune_nulls(object: &mut Value, schema: &Schema) {
    nulls(object, Some(schema), true);
}

/// `resource` says that the value has metadata, which is left alone.
fn nulls(value: &mut Value, schema: Option<&Schema>, resource: bool) {
    match value {
        Value::Object(map) => map.retain(|key, child| {
            if resource && key == "metadata" {
                return true;
            }
            let child_schema = schema.and_then(|node| field(node, key));
            let stray = child.is_null()
                && child_schema.is_some_and(|node| !node.nullable && node.default.is_none());
            if !stray {
                nulls(child, child_schema, is_resource(child_schema));
            }
            !stray
        }),
        Value::Array(items) => {
            let item_schema = schema.and_then(|node| node.items.as_deref());
            for item in items {
                nulls(item, item_schema, is_resource(item_schema));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_resource(schema: Option<&Schema>) -> bool {
    schema.is_some_and(|node| node.embedded_resource)
}
