//! A cluster at rest: nothing is written, however long it lasts and whatever restarts.

use std::time::Duration;

use serde_json::json;
use simcluster::env;
use simpleapp_operator::api::simpleapp;

use crate::scene::{Scene, message, needs, shown, with_operator, with_operator_on};

const DAY: Duration = Duration::from_hours(24);

#[test]
fn a_day_of_rest_costs_no_write() {
    with_operator(async |scene| {
        for name in ["a", "b", "c"] {
            scene
                .app(name, json!({ "image": "nginx", "host": format!("{name}.example.com") }))
                .await;
            scene.available(name).await;
        }
        scene.quiet().await;
        let before = scene.cluster.position().await;
        let writes = scene.writes_of(scene.cluster.rest(DAY, Duration::from_secs(5))).await;
        assert_eq!(shown(&writes), Vec::<String>::new());
        let requests = scene.cluster.requests_since(&scene.operator, before).await;
        let reads: Vec<_> =
            requests.into_iter().filter(|r| !matches!(r.verb.as_str(), "watch" | "list")).collect();
        assert_eq!(shown(&reads), Vec::<String>::new(), "at rest there is nothing to get");
    });
}

#[test]
fn a_restart_of_the_operator_costs_no_write() {
    with_operator(async |scene| {
        scene.app("web", json!({ "image": "nginx", "host": "a.example.com" })).await;
        scene.available("web").await;
        scene.quiet().await;
        let before = scene.cluster.position().await;
        scene.stop().await;
        scene.start().await;
        scene.quiet().await;
        let writes = scene.writes_since(before).await;
        assert_eq!(shown(&writes), Vec::<String>::new());
    });
}

#[test]
fn watches_that_end_are_taken_up_again() {
    let needs = needs().virtual_time();
    with_operator_on(&needs, async |scene| {
        scene.app("web", json!({ "image": "nginx" })).await;
        scene.available("web").await;
        scene.cluster.rest(DAY, DAY).await;
        let watches = scene.requests().await.into_iter().filter(|r| r.verb == "watch").count();
        assert!(watches > 4 * 24, "only {watches} watches in a day");
        scene.patch::<simpleapp::SimpleApp>("web", json!({ "spec": { "replicas": 2 } })).await;
        scene.available("web").await;
    });
}

/// A CRD as an older version might have had it, which stores anything.
fn lax_definition() -> serde_json::Value {
    let mut definition = serde_json::to_value(simpleapp::definition()).unwrap();
    let version = &mut definition["spec"]["versions"][0];
    version["schema"] = json!({
        "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    });
    // The scale subresource would check the replicas.
    version["subresources"] = json!({ "status": {} });
    definition
}

#[test]
fn one_bad_object_never_stops_the_others() {
    let needs = env::Needs::default().crd(lax_definition()).pods().requests().virtual_time();
    with_operator_on(&needs, async |scene| {
        for (name, spec) in [
            ("undecodable", json!({ "image": "nginx", "replicas": "three" })),
            (
                "invalid",
                json!({ "image": "nginx", "replicas": 1, "port": 80, "host": "not a host" }),
            ),
        ] {
            scene.post_app(name, &spec).await.unwrap();
        }
        good_app_works(scene).await;
        let invalid = scene.get::<simpleapp::SimpleApp>("invalid").await;
        assert!(message(&invalid).contains("host"), "{}", message(&invalid));
        let hour = Duration::from_hours(1);
        let writes = scene.writes_of(scene.cluster.rest(hour, hour)).await;
        assert_eq!(shown(&writes), Vec::<String>::new());
    });
}

async fn good_app_works(scene: &Scene) {
    scene.app("good", json!({ "image": "nginx", "replicas": 1, "port": 80 })).await;
    scene.available("good").await;
    scene.quiet().await;
}
