//! How deep the values of clients may be nested.
//!
//! Every walk over a value recurses, its drop included, so nothing deeper may come into being:
//! bodies are refused where they are read, patches where they would build it.

use serde_json::Value;

/// Most lists and objects within each other. The real server allows 10,000, for Go's stacks grow;
/// this is as deep as `serde_json` reads, and leaves each level 16 KiB of a thread's stack.
pub(crate) const DEPTH_MAX: usize = 127;

/// How many lists and objects stand within each other in a value; 0 for a scalar.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
