//! Objects of the same name that are not ours.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::Ingress;
use kube::ResourceExt;
use serde_json::{Value, json};
use simpleapp_operator::api::simpleapp::{Phase, SimpleApp};

use crate::scene::{condition, phase, shown, with_operator, with_operator_on};

fn strange_service() -> Value {
    json!({
        "metadata": { "name": "web", "labels": { "whose": "theirs" } },
        "spec": { "ports": [{ "port": 9999 }], "selector": { "a": "b" } },
    })
}

fn in_conflict(app: &SimpleApp) -> bool {
    phase(app) == Some(Phase::Failed) && condition(app, "NameConflict").as_deref() == Some("True")
}

#[test]
fn a_stranger_is_never_touched_and_its_end_heals_the_app() {
    with_operator(async |scene| {
        let stranger: Service = scene.create(strange_service()).await;
        scene.app("web", json!({ "image": "nginx" })).await;
        scene.until("web", "in conflict", in_conflict).await;
        scene.quiet().await;
        let after = scene.get::<Service>("web").await;
        assert_eq!(after.resource_version(), stranger.resource_version(), "it was written to");
        scene.delete::<Service>("web").await;
        let app = scene.available("web").await;
        assert_eq!(condition(&app, "NameConflict").as_deref(), Some("False"));
        assert!(!scene.get::<Service>("web").await.labels().contains_key("whose"));
    });
}

#[test]
fn a_stranger_of_another_app_owner_is_not_adopted() {
    with_operator(async |scene| {
        let owner = json!({
            "apiVersion": "apps.bootcamp.local/v1", "kind": "SimpleApp", "name": "web",
            "uid": "11111111-2222-4333-8444-555555555555", "controller": true,
        });
        let app = scene.app("other", json!({ "image": "nginx" })).await;
        // An owner that exists, so that the garbage collector leaves the stranger alone.
        let mut owner = owner;
        owner["name"] = json!("other");
        owner["uid"] = json!(app.uid().unwrap());
        let mut service = strange_service();
        service["metadata"]["ownerReferences"] = json!([owner]);
        let stranger: Service = scene.create(service).await;
        scene.app("web", json!({ "image": "nginx" })).await;
        scene.until("web", "in conflict", in_conflict).await;
        scene.quiet().await;
        let after = scene.get::<Service>("web").await;
        assert_eq!(after.resource_version(), stranger.resource_version(), "it was written to");
    });
}

#[test]
fn an_ingress_of_somebody_else_survives_an_app_without_host() {
    with_operator(async |scene| {
        scene
            .create::<Ingress>(json!({
                "metadata": { "name": "web" },
                "spec": { "defaultBackend": { "service": { "name": "x", "port": { "number": 80 } } } },
            }))
            .await;
        scene.app("web", json!({ "image": "nginx" })).await;
        scene.available("web").await;
        scene.quiet().await;
        assert!(scene.find::<Ingress>("web").await.is_some());
    });
}

#[test]
fn a_conflict_makes_no_hot_loop() {
    let needs = crate::scene::needs().virtual_time();
    with_operator_on(&needs, async |scene| {
        scene
            .create::<Deployment>(json!({
                "metadata": { "name": "web" },
                "spec": {
                    "selector": { "matchLabels": { "a": "b" } },
                    "template": {
                        "metadata": { "labels": { "a": "b" } },
                        "spec": { "containers": [{ "name": "c", "image": "i" }] },
                    },
                },
            }))
            .await;
        scene.app("web", json!({ "image": "nginx" })).await;
        scene.until("web", "in conflict", in_conflict).await;
        scene.quiet().await;
        let hour = std::time::Duration::from_hours(1);
        let writes = scene.writes_of(scene.cluster.rest(hour, hour)).await;
        assert_eq!(shown(&writes), Vec::<String>::new());
    });
}
