//! `ObjectMeta` of custom and embedded resources.

use serde_json::Value;

use crate::field::FieldError;
use crate::resource::Decoded;

/// Decodes metadata as Go's `ObjectMeta`. `path` is where it stands; `Err` is the decoder's text.
pub(super) fn decode(value: Value, path: &str) -> Result<Decoded, String> {
    let _ = path;
    Ok(Decoded { object: value, unknown: Vec::new() })
}

/// What is wrong with the name of a custom resource.
pub(super) fn name_faults(name: &str, _prefix: bool) -> Vec<String> {
    let _ = name;
    Vec::new()
}

/// What is wrong with a DNS label.
pub(super) fn dns1035_label(value: &str) -> Vec<String> {
    let _ = value;
    Vec::new()
}

/// Faults of the metadata of an embedded resource.
pub(super) fn faults(_metadata: &Value, _path: &str, _faults: &mut Vec<FieldError>) {}
