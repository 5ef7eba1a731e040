//! A Deployment becomes available, whatever version of Kubernetes the user's types are of.
#![allow(clippy::unwrap_used, reason = "tests")]

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use simcluster::SimCluster;

fn web() -> Deployment {
    let labels = [("app".to_owned(), "web".to_owned())];
    let container =
        Container { name: "web".to_owned(), image: Some("nginx".to_owned()), ..Container::default() };
    Deployment {
        metadata: ObjectMeta { name: Some("web".to_owned()), ..ObjectMeta::default() },
        spec: Some(DeploymentSpec {
            replicas: Some(2),
            selector: LabelSelector {
                match_labels: Some(labels.clone().into()),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels.into()),
                    ..ObjectMeta::default()
                }),
                spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
            },
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_deployment_becomes_available() {
    let cluster = SimCluster::builder().start().unwrap();
    let api: Api<Deployment> = Api::namespaced(cluster.client(), "default");
    api.create(&PostParams::default(), &web()).await.unwrap();
    cluster.settle().await.unwrap();
    let status = api.get("web").await.unwrap().status.unwrap();
    assert_eq!(status.available_replicas, Some(2));
}
