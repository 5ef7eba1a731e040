//! Events: one set of objects with two forms, `v1` and `events.k8s.io/v1`. They are stored in the first.

use serde_json::{Value, json};

use crate::builtin::cells::{View, or, since};
use crate::builtin::check::Faults;
use crate::builtin::kind::{Kind, shaped};
use crate::builtin::labels::Labels;
use crate::builtin::value::{at, int, text};
use crate::field::FieldError;
use crate::names;
use crate::object;
use crate::resource::Resource;

/// `events` of the core group.
pub(super) static KIND: Kind = common("", LABELS, stored, |event, _| stored(event));

/// `events` of `events.k8s.io`.
pub(super) static NEWER: Kind = Kind {
    encode_stored,
    decode_stored: Some(decode_stored),
    ..common("events.k8s.io", NEWER_LABELS, newer, newer_update)
};

const fn common(
    group: &'static str,
    field_labels: Labels,
    validate: fn(&Value) -> Vec<FieldError>,
    validate_update: fn(&Value, &Value) -> Vec<FieldError>,
) -> Kind {
    Kind {
        type_group: "",
        allow_create_on_update: true,
        validate,
        validate_update: Some(validate_update),
        knows_finalizers: false,
        cells,
        field_labels,
        ..Kind::new(group, "events")
    }
}

/// They are read in the form of either group.
const LABELS: Labels = &[
    ("involvedObject.kind", &["involvedObject.kind", "regarding.kind"]),
    ("involvedObject.namespace", &["involvedObject.namespace", "regarding.namespace"]),
    ("involvedObject.name", &["involvedObject.name", "regarding.name"]),
    ("involvedObject.uid", &["involvedObject.uid", "regarding.uid"]),
    ("involvedObject.apiVersion", &["involvedObject.apiVersion", "regarding.apiVersion"]),
    (
        "involvedObject.resourceVersion",
        &["involvedObject.resourceVersion", "regarding.resourceVersion"],
    ),
    ("involvedObject.fieldPath", &["involvedObject.fieldPath", "regarding.fieldPath"]),
    ("reason", &["reason"]),
    ("reportingComponent", &["reportingComponent", "reportingController"]),
    ("source", &["source.component", "deprecatedSource.component", "reportingComponent"]),
    ("type", &["type"]),
];

const NEWER_LABELS: Labels = &[
    ("regarding.kind", &["regarding.kind", "involvedObject.kind"]),
    ("regarding.namespace", &["regarding.namespace", "involvedObject.namespace"]),
    ("regarding.name", &["regarding.name", "involvedObject.name"]),
    ("regarding.uid", &["regarding.uid", "involvedObject.uid"]),
    ("regarding.apiVersion", &["regarding.apiVersion", "involvedObject.apiVersion"]),
    ("regarding.resourceVersion", &["regarding.resourceVersion", "involvedObject.resourceVersion"]),
    ("regarding.fieldPath", &["regarding.fieldPath", "involvedObject.fieldPath"]),
    ("reason", &["reason"]),
    ("reportingController", &["reportingController", "reportingComponent"]),
    ("type", &["type"]),
];

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

fn encode_stored(_resource: &Resource, event: Value) -> Value {
    let stored = renamed(event, |(old, new)| (new, old));
    shaped(stored, "v1", "io.k8s.api.core.v1.Event")
}

fn decode_stored(_resource: &Resource, event: Value) -> Value {
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

/// Events as they are stored, whatever group they came through.
fn stored(event: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    legacy_event(event, "reportingComponent", &mut faults);
    faults.0
}

/// Events that come through `events.k8s.io`, which asks for more; `event` is in that form.
fn newer(event: &Value) -> Vec<FieldError> {
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

fn newer_update(event: &Value, old: &Value) -> Vec<FieldError> {
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

/// Both groups of events: `events.k8s.io` has other names for some fields.
fn cells(view: View<'_>) -> Vec<Value> {
    let either = |core: &str, new: &str| or(view.str(core), view.str(new)).to_owned();
    let first = match either("/firstTimestamp", "/deprecatedFirstTimestamp") {
        time if time.is_empty() => view.since("/eventTime"),
        time => since(Some(&time), view.now),
    };
    let series = view.object.get("series").filter(|series| series.is_object());
    let count = view.number("/count").max(view.number("/deprecatedCount"));
    let (last, count) = match series {
        Some(_) => (view.since("/series/lastObservedTime"), view.number("/series/count")),
        None => match either("/lastTimestamp", "/deprecatedLastTimestamp") {
            time if time.is_empty() => (first.clone(), count.max(1)),
            time => (since(Some(&time), view.now), count.max(1)),
        },
    };
    let about =
        |field: &str| either(&format!("/involvedObject/{field}"), &format!("/regarding/{field}"));
    let (kind, name) = (about("kind").to_lowercase(), about("name"));
    let target = if name.is_empty() { kind } else { format!("{kind}/{name}") };
    vec![
        json!(last),
        view.text("/type"),
        view.text("/reason"),
        json!(target),
        json!(about("fieldPath")),
        json!(event_source(view)),
        json!(either("/message", "/note").trim()),
        json!(first),
        json!(count),
        json!(object::name(view.object)),
    ]
}

fn event_source(view: View<'_>) -> String {
    let first_of = |pointers: [&str; 4]| {
        pointers.iter().map(|pointer| view.str(pointer)).find(|text| !text.is_empty()).unwrap_or("")
    };
    let component = first_of([
        "/source/component",
        "/deprecatedSource/component",
        "/reportingComponent",
        "/reportingController",
    ]);
    let host = first_of([
        "/source/host",
        "/deprecatedSource/host",
        "/reportingInstance",
        "/reportingInstance",
    ]);
    if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") }
}
