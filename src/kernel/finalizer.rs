//! JSON patches for finalizers and status that cannot hit the wrong object.
//!
//! Each begins with tests of what we saw, so that the entries of others are never lost and an
//! object that was made anew under the same name is left alone. A failed test is answered with
//! 422 and changes nothing.

use serde_json::{Value, json};

/// Adds `finalizer` behind those that we saw.
#[must_use]
pub fn add(uid: &str, seen: &[String], finalizer: &str) -> Value {
    if seen.is_empty() {
        // The server lets a test of null pass where nothing is.
        return json!([
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "test", "path": "/metadata/finalizers", "value": null},
            {"op": "add", "path": "/metadata/finalizers", "value": [finalizer]},
        ]);
    }
    json!([
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "test", "path": "/metadata/finalizers", "value": seen},
        {"op": "add", "path": "/metadata/finalizers/-", "value": finalizer},
    ])
}

/// Removes `finalizer` from those that we saw; `None` if it is not among them.
#[must_use]
pub fn remove(uid: &str, seen: &[String], finalizer: &str) -> Option<Value> {
    let index = seen.iter().position(|entry| entry == finalizer)?;
    let path = format!("/metadata/finalizers/{index}");
    Some(json!([
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "test", "path": path, "value": finalizer},
        {"op": "remove", "path": path},
    ]))
}

/// Replaces the whole status.
#[must_use]
pub fn status(uid: &str, status: &Value) -> Value {
    json!([
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "add", "path": "/status", "value": status},
    ])
}
