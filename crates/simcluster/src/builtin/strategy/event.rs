//! Events: one set of objects with two forms, `v1` and `events.k8s.io/v1`. They are stored in the first.

use serde_json::{Value, json};

use crate::builtin::decode_typed;
use crate::object;
use crate::resource::Resource;

/// Names of the same fields in `v1` and in `events.k8s.io/v1`.
const FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

pub(super) fn encode_stored(resource: &Resource, event: Value) -> Value {
    if resource.group.is_empty() {
        return event;
    }
    let stored = renamed(event, |(old, new)| (new, old));
    shaped(stored, "v1", "io.k8s.api.core.v1.Event")
}

pub(super) fn decode_stored(resource: &Resource, event: Value) -> Value {
    if resource.group.is_empty() {
        return event;
    }
    let served = renamed(event, |(old, new)| (old, new));
    shaped(served, "events.k8s.io/v1", "io.k8s.api.events.v1.Event")
}

fn renamed<'a>(mut event: Value, pair: impl Fn((&'a str, &'a str)) -> (&'a str, &'a str)) -> Value {
    let map = object::as_map(&mut event);
    for fields in FIELDS {
        let (from, to) = pair(fields);
        if let Some(value) = map.remove(from) {
            map.insert(to.to_owned(), value);
        }
    }
    event
}

/// The two forms differ in what is printed although empty: decoding settles it.
fn shaped(event: Value, api_version: &str, definition: &str) -> Value {
    let schema = crate::builtin::definition(definition).unwrap_or_default();
    let mut event =
        decode_typed(event.clone(), &schema, "").map_or(event, |decoded| decoded.object);
    object::put(&mut event, "apiVersion", json!(api_version));
    event
}
