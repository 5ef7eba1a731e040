//! Comparing a live child with what we own of it, on objects that a real kube-apiserver stored.

use serde_json::{Value, json};
use simpleapp_operator::{
    kernel::ownership::Child,
    simpleapp::{
        children::{children, owned_part},
        observed::ChildKind,
    },
};

use crate::support::fixtures::{LITMUS, dynamic, fields_of, live, valid};

/// App, and each child as it should be beside the one that is live.
fn pairs(case: &str) -> Vec<(ChildKind, Value, Value)> {
    let mut objects = live(case).into_iter();
    let app = objects.next().unwrap();
    let live: Vec<Value> = objects.collect();
    let wanted = children(&valid(&app));
    assert_eq!(wanted.len(), live.len(), "{case}");
    let pair = |((kind, wanted), live): ((ChildKind, Value), Value)| {
        assert_eq!(live["kind"], wanted["kind"]);
        (kind, wanted, live)
    };
    wanted.into_iter().zip(live).map(pair).collect()
}

fn owned(live: &Value) -> Option<Value> {
    Child::of(&dynamic(live)).owned
}

#[test]
fn what_was_applied_is_what_is_owned() {
    for case in LITMUS {
        for (_, wanted, live) in pairs(case) {
            assert_eq!(owned(&live), Some(owned_part(&wanted)), "{case}");
        }
    }
}

#[test]
fn the_tests_write_managed_fields_as_the_server_does() {
    for case in LITMUS {
        for (_, wanted, live) in pairs(case) {
            let entries = live["metadata"]["managedFields"].as_array().unwrap();
            let ours = entries.iter().find(|entry| entry["operation"] == "Apply").unwrap();
            assert_eq!(fields_of(&wanted), ours["fieldsV1"], "{case}");
        }
    }
}

/// Changes the live Deployment of the third case and says whether it still is as it should be.
fn is_up_to_date(change: impl Fn(&mut Value)) -> bool {
    let (_, wanted, mut live) = pairs("litmus-3-all-fields").swap_remove(0);
    change(&mut live);
    owned(&live) == Some(owned_part(&wanted))
}

fn our_fields(live: &mut Value) -> &mut Value {
    let entries = live["metadata"]["managedFields"].as_array_mut().unwrap();
    &mut entries.iter_mut().find(|entry| entry["operation"] == "Apply").unwrap()["fieldsV1"]
}

#[test]
fn what_others_add_is_none_of_our_business() {
    assert!(is_up_to_date(|_| {}));
    assert!(is_up_to_date(|live| live["metadata"]["labels"]["team"] = json!("a")));
    assert!(is_up_to_date(|live| live["metadata"]["annotations"]["x"] = json!("y")));
    assert!(is_up_to_date(|live| {
        live["spec"]["template"]["metadata"]["annotations"] =
            json!({"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"});
    }));
    assert!(is_up_to_date(|live| {
        let containers = live["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap();
        containers.insert(0, json!({"name": "sidecar", "image": "proxy"}));
    }));
    assert!(is_up_to_date(|live| live["spec"]["revisionHistoryLimit"] = json!(3)));
}

#[test]
fn drift_in_what_is_ours_shows() {
    let paths = [
        "/metadata/labels/app.kubernetes.io~1name",
        "/metadata/ownerReferences/0/controller",
        "/spec/replicas",
        "/spec/selector/matchLabels/app.kubernetes.io~1name",
        "/spec/template/metadata/labels/app.kubernetes.io~1instance",
        "/spec/template/spec/containers/0/image",
        "/spec/template/spec/containers/0/name",
        "/spec/template/spec/containers/0/ports/0/containerPort",
        "/spec/template/spec/containers/0/ports/0/name",
    ];
    for path in paths {
        let drift = |live: &mut Value| {
            let value = live.pointer_mut(path).unwrap();
            *value = if value.is_boolean() { json!(false) } else { json!("drift") };
        };
        assert!(!is_up_to_date(drift), "{path}");
    }
}

#[test]
fn a_field_that_somebody_took_from_us_shows() {
    assert!(!is_up_to_date(|live| {
        our_fields(live)["f:spec"].as_object_mut().unwrap().remove("f:replicas");
    }));
}

#[test]
fn a_field_that_we_no_longer_want_shows() {
    assert!(!is_up_to_date(|live| {
        live["spec"]["paused"] = json!(true);
        our_fields(live)["f:spec"]["f:paused"] = json!({});
    }));
}

#[test]
fn an_object_that_we_never_applied_has_nothing_of_ours() {
    let (_, _, mut live) = pairs("litmus-1-image-only").swap_remove(0);
    live["metadata"]["managedFields"] = json!([{
        "manager": "simpleapp-operator", "operation": "Update", "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}},
    }]);
    assert_eq!(owned(&live), None);
    live["metadata"].as_object_mut().unwrap().remove("managedFields");
    assert_eq!(owned(&live), None);
}

#[test]
fn values_of_sets_are_told_apart() {
    let live = json!({
        "metadata": {
            "name": "x",
            "finalizers": ["a", "b"],
            "managedFields": [{
                "manager": "simpleapp-operator", "operation": "Apply",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": {"f:finalizers": {".": {}, "v:\"b\"": {}}}},
            }],
        },
    });
    assert_eq!(owned(&live), Some(json!({"metadata": {"finalizers": ["b"]}})));
}
