//! The program as users have it, seen from outside: its binary, a kubeconfig, and what the API shows.
//!
//! `TEST_CLUSTER=kubeconfig` runs it on the cluster of the current context (one of kind's),
//! `TEST_CLUSTER=control-plane` on a real control plane with simulated Pods. On the simulated cluster
//! there is nothing for another process to reach: the tests say that they are skipped.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod operator;

use std::path::Path;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use simcluster::env::{self, Cluster, Needs};

use crate::operator::Operator;

/// One app in a namespace of its own, with an operator that works there.
struct Scene {
    cluster: Cluster,
    namespace: String,
    name: String,
    apps: Api<DynamicObject>,
    _operator: Operator,
}

impl Scene {
    /// Creates the app of a fixture.
    async fn of(cluster: Cluster, fixture: &str) -> Self {
        let namespace = cluster.namespace().await;
        let operator = Operator::start(&cluster, &namespace);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(fixture);
        let text = std::fs::read_to_string(path.join("simpleapp.yaml")).unwrap();
        let app: DynamicObject = serde_saphyr::from_str(&text).unwrap();
        let kind = GroupVersionKind::gvk("apps.bootcamp.local", "v1", "SimpleApp");
        let resource = ApiResource::from_gvk(&kind);
        let apps = Api::namespaced_with(cluster.client(), &namespace, &resource);
        apps.create(&PostParams::default(), &app).await.unwrap();
        Self { cluster, namespace, name: app.metadata.name.unwrap(), apps, _operator: operator }
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.cluster.client(), &self.namespace)
    }

    /// Waits until the status has these fields.
    async fn shows(&self, wanted: Value) -> Value {
        let look = async || -> Result<Value, String> {
            let app = self.apps.get(&self.name).await.map_err(|error| error.to_string())?;
            let status = app.data["status"].clone();
            let has = |(key, value): (&String, &Value)| status[key] == *value;
            if wanted.as_object().unwrap().iter().all(has) {
                Ok(status)
            } else {
                Err(status.to_string())
            }
        };
        self.cluster.eventually(&format!("the status {wanted}"), look).await
    }
}

fn needs() -> Needs {
    Needs::default().crd(operator::crd()).pods().sockets()
}

#[test]
fn an_image_is_enough() {
    env::run(&needs(), async |cluster| {
        let scene = Scene::of(cluster, "litmus-1-image-only").await;
        scene.shows(json!({ "phase": "Available", "readyReplicas": 1 })).await;
        let deployment = scene.api::<Deployment>().get(&scene.name).await.unwrap();
        assert_eq!(deployment.spec.replicas, Some(1));
        let service = scene.api::<Service>().get(&scene.name).await.unwrap().spec.unwrap();
        assert_eq!(service.type_.as_deref(), Some("ClusterIP"));
        assert_eq!(service.ports.unwrap()[0].port, 80);
        assert!(scene.api::<Ingress>().get_opt(&scene.name).await.unwrap().is_none());
    });
}

#[test]
fn replicas_and_port_are_followed() {
    env::run(&needs(), async |cluster| {
        let scene = Scene::of(cluster, "litmus-2-replicas-port").await;
        scene.shows(json!({ "phase": "Available", "readyReplicas": 3 })).await;
        let deployment = scene.api::<Deployment>().get(&scene.name).await.unwrap();
        assert_eq!(deployment.spec.replicas, Some(3));
        let service = scene.api::<Service>().get(&scene.name).await.unwrap().spec.unwrap();
        assert_eq!(service.ports.unwrap()[0].port, 8080);
        assert!(scene.api::<Ingress>().get_opt(&scene.name).await.unwrap().is_none());
    });
}

#[test]
fn a_host_gets_an_ingress_and_deletion_leaves_an_audit_record() {
    env::run(&needs(), async |cluster| {
        let scene = Scene::of(cluster, "litmus-3-all-fields").await;
        let url = "http://all-fields.example.com";
        scene.shows(json!({ "phase": "Available", "url": url })).await;
        let ingress = scene.api::<Ingress>().get(&scene.name).await.unwrap().spec.unwrap();
        assert_eq!(ingress.rules.unwrap()[0].host.as_deref(), Some("all-fields.example.com"));

        scene.apps.delete(&scene.name, &DeleteParams::default()).await.unwrap();
        scene
            .cluster
            .eventually("the end of the app and its children", async || -> Result<(), String> {
                let left = [
                    scene.apps.get_opt(&scene.name).await.unwrap().map(|_| "SimpleApp"),
                    scene
                        .api::<Deployment>()
                        .get_opt(&scene.name)
                        .await
                        .unwrap()
                        .map(|_| "Deployment"),
                    scene.api::<Service>().get_opt(&scene.name).await.unwrap().map(|_| "Service"),
                    scene.api::<Ingress>().get_opt(&scene.name).await.unwrap().map(|_| "Ingress"),
                ];
                let left: Vec<&str> = left.into_iter().flatten().collect();
                if left.is_empty() { Ok(()) } else { Err(format!("{left:?} left")) }
            })
            .await;
        let label = "audit.bootcamp.local/source=simpleapp-operator";
        let records = scene.api::<ConfigMap>().list(&ListParams::default().labels(label)).await;
        let records = records.unwrap().items;
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].data.as_ref().unwrap()["simpleApp"], scene.name);
    });
}

#[test]
fn an_image_that_does_not_exist_is_named() {
    env::run(&needs(), async |cluster| {
        let scene = Scene::of(cluster, "broken-image").await;
        let status = scene.shows(json!({ "phase": "Failed" })).await;
        assert!(status["message"].as_str().unwrap().contains("nginx:not-exist"), "{status}");
    });
}
