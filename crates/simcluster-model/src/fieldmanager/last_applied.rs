//! Objects that were once written by `kubectl apply` on the client's side: its annotation says which
//! fields it set, and server-side apply by manager `kubectl` takes these over without a conflict.

use serde_json::Value;

use super::check::{Duplicates, check};
use super::compare::compare;
use super::set::FieldSet;
use super::shape::Node;
use super::walk::fields_of;
use crate::golang;
use crate::object::{metadata, metadata_mut};

/// The manager that this is for.
pub(super) const MANAGER: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// All annotations of an object together, in bytes.
const ANNOTATIONS_SIZE_MAX: usize = 256 * 1024;

/// The fields that client-side apply set last and that are still as it set them. `None` if the
/// annotation does not tell.
pub(super) fn unchanged_fields(
    node: Node<'_>,
    live: &Value,
    api_version: &str,
) -> Option<FieldSet> {
    let text = annotation(live)?;
    let last: Value = serde_json::from_str(text).ok()?;
    if last.get("apiVersion").and_then(Value::as_str) != Some(api_version) {
        return None;
    }
    check(node, &last, Duplicates::Refused).ok()?;
    let comparison = compare(node, &last, live);
    let mut fields = fields_of(node, &last);
    fields.subtract(&comparison.modified);
    fields.subtract(&comparison.added);
    fields.subtract(&comparison.removed);
    Some(fields)
}

/// Writes what was applied into the annotation, if the object has one.
pub(super) fn refresh(object: &mut Value, config: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut applied = config.clone();
    if let Some(annotations) =
        applied.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut)
    {
        annotations.remove(ANNOTATION);
    }
    let text = format!("{}\n", golang::json(&applied));
    let Some(annotations) =
        metadata_mut(object).get_mut("annotations").and_then(Value::as_object_mut)
    else {
        return;
    };
    annotations.insert(ANNOTATION.to_owned(), Value::from(text));
    let size: usize =
        annotations.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if size > ANNOTATIONS_SIZE_MAX {
        annotations.remove(ANNOTATION);
    }
}

fn annotation(object: &Value) -> Option<&str> {
    metadata(object).get("annotations")?.get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())
}
