//! Deployments and ReplicaSets (rows SIM.1-SIM.11).

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;
use simcluster::Request;
use simcluster::SimCluster;

use crate::support::{
    api, cluster, cluster_without_nodes, condition, create, deployment, events, images, list,
    make_ready, names, patch, seconds, set_image, sizes, web,
};

fn pair(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_deployment_becomes_available() {
    let cluster = cluster().await;
    create::<Deployment>(&cluster, deployment("nginx", 3)).await;
    cluster.settle().await.unwrap();
    let web = web(&cluster).await;
    let status = web.status.clone().unwrap();
    assert_eq!(status.ready_replicas, Some(3));
    assert_eq!(status.updated_replicas, Some(3));
    assert_eq!(status.unavailable_replicas, None);
    assert_eq!(status.terminating_replicas, Some(0));
    assert_eq!(condition(&web, "Available"), pair("True", "MinimumReplicasAvailable"));
    assert_eq!(condition(&web, "Progressing"), pair("True", "NewReplicaSetAvailable"));
    assert_eq!(web.annotations()["deployment.kubernetes.io/revision"], "1");
    assert_eq!(events(&cluster, "SuccessfulCreate").await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_settled_cluster_sees_no_writes() {
    let cluster = cluster().await;
    create::<Deployment>(&cluster, deployment("nginx", 3)).await;
    cluster.settle().await.unwrap();
    let position = cluster.position();
    seconds(24 * 3600).await;
    let writes: Vec<_> =
        cluster.requests_since(position).into_iter().filter(Request::is_write).collect();
    assert!(writes.is_empty(), "{writes:?}");
}

#[tokio::test(start_paused = true)]
async fn no_write_is_refused_on_the_way() {
    let cluster = cluster().await;
    create::<Deployment>(&cluster, deployment("nginx", 5)).await;
    cluster.settle().await.unwrap();
    set_image(&cluster, "nginx:2").await;
    cluster.settle().await.unwrap();
    assert_eq!(images(&cluster).await, ["nginx:2"; 5]);
    // Two controllers write ReplicaSets, size and status: there a conflict is part of life.
    let is_race = |one: &Request| one.code == 409 && one.resource == "replicasets";
    let refused: Vec<_> = cluster
        .requests()
        .into_iter()
        .filter(|one| one.is_write() && one.code >= 400 && !is_race(one))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_rolling_update_waits_for_new_pods() {
    let cluster = cluster_without_nodes().await;
    create::<Deployment>(&cluster, deployment("i:1", 1)).await;
    cluster.settle().await.unwrap();
    let old = names::<Pod>(&cluster).await.remove(0);
    make_ready(&cluster, &old).await;
    set_image(&cluster, "i:2").await;
    seconds(5).await;
    assert_eq!(sizes(&cluster).await, [("i:1".into(), 1), ("i:2".into(), 1)]);
    let web1 = web(&cluster).await;
    assert_eq!(condition(&web1, "Progressing"), pair("True", "ReplicaSetUpdated"));
    assert_eq!(web1.status.unwrap().unavailable_replicas, Some(1));
    let new = names::<Pod>(&cluster).await.into_iter().find(|name| *name != old).unwrap();
    make_ready(&cluster, &new).await;
    seconds(5).await;
    assert_eq!(sizes(&cluster).await, [("i:1".into(), 0), ("i:2".into(), 1)]);
    assert_eq!(names::<Pod>(&cluster).await, [new]);
    let web2 = web(&cluster).await;
    assert_eq!(condition(&web2, "Progressing"), pair("True", "NewReplicaSetAvailable"));
    assert_eq!(web2.annotations()["deployment.kubernetes.io/revision"], "2");
    let mut scaled = events(&cluster, "ScalingReplicaSet").await;
    scaled.sort();
    assert_eq!(scaled.len(), 3);
    assert!(scaled[0].ends_with("from 1 to 0"), "{scaled:?}");
}

#[tokio::test(start_paused = true)]
async fn an_earlier_template_gets_its_replica_set_back() {
    let cluster = cluster().await;
    create::<Deployment>(&cluster, deployment("i:1", 2)).await;
    cluster.settle().await.unwrap();
    set_image(&cluster, "i:2").await;
    cluster.settle().await.unwrap();
    set_image(&cluster, "i:1").await;
    cluster.settle().await.unwrap();
    let sets: Vec<ReplicaSet> = list(&cluster).await;
    assert_eq!(sets.len(), 2);
    let current = sets.iter().find(|set| set.spec.replicas == Some(2)).unwrap();
    assert_eq!(current.annotations()["deployment.kubernetes.io/revision"], "3");
    assert_eq!(current.annotations()["deployment.kubernetes.io/revision-history"], "1");
    assert_eq!(web(&cluster).await.annotations()["deployment.kubernetes.io/revision"], "3");
}

#[tokio::test(start_paused = true)]
async fn recreate_lets_all_old_pods_go_first() {
    let cluster = cluster().await;
    let mut object = deployment("i:1", 3);
    object["spec"]["strategy"] = json!({ "type": "Recreate" });
    create::<Deployment>(&cluster, object).await;
    cluster.settle().await.unwrap();
    set_image(&cluster, "i:2").await;
    let mut seen = Vec::new();
    for _ in 0..300 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let pods: Vec<Pod> = list(&cluster).await;
        let mut images: Vec<String> = pods
            .into_iter()
            .map(|pod| pod.spec.unwrap().containers[0].image.clone().unwrap())
            .collect();
        images.sort();
        images.dedup();
        assert!(images.len() < 2, "old and new at once: {images:?}");
        seen.extend(images);
    }
    assert_eq!(seen.last().map(String::as_str), Some("i:2"));
    cluster.settle().await.unwrap();
    assert_eq!(web(&cluster).await.status.unwrap().ready_replicas, Some(3));
}

#[tokio::test(start_paused = true)]
async fn a_paused_deployment_scales_but_does_not_roll() {
    let cluster = cluster().await;
    create::<Deployment>(&cluster, deployment("i:1", 1)).await;
    cluster.settle().await.unwrap();
    patch(&cluster, json!({ "spec": { "paused": true, "replicas": 2 } })).await;
    set_image(&cluster, "i:2").await;
    cluster.settle().await.unwrap();
    assert_eq!(sizes(&cluster).await, [("i:1".into(), 2)]);
    let web1 = web(&cluster).await;
    assert_eq!(condition(&web1, "Progressing"), pair("Unknown", "DeploymentPaused"));
    assert_eq!(web1.status.unwrap().updated_replicas, None);
    patch(&cluster, json!({ "spec": { "paused": false } })).await;
    cluster.settle().await.unwrap();
    assert_eq!(images(&cluster).await, ["i:2", "i:2"]);
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_stands_still_misses_its_deadline() {
    let cluster = cluster().await;
    let mut object = deployment("nginx:not-exist", 1);
    object["spec"]["progressDeadlineSeconds"] = json!(30);
    create::<Deployment>(&cluster, object).await;
    seconds(25).await;
    assert_eq!(condition(&web(&cluster).await, "Progressing"), pair("True", "ReplicaSetUpdated"));
    seconds(10).await;
    assert_eq!(
        condition(&web(&cluster).await, "Progressing"),
        pair("False", "ProgressDeadlineExceeded")
    );
    set_image(&cluster, "nginx").await;
    seconds(30).await;
    assert_eq!(
        condition(&web(&cluster).await, "Progressing"),
        pair("True", "NewReplicaSetAvailable")
    );
}

#[tokio::test(start_paused = true)]
async fn scaling_down_takes_pods_that_are_not_ready() {
    let cluster = cluster_without_nodes().await;
    create::<Deployment>(&cluster, deployment("i:1", 4)).await;
    cluster.settle().await.unwrap();
    let pods = names::<Pod>(&cluster).await;
    make_ready(&cluster, &pods[1]).await;
    make_ready(&cluster, &pods[2]).await;
    seconds(1).await;
    patch(&cluster, json!({ "spec": { "replicas": 1 } })).await;
    seconds(5).await;
    let left = names::<Pod>(&cluster).await;
    assert_eq!(left.len(), 1);
    assert!(pods[1..3].contains(&left[0]));
    assert!(events(&cluster, "ScalingReplicaSet").await.iter().any(|one| one.ends_with("4 to 1")));
}

async fn relabel(cluster: &SimCluster, pod: &str, app: &str) {
    let api: Api<Pod> = api(cluster);
    let change = Patch::Merge(json!({ "metadata": { "labels": { "app": app } } }));
    api.patch(pod, &PatchParams::default(), &change).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn pods_are_released_and_adopted_by_label() {
    let cluster = cluster_without_nodes().await;
    create::<Deployment>(&cluster, deployment("i:1", 1)).await;
    cluster.settle().await.unwrap();
    let first = names::<Pod>(&cluster).await.remove(0);
    make_ready(&cluster, &first).await;
    relabel(&cluster, &first, "other").await;
    seconds(2).await;
    let pods: Vec<Pod> = list(&cluster).await;
    assert_eq!(pods.len(), 2);
    let released = pods.iter().find(|pod| pod.name_any() == first).unwrap();
    assert!(released.owner_references().is_empty());
    relabel(&cluster, &first, "web").await;
    seconds(2).await;
    // The one that is ready stays.
    let pods: Vec<Pod> = list(&cluster).await;
    assert_eq!(pods.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), [first]);
    assert_eq!(pods[0].owner_references()[0].kind, "ReplicaSet");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_is_replaced() {
    let cluster = cluster().await;
    create::<Deployment>(&cluster, deployment("i:1", 2)).await;
    cluster.settle().await.unwrap();
    let pods: Api<Pod> = api(&cluster);
    let first = names::<Pod>(&cluster).await.remove(0);
    pods.delete(&first, &DeleteParams::default()).await.unwrap();
    cluster.settle().await.unwrap();
    let left = names::<Pod>(&cluster).await;
    assert_eq!(left.len(), 2);
    assert!(!left.contains(&first));
}

#[tokio::test(start_paused = true)]
async fn old_revisions_beyond_the_limit_go() {
    let cluster = cluster().await;
    let mut object = deployment("i:0", 1);
    object["spec"]["revisionHistoryLimit"] = json!(2);
    create::<Deployment>(&cluster, object).await;
    cluster.settle().await.unwrap();
    for version in 1..6 {
        set_image(&cluster, &format!("i:{version}")).await;
        cluster.settle().await.unwrap();
    }
    let left: Vec<String> = sizes(&cluster).await.into_iter().map(|(image, _)| image).collect();
    assert_eq!(left, ["i:3", "i:4", "i:5"]);
}
