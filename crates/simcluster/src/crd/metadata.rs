//! `ObjectMeta` of custom and embedded resources.

use serde_json::{Map, Value, json};

use crate::builtin::{decode_typed, object_meta};
use crate::field::FieldError;
use crate::names;
use crate::resource::Decoded;

/// Annotations of an object together may hold so many bytes.
const ANNOTATIONS_MAX: usize = 256 * 1024;

/// Decodes metadata as Go's `ObjectMeta`. `path` is where it stands; `Err` is the decoder's text.
pub(super) fn decode(value: Value, path: &str) -> Result<Decoded, String> {
    decode_typed(value, &object_meta(), path)
}

/// Faults of the metadata of an embedded resource; its name may be anything that fits into a path.
pub(super) fn faults(metadata: &Value, path: &str, faults: &mut Vec<FieldError>) {
    let Some(metadata) = metadata.as_object() else { return };
    for key in ["generateName", "name"] {
        let name = text(metadata, key);
        let field = format!("{path}.{key}");
        let wrong = names::path_segment(name).into_iter();
        faults.extend(wrong.map(|why| FieldError::invalid(field.as_str(), &json!(name), &why)));
    }
    let namespace = text(metadata, "namespace");
    if !namespace.is_empty() {
        let field = format!("{path}.namespace");
        let wrong = names::dns1123_label(namespace).into_iter();
        faults
            .extend(wrong.map(|why| FieldError::invalid(field.as_str(), &json!(namespace), &why)));
    }
    faults.extend(names::labels(&format!("{path}.labels"), strings(metadata, "labels")));
    annotation_faults(metadata, &format!("{path}.annotations"), faults);
    owner_faults(metadata, &format!("{path}.ownerReferences"), faults);
    let finalizers = metadata.get("finalizers").and_then(Value::as_array);
    let field = format!("{path}.finalizers");
    for finalizer in finalizers.into_iter().flatten().filter_map(Value::as_str) {
        for why in names::qualified_name(finalizer) {
            faults.push(FieldError::invalid(field.as_str(), &json!(finalizer), &why));
        }
    }
}

fn text<'a>(map: &'a Map<String, Value>, key: &str) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn strings<'a>(
    metadata: &'a Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
    let map = metadata.get(key).and_then(Value::as_object).into_iter().flatten();
    map.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

fn annotation_faults(metadata: &Map<String, Value>, field: &str, faults: &mut Vec<FieldError>) {
    let mut size = 0;
    for (key, value) in strings(metadata, "annotations") {
        size += key.len() + value.len();
        for why in names::qualified_name(&key.to_lowercase()) {
            faults.push(FieldError::invalid(field, &json!(key), &why));
        }
    }
    if size > ANNOTATIONS_MAX {
        faults.push(FieldError::too_long(field, 262_144));
    }
}

fn owner_faults(metadata: &Map<String, Value>, field: &str, faults: &mut Vec<FieldError>) {
    let owners = metadata.get("ownerReferences").and_then(Value::as_array);
    for (index, owner) in owners.into_iter().flatten().enumerate() {
        for key in ["apiVersion", "kind", "name", "uid"] {
            if owner.get(key).and_then(Value::as_str).unwrap_or_default().is_empty() {
                let field = format!("{field}[{index}].{key}");
                faults.push(FieldError::required(field, "must not be empty"));
            }
        }
    }
}
