//! Phase, message and conditions: every row of the table.

use std::time::Duration;

use serde_json::{Value, json};
use simpleapp_operator::{
    api::simpleapp::{Phase, SimpleAppStatus},
    simpleapp::{
        observed::{ChildKind, Observed, Refusal},
        plan::settle,
        pods::PodView,
        status::{Change, assess, change},
        validate::validate,
    },
};

use crate::support::{
    fixtures::{complete, dynamic, guarded, observed, parse, stored_children},
    world::{NOW, now},
};

const CASE: &str = "litmus-2-replicas-port";

/// A case with three replicas whose Deployment has this status.
fn with_status(status: Value) -> Observed {
    let app = guarded(CASE);
    let mut children = stored_children(&app);
    children[0].1["status"] = status;
    observed(&app, &children)
}

/// A pod of the current template whose container waits for `reason`.
fn pod(template: &str, image: &str, reason: &str) -> Value {
    json!({
        "metadata": {
            "name": "web-1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"pod-template-hash": template},
        },
        "spec": {"containers": [
            {"name": "app", "image": image, "ports": [{"containerPort": 8080}]},
        ]},
        "status": {"containerStatuses": [{
            "name": "app", "image": image, "imageID": "", "ready": false, "restartCount": 0,
            "state": {"waiting": {"reason": reason}},
        }]},
    })
}

fn with_pods(mut observed: Observed, pods: &[Value]) -> Observed {
    let view = |pod: &Value| PodView::of(&serde_json::from_value(pod.clone()).unwrap());
    observed.pods = Some(pods.iter().map(view).collect());
    observed
}

#[track_caller]
fn check(observed: &Observed, phase: Phase, reason: &str, message: &str) {
    let assessment = assess(observed, &validate(&observed.app));
    assert_eq!(
        (assessment.phase, assessment.reason.as_str(), assessment.message.as_str()),
        (phase, reason, message)
    );
}

#[test]
fn pending_without_a_deployment() {
    let observed = observed(&guarded(CASE), &[]);
    check(&observed, Phase::Pending, "NoDeployment", "The Deployment does not exist yet");
}

#[test]
fn progressing_before_the_deployment_says_anything() {
    check(&with_status(Value::Null), Phase::Progressing, "RollingOut", "0/3 replicas ready");
}

#[test]
fn available_when_complete() {
    check(
        &with_status(complete(3)),
        Phase::Available,
        "AllReplicasReady",
        "All 3/3 replicas ready",
    );
}

#[test]
fn available_when_switched_off() {
    let app = guarded("scaled-to-zero");
    let mut children = stored_children(&app);
    children[0].1["status"] = json!({"observedGeneration": 1});
    check(&observed(&app, &children), Phase::Available, "ScaledToZero", "All 0/0 replicas ready");
}

#[test]
fn not_available_while_anything_is_missing() {
    let changes = [
        ("observedGeneration", json!(0), "3/3 replicas ready"),
        ("updatedReplicas", json!(2), "3/3 replicas ready"),
        ("readyReplicas", json!(2), "2/3 replicas ready"),
        // An old pod is left.
        ("replicas", json!(4), "3/3 replicas ready"),
    ];
    for (field, value, message) in changes {
        let mut status = complete(3);
        status[field] = value;
        check(&with_status(status), Phase::Progressing, "RollingOut", message);
    }
}

#[test]
fn failed_when_the_spec_is_invalid() {
    let app = guarded("invalid-port");
    let message = "spec.port: 65536 is not between 1 and 65535";
    check(&observed(&app, &[]), Phase::Failed, "InvalidSpec", message);
}

#[test]
fn failed_when_a_name_is_taken() {
    let app = guarded(CASE);
    let mut children = stored_children(&app);
    children[0].1["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    let message = "Deployment \"replicas-port\" exists and does not belong to this SimpleApp";
    check(&observed(&app, &children), Phase::Failed, "NameConflict", message);
    children[0].1["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "x/v1", "kind": "Shop", "name": "main", "uid": "other", "controller": true,
    }]);
    let message = "Deployment \"replicas-port\" belongs to Shop \"main\", not to this SimpleApp";
    check(&observed(&app, &children), Phase::Failed, "NameConflict", message);
}

#[test]
fn failed_when_the_server_refuses_a_child() {
    let mut observed = observed(&guarded(CASE), &[]);
    let refusal = Refusal {
        reason: "Forbidden".into(),
        message: "deployments.apps \"web\" is forbidden: exceeded quota: apps, requested: count/deployments.apps=1, used: count/deployments.apps=5, limited: count/deployments.apps=5".into(),
    };
    observed.refused.insert(ChildKind::Deployment, refusal);
    let message = "Deployment: exceeded quota: apps, requested: count/deployments.apps=1, limited: count/deployments.apps=5";
    check(&observed, Phase::Failed, "QuotaExceeded", message);
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "observedGeneration": 1,
        "conditions": [{"type": kind, "status": status, "reason": reason, "message": message}],
    })
}

#[test]
fn failed_when_no_pod_can_be_made() {
    let message = "pods \"web-5d4f8-\" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=2, limited: pods=2";
    let status = condition("ReplicaFailure", "True", "FailedCreate", message);
    let expected = "exceeded quota: pods, requested: pods=1, limited: pods=2";
    check(&with_status(status), Phase::Failed, "QuotaExceeded", expected);

    let message = "pods \"web-5d4f8-\" is forbidden: violates PodSecurity \"restricted:latest\": runAsNonRoot != true";
    let status = condition("ReplicaFailure", "True", "FailedCreate", message);
    let expected = "violates PodSecurity \"restricted:latest\": runAsNonRoot != true";
    check(&with_status(status), Phase::Failed, "ReplicaFailure", expected);
}

#[test]
fn failed_when_the_rollout_is_stuck() {
    let status = condition(
        "Progressing",
        "False",
        "ProgressDeadlineExceeded",
        "ReplicaSet \"web-5d4f8\" has timed out progressing.",
    );
    let expected = "ProgressDeadlineExceeded: the rollout made no progress in time";
    check(&with_status(status), Phase::Failed, "ProgressDeadlineExceeded", expected);
}

#[test]
fn what_was_said_of_an_older_spec_does_not_count() {
    let mut status = condition("Progressing", "False", "ProgressDeadlineExceeded", "");
    status["observedGeneration"] = json!(0);
    check(&with_status(status), Phase::Progressing, "RollingOut", "0/3 replicas ready");
}

#[test]
fn failed_for_every_reason_of_a_pod() {
    for reason in [
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "CrashLoopBackOff",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
    ] {
        let observed = with_pods(with_status(Value::Null), &[pod("1", "nginx:1.29", reason)]);
        check(&observed, Phase::Failed, reason, &format!("{reason}: nginx:1.29"));
    }
    for reason in ["ContainerCreating", "PodInitializing"] {
        let observed = with_pods(with_status(Value::Null), &[pod("1", "nginx:1.29", reason)]);
        check(&observed, Phase::Progressing, "RollingOut", "0/3 replicas ready");
    }
}

#[test]
fn pods_of_another_template_do_not_count() {
    let status = || with_status(Value::Null);
    let progressing = |observed: Observed| {
        check(&observed, Phase::Progressing, "RollingOut", "0/3 replicas ready");
    };
    progressing(with_pods(status(), &[pod("1", "nginx:old", "ImagePullBackOff")]));

    let mut other_port = pod("1", "nginx:1.29", "CrashLoopBackOff");
    other_port["spec"]["containers"][0]["ports"][0]["containerPort"] = json!(80);
    progressing(with_pods(status(), &[other_port]));

    let mut going = pod("1", "nginx:1.29", "CrashLoopBackOff");
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    progressing(with_pods(status(), &[going]));

    // The same image after `kubectl rollout restart`.
    let mut restarted = pod("2", "nginx:1.29", "ContainerCreating");
    restarted["metadata"]["creationTimestamp"] = json!("2026-01-01T00:01:00Z");
    progressing(with_pods(status(), &[pod("1", "nginx:1.29", "CrashLoopBackOff"), restarted]));
}

#[test]
fn a_sidecar_that_fails_is_named_by_its_image() {
    let mut pod = pod("1", "nginx:1.29", "ContainerCreating");
    let containers = pod["spec"]["containers"].as_array_mut().unwrap();
    containers.push(json!({"name": "proxy", "image": "proxy:1"}));
    let statuses = pod["status"]["containerStatuses"].as_array_mut().unwrap();
    statuses.push(json!({
        "name": "proxy", "image": "proxy:1", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"waiting": {"reason": "ErrImagePull"}},
    }));
    let observed = with_pods(with_status(Value::Null), &[pod]);
    check(&observed, Phase::Failed, "ErrImagePull", "ErrImagePull: proxy:1");
}

/// `observed` after the status was written that says what is so.
fn told(observed: &Observed) -> Observed {
    let status = written(observed);
    let mut app = (*observed.app).clone();
    app.status = status;
    let mut told = observed.clone();
    told.app = app.into();
    told
}

#[track_caller]
fn written(observed: &Observed) -> SimpleAppStatus {
    let assessment = assess(observed, &validate(&observed.app));
    match change(&observed.app, &assessment, now()) {
        Change::Write(status) => *status,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_reason_that_comes_and_goes_is_reported_once() {
    let pull = with_pods(with_status(Value::Null), &[pod("1", "nginx:1.29", "ImagePullBackOff")]);
    let again = with_pods(told(&pull), &[pod("1", "nginx:1.29", "ErrImagePull")]);
    check(&again, Phase::Failed, "ImagePullBackOff", "ImagePullBackOff: nginx:1.29");

    let mut running = pod("1", "nginx:1.29", "");
    running["status"]["containerStatuses"][0]["state"] = json!({"running": {}});
    running["status"]["containerStatuses"][0]["restartCount"] = json!(3);
    let crash = with_pods(with_status(Value::Null), &[pod("1", "nginx:1.29", "CrashLoopBackOff")]);
    let again = with_pods(told(&crash), &[running.clone()]);
    check(&again, Phase::Failed, "CrashLoopBackOff", "CrashLoopBackOff: nginx:1.29");
    // Without such a past, a container that was started again is on its way.
    let fresh = with_pods(with_status(Value::Null), &[running]);
    check(&fresh, Phase::Progressing, "RollingOut", "0/3 replicas ready");
}

#[test]
fn old_pods_serve_while_a_new_template_fails() {
    let mut status = complete(3);
    status["updatedReplicas"] = json!(1);
    status["replicas"] = json!(4);
    let observed = with_pods(with_status(status), &[pod("2", "nginx:1.29", "ImagePullBackOff")]);
    let status = written(&observed);
    let conditions: Vec<(&str, &str)> =
        status.conditions.iter().map(|c| (c.type_.as_str(), c.status.as_str())).collect();
    let expected = [
        ("Available", "True"),
        ("Progressing", "False"),
        ("Degraded", "True"),
        ("NameConflict", "False"),
    ];
    assert_eq!(conditions, expected);
    assert_eq!(status.phase, Some(Phase::Failed));
    assert_eq!(status.message.as_deref(), Some("ImagePullBackOff: nginx:1.29"));
}

#[test]
fn a_status_that_says_what_is_so_is_kept() {
    for observed in [
        with_status(complete(3)),
        with_status(Value::Null),
        observed(&guarded("invalid-host"), &[]),
        observed(&guarded(CASE), &[]),
    ] {
        let told = told(&observed);
        let later = now() + Duration::from_hours(100);
        let assessment = assess(&told, &validate(&told.app));
        assert_eq!(change(&told.app, &assessment, later), Change::Keep);
    }
}

#[test]
fn times_move_only_with_what_they_date() {
    let before = told(&with_status(Value::Null));
    let mut after = with_status(complete(3));
    after.app = before.app.clone();
    let later = now() + Duration::from_mins(1);
    let assessment = assess(&after, &validate(&after.app));
    let Change::Write(status) = change(&after.app, &assessment, later) else {
        panic!("a change of phase is written");
    };
    let time = |moment: jiff::Timestamp| moment.to_string();
    assert_eq!(time(status.last_updated.unwrap().0), "2026-01-01T00:11:00Z");
    let times: Vec<(String, String)> = status
        .conditions
        .iter()
        .map(|c| (c.type_.clone(), time(c.last_transition_time.0)))
        .collect();
    let expected = [
        ("Available", "2026-01-01T00:11:00Z"),
        ("Progressing", "2026-01-01T00:11:00Z"),
        ("Degraded", NOW),
        ("NameConflict", NOW),
    ];
    assert_eq!(times, expected.map(|(kind, time)| (kind.to_owned(), time.to_owned())));
}

#[test]
fn numbers_alone_are_not_written_at_once() {
    let before = told(&with_status(Value::Null));
    let mut status = complete(3);
    status["readyReplicas"] = json!(1);
    status["conditions"] = json!([]);
    let mut after = with_status(status);
    after.app = before.app.clone();
    let at = |seconds: u64| {
        let assessment = assess(&after, &validate(&after.app));
        change(&after.app, &assessment, now() + Duration::from_secs(seconds))
    };
    assert_eq!(at(1), Change::Wait(Duration::from_secs(14)));
    let Change::Write(status) = at(15) else {
        panic!("numbers are written in the end");
    };
    assert_eq!(status.message.as_deref(), Some("1/3 replicas ready"));
}

#[test]
fn a_new_generation_is_acknowledged_at_once() {
    let before = told(&with_status(Value::Null));
    let mut app = guarded(CASE);
    app["metadata"]["generation"] = json!(2);
    app["status"] = serde_json::to_value(&before.app.status).unwrap();
    let mut after = before;
    after.app = parse(&app).into();
    let assessment = assess(&after, &validate(&after.app));
    let Change::Write(status) = change(&after.app, &assessment, now()) else {
        panic!("a new generation is written");
    };
    assert_eq!(status.observed_generation, Some(2));
    assert!(status.conditions.iter().all(|c| c.observed_generation == Some(2)));
}

#[test]
fn an_app_that_is_not_there_is_looked_at_ever_less_often() {
    let told = told(&with_status(Value::Null));
    let after = |seconds: u64| {
        let plan = settle(&told, &validate(&told.app), now() + Duration::from_secs(seconds));
        plan.requeue.unwrap().as_secs()
    };
    assert_eq!([0, 1, 10, 59, 3600].map(after), [2, 2, 10, 59, 60]);
}

#[test]
fn a_status_that_cannot_be_read_is_replaced() {
    let mut app = guarded(CASE);
    app["status"] = json!({"phase": "Confused", "conditions": "none"});
    assert_eq!(
        simpleapp_operator::simpleapp::observed::App::of(&dynamic(&app)).status,
        SimpleAppStatus::default()
    );
}
