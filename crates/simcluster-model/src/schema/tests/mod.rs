#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "tests"
)]

mod cel;
mod formats;
mod properties;
mod structure;
mod values;

use std::sync::Arc;

use serde_json::{Value, json};

use super::Schema;

/// A schema whose `spec` has these fields.
fn with_fields(fields: &Value) -> Arc<Schema> {
    let spec = json!({ "type": "object", "properties": fields });
    Schema::parse(&json!({ "type": "object", "properties": { "spec": spec } }))
}

fn object(spec: &Value) -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Shape", "metadata": { "name": "a" }, "spec": spec })
}

/// The faults of a new object with this spec, as they are printed.
fn faults(schema: &Schema, spec: &Value) -> Vec<String> {
    super::validate(&object(spec), None, schema).iter().map(ToString::to_string).collect()
}

/// The faults of a change from one spec to another.
fn change_faults(schema: &Schema, old: &Value, new: &Value) -> Vec<String> {
    let faults = super::validate(&object(new), Some(&object(old)), schema);
    faults.iter().map(ToString::to_string).collect()
}
