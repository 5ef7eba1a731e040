//! Services lead to Pods.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::json;
use simcluster::SimCluster;

use crate::support::{api, cluster, create, deployment, patch, seconds};

async fn service(cluster: &SimCluster) {
    create::<Service>(
        cluster,
        json!({
            "metadata": { "name": "web" },
            "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80, "targetPort": 8080 }] },
        }),
    )
    .await;
}

async fn slices(cluster: &SimCluster) -> Vec<EndpointSlice> {
    let api: Api<EndpointSlice> = api(cluster);
    let of_web = ListParams::default().labels("kubernetes.io/service-name=web");
    api.list(&of_web).await.unwrap().items
}

/// How many endpoints are ready, of how many.
async fn ready(cluster: &SimCluster) -> (usize, usize) {
    let slices = slices(cluster).await;
    let all: Vec<_> = slices.iter().flat_map(|slice| slice.endpoints.iter().flatten()).collect();
    let ready = all.iter().filter(|one| one.conditions.as_ref().unwrap().ready == Some(true));
    (ready.count(), all.len())
}

#[tokio::test(start_paused = true)]
async fn slices_follow_the_pods() {
    let cluster = cluster().await;
    service(&cluster).await;
    cluster.settle().await.unwrap();
    assert_eq!(slices(&cluster).await.len(), 1, "an empty slice says that there is nothing");
    create::<Deployment>(&cluster, deployment("nginx", 3)).await;
    cluster.settle().await.unwrap();
    assert_eq!(ready(&cluster).await, (3, 3));
    assert_eq!(slices(&cluster).await[0].ports.as_ref().unwrap()[0].port, Some(8080));
    patch(&cluster, json!({ "spec": { "replicas": 1 } })).await;
    cluster.settle().await.unwrap();
    assert_eq!(ready(&cluster).await, (1, 1));
    let endpoints: Api<Endpoints> = api(&cluster);
    let subsets = endpoints.get("web").await.unwrap().subsets.unwrap();
    assert_eq!(subsets[0].addresses.as_ref().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_not_ready_are_not_ready_endpoints() {
    let cluster = cluster().await;
    service(&cluster).await;
    create::<Deployment>(&cluster, deployment("sim/unready", 2)).await;
    cluster.settle().await.unwrap();
    assert_eq!(ready(&cluster).await, (0, 2));
}

#[tokio::test(start_paused = true)]
async fn more_than_a_hundred_endpoints_take_a_second_slice() {
    let cluster = cluster().await;
    service(&cluster).await;
    create::<Deployment>(&cluster, deployment("nginx", 130)).await;
    cluster.settle().await.unwrap();
    assert_eq!(ready(&cluster).await, (130, 130));
    assert_eq!(slices(&cluster).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_service_leaves_nothing() {
    let cluster = cluster().await;
    service(&cluster).await;
    cluster.settle().await.unwrap();
    let services: Api<Service> = api(&cluster);
    services.delete("web", &DeleteParams::default()).await.unwrap();
    seconds(5).await;
    assert!(slices(&cluster).await.is_empty());
    let endpoints: Api<Endpoints> = api(&cluster);
    assert!(endpoints.get_opt("web").await.unwrap().is_none());
}
