//! What others do to the children: what is ours is repaired, the rest is left alone.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::Ingress;
use kube::ResourceExt;
use serde_json::{Value, json};
use simpleapp_operator::api::simpleapp::SimpleApp;

use crate::scene::{Scene, shown, with_operator};

async fn app_with_host(scene: &Scene) {
    scene.app("web", json!({ "image": "nginx", "host": "a.example.com" })).await;
    scene.available("web").await;
    scene.quiet().await;
}

#[test]
fn replicas_set_by_hand_go_back() {
    with_operator(async |scene| {
        app_with_host(scene).await;
        scene.patch::<Deployment>("web", json!({ "spec": { "replicas": 10 } })).await;
        let look = async || scene.get::<Deployment>("web").await.spec.replicas == Some(1);
        scene.cluster.eventually("one replica again", look).await;
    });
}

#[test]
fn owned_fields_of_every_child_are_repaired() {
    with_operator(async |scene| {
        app_with_host(scene).await;
        let label = json!({ "metadata": { "labels": { "app.kubernetes.io/name": "other" } } });
        scene.patch::<Service>("web", label.clone()).await;
        scene.patch::<Ingress>("web", label).await;
        let look = async || {
            let service = scene.get::<Service>("web").await;
            let ingress = scene.get::<Ingress>("web").await;
            service.labels()["app.kubernetes.io/name"] == "web"
                && ingress.labels()["app.kubernetes.io/name"] == "web"
        };
        scene.cluster.eventually("our labels", look).await;
    });
}

/// Applies merge ports by number: who changes the number of ours makes a port of their own that has the
/// name of ours, and ours is refused beside it.
#[test]
fn ports_changed_by_hand_go_back() {
    with_operator(async |scene| {
        app_with_host(scene).await;
        let service = json!({ "spec": { "ports": [{ "name": "http", "port": 9 }] } });
        scene.patch::<Service>("web", service).await;
        scene.until_ports("web", 80).await;
        let container = json!({
            "name": "app", "image": "nginx", "ports": [{ "name": "http", "containerPort": 9 }],
        });
        let deployment =
            json!({ "spec": { "template": { "spec": { "containers": [container] } } } });
        scene.patch::<Deployment>("web", deployment).await;
        scene.until_ports("web", 80).await;
        // The port of an app that was repaired changes as that of any other.
        scene.patch::<SimpleApp>("web", json!({ "spec": { "port": 8080 } })).await;
        scene.until_ports("web", 8080).await;
        // Ours under another name, and a stranger under ours.
        let ports = json!([{ "name": "old", "port": 8080 }, { "name": "http", "port": 9 }]);
        scene.patch::<Service>("web", json!({ "spec": { "ports": ports } })).await;
        scene.until_ports("web", 8080).await;
        scene.available("web").await;
        assert_eq!(shown(&scene.writes_of(async {}).await), Vec::<String>::new());
    });
}

#[test]
fn deleted_children_are_rebuilt() {
    with_operator(async |scene| {
        app_with_host(scene).await;
        scene.delete::<Service>("web").await;
        scene.delete::<Ingress>("web").await;
        scene.delete::<Deployment>("web").await;
        let look = async || scene.parts("web").await.len() == 4;
        scene.cluster.eventually("all parts", look).await;
        scene.available("web").await;
    });
}

#[test]
fn a_rollout_restart_and_foreign_marks_stay_and_cost_no_apply() {
    with_operator(async |scene| {
        app_with_host(scene).await;
        let writes = scene
            .writes_of(async {
                let restarted = json!({ "kubectl.kubernetes.io/restartedAt": "now" });
                let template = json!({ "metadata": { "annotations": restarted } });
                scene.patch::<Deployment>("web", json!({ "spec": { "template": template } })).await;
                let marks = json!({ "metadata": { "labels": { "team": "a" }, "annotations": { "b": "c" } } });
                scene.patch::<Service>("web", marks).await;
            })
            .await;
        let applies: Vec<_> = writes.into_iter().filter(|w| w.resource != "simpleapps").collect();
        assert_eq!(shown(&applies), Vec::<String>::new());
        let deployment = scene.get::<Deployment>("web").await;
        let annotations = deployment.spec.template.metadata.unwrap().annotations.unwrap();
        assert!(annotations.contains_key("kubectl.kubernetes.io/restartedAt"));
        assert_eq!(scene.get::<Service>("web").await.labels()["team"], "a");
        scene.available("web").await;
    });
}

#[test]
fn what_the_server_allocated_survives_a_change() {
    with_operator(async |scene| {
        app_with_host(scene).await;
        let before = scene.get::<Service>("web").await.spec.unwrap().cluster_ip;
        let change: Value = json!({ "spec": { "port": 8080 } });
        scene.patch::<SimpleApp>("web", change).await;
        scene.quiet().await;
        let after = scene.get::<Service>("web").await.spec.unwrap().cluster_ip;
        assert!(before.is_some());
        assert_eq!(before, after);
    });
}
