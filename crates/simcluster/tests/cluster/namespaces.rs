//! Namespaces: what they get, and how they go (rows NS03-NS06).

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, ServiceAccount};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use simcluster::SimCluster;

use crate::support::{cluster, deployment, seconds};

async fn make(cluster: &SimCluster) -> Api<Namespace> {
    let api: Api<Namespace> = Api::all(cluster.client());
    let namespace = serde_json::from_value(json!({ "metadata": { "name": "team" } })).unwrap();
    api.create(&PostParams::default(), &namespace).await.unwrap();
    seconds(1).await;
    api
}

#[tokio::test(start_paused = true)]
async fn each_namespace_gets_its_account_and_the_ca() {
    let cluster = cluster().await;
    make(&cluster).await;
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client(), "team");
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), "team");
    for _ in 0..2 {
        accounts.delete("default", &DeleteParams::default()).await.unwrap();
        maps.delete("kube-root-ca.crt", &DeleteParams::default()).await.unwrap();
        seconds(1).await;
    }
    let map = maps.get("kube-root-ca.crt").await.unwrap();
    assert_eq!(map.managed_fields()[0].manager.as_deref(), Some("kube-controller-manager"));
}

#[tokio::test(start_paused = true)]
async fn an_empty_namespace_goes_after_five_seconds() {
    let cluster = cluster().await;
    let api = make(&cluster).await;
    api.delete("team", &DeleteParams::default()).await.unwrap();
    seconds(4).await;
    assert!(api.get_opt("team").await.unwrap().is_some());
    seconds(2).await;
    assert!(api.get_opt("team").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_with_all_that_runs_in_it() {
    let cluster = cluster().await;
    let api = make(&cluster).await;
    let deployments: Api<Deployment> = Api::namespaced(cluster.client(), "team");
    let web = serde_json::from_value(deployment("nginx", 3)).unwrap();
    deployments.create(&PostParams::default(), &web).await.unwrap();
    cluster.settle().await.unwrap();
    api.delete("team", &DeleteParams::default()).await.unwrap();
    cluster.settle().await.unwrap();
    assert!(api.get_opt("team").await.unwrap().is_none());
    let pods: Api<Pod> = Api::all(cluster.client());
    assert!(pods.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_holds_a_namespace_and_is_named() {
    let cluster = cluster().await;
    let api = make(&cluster).await;
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), "team");
    let held = json!({ "metadata": { "name": "held", "finalizers": ["example.com/hold"] } });
    let held = serde_json::from_value(held).unwrap();
    maps.create(&PostParams::default(), &held).await.unwrap();
    api.delete("team", &DeleteParams::default()).await.unwrap();
    seconds(10).await;
    let conditions = api.get("team").await.unwrap().status.unwrap().conditions.unwrap();
    let messages: Vec<&str> =
        conditions.iter().map(|one| one.message.as_deref().unwrap()).collect();
    assert_eq!(
        messages,
        [
            "All resources successfully discovered",
            "All legacy kube types successfully parsed",
            "All content successfully deleted, may be waiting on finalization",
            "Some resources are remaining: configmaps. has 1 resource instances",
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource \
             instances",
        ]
    );
    let none = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch("held", &PatchParams::default(), &none).await.unwrap();
    seconds(20).await;
    assert!(api.get_opt("team").await.unwrap().is_none());
}
