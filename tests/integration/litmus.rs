//! The three litmus scenarios, with the writes that they cost.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::Ingress;
use serde_json::Value;

use crate::scene::{Scene, shown, with_operator};

/// Most writes that creating an app may cost: the finalizer, three applies, two of the status.
const CREATE_WRITES_MAX: usize = 6;

fn spec_of(fixture: &str) -> Value {
    let root = env!("CARGO_MANIFEST_DIR");
    let text =
        std::fs::read_to_string(format!("{root}/fixtures/{fixture}/simpleapp.yaml")).unwrap();
    let app: Value = serde_saphyr::from_str(&text).unwrap();
    app["spec"].clone()
}

async fn create(scene: &Scene, fixture: &str) {
    let writes = scene
        .writes_of(async {
            scene.app("web", spec_of(fixture)).await;
            scene.available("web").await;
        })
        .await;
    assert!(writes.len() <= CREATE_WRITES_MAX, "{:#?}", shown(&writes));
}

async fn service_port(scene: &Scene) -> i32 {
    let service = scene.get::<Service>("web").await.spec.unwrap();
    assert_eq!(service.type_.as_deref(), Some("ClusterIP"));
    service.ports.unwrap()[0].port
}

#[test]
fn an_image_is_enough() {
    with_operator(async |scene| {
        create(scene, "litmus-1-image-only").await;
        assert_eq!(scene.get::<Deployment>("web").await.spec.replicas, Some(1));
        assert_eq!(service_port(scene).await, 80);
        assert_eq!(scene.parts("web").await, ["SimpleApp", "Deployment", "Service"]);
    });
}

#[test]
fn replicas_and_port_are_followed() {
    with_operator(async |scene| {
        create(scene, "litmus-2-replicas-port").await;
        assert_eq!(scene.get::<Deployment>("web").await.spec.replicas, Some(3));
        assert_eq!(service_port(scene).await, 8080);
        assert_eq!(scene.parts("web").await, ["SimpleApp", "Deployment", "Service"]);
    });
}

#[test]
fn a_host_gets_an_ingress_and_a_url() {
    with_operator(async |scene| {
        create(scene, "litmus-3-all-fields").await;
        let ingress = scene.get::<Ingress>("web").await.spec.unwrap();
        let host = ingress.rules.unwrap()[0].host.clone();
        assert_eq!(host.as_deref(), Some("all-fields.example.com"));
        let app = scene.available("web").await;
        let url = app.status.unwrap().url;
        assert_eq!(url.as_deref(), Some("http://all-fields.example.com"));
    });
}
