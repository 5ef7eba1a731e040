//! Writes through `/scale`: the fields of the object seen as those of a `Scale`, and back.
//!
//! The way back follows the server to the letter. It moves the replicas out of the entries that held
//! them, and gives entries that it makes no time.

use serde_json::{Map, Value, json};

use super::managers::{Entry, Managed, Operation};
use super::path::PathElement;
use super::set::FieldSet;
use crate::object::at_path;
use crate::resource::{Resource, ScalePaths};
use crate::schema::{Schema, SchemaRef, Type};

/// The version of `Scale`.
pub(super) const API_VERSION: &str = "autoscaling/v1";

/// The kind of the subresource.
pub(super) const KIND: &str = "Scale";

/// The schema of `Scale`, with the metadata of the resource's own.
pub(super) fn schema(resource: &Resource) -> Schema {
    let leaf = |kind: Type| SchemaRef::from(Schema { kind: Some(kind), ..Schema::default() });
    let object = |fields: Vec<(&str, SchemaRef)>| Schema {
        kind: Some(Type::Object),
        properties: fields.into_iter().map(|(name, field)| (name.to_owned(), field)).collect(),
        ..Schema::default()
    };
    let metadata = resource.schema.properties.get("metadata").cloned().unwrap_or_default();
    object(vec![
        ("apiVersion", leaf(Type::String)),
        ("kind", leaf(Type::String)),
        ("metadata", metadata),
        ("spec", SchemaRef::from(object(vec![("replicas", leaf(Type::Integer))]))),
        (
            "status",
            SchemaRef::from(object(vec![
                ("replicas", leaf(Type::Integer)),
                ("selector", leaf(Type::String)),
            ])),
        ),
    ])
}

/// The object as a `Scale`. Counts of zero are left out, as Go's JSON leaves them out.
pub(super) fn view(paths: &ScalePaths, object: &Value) -> Value {
    let counted = |path: &str| {
        let mut out = Map::new();
        if let Some(count) = at_path(object, path).filter(|count| count.as_i64() != Some(0)) {
            out.insert("replicas".to_owned(), count.clone());
        }
        Value::Object(out)
    };
    let mut metadata = crate::object::metadata(object).clone();
    metadata.retain(|name, _| {
        matches!(
            name.as_str(),
            "name" | "namespace" | "uid" | "resourceVersion" | "creationTimestamp"
        )
    });
    json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata,
        "spec": counted(&paths.spec_replicas),
        "status": counted(&paths.status_replicas),
    })
}

/// The entries of the object that own its replicas, as entries of the `Scale`.
pub(super) fn entries_of_scale(paths: &ScalePaths, managed: &Managed) -> Managed {
    let path = replicas_path(paths);
    let mut out = Managed::default();
    for (_, entry) in managed.iter().filter(|(_, entry)| entry.fields.has_path(&path)) {
        let mut entry = entry.clone();
        API_VERSION.clone_into(&mut entry.writer.api_version);
        entry.fields = replicas_of_scale();
        out.put(entry);
    }
    out
}

/// The entries of the object after those of the `Scale` have changed. Several may be of one writer.
pub(super) fn entries_of_object(
    paths: &ScalePaths,
    api_version: &str,
    managed: Managed,
    mut scale: Managed,
) -> Vec<Entry> {
    let path = replicas_path(paths);
    let replicas = only(&path);
    let mut out = Vec::new();
    for mut entry in managed.into_entries() {
        if entry.fields.has_path(&path) {
            // Updates are told apart by version, so none of them is found again among the entries
            // of the Scale; applies are.
            let same = entry.writer.operation == Operation::Apply
                && scale.remove(&entry.writer.identity()).is_some();
            if !same {
                entry.fields.subtract(&replicas);
            }
        }
        if !entry.fields.is_empty() {
            out.push(entry);
        }
    }
    let in_scale = [PathElement::field("spec"), PathElement::field("replicas")];
    for mut entry in scale.into_entries() {
        if entry.fields.has_path(&in_scale) {
            api_version.clone_into(&mut entry.writer.api_version);
            entry.fields = replicas.clone();
            entry.time = None;
            out.push(entry);
        }
    }
    out
}

fn replicas_of_scale() -> FieldSet {
    FieldSet::of_fields(&[&["spec", "replicas"]])
}

fn replicas_path(paths: &ScalePaths) -> Vec<PathElement> {
    let path = paths.spec_replicas.trim_start_matches('.');
    path.split('.').map(PathElement::field).collect()
}

fn only(path: &[PathElement]) -> FieldSet {
    let mut set = FieldSet::default();
    set.insert(path);
    set
}
