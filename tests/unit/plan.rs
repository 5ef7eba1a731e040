//! What is decided in which situation.

use serde_json::{Value, json};
use simpleapp_operator::simpleapp::{
    observed::{ChildKind, Observed},
    plan::{Operation, Plan, plan},
};

use crate::support::{
    assert_snapshot,
    fixtures::{FINALIZER, INVALID, VALID, app, complete, guarded, observed, stored_children},
    world::{SETTINGS, now},
};

fn plan_of(observed: &Observed) -> Plan {
    plan(observed, SETTINGS, now())
}

/// The operations in a few words.
fn names(plan: &Plan) -> Vec<String> {
    let name = |operation: &Operation| match operation {
        Operation::Apply { kind, uid: None, .. } => format!("create {kind:?}"),
        Operation::Apply { kind, uid: Some(_), .. } => format!("update {kind:?}"),
        Operation::Delete { kind, .. } => format!("delete {kind:?}"),
        other => format!("{other:?}"),
    };
    plan.operations.iter().map(name).collect()
}

#[track_caller]
fn check(observed: &Observed, expected: &[&str]) {
    let plan = plan_of(observed);
    assert_eq!(names(&plan), expected);
    assert!(plan.operations.is_empty() || plan.status.is_none(), "a status before its operations");
}

const CASE: &str = "litmus-3-all-fields";

/// The case with everything done, changed by `change`.
fn settled(change: impl Fn(&mut Value, &mut Vec<(ChildKind, Value)>)) -> Observed {
    let mut app = guarded(CASE);
    let mut children = stored_children(&app);
    children[0].1["status"] = complete(2);
    change(&mut app, &mut children);
    observed(&app, &children)
}

#[test]
fn first_plans_of_every_fixture() {
    for case in VALID.iter().chain(&INVALID) {
        let plan = plan_of(&observed(&app(case), &[]));
        let text = serde_saphyr::to_string(&serde_json::to_value(plan).unwrap()).unwrap();
        assert_snapshot!(format!("plans/{case}"), text);
    }
}

/// Changes the number of a child's port as kubectl does it, which makes the port somebody else's.
fn renumber(child: &mut Value, port: &str, number: &str, held: &Value) {
    child.pointer_mut(port).unwrap()[number] = json!(9);
    let entry = json!({
        "manager": "kubectl-patch", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": held,
    });
    child["metadata"]["managedFields"].as_array_mut().unwrap().push(entry);
}

#[test]
fn a_port_that_bears_the_name_of_ours_is_taken_before_the_apply() {
    let held =
        json!({"k:{\"port\":9,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}, "f:port": {}}});
    let service = settled(|_, children| {
        let held = json!({"f:spec": {"f:ports": held}});
        renumber(&mut children[1].1, "/spec/ports/0", "port", &held);
    });
    let plan = plan_of(&service);
    let [Operation::TakePort { path, port: Some(port), .. }, Operation::Apply { .. }] =
        plan.operations.as_slice()
    else {
        panic!("{plan:#?}");
    };
    assert_eq!(path, "/spec/ports/0");
    assert_eq!(port["name"], "http");
    assert_ne!(port["port"], 9);

    let held = json!({
        "k:{\"containerPort\":9,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}, "f:containerPort": {}},
    });
    let container = json!({"k:{\"name\":\"app\"}": {"f:ports": held}});
    let fields = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": container}}}});
    let deployment = settled(|_, children| {
        let port = "/spec/template/spec/containers/0/ports/0";
        renumber(&mut children[0].1, port, "containerPort", &fields);
    });
    let plan = plan_of(&deployment);
    let [Operation::TakePort { path, port: Some(_), .. }, Operation::Apply { .. }] =
        plan.operations.as_slice()
    else {
        panic!("{plan:#?}");
    };
    assert_eq!(path, "/spec/template/spec/containers/0/ports/0");
}

/// What only we hold, an apply of ours takes away by itself.
#[test]
fn a_port_of_our_own_is_moved_by_the_apply_alone() {
    let moved = settled(|app, _| app["spec"]["port"] = json!(8081));
    check(&moved, &["update Deployment", "update Service"]);
}

#[test]
fn a_plan_for_what_is_done_has_a_status_only() {
    let plan = plan_of(&settled(|_, _| {}));
    let text = serde_saphyr::to_string(&serde_json::to_value(plan).unwrap()).unwrap();
    assert_snapshot!("plans/settled", text);
}

#[test]
fn the_finalizer_comes_before_the_children() {
    let app = app(CASE);
    check(
        &observed(&app, &[]),
        &["AddFinalizer", "create Deployment", "create Service", "create Ingress"],
    );
    check(
        &observed(&guarded(CASE), &[]),
        &["create Deployment", "create Service", "create Ingress"],
    );
}

#[test]
fn an_app_of_an_older_operator_gets_the_finalizer() {
    check(
        &settled(|app, _| {
            app["metadata"].as_object_mut().unwrap().remove("finalizers");
        }),
        &["AddFinalizer"],
    );
}

#[test]
fn nothing_to_do() {
    check(&settled(|_, _| {}), &[]);
}

#[test]
fn drift_is_repaired_where_it_is() {
    check(
        &settled(|_, children| children[0].1["spec"]["replicas"] = json!(10)),
        &["update Deployment"],
    );
    check(
        &settled(|_, children| children[1].1["spec"]["ports"][0]["targetPort"] = json!(1)),
        &["update Service"],
    );
    check(
        &settled(|_, children| children[2].1["spec"]["rules"][0]["host"] = json!("x.example.com")),
        &["update Ingress"],
    );
}

#[test]
fn a_missing_child_is_made_anew() {
    check(
        &settled(|_, children| {
            children.remove(1);
        }),
        &["create Service"],
    );
}

#[test]
fn a_new_image_is_one_apply() {
    check(&settled(|app, _| app["spec"]["image"] = json!("nginx:1.30")), &["update Deployment"]);
}

#[test]
fn a_new_port_changes_container_and_service_together() {
    check(
        &settled(|app, _| app["spec"]["port"] = json!(9090)),
        &["update Deployment", "update Service"],
    );
}

#[test]
fn without_a_host_the_ingress_goes() {
    let observed = settled(|app, _| {
        app["spec"].as_object_mut().unwrap().remove("host");
    });
    check(&observed, &["delete Ingress"]);
    let Operation::Delete { uid, resource_version, .. } = &plan_of(&observed).operations[0] else {
        panic!("not a delete");
    };
    assert_eq!((uid.as_str(), resource_version.as_str()), ("uid-Ingress", "200"));
}

#[test]
fn an_ingress_of_others_stays_without_a_host() {
    check(
        &settled(|app, children| {
            app["spec"].as_object_mut().unwrap().remove("host");
            children[2].1["metadata"].as_object_mut().unwrap().remove("ownerReferences");
        }),
        &[],
    );
}

#[test]
fn a_child_that_is_going_is_left_alone() {
    check(
        &settled(|app, children| {
            app["spec"]["image"] = json!("nginx:1.30");
            children[0].1["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }),
        &[],
    );
    check(
        &settled(|app, children| {
            app["spec"].as_object_mut().unwrap().remove("host");
            children[2].1["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }),
        &[],
    );
}

#[test]
fn nothing_is_made_behind_a_stranger() {
    let strangers = [
        json!(null),
        json!([{"apiVersion": "x/v1", "kind": "Shop", "name": "main", "uid": "u", "controller": true}]),
        // An earlier app of the same name, whose children garbage collection has not removed yet.
        json!([{
            "apiVersion": "apps.bootcamp.local/v1", "kind": "SimpleApp", "name": "all-fields",
            "uid": "another", "controller": true,
        }]),
        // Ours, but not as the one that manages it.
        json!([{
            "apiVersion": "apps.bootcamp.local/v1", "kind": "SimpleApp", "name": "all-fields",
            "uid": crate::support::fixtures::APP_UID, "controller": false,
        }]),
    ];
    for owners in strangers {
        let with_stranger = |index: usize| {
            settled(|app, children| {
                app["spec"]["image"] = json!("nginx:1.30");
                children[index].1["metadata"]["ownerReferences"] = owners.clone();
                children.truncate(index + 1);
            })
        };
        check(&with_stranger(0), &[]);
        check(&with_stranger(1), &["update Deployment"]);
        check(&with_stranger(2), &["update Deployment"]);
    }
}

#[test]
fn pods_are_listed_only_while_they_can_tell_something() {
    let progressing = |replicas: i64, phase: &str, last_updated: &str| {
        let status = json!({"phase": phase, "lastUpdated": last_updated});
        settled(move |app, children| {
            app["status"] = status.clone();
            children[0].1["status"] = complete(2);
            children[0].1["status"]["readyReplicas"] = json!(1);
            children[0].1["status"]["replicas"] = json!(replicas);
        })
    };
    let (just_now, a_while_ago) = ("2026-01-01T00:09:59Z", "2026-01-01T00:09:58Z");
    check(&progressing(2, "Progressing", a_while_ago), &["ListPods"]);
    check(&progressing(0, "Progressing", a_while_ago), &[]);
    check(&progressing(2, "Progressing", just_now), &[]);
    check(&progressing(2, "Failed", just_now), &["ListPods"]);
    let mut looked = progressing(2, "Failed", a_while_ago);
    looked.pods = Some(Vec::new());
    check(&looked, &[]);
}

#[test]
fn deletion_comes_first() {
    let deleted = |finalizers: Value| {
        settled(move |app, children| {
            app["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            app["metadata"]["finalizers"] = finalizers.clone();
            app["spec"]["image"] = json!("invalid image");
            children.clear();
        })
    };
    check(
        &deleted(json!([FINALIZER])),
        &["CleanUp { deadline: 2026-01-01T00:05:00Z }", "RemoveFinalizer"],
    );
    // Ours is off already, another's is not: nothing is put on again.
    check(&deleted(json!(["example.com/other"])), &[]);
    assert_eq!(plan_of(&deleted(json!(["example.com/other"]))).requeue, None);
}

#[test]
fn an_invalid_spec_leaves_what_runs() {
    check(&settled(|app, _| app["spec"]["port"] = json!(0)), &[]);
}
