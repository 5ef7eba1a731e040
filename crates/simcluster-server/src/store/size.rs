//! How large an object may be.

use serde_json::Value;
use simcluster_model::error::ApiError;

/// What an object may take in etcd, in bytes: a request of 1.5 MiB (`--max-request-bytes`) less what a
/// transaction needs beside the object.
const BYTES_MAX: usize = (3 << 19) - 246;

/// Refuses what etcd would refuse.
///
/// A real server stores built-in kinds as protobuf, which is a little shorter than the JSON that counts
/// here; what fills so large an object is texts, which are as long in both.
pub(crate) fn check(object: &Value) -> Result<(), ApiError> {
    match text_of(object, BYTES_MAX) {
        Some(_) => Ok(()),
        None => Err(ApiError::raw("etcdserver: request is too large")),
    }
}

/// What is left of a number of bytes after the JSON of a value; `None` if it does not suffice. Characters
/// that JSON escapes count as they are.
fn text_of(value: &Value, left: usize) -> Option<usize> {
    match value {
        Value::Null | Value::Bool(true) => left.checked_sub(4),
        Value::Bool(false) => left.checked_sub(5),
        // As long as most of them are: its text is not worth making.
        Value::Number(_) => left.checked_sub(2),
        Value::String(text) => left.checked_sub(text.len() + 2),
        Value::Array(list) => {
            let left = left.checked_sub(list.len().max(1) + 1)?;
            list.iter().try_fold(left, |left, item| text_of(item, left))
        }
        Value::Object(map) => {
            let left = left.checked_sub(map.len().max(1) + 1)?;
            map.iter().try_fold(left, |left, (key, value)| {
                text_of(value, left.checked_sub(key.len() + 3)?)
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_what_json_takes() {
        for value in [
            json!(null),
            json!([true, false, "text", 10, []]),
            json!({ "a": { "b": [{}, { "c": "d" }] }, "e": 12 }),
        ] {
            let size = value.to_string().len();
            assert!(text_of(&value, size).is_some(), "{value}");
            assert!(text_of(&value, size - 1).is_none(), "{value}");
        }
    }
}
