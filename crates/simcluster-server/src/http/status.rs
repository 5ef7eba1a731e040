//! A `Status` as Go writes it: its fields in the order in which its types declare them.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// Fields of a `Status`, of its `details`, and of each of its `causes`.
const STATUS: [&str; 8] =
    ["kind", "apiVersion", "metadata", "status", "message", "reason", "details", "code"];
const DETAILS: [&str; 6] = ["name", "group", "kind", "uid", "causes", "retryAfterSeconds"];
const CAUSE: [&str; 3] = ["reason", "message", "field"];

/// A value that is written as Go writes it if it is a `Status`, else as it is.
pub(super) struct Ordered<'a>(pub(super) &'a Value);

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_object().filter(|_| is_status(self.0)) {
            Some(map) => Fields(map, &STATUS).serialize(serializer),
            None => self.0.serialize(serializer),
        }
    }
}

/// Whether a value is a `Status`.
pub(super) fn is_status(value: &Value) -> bool {
    value.get("kind").and_then(Value::as_str) == Some("Status")
        && value.get("apiVersion").and_then(Value::as_str) == Some("v1")
}

/// A map whose named fields come first, in their order.
struct Fields<'a>(&'a Map<String, Value>, &'static [&'static str]);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(map, first) = self;
        let known = first.iter().filter_map(|name| map.get_key_value(*name));
        let others = map.iter().filter(|(name, _)| !first.contains(&name.as_str()));
        serializer.collect_map(known.chain(others).map(|(name, value)| (name, Field(name, value))))
    }
}

/// A field of a `Status` or of its details.
struct Field<'a>(&'a str, &'a Value);

impl Serialize for Field<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self("details", Value::Object(map)) => Fields(map, &DETAILS).serialize(serializer),
            Self("causes", Value::Array(causes)) => {
                serializer.collect_seq(causes.iter().map(|cause| Field("cause", cause)))
            }
            Self("cause", Value::Object(map)) => Fields(map, &CAUSE).serialize(serializer),
            Self(_, value) => value.serialize(serializer),
        }
    }
}
