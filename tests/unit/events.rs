//! Events as the API server gets them.

use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::Value;
use simpleapp_operator::kernel::{
    clock::Clock,
    events::{ApiEvents, Event, EventSink, Severity},
};

use crate::support::{
    assert_snapshot,
    script::{Answer, create, fails, patch_event, play},
    world::{NOW, now},
};

const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/shop/events";

fn app() -> ObjectReference {
    ObjectReference {
        api_version: Some("apps.bootcamp.local/v1".into()),
        kind: Some("SimpleApp".into()),
        name: Some("web".into()),
        namespace: Some("shop".into()),
        uid: Some("a".into()),
        ..ObjectReference::default()
    }
}

fn event(note: &str) -> Event {
    Event { severity: Severity::Warning, reason: "Failed", action: "Reconcile", note: note.into() }
}

#[tokio::test(start_paused = true)]
async fn a_repeated_event_is_counted_and_an_old_one_begins_anew() {
    let time = Arc::new(Mutex::new(NOW.parse::<Timestamp>().unwrap()));
    let clock = Clock::new({
        let time = time.clone();
        move || *time.lock().unwrap()
    });
    let echo = || Answer::Made(Box::new(Value::clone));
    let made = |_: &Value| {
        serde_json::json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "x"},
            "eventTime": "2026-01-01T00:00:00.000000Z",
        })
    };
    let script = vec![
        create(EVENTS, echo()),
        patch_event(Answer::Made(Box::new(made))),
        create(EVENTS, echo()),
        create(EVENTS, echo()),
    ];
    let ((), conversation) = play(script, |client| async move {
        let events = ApiEvents::new(client, clock, "pod-1".into());
        events.publish(app(), event("ImagePullBackOff: nginx:no")).await;
        events.publish(app(), event("ImagePullBackOff: nginx:no")).await;
        events.publish(app(), event("something else")).await;
        let later = *time.lock().unwrap() + jiff::SignedDuration::from_mins(7);
        *time.lock().unwrap() = later;
        events.publish(app(), event("ImagePullBackOff: nginx:no")).await;
    })
    .await;
    assert_snapshot!("requests/events", conversation);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_refused_is_lost_and_nothing_else() {
    let script = vec![create(EVENTS, fails(403, "Forbidden", "no"))];
    play(script, |client| async move {
        let events = ApiEvents::new(client, Clock::new(now), "pod-1".into());
        events.publish(app(), event(&"ü".repeat(2000))).await;
    })
    .await;
}
