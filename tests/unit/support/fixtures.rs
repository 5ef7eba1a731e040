//! Objects from `fixtures/`, and objects as an API server would store them.

use std::{fs, path::PathBuf, sync::Arc};

use kube::core::DynamicObject;
use serde_json::{Map, Value, json};
use simpleapp_operator::{
    kernel::ownership::{Child, FIELD_MANAGER},
    simpleapp::{
        children::children,
        observed::{App, ChildKind, Observed},
        validate::{Valid, validate},
    },
};

pub(crate) const NAMESPACE: &str = "shop";
pub(crate) const APP_UID: &str = "a0000000-0000-4000-8000-000000000001";
pub(crate) const FINALIZER: &str = "apps.bootcamp.local/simpleapp-finalizer";

pub(crate) const LITMUS: [&str; 3] =
    ["litmus-1-image-only", "litmus-2-replicas-port", "litmus-3-all-fields"];
pub(crate) const VALID: [&str; 7] = [
    "litmus-1-image-only",
    "litmus-2-replicas-port",
    "litmus-3-all-fields",
    "scaled-to-zero",
    "wildcard-host",
    "broken-image",
    "long-name",
];
pub(crate) const INVALID: [&str; 5] =
    ["invalid-host", "invalid-image", "invalid-name", "invalid-port", "invalid-replicas"];

pub(crate) fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(file)
}

pub(crate) fn yaml(file: &str) -> Value {
    serde_saphyr::from_str(&fs::read_to_string(path(file)).unwrap()).unwrap()
}

/// The app of a case as the server stores it when it has just been created.
pub(crate) fn app(case: &str) -> Value {
    let mut app = yaml(&format!("{case}/simpleapp.yaml"));
    let metadata = app["metadata"].as_object_mut().unwrap();
    metadata.insert("namespace".into(), json!(NAMESPACE));
    metadata.insert("uid".into(), json!(APP_UID));
    metadata.insert("resourceVersion".into(), json!("100"));
    metadata.insert("generation".into(), json!(1));
    metadata.insert("creationTimestamp".into(), json!("2026-01-01T00:00:00Z"));
    let spec = app["spec"].as_object_mut().unwrap();
    spec.entry("replicas").or_insert(json!(1));
    spec.entry("port").or_insert(json!(80));
    app
}

/// The same with our finalizer.
pub(crate) fn guarded(case: &str) -> Value {
    let mut app = app(case);
    app["metadata"]["finalizers"] = json!([FINALIZER]);
    app
}

pub(crate) fn dynamic(object: &Value) -> DynamicObject {
    serde_json::from_value(object.clone()).unwrap()
}

pub(crate) fn parse(object: &Value) -> App {
    App::of(&dynamic(object))
}

pub(crate) fn valid(object: &Value) -> Valid {
    validate(&parse(object)).unwrap()
}

/// The objects of a case that a real kube-apiserver stored, by kind.
pub(crate) fn live(case: &str) -> Vec<Value> {
    let text = fs::read_to_string(path(&format!("{case}/live.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// What a server stores and answers when `applied` is applied by us.
pub(crate) fn stored(applied: &Value, uid: &str, version: u64) -> Value {
    let mut object = applied.clone();
    let fields = fields_of(applied);
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.insert("uid".into(), json!(uid));
    metadata.insert("resourceVersion".into(), json!(version.to_string()));
    metadata.insert("generation".into(), json!(1));
    metadata.insert(
        "managedFields".into(),
        json!([{
            "manager": FIELD_MANAGER,
            "operation": "Apply",
            "apiVersion": applied["apiVersion"],
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
            "time": "2026-01-01T00:00:00Z",
        }]),
    );
    object
}

/// The children of a valid app, as a server stores them.
pub(crate) fn stored_children(app: &Value) -> Vec<(ChildKind, Value)> {
    let store = |(kind, child): (ChildKind, Value)| {
        let stored = stored(&child, &format!("uid-{kind:?}"), 200);
        (kind, stored)
    };
    children(&valid(app)).into_iter().map(store).collect()
}

/// An app and the objects that have the names of its children.
pub(crate) fn observed(app: &Value, children: &[(ChildKind, Value)]) -> Observed {
    let children =
        children.iter().map(|(kind, child)| (*kind, Arc::new(Child::of(&dynamic(child)))));
    Observed::new(Arc::new(parse(app)), children.collect())
}

/// The status of a Deployment that has done what its spec says.
pub(crate) fn complete(replicas: i64) -> Value {
    json!({
        "observedGeneration": 1,
        "replicas": replicas,
        "updatedReplicas": replicas,
        "readyReplicas": replicas,
        "availableReplicas": replicas,
        "conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}],
    })
}

/// The fields of an applied object in the notation of `fieldsV1`, as the API server writes it for
/// the kinds that we apply.
pub(crate) fn fields_of(applied: &Value) -> Value {
    let mut fields = fields(applied, "");
    let map = fields.as_object_mut().unwrap();
    map.remove("f:apiVersion");
    map.remove("f:kind");
    let metadata = map["f:metadata"].as_object_mut().unwrap();
    for name in ["f:name", "f:namespace", "f:uid", "f:resourceVersion"] {
        metadata.remove(name);
    }
    fields
}

fn fields(value: &Value, name: &str) -> Value {
    if matches!(name, "selector" | "rules") {
        return json!({});
    }
    match value {
        Value::Object(map) => {
            let inner =
                |(name, value): (&String, &Value)| (format!("f:{name}"), fields(value, name));
            Value::Object(map.iter().map(inner).collect())
        }
        Value::Array(items) => {
            Value::Object(items.iter().map(|item| item_fields(item, name)).collect())
        }
        _ => json!({}),
    }
}

fn item_fields(item: &Value, list: &str) -> (String, Value) {
    let keys: &[&str] = match list {
        "ownerReferences" => &["uid"],
        "containers" => &["name"],
        "ports" if item.get("containerPort").is_some() => &["containerPort", "protocol"],
        "ports" => &["port", "protocol"],
        _ => panic!("what are the keys of {list}?"),
    };
    let keys: Map<String, Value> =
        keys.iter().map(|key| ((*key).to_owned(), item[*key].clone())).collect();
    let path = format!("k:{}", Value::Object(keys));
    if list == "ownerReferences" {
        return (path, json!({}));
    }
    let mut inner = fields(item, "");
    inner.as_object_mut().unwrap().insert(".".into(), json!({}));
    (path, inner)
}
