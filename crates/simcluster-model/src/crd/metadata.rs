//! `ObjectMeta` of custom and embedded resources.

use serde_json::{Map, Value, json};

use crate::builtin::decode_typed;
use crate::field::FieldError;
use crate::metadata;
use crate::names;
use crate::object;
use crate::resource::Decoded;
use crate::schema::object_meta;

/// Decodes metadata as Go's `ObjectMeta`. `path` is where it stands; `Err` is the decoder's text.
pub(super) fn decode(value: Value, path: &str) -> Result<Decoded, String> {
    decode_typed(value, &object_meta(), path)
}

/// Brings the metadata of a stored object into the form in which it is read.
pub(super) fn tidy(object: &mut Value) {
    if metadata::is_tidy(object::metadata(object)) {
        return;
    }
    let found = Value::Object(std::mem::take(object::metadata_mut(object)));
    let decoded = decode(found.clone(), "metadata").map_or(found, |decoded| decoded.object);
    object::put(object, "metadata", decoded);
}

/// Faults of the metadata of an embedded resource; its name may be anything that fits into a path.
pub(super) fn faults(found: &Value, path: &str, faults: &mut Vec<FieldError>) {
    let Some(found) = found.as_object() else { return };
    for key in ["generateName", "name"] {
        let name = text(found, key);
        let field = format!("{path}.{key}");
        let wrong = names::path_segment(name).into_iter();
        faults.extend(wrong.map(|why| FieldError::invalid(field.as_str(), &json!(name), &why)));
    }
    let namespace = text(found, "namespace");
    if !namespace.is_empty() {
        let field = format!("{path}.namespace");
        let wrong = names::dns1123_label(namespace).into_iter();
        faults
            .extend(wrong.map(|why| FieldError::invalid(field.as_str(), &json!(namespace), &why)));
    }
    faults.extend(metadata::map_and_owner_faults(path, found));
    faults.extend(metadata::finalizer_faults(path, found));
}

fn text<'a>(map: &'a Map<String, Value>, key: &str) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}
