//! What is left of a deleted app, when things go wrong on the way.

use serde_json::{Value, json};
use simpleapp_operator::kernel::{error::ErrorClass, work::Verdict};

use crate::support::{
    fixtures::{APP_UID, guarded},
    script::{Answer, CONFIG_MAPS, create, fails, get, patch_app, patches, terminating},
    world::World,
};

const NAME: &str = "all-fields";
const RECORD: &str = "audit-deleted-all-fields-1767226140";
const ELSEWHERE: &str = "/api/v1/namespaces/operator-system/configmaps";

/// An app that was deleted a minute ago.
fn deleted() -> World {
    let mut app = guarded("litmus-3-all-fields");
    app["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:09:00Z");
    World::new(app)
}

fn echo() -> Answer {
    Answer::Made(Box::new(Value::clone))
}

fn exists() -> Answer {
    fails(409, "AlreadyExists", "configmaps already exists")
}

fn record_of(uid: &str) -> Answer {
    Answer::Reply(
        200,
        json!({
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": RECORD, "annotations": {"audit.bootcamp.local/uid": uid}},
        }),
    )
}

#[tokio::test(start_paused = true)]
async fn a_record_from_before_a_crash_will_do() {
    let world = deleted();
    let script = vec![
        create(CONFIG_MAPS, exists()),
        get(CONFIG_MAPS, RECORD, record_of(APP_UID)),
        patch_app(NAME, patches(&world.app, 120)),
    ];
    assert_eq!(world.reconcile(script).await.verdict, Verdict::Done(None));
}

#[tokio::test(start_paused = true)]
async fn a_namesake_that_was_deleted_in_the_same_second_keeps_its_record() {
    let world = deleted();
    let script = vec![
        create(CONFIG_MAPS, exists()),
        get(CONFIG_MAPS, RECORD, record_of("another")),
        create(CONFIG_MAPS, echo()),
        patch_app(NAME, patches(&world.app, 120)),
    ];
    let done = world.reconcile(script).await;
    assert_eq!(done.verdict, Verdict::Done(None));
    assert!(done.conversation.contains(&format!("\"name\": \"{RECORD}-")), "{}", done.conversation);
}

#[tokio::test(start_paused = true)]
async fn an_app_that_is_gone_needs_no_patch() {
    let not_found = fails(404, "NotFound", "simpleapps \"all-fields\" not found");
    let script = vec![create(CONFIG_MAPS, echo()), patch_app(NAME, not_found)];
    assert_eq!(deleted().reconcile(script).await.verdict, Verdict::Done(None));
}

#[tokio::test(start_paused = true)]
async fn from_a_namespace_that_goes_the_record_goes_elsewhere() {
    let mut world = deleted();
    world.operator_namespace = Some("operator-system".into());
    let script = vec![
        create(CONFIG_MAPS, terminating(RECORD)),
        create(ELSEWHERE, echo()),
        patch_app(NAME, patches(&world.app, 120)),
    ];
    let done = world.reconcile(script).await;
    assert_eq!(done.verdict, Verdict::Done(None));
    assert!(done.conversation.contains("audit-deleted-shop-all-fields-1767226140"));
    assert!(done.events.is_empty(), "{:?}", done.events);
}

#[tokio::test(start_paused = true)]
async fn with_nowhere_to_go_the_record_is_logged_and_the_app_let_go() {
    let here = deleted();
    let script =
        vec![create(CONFIG_MAPS, terminating(RECORD)), patch_app(NAME, patches(&here.app, 120))];
    let done = here.reconcile(script).await;
    assert_eq!(done.verdict, Verdict::Done(None));
    assert_eq!(done.events.len(), 1);
    assert!(
        done.events[0].starts_with("Warning AuditLoggedOnly Namespace shop: "),
        "{:?}",
        done.events
    );

    for answer in [terminating(RECORD), fails(404, "NotFound", "namespaces not found")] {
        let mut world = deleted();
        world.operator_namespace = Some("operator-system".into());
        let script = vec![
            create(CONFIG_MAPS, terminating(RECORD)),
            create(ELSEWHERE, answer),
            patch_app(NAME, patches(&world.app, 120)),
        ];
        let done = world.reconcile(script).await;
        assert_eq!(done.verdict, Verdict::Done(None));
        assert_eq!(done.events.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_written_is_tried_again_until_the_deadline() {
    let refused = || create(CONFIG_MAPS, fails(403, "Forbidden", "exceeded quota"));
    let done = deleted().reconcile(vec![refused()]).await;
    let Verdict::Failed { class, at_most, .. } = done.verdict else { panic!("{:?}", done.verdict) };
    assert_eq!(class, ErrorClass::Refused);
    assert_eq!(at_most.unwrap().as_secs(), 4 * 60);
    assert!(done.events.is_empty(), "{:?}", done.events);

    let late = deleted().at("2026-01-01T00:14:00Z");
    let patch = patch_app(NAME, patches(&late.app, 120));
    let done = late.reconcile(vec![refused(), patch]).await;
    assert_eq!(done.verdict, Verdict::Done(None));
    assert_eq!(done.events.len(), 1);
    assert!(
        done.events[0].starts_with("Warning CleanupTimeout SimpleApp all-fields: "),
        "{:?}",
        done.events
    );
}

#[tokio::test(start_paused = true)]
async fn an_app_that_cannot_be_read_leaves_a_record_too() {
    let mut world = deleted();
    world.app["spec"] = json!("nonsense");
    let script = vec![create(CONFIG_MAPS, echo()), patch_app(NAME, patches(&world.app, 120))];
    let done = world.reconcile(script).await;
    assert_eq!(done.verdict, Verdict::Done(None));
    assert!(done.conversation.contains("\"image\": \"unknown\""));
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_moved_is_looked_for_again() {
    let text = "the server rejected our request due to an error in our request";
    let script = vec![create(CONFIG_MAPS, echo()), patch_app(NAME, fails(422, "Invalid", text))];
    let done = deleted().reconcile(script).await;
    let Verdict::Failed { class, .. } = done.verdict else { panic!("{:?}", done.verdict) };
    assert_eq!(class, ErrorClass::Conflict);
}
