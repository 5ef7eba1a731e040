//! Garbage collection (rows GC01-GC09, SIM.12).

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::networking::v1::IngressClass;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};
use simcluster::SimCluster;

use crate::support::{api, cluster, create, create_raw, deployment, events, list, names, seconds};

const NOBODY: &str = "11111111-1111-4111-8111-111111111111";

fn map(name: &str, owners: &[(&str, &str, bool)]) -> Value {
    let owners: Vec<Value> = owners
        .iter()
        .map(|(name, uid, blocks)| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid,
                "blockOwnerDeletion": blocks,
            })
        })
        .collect();
    json!({ "metadata": { "name": name, "ownerReferences": owners } })
}

async fn uid(cluster: &SimCluster, name: &str, owners: &[(&str, &str, bool)]) -> String {
    create::<ConfigMap>(cluster, map(name, owners)).await.uid().unwrap()
}

async fn delete(cluster: &SimCluster, name: &str, params: &DeleteParams) {
    let api: Api<ConfigMap> = api(cluster);
    api.delete(name, params).await.unwrap();
    seconds(2).await;
}

async fn maps(cluster: &SimCluster) -> Vec<String> {
    let mut names = names::<ConfigMap>(cluster).await;
    names.retain(|name| name != "kube-root-ca.crt");
    names
}

#[tokio::test(start_paused = true)]
async fn dependents_follow_their_last_owner() {
    let cluster = cluster().await;
    let one = uid(&cluster, "one", &[]).await;
    let two = uid(&cluster, "two", &[]).await;
    uid(&cluster, "of-one", &[("one", &one, false)]).await;
    uid(&cluster, "of-both", &[("one", &one, false), ("two", &two, false)]).await;
    delete(&cluster, "one", &DeleteParams::background()).await;
    assert_eq!(maps(&cluster).await, ["of-both", "two"]);
    let left: Vec<ConfigMap> = list(&cluster).await;
    let both = left.iter().find(|map| map.name_any() == "of-both").unwrap();
    assert_eq!(both.owner_references().len(), 1);
    delete(&cluster, "two", &DeleteParams::background()).await;
    assert!(maps(&cluster).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_never_was_does_not_save_anything() {
    let cluster = cluster().await;
    uid(&cluster, "owner", &[]).await;
    uid(&cluster, "lost", &[("missing", NOBODY, false)]).await;
    uid(&cluster, "deceived", &[("owner", NOBODY, false)]).await;
    seconds(2).await;
    assert_eq!(maps(&cluster).await, ["owner"]);
}

#[tokio::test(start_paused = true)]
async fn foreground_deletion_ends_with_the_owner() {
    let cluster = cluster().await;
    let owner = uid(&cluster, "owner", &[]).await;
    let child = uid(&cluster, "child", &[("owner", &owner, true)]).await;
    uid(&cluster, "grandchild", &[("child", &child, true)]).await;
    let position = cluster.position();
    delete(&cluster, "owner", &DeleteParams::foreground()).await;
    assert!(maps(&cluster).await.is_empty());
    let order: Vec<String> = cluster
        .requests_since(position)
        .into_iter()
        .filter(|one| one.is_write() && one.user.contains("garbage"))
        .map(|one| format!("{} {}", one.verb, one.name))
        .collect();
    assert_eq!(order, ["delete child", "delete grandchild", "patch child", "patch owner"]);
}

#[tokio::test(start_paused = true)]
async fn orphans_lose_their_reference_and_stay() {
    let cluster = cluster().await;
    let owner = uid(&cluster, "owner", &[]).await;
    uid(&cluster, "child", &[("owner", &owner, true)]).await;
    delete(&cluster, "owner", &DeleteParams::orphan()).await;
    assert_eq!(maps(&cluster).await, ["child"]);
    let left: Vec<ConfigMap> = list(&cluster).await;
    assert!(left.iter().all(|map| map.owner_references().is_empty()));
}

#[tokio::test(start_paused = true)]
async fn a_cycle_goes_as_a_whole() {
    let cluster = cluster().await;
    let one = uid(&cluster, "one", &[]).await;
    let two = uid(&cluster, "two", &[("one", &one, true)]).await;
    let api: Api<ConfigMap> = api(&cluster);
    let patch = kube::api::Patch::Merge(map("one", &[("two", &two, true)]));
    api.patch("one", &kube::api::PatchParams::default(), &patch).await.unwrap();
    seconds(1).await;
    assert_eq!(maps(&cluster).await, ["one", "two"]);
    delete(&cluster, "one", &DeleteParams::foreground()).await;
    assert!(maps(&cluster).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_deployment_takes_everything_along() {
    for params in [DeleteParams::background(), DeleteParams::foreground()] {
        let cluster = cluster().await;
        create::<Deployment>(&cluster, deployment("nginx", 3)).await;
        cluster.settle().await.unwrap();
        let deployments: Api<Deployment> = api(&cluster);
        deployments.delete("web", &params).await.unwrap();
        cluster.settle().await.unwrap();
        assert!(names::<Deployment>(&cluster).await.is_empty());
        assert!(names::<ReplicaSet>(&cluster).await.is_empty());
        assert!(names::<Pod>(&cluster).await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_kind_of_owner_is_no_reason_to_delete() {
    let cluster = cluster().await;
    let owner =
        json!({ "apiVersion": "no.example.com/v1", "kind": "No", "name": "x", "uid": NOBODY });
    create::<ConfigMap>(
        &cluster,
        json!({ "metadata": { "name": "kept", "ownerReferences": [owner] } }),
    )
    .await;
    cluster.settle().await.unwrap();
    assert_eq!(maps(&cluster).await, ["kept"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_of_the_cluster_cannot_belong_to_one_of_a_namespace() {
    let cluster = cluster().await;
    let owner = uid(&cluster, "owner", &[]).await;
    let class = json!({
        "metadata": { "name": "c", "ownerReferences": [
            { "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner },
        ] },
        "spec": { "controller": "example.com/c" },
    });
    create_raw(&cluster, "/apis/networking.k8s.io/v1/ingressclasses", &class).await;
    seconds(2).await;
    assert_eq!(
        events(&cluster, "OwnerRefInvalidNamespace").await,
        [format!(
            "ownerRef [v1/ConfigMap, namespace: , name: owner, uid: {owner}] does not exist in namespace \"\""
        )]
    );
    let classes: Api<IngressClass> = Api::all(cluster.client());
    assert!(classes.get("c").await.is_ok(), "it stays all the same");
}
