//! Events: one set of objects with two forms, `v1` and `events.k8s.io/v1`. They are stored in the first.

use serde_json::{Value, json};

use super::check::Faults;
use super::value::{at, int, text};
use crate::builtin::decode_typed;
use crate::field::FieldError;
use crate::names;
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
    let schema = crate::schema::definition(definition).unwrap_or_default();
    let mut event =
        decode_typed(event.clone(), &schema, "").map_or(event, |decoded| decoded.object);
    object::put(&mut event, "apiVersion", json!(api_version));
    event
}

/// Events as they are stored, whatever group they came through.
pub(super) fn stored(event: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    legacy_event(event, "reportingComponent", &mut faults);
    faults.0
}

/// Events that come through `events.k8s.io`, which asks for more; `event` is in that form.
pub(super) fn newer(event: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    legacy_event(event, "reportingController", &mut faults);
    if at(event, &["series"]).is_some() {
        if int(event, &["series", "count"]).unwrap_or_default() < 2 {
            faults.invalid("series.count", &json!(""), "should be at least 2");
        }
        if at(event, &["series", "lastObservedTime"]).is_none() {
            faults.required("series.lastObservedTime", "");
        }
    }
    if at(event, &["eventTime"]).is_none() {
        faults.required("eventTime", "");
    }
    let kind = text(event, &["type"]);
    if !matches!(kind, "Normal" | "Warning") {
        faults.invalid("type", &json!(""), &format!("has invalid value: {kind}"));
    }
    for (field, path) in [
        ("firstTimestamp", "deprecatedFirstTimestamp"),
        ("lastTimestamp", "deprecatedLastTimestamp"),
        ("count", "deprecatedCount"),
    ] {
        if at(event, &[path]).is_some() {
            faults.invalid(field, &json!(""), "needs to be unset");
        }
    }
    if !text(event, &["deprecatedSource", "component"]).is_empty()
        || !text(event, &["deprecatedSource", "host"]).is_empty()
    {
        faults.invalid("source", &json!(""), "needs to be unset");
    }
    faults.0
}

fn legacy_event(event: &Value, controller: &str, faults: &mut Faults) {
    let newer = controller == "reportingController";
    let about = if newer { "regarding" } else { "involvedObject" };
    let (namespace, other) = (object::namespace(event), text(event, &[about, "namespace"]));
    let mismatch = |faults: &mut Faults| {
        let field = "involvedObject.namespace";
        faults.invalid(field, &json!(other), "does not match event.namespace");
    };
    if at(event, &["eventTime"]).is_none() {
        let matches =
            if other.is_empty() { matches!(namespace, "" | "default") } else { namespace == other };
        if !matches {
            mismatch(faults);
        }
        return;
    }
    if other.is_empty() && !matches!(namespace, "default" | "kube-system") {
        mismatch(faults);
    }
    let name = text(event, &[controller]);
    if name.is_empty() {
        faults.required(controller, "");
    }
    faults.texts(controller, name, names::qualified_name(name));
    for field in ["reportingInstance", "action", "reason"] {
        let value = text(event, &[field]);
        if value.is_empty() {
            faults.required(field, "");
        }
        if value.len() > 128 {
            faults.invalid(field, &json!(""), "can have at most 128 characters");
        }
    }
    let note = text(event, &[if newer { "note" } else { "message" }]);
    if note.len() > 1024 {
        faults.invalid("message", &json!(""), "can have at most 1024 characters");
    }
}

pub(super) fn newer_update(event: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    legacy_event(event, "reportingController", &mut faults);
    for (field, path) in [
        ("involvedObject", "regarding"),
        ("reason", "reason"),
        ("message", "note"),
        ("source", "deprecatedSource"),
        ("firstTimestamp", "deprecatedFirstTimestamp"),
        ("lastTimestamp", "deprecatedLastTimestamp"),
        ("count", "deprecatedCount"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        faults.immutable(field, at(event, &[path]), at(old, &[path]));
    }
    faults.0
}

pub(super) fn stored_update(event: &Value, _old: &Value) -> Vec<FieldError> {
    stored(event)
}
