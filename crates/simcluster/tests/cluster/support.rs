//! What the tests have in common.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use simcluster::SimCluster;
use simcluster::User;
use simcluster::controllers::Kind;

/// A cluster with everything on, past its start.
pub(crate) async fn cluster() -> SimCluster {
    let cluster = SimCluster::builder().seed(7).start().unwrap();
    seconds(1).await;
    cluster
}

/// A cluster where nobody runs Pods: they are as the test writes them.
pub(crate) async fn cluster_without_nodes() -> SimCluster {
    let mut kinds: BTreeSet<Kind> = Kind::all();
    kinds.remove(&Kind::Scheduler);
    kinds.remove(&Kind::Kubelet);
    let cluster = SimCluster::builder().seed(7).kinds(kinds).start().unwrap();
    seconds(1).await;
    cluster
}

/// The objects of a kind in the namespace `default`.
pub(crate) fn api<K>(cluster: &SimCluster) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    Api::namespaced(cluster.client(), "default")
}

/// Creates an object from JSON.
pub(crate) async fn create<K>(cluster: &SimCluster, object: Value) -> K
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + serde::Serialize,
{
    let object: K = serde_json::from_value(object).unwrap();
    api(cluster).create(&PostParams::default(), &object).await.unwrap()
}

/// Creates an object from JSON, at a path.
pub(crate) async fn create_raw(cluster: &SimCluster, path: &str, object: &Value) {
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = request.body(object.to_string().into()).unwrap();
    let answer = cluster.handle(&User::admin(), request).await.unwrap();
    assert_eq!(answer.status(), 201, "{path}");
}

/// A Deployment `web` of so many Pods of an image.
pub(crate) fn deployment(image: &str, replicas: i32) -> Value {
    json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "c", "image": image }] },
            },
        },
    })
}

/// Patches the Deployment `web`.
pub(crate) async fn patch(cluster: &SimCluster, patch: Value) -> Deployment {
    let api: Api<Deployment> = api(cluster);
    api.patch("web", &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap()
}

/// Sets the image of the Deployment `web`.
pub(crate) async fn set_image(cluster: &SimCluster, image: &str) {
    let containers = json!([{ "name": "c", "image": image }]);
    patch(cluster, json!({ "spec": { "template": { "spec": { "containers": containers } } } }))
        .await;
}

pub(crate) async fn web(cluster: &SimCluster) -> Deployment {
    api(cluster).get("web").await.unwrap()
}

pub(crate) async fn list<K>(cluster: &SimCluster) -> Vec<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned,
{
    api(cluster).list(&ListParams::default()).await.unwrap().items
}

/// Names of the objects of a kind.
pub(crate) async fn names<K>(cluster: &SimCluster) -> Vec<String>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned,
{
    list::<K>(cluster).await.iter().map(ResourceExt::name_any).collect()
}

/// Sizes of the ReplicaSets, by image.
pub(crate) async fn sizes(cluster: &SimCluster) -> Vec<(String, i32)> {
    let sets: Vec<ReplicaSet> = list(cluster).await;
    let mut sizes: Vec<(String, i32)> = sets
        .into_iter()
        .map(|set| {
            let pod = set.spec.template.unwrap().spec.unwrap();
            (pod.containers[0].image.clone().unwrap(), set.spec.replicas.unwrap())
        })
        .collect();
    sizes.sort();
    sizes
}

/// Images of the Pods that are not being deleted.
pub(crate) async fn images(cluster: &SimCluster) -> Vec<String> {
    let pods: Vec<Pod> = list(cluster).await;
    let mut images: Vec<String> = pods
        .into_iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none())
        .map(|pod| pod.spec.unwrap().containers[0].image.clone().unwrap())
        .collect();
    images.sort();
    images
}

/// Makes a Pod ready by hand.
pub(crate) async fn make_ready(cluster: &SimCluster, name: &str) {
    let api: Api<Pod> = api(cluster);
    let status = json!({ "status": {
        "phase": "Running",
        "conditions": [{ "type": "Ready", "status": "True" }],
    } });
    api.patch_status(name, &PatchParams::default(), &Patch::Strategic(status)).await.unwrap();
}

/// Status and reason of a condition of a Deployment.
pub(crate) fn condition(deployment: &Deployment, type_: &str) -> (String, String) {
    let conditions = deployment.status.as_ref().unwrap().conditions.as_ref().unwrap();
    let found = conditions.iter().find(|one| one.type_.as_deref() == Some(type_)).unwrap();
    (found.status.clone().unwrap(), found.reason.clone().unwrap())
}

/// Messages of the events of a reason.
pub(crate) async fn events(cluster: &SimCluster, reason: &str) -> Vec<String> {
    let events: Vec<Event> = list(cluster).await;
    events
        .into_iter()
        .filter(|event| event.reason.as_deref() == Some(reason))
        .map(|event| event.message.unwrap_or_default())
        .collect()
}

/// Lets so many virtual seconds pass.
pub(crate) async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}
