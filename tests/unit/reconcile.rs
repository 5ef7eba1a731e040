//! Whole reconciles: every request, in order, with its body (in the snapshots).

use std::time::Duration;

use serde_json::{Value, json};
use simpleapp_operator::{
    kernel::{error::ErrorClass, work::Verdict},
    simpleapp::{observed::ChildKind, plan::plan},
};

use crate::support::{
    assert_snapshot,
    fixtures::{FINALIZER, app, complete, guarded, observed, stored, stored_children},
    script::{
        Answer, CONFIG_MAPS, DEPLOYMENTS, INGRESSES, SERVICES, Step, applies, apply, create,
        delete, fails, failure, list_pods, patch_app, patch_status, patches,
    },
    world::{Done, SETTINGS, World},
};

const CASE: &str = "litmus-3-all-fields";
const NAME: &str = "all-fields";

/// The case with everything done and said, changed by `change`.
fn settled(change: impl Fn(&mut Value, &mut Vec<(ChildKind, Value)>)) -> World {
    let mut app = guarded(CASE);
    let mut children = stored_children(&app);
    children[0].1["status"] = complete(2);
    app["status"] = said(&app, &children);
    change(&mut app, &mut children);
    World::new(app).with(children)
}

/// The status that we write about `app` as it is.
fn said(app: &Value, children: &[(ChildKind, Value)]) -> Value {
    let then = "2026-01-01T00:01:00Z".parse().unwrap();
    let plan = plan(&observed(app, children), SETTINGS, then);
    serde_json::to_value(plan.status.unwrap()).unwrap()
}

fn status_step(app: &Value) -> Step {
    patch_status(app["metadata"]["name"].as_str().unwrap(), patches(app, 110))
}

#[track_caller]
fn failed_as(done: &Done, expected: ErrorClass) {
    match done.verdict {
        Verdict::Failed { class, .. } => assert_eq!(class, expected),
        done @ Verdict::Done(_) => panic!("{done:?}"),
    }
}

async fn first_create(case: &str, with_ingress: bool) {
    let app = app(case);
    let name = app["metadata"]["name"].as_str().unwrap().to_owned();
    let guarded = guarded(case);
    let mut script = vec![
        patch_app(&name, patches(&app, 101)),
        apply(DEPLOYMENTS, &name, applies("d", 102)),
        apply(SERVICES, &name, applies("s", 103)),
    ];
    if with_ingress {
        script.push(apply(INGRESSES, &name, applies("i", 104)));
    }
    script.push(status_step(&guarded));
    let done = World::new(app).reconcile(script).await;
    assert_snapshot!(format!("requests/create-{case}"), done.conversation);
    assert_eq!(done.verdict, Verdict::Done(Some(Duration::from_secs(2))));
    let ingress = if with_ingress { ", created Ingress" } else { "" };
    let event =
        format!("Normal Applied SimpleApp {name}: Created Deployment, created Service{ingress}");
    assert_eq!(done.events, [event]);
}

#[tokio::test(start_paused = true)]
async fn an_image_only() {
    first_create("litmus-1-image-only", false).await;
}

#[tokio::test(start_paused = true)]
async fn replicas_and_port() {
    first_create("litmus-2-replicas-port", false).await;
}

#[tokio::test(start_paused = true)]
async fn all_fields() {
    first_create("litmus-3-all-fields", true).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_to_do_is_no_request() {
    let done = settled(|_, _| {}).reconcile(vec![]).await;
    let Verdict::Done(Some(requeue)) = done.verdict else { panic!("{:?}", done.verdict) };
    assert!((600..=660).contains(&requeue.as_secs()), "{requeue:?}");
    assert!(done.events.is_empty(), "{:?}", done.events);
}

#[tokio::test(start_paused = true)]
async fn nothing_to_do_is_no_request_however_late() {
    settled(|_, _| {}).at("2036-01-01T00:00:00Z").reconcile(vec![]).await;
}

#[tokio::test(start_paused = true)]
async fn a_label_on_the_app_is_no_request() {
    settled(|app, _| app["metadata"]["labels"] = json!({"team": "a"})).reconcile(vec![]).await;
}

#[tokio::test(start_paused = true)]
async fn an_app_that_is_gone_is_no_request() {
    let world = World { is_gone: true, ..settled(|_, _| {}) };
    assert_eq!(world.reconcile(vec![]).await.verdict, Verdict::Done(None));
}

#[tokio::test(start_paused = true)]
async fn what_we_wrote_is_known_before_the_watch_tells() {
    let app = app(CASE);
    let script = vec![
        patch_app(NAME, patches(&app, 101)),
        apply(DEPLOYMENTS, NAME, applies("d", 102)),
        apply(SERVICES, NAME, applies("s", 103)),
        apply(INGRESSES, NAME, applies("i", 104)),
        status_step(&guarded(CASE)),
    ];
    let world = World::new(app);
    let done = world.reconcile(script).await;
    // The caches have heard nothing from a watch, and yet there is nothing left to do.
    let app = done.ctx.apps.get(&world.key()).unwrap();
    assert!(app.has_finalizer());
    assert_eq!(app.status.message.as_deref(), Some("0/2 replicas ready"));
    for cache in done.ctx.children.values() {
        assert!(cache.get(&world.key()).unwrap().owned.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_of_others_is_kept() {
    let mut app = app("litmus-1-image-only");
    app["metadata"]["finalizers"] = json!(["example.com/other"]);
    app["spec"]["port"] = json!(0);
    let script = vec![
        patch_app("image-only", patches(&app, 101)),
        patch_status("image-only", patches(&app, 102)),
    ];
    let done = World::new(app).reconcile(script).await;
    assert_snapshot!("requests/finalizer-beside-another", done.conversation);
}

#[tokio::test(start_paused = true)]
async fn drift_is_repaired_with_one_apply_of_that_child() {
    let world = settled(|_, children| children[0].1["spec"]["replicas"] = json!(10));
    let mut after = world.app.clone();
    after["metadata"]["resourceVersion"] = json!("101");
    let script =
        vec![apply(DEPLOYMENTS, NAME, applies("uid-Deployment", 300)), status_step(&after)];
    let done = world.reconcile(script).await;
    assert_snapshot!("requests/drift", done.conversation);
    assert_eq!(done.events, ["Normal Applied SimpleApp all-fields: Updated Deployment"]);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_service_is_made_anew_with_one_apply() {
    let world = settled(|_, children| {
        children.remove(1);
    });
    let done = world.reconcile(vec![apply(SERVICES, NAME, applies("s", 300))]).await;
    assert_eq!(done.events, ["Normal Applied SimpleApp all-fields: Created Service"]);
}

#[tokio::test(start_paused = true)]
async fn without_a_host_the_ingress_is_deleted_with_preconditions() {
    let world = settled(|app, _| {
        app["spec"].as_object_mut().unwrap().remove("host");
        app["metadata"]["generation"] = json!(2);
    });
    let gone =
        Answer::Reply(200, json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}));
    let script = vec![delete(INGRESSES, NAME, gone), status_step(&world.app)];
    let done = world.reconcile(script).await;
    assert_snapshot!("requests/delete-ingress", done.conversation);
    assert_eq!(done.events, ["Normal Applied SimpleApp all-fields: Deleted Ingress"]);
    assert!(
        done.ctx.children[&ChildKind::Ingress].get(&world.key()).is_none(),
        "not even from the cache"
    );
}

#[tokio::test(start_paused = true)]
async fn an_ingress_that_is_gone_already_is_gone() {
    let world = settled(|app, _| {
        app["spec"].as_object_mut().unwrap().remove("host");
    });
    let script = vec![
        delete(INGRESSES, NAME, fails(404, "NotFound", "ingresses \"all-fields\" not found")),
        status_step(&world.app),
    ];
    let done = world.reconcile(script).await;
    assert!(matches!(done.verdict, Verdict::Done(_)));
}

#[tokio::test(start_paused = true)]
async fn pods_tell_why_an_app_does_not_start() {
    let world = settled(|_, children| {
        children[0].1["status"]["readyReplicas"] = json!(1);
    });
    let pods = json!({
        "kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"},
        "items": [{
            "metadata": {"name": "all-fields-1"},
            "spec": {"containers": [
                {"name": "app", "image": "nginx:1.29", "ports": [{"containerPort": 8080}]},
            ]},
            "status": {"containerStatuses": [{
                "name": "app", "image": "nginx:1.29", "imageID": "", "ready": false,
                "restartCount": 1, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            }]},
        }],
    });
    let script = vec![list_pods(NAME, Answer::Reply(200, pods)), status_step(&world.app)];
    let done = world.reconcile(script).await;
    assert_snapshot!("requests/failing-pods", done.conversation);
    assert_eq!(done.events, ["Warning Failed SimpleApp all-fields: CrashLoopBackOff: nginx:1.29"]);
    assert_eq!(done.verdict, Verdict::Done(Some(Duration::from_secs(2))));
}

#[tokio::test(start_paused = true)]
async fn a_stranger_is_reported_once_and_left_alone() {
    let mut app = guarded(CASE);
    let mut children = stored_children(&app);
    children.truncate(1);
    children[0].1["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    let world = World::new(app.clone()).with(children.clone());
    let done = world.reconcile(vec![status_step(&app)]).await;
    assert_snapshot!("requests/name-conflict", done.conversation);
    let event = "Warning NameConflict SimpleApp all-fields: Deployment \"all-fields\" exists and does not belong to this SimpleApp";
    assert_eq!(done.events, [event]);

    app["status"] = said(&app, &children);
    let done = World::new(app).with(children).reconcile(vec![]).await;
    assert!(done.events.is_empty(), "{:?}", done.events);
    assert!(matches!(done.verdict, Verdict::Done(Some(wait)) if wait >= Duration::from_mins(10)));
}

#[tokio::test(start_paused = true)]
async fn a_stranger_that_we_had_not_seen_is_not_overwritten() {
    // The server has an object where we see none: an apply that may only create is turned down.
    let text = "Operation cannot be fulfilled on deployments.apps \"all-fields\": the object has been modified; please apply your changes to the latest version and try again";
    let world = World::new(settled(|_, _| {}).app);
    let done = world.reconcile(vec![apply(DEPLOYMENTS, NAME, fails(409, "Conflict", text))]).await;
    failed_as(&done, ErrorClass::Conflict);
    assert!(done.events.is_empty(), "{:?}", done.events);
}

#[tokio::test(start_paused = true)]
async fn trouble_in_the_middle_stops_there() {
    let answers: [(u16, &str, ErrorClass); 6] = [
        (500, "InternalError", ErrorClass::Transient),
        (503, "ServiceUnavailable", ErrorClass::Transient),
        (504, "Timeout", ErrorClass::Transient),
        (401, "Unauthorized", ErrorClass::Transient),
        (409, "Conflict", ErrorClass::Conflict),
        (404, "NotFound", ErrorClass::Conflict),
    ];
    for (code, reason, class) in answers {
        let world = World::new(settled(|_, _| {}).app);
        let script = vec![
            apply(DEPLOYMENTS, NAME, applies("d", 300)),
            apply(SERVICES, NAME, fails(code, reason, "no")),
        ];
        let done = world.reconcile(script).await;
        failed_as(&done, class);
        // What was done is told all the same.
        assert_eq!(done.events, ["Normal Applied SimpleApp all-fields: Created Deployment"]);
    }
}

#[tokio::test(start_paused = true)]
async fn trouble_with_a_child_of_a_new_spec_is_told_once() {
    let mut app = guarded(CASE);
    app["spec"].as_object_mut().unwrap().remove("host");
    let text = "Internal error occurred: failed to allocate a serviceIP for Service \"all-fields\": range is full";
    let full = || apply(SERVICES, NAME, fails(500, "InternalError", text));
    let script = vec![apply(DEPLOYMENTS, NAME, applies("d", 300)), full(), status_step(&app)];
    let done = World::new(app.clone()).reconcile(script).await;
    failed_as(&done, ErrorClass::Transient);
    assert_snapshot!("requests/trouble", done.conversation);

    let mut children = stored_children(&app);
    children.truncate(1);
    app["status"] = json!({"phase": "Progressing", "observedGeneration": 1});
    let done = World::new(app).with(children).reconcile(vec![full()]).await;
    failed_as(&done, ErrorClass::Transient);
}

#[tokio::test(start_paused = true)]
async fn trouble_before_the_first_deployment_is_pending() {
    let app = guarded(CASE);
    let script =
        vec![apply(DEPLOYMENTS, NAME, fails(500, "InternalError", "no")), status_step(&app)];
    let done = World::new(app).reconcile(script).await;
    failed_as(&done, ErrorClass::Transient);
    assert_snapshot!("requests/pending", done.conversation);
}

#[tokio::test(start_paused = true)]
async fn the_server_says_how_long_to_wait() {
    let mut answer = failure(429, "TooManyRequests", "too many requests, please try again later");
    answer["details"] = json!({"retryAfterSeconds": 7});
    let world = World::new(settled(|_, _| {}).app);
    let done = world.reconcile(vec![apply(DEPLOYMENTS, NAME, Answer::Reply(429, answer))]).await;
    let Verdict::Failed { retry_after, .. } = done.verdict else { panic!("{:?}", done.verdict) };
    assert_eq!(retry_after, Some(Duration::from_secs(7)));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_not_waited_for_for_ever() {
    let world = World::new(settled(|_, _| {}).app);
    let before = tokio::time::Instant::now();
    let done = world.reconcile(vec![apply(DEPLOYMENTS, NAME, Answer::Silence)]).await;
    failed_as(&done, ErrorClass::Transient);
    assert_eq!(before.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_reported_on_the_app() {
    let app = guarded(CASE);
    let text = "deployments.apps \"all-fields\" is forbidden: exceeded quota: apps, requested: count/deployments.apps=1, used: count/deployments.apps=5, limited: count/deployments.apps=5";
    let script = vec![apply(DEPLOYMENTS, NAME, fails(403, "Forbidden", text)), status_step(&app)];
    let done = World::new(app).reconcile(script).await;
    assert_snapshot!("requests/refused", done.conversation);
    // Nobody tells us when the quota is raised.
    assert_eq!(done.verdict, Verdict::Done(Some(Duration::from_mins(1))));
}

#[tokio::test(start_paused = true)]
async fn a_child_that_does_not_stick_is_applied_once_a_reconcile() {
    // Something on the server's side changes what we apply.
    let changed = Answer::Made(Box::new(|body| {
        let mut object = stored(body, "uid-Deployment", 300);
        object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("mirror/nginx:1.29");
        object["status"] = complete(2);
        object
    }));
    let world = settled(|_, children| children[0].1["spec"]["replicas"] = json!(10));
    let done = world.reconcile(vec![apply(DEPLOYMENTS, NAME, changed)]).await;
    assert!(matches!(done.verdict, Verdict::Done(Some(_))));
}

#[tokio::test(start_paused = true)]
async fn an_invalid_spec_is_reported_and_nothing_else() {
    let app = guarded("invalid-host");
    let done = World::new(app.clone()).reconcile(vec![status_step(&app)]).await;
    assert_snapshot!("requests/invalid", done.conversation);
    let mut told = app.clone();
    told["status"] = said(&app, &[]);
    World::new(told).reconcile(vec![]).await;
}

#[tokio::test(start_paused = true)]
async fn a_spec_that_cannot_be_read_is_reported_on_its_app() {
    let mut app = guarded(CASE);
    app["spec"] = json!({"image": {"name": "nginx"}, "replicas": "many"});
    let done = World::new(app.clone()).reconcile(vec![status_step(&app)]).await;
    assert_snapshot!("requests/unreadable", done.conversation);
    let mut told = app.clone();
    told["status"] = said(&app, &[]);
    World::new(told).reconcile(vec![]).await;
}

#[tokio::test(start_paused = true)]
async fn a_status_that_cannot_be_written_is_tried_again() {
    for (code, class) in [(409, ErrorClass::Conflict), (500, ErrorClass::Transient)] {
        let app = guarded("invalid-host");
        let script = vec![patch_status("invalid-host", fails(code, "", "no"))];
        let done = World::new(app).reconcile(script).await;
        failed_as(&done, class);
        assert!(done.events.is_empty(), "{:?}", done.events);
    }
}

#[tokio::test(start_paused = true)]
async fn a_patch_whose_tests_fail_means_look_again() {
    let text = "the server rejected our request due to an error in our request";
    let done =
        World::new(app(CASE)).reconcile(vec![patch_app(NAME, fails(422, "Invalid", text))]).await;
    failed_as(&done, ErrorClass::Conflict);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_makes_no_request() {
    let world = World { dry_run: true, ..World::new(app(CASE)) };
    assert_eq!(world.reconcile(vec![]).await.verdict, Verdict::Done(None));
}

#[tokio::test(start_paused = true)]
async fn deletion_is_a_record_and_a_patch() {
    let world = settled(|app, _| {
        app["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:09:00Z");
        app["metadata"]["finalizers"] = json!(["example.com/other", FINALIZER]);
    });
    let script = vec![
        create(CONFIG_MAPS, Answer::Made(Box::new(Value::clone))),
        patch_app(NAME, patches(&world.app, 120)),
    ];
    let done = world.reconcile(script).await;
    assert_snapshot!("requests/delete", done.conversation);
    assert_eq!(done.verdict, Verdict::Done(None));
    assert!(done.events.is_empty(), "{:?}", done.events);
}
