//! Telling a `Status` from other objects.

use serde_json::Value;

/// Whether a value is a `Status`.
pub(super) fn is_status(value: &Value) -> bool {
    value.get("kind").and_then(Value::as_str) == Some("Status")
        && value.get("apiVersion").and_then(Value::as_str) == Some("v1")
}
