//! Changes of an app's spec, and what its status says meanwhile.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use simpleapp_operator::api::simpleapp::{Phase, SimpleApp};

use crate::scene::{condition, message, phase, shown, with_operator};

#[test]
fn an_image_change_costs_one_apply_and_two_status_writes() {
    with_operator(async |scene| {
        scene.app("web", json!({ "image": "nginx:1.28", "replicas": 2 })).await;
        scene.available("web").await;
        let writes = scene
            .writes_of(async {
                scene.patch::<SimpleApp>("web", json!({ "spec": { "image": "nginx:1.29" } })).await;
                scene.available("web").await;
            })
            .await;
        assert!(writes.len() <= 3, "{:#?}", shown(&writes));
        let applies = writes.iter().filter(|write| write.resource == "deployments").count();
        assert_eq!(applies, 1, "{:#?}", shown(&writes));
        let deployment = scene.get::<Deployment>("web").await;
        let container = &deployment.spec.template.spec.unwrap().containers[0];
        assert_eq!(container.image.as_deref(), Some("nginx:1.29"));
    });
}

#[test]
fn a_label_on_the_app_costs_nothing() {
    with_operator(async |scene| {
        scene.app("web", json!({ "image": "nginx" })).await;
        scene.available("web").await;
        let writes = scene
            .writes_of(async {
                let labels = json!({ "metadata": { "labels": { "team": "a" } } });
                scene.patch::<SimpleApp>("web", labels).await;
            })
            .await;
        assert_eq!(shown(&writes), Vec::<String>::new());
    });
}

#[test]
fn of_ten_changes_in_a_row_the_last_wins_without_a_conflict() {
    with_operator(async |scene| {
        scene.app("web", json!({ "image": "nginx" })).await;
        scene.available("web").await;
        scene
            .writes_of(async {
                for replicas in 1..=10 {
                    let spec = json!({ "spec": { "replicas": replicas } });
                    scene.patch::<SimpleApp>("web", spec).await;
                }
                scene.available("web").await;
            })
            .await;
        assert_eq!(scene.get::<Deployment>("web").await.spec.replicas, Some(10));
        let failed: Vec<_> =
            scene.requests().await.into_iter().filter(|request| request.code >= 400).collect();
        assert_eq!(shown(&failed), Vec::<String>::new());
    });
}

#[test]
fn the_port_changes_in_container_and_service_together() {
    with_operator(async |scene| {
        scene.app("web", json!({ "image": "nginx", "port": 80 })).await;
        scene.available("web").await;
        scene.patch::<SimpleApp>("web", json!({ "spec": { "port": 8080 } })).await;
        scene.quiet().await;
        scene.available("web").await;
        let deployment = scene.get::<Deployment>("web").await;
        let container = &deployment.spec.template.spec.unwrap().containers[0];
        assert_eq!(container.ports.as_ref().unwrap()[0].container_port, 8080);
        let service = scene.get::<Service>("web").await.spec.unwrap();
        assert_eq!(service.ports.unwrap()[0].port, 8080);
    });
}

#[test]
fn the_ingress_comes_and_goes_with_the_host() {
    with_operator(async |scene| {
        scene.app("web", json!({ "image": "nginx", "host": "a.example.com" })).await;
        scene.available("web").await;
        scene.patch::<SimpleApp>("web", json!({ "spec": { "host": null } })).await;
        let look = async || scene.find::<Ingress>("web").await.is_none();
        scene.cluster.eventually("no Ingress", look).await;
        scene.until("web", "no url", |app| app.status.as_ref().unwrap().url.is_none()).await;
        scene.patch::<SimpleApp>("web", json!({ "spec": { "host": "b.example.com" } })).await;
        let look = async || scene.find::<Ingress>("web").await;
        let ingress = scene.cluster.eventually("an Ingress", look).await;
        assert_eq!(ingress.spec.unwrap().rules.unwrap()[0].host.as_deref(), Some("b.example.com"));
    });
}

#[test]
fn zero_replicas_means_switched_off() {
    with_operator(async |scene| {
        scene.app("web", json!({ "image": "nginx", "replicas": 0 })).await;
        let app = scene.available("web").await;
        assert_eq!(scene.get::<Deployment>("web").await.spec.replicas, Some(0));
        assert_eq!(app.status.unwrap().ready_replicas, 0);
    });
}

#[test]
fn kubectl_scale_works() {
    with_operator(async |scene| {
        scene.app("web", json!({ "image": "nginx" })).await;
        let app = scene.available("web").await;
        assert!(app.status.unwrap().selector.is_some());
        let apps = scene.api::<SimpleApp>();
        let scale = Patch::Merge(json!({ "spec": { "replicas": 4 } }));
        apps.patch_scale("web", &PatchParams::default(), &scale).await.unwrap();
        let look = async || scene.get::<Deployment>("web").await.spec.replicas == Some(4);
        scene.cluster.eventually("four replicas", look).await;
        scene.available("web").await;
        let scale = apps.get_scale("web").await.unwrap();
        assert_eq!(scale.status.unwrap().replicas, 4);
    });
}

#[test]
fn a_broken_image_is_named_and_the_old_pods_go_on_serving() {
    with_operator(async |scene| {
        scene.app("web", json!({ "image": "nginx:1.28", "replicas": 2 })).await;
        scene.available("web").await;
        scene.patch::<SimpleApp>("web", json!({ "spec": { "image": "nginx:not-exist" } })).await;
        let failed = |app: &SimpleApp| {
            phase(app) == Some(Phase::Failed) && message(app).contains("nginx:not-exist")
        };
        let app = scene.until("web", "failed", failed).await;
        assert_eq!(condition(&app, "Available").as_deref(), Some("True"));
        scene.patch::<SimpleApp>("web", json!({ "spec": { "image": "nginx:1.28" } })).await;
        scene.available("web").await;
    });
}

#[test]
fn progress_is_counted() {
    with_operator(async |scene| {
        scene.app("web", json!({ "image": "nginx", "replicas": 3 })).await;
        let app = scene.available("web").await;
        assert_eq!(message(&app), "All 3/3 replicas ready");
        let status = app.status.unwrap();
        assert_eq!((status.ready_replicas, status.replicas), (3, 3));
        assert!(status.last_updated.is_some());
        let order: Vec<&str> = status.conditions.iter().map(|one| one.type_.as_str()).collect();
        assert_eq!(order, ["Available", "Progressing", "Degraded", "NameConflict"]);
    });
}

#[test]
fn a_change_right_after_the_create_is_not_missed() {
    with_operator(async |scene| {
        scene.app("web", json!({ "image": "nginx:1", "replicas": 0 })).await;
        let change = json!({ "spec": { "image": "nginx:2", "replicas": 1 } });
        scene.patch::<SimpleApp>("web", change).await;
        scene.quiet().await;
        let app = scene.get::<SimpleApp>("web").await;
        let deployment = scene.get::<Deployment>("web").await;
        let requests = scene.requests().await;
        assert_eq!(deployment.spec.replicas, Some(1), "{app:#?}\n{:#?}", shown(&requests));
    });
}
