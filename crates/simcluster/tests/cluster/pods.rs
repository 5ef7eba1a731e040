//! The lives of Pods.

use k8s_openapi::api::core::v1::{ContainerStatus, Node, Pod};
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};
use simcluster::SimCluster;

use crate::support::{api, cluster, cluster_without_nodes, create, events, list, names, seconds};

fn pod(image: &str) -> Value {
    json!({
        "metadata": { "name": "p" },
        "spec": { "containers": [{ "name": "c", "image": image }] },
    })
}

async fn get(cluster: &SimCluster) -> Pod {
    let api: Api<Pod> = api(cluster);
    api.get("p").await.unwrap()
}

fn container(pod: &Pod) -> ContainerStatus {
    pod.status.as_ref().unwrap().container_statuses.as_ref().unwrap()[0].clone()
}

fn phase(pod: &Pod) -> String {
    pod.status.as_ref().unwrap().phase.clone().unwrap()
}

/// Why a container waits.
fn waits(pod: &Pod) -> String {
    container(pod).state.unwrap().waiting.unwrap().reason.unwrap()
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().unwrap().conditions.as_ref().unwrap();
    conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True")
}

#[tokio::test(start_paused = true)]
async fn a_pod_runs_and_is_ready() {
    let cluster = cluster().await;
    create::<Pod>(&cluster, pod("nginx")).await;
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let creating = get(&cluster).await;
    assert_eq!(
        (phase(&creating).as_str(), waits(&creating).as_str()),
        ("Pending", "ContainerCreating")
    );
    assert_eq!(creating.spec.unwrap().node_name.as_deref(), Some("sim-node-0"));
    seconds(2).await;
    let running = get(&cluster).await;
    assert_eq!(phase(&running), "Running");
    assert!(is_ready(&running));
    let status = running.status.clone().unwrap();
    assert!(status.pod_ip.is_some() && status.host_ip.is_some() && status.start_time.is_some());
    let container = container(&running);
    assert_eq!(container.image, "docker.io/library/nginx:latest");
    assert_eq!(container.restart_count, 0);
    assert_eq!(events(&cluster, "Started").await, ["Container started"]);
}

#[tokio::test(start_paused = true)]
async fn an_image_that_does_not_exist_backs_off() {
    let cluster = cluster().await;
    create::<Pod>(&cluster, pod("nginx:not-exist")).await;
    let mut reasons = Vec::new();
    for _ in 0..400 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        let reason = waits(&get(&cluster).await);
        if reasons.last() != Some(&reason) {
            reasons.push(reason);
        }
    }
    assert_eq!(reasons[..3], ["ContainerCreating", "ErrImagePull", "ImagePullBackOff"]);
    assert_eq!(phase(&get(&cluster).await), "Pending");
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_no_image_is_told() {
    let cluster = cluster().await;
    create::<Pod>(&cluster, pod("Not An Image")).await;
    cluster.settle().await.unwrap();
    assert_eq!(waits(&get(&cluster).await), "InvalidImageName");
}

#[tokio::test(start_paused = true)]
async fn a_crashing_container_backs_off_longer_each_time() {
    let cluster = cluster().await;
    create::<Pod>(&cluster, pod("sim/crash:3")).await;
    seconds(5).await;
    let crashed = get(&cluster).await;
    assert_eq!(waits(&crashed), "CrashLoopBackOff");
    assert_eq!(container(&crashed).restart_count, 2);
    let last = container(&crashed).last_state.unwrap().terminated.unwrap();
    assert_eq!((last.exit_code, last.reason.as_deref()), (1, Some("Error")));
    assert_eq!(phase(&crashed), "Running");
    seconds(10).await;
    assert_eq!(container(&get(&cluster).await).restart_count, 3);
    seconds(3600).await;
    let late = get(&cluster).await;
    let message = container(&late).state.unwrap().waiting.unwrap().message.unwrap();
    assert!(message.starts_with("back-off 5m0s restarting failed container=c"), "{message}");
    let count = container(&late).restart_count;
    assert!((14..20).contains(&count), "{count}");
}

#[tokio::test(start_paused = true)]
async fn slow_and_unready_containers_run() {
    let cluster = cluster().await;
    create::<Pod>(&cluster, pod("sim/slow:30s")).await;
    seconds(20).await;
    let slow = get(&cluster).await;
    assert_eq!((phase(&slow).as_str(), is_ready(&slow)), ("Running", false));
    seconds(15).await;
    assert!(is_ready(&get(&cluster).await));
    let mut other = pod("sim/unready");
    other["metadata"]["name"] = json!("q");
    create::<Pod>(&cluster, other).await;
    cluster.settle().await.unwrap();
    let pods: Vec<Pod> = list(&cluster).await;
    assert_eq!((phase(&pods[1]).as_str(), is_ready(&pods[1])), ("Running", false));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_ends_is_finished() {
    let cluster = cluster().await;
    let mut object = pod("sim/exit:0");
    object["spec"]["restartPolicy"] = json!("Never");
    object["spec"]["initContainers"] = json!([{ "name": "i", "image": "sim/exit:0" }]);
    create::<Pod>(&cluster, object).await;
    cluster.settle().await.unwrap();
    let done = get(&cluster).await;
    assert_eq!(phase(&done), "Succeeded");
    let ended = container(&done).state.unwrap().terminated.unwrap();
    assert_eq!((ended.exit_code, ended.reason.as_deref()), (0, Some("Completed")));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_fits_no_node_waits_for_one() {
    let cluster = cluster().await;
    let mut object = pod("nginx");
    object["spec"]["nodeSelector"] = json!({ "disk": "fast" });
    create::<Pod>(&cluster, object).await;
    cluster.settle().await.unwrap();
    let waiting = get(&cluster).await;
    let scheduled = &waiting.status.as_ref().unwrap().conditions.as_ref().unwrap()[0];
    assert_eq!(scheduled.reason.as_deref(), Some("Unschedulable"));
    assert_eq!(
        scheduled.message.as_deref(),
        Some("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.")
    );
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(cluster.client());
    let label = kube::api::Patch::Merge(json!({ "metadata": { "labels": { "disk": "fast" } } }));
    nodes.patch("sim-node-0", &kube::api::PatchParams::default(), &label).await.unwrap();
    cluster.settle().await.unwrap();
    assert_eq!(phase(&get(&cluster).await), "Running");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_deleted_says_that_it_stopped() {
    let cluster = cluster().await;
    let mut kept = pod("nginx");
    kept["metadata"]["finalizers"] = json!(["example.com/keep"]);
    create::<Pod>(&cluster, kept).await;
    seconds(2).await;
    assert!(is_ready(&get(&cluster).await));
    let pods: Api<Pod> = api(&cluster);
    pods.delete("p", &DeleteParams::default()).await.unwrap();
    seconds(2).await;
    let ended = get(&cluster).await;
    assert_eq!(phase(&ended), "Succeeded");
    assert!(!is_ready(&ended));
    assert_eq!(container(&ended).state.unwrap().terminated.unwrap().exit_code, 0);
    assert_eq!(ended.metadata.deletion_grace_period_seconds, Some(0));
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_node_that_is_gone_are_collected() {
    let cluster = cluster().await;
    let mut kept = pod("nginx");
    kept["metadata"]["finalizers"] = json!(["example.com/keep"]);
    create::<Pod>(&cluster, kept).await;
    let mut other = pod("nginx");
    other["metadata"]["name"] = json!("q");
    create::<Pod>(&cluster, other).await;
    seconds(2).await;
    let nodes: Api<Node> = Api::all(cluster.client());
    nodes.delete("sim-node-0", &DeleteParams::default()).await.unwrap();
    seconds(38).await;
    assert_eq!(phase(&get(&cluster).await), "Running", "the node may come back");
    seconds(4).await;
    let collected = get(&cluster).await;
    assert_eq!(phase(&collected), "Failed");
    let conditions = collected.status.unwrap().conditions.unwrap();
    let target = conditions.iter().find(|one| one.type_ == "DisruptionTarget").unwrap();
    assert_eq!(target.reason.as_deref(), Some("DeletionByPodGC"));
    assert_eq!(target.message.as_deref(), Some("PodGC: node no longer exists"));
    assert_eq!(names::<Pod>(&cluster).await, ["p"], "the other one had no finalizer");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_never_had_a_node_fails_when_it_is_deleted() {
    let cluster = cluster_without_nodes().await;
    let mut kept = pod("nginx");
    kept["metadata"]["finalizers"] = json!(["example.com/keep"]);
    create::<Pod>(&cluster, kept).await;
    let pods: Api<Pod> = api(&cluster);
    pods.delete("p", &DeleteParams::default()).await.unwrap();
    seconds(1).await;
    assert_eq!(phase(&get(&cluster).await), "Failed");
}

#[tokio::test(start_paused = true)]
async fn what_only_a_running_program_could_answer_is_refused_in_a_sentence() {
    let cluster = cluster().await;
    create::<Pod>(&cluster, pod("nginx")).await;
    let request = |method: &str, path: &str| {
        let uri = format!("/api/v1/namespaces/default/pods/{path}");
        http::Request::builder().method(method).uri(uri).body(Vec::new()).unwrap()
    };
    for (method, path, code, message) in [
        ("GET", "p/log", 501, "simcluster does not support logs: simulated Pods run no program"),
        ("GET", "p/log?follow=false", 501, "simcluster does not support logs"),
        ("GET", "nobody/log?follow=true", 404, "pods \"nobody\" not found"),
        (
            "GET",
            "p/exec?command=ls",
            501,
            "simcluster does not support exec: simulated Pods run no",
        ),
        (
            "POST",
            "p/exec?command=ls",
            501,
            "simcluster does not support exec: simulated Pods run no",
        ),
        ("POST", "nobody/exec", 404, "pods \"nobody\" not found"),
        ("POST", "p/attach", 501, "simcluster does not support attach: simulated Pods run no"),
        ("POST", "p/portforward", 501, "simcluster does not support port-forward: simulated"),
        ("GET", "p/proxy/", 501, "simcluster does not support proxies: no program listens"),
    ] {
        let answer = cluster.client().request_text(request(method, path)).await;
        let Err(kube::Error::Api(status)) = answer else { panic!("{path}: {answer:?}") };
        assert_eq!(status.code, code, "{path}");
        assert!(status.message.starts_with(message), "{path}: {}", status.message);
    }
    // kubectl would ask for ever: a log that is followed is empty, and ends.
    let follow = request("GET", "p/log?follow=true").map(Into::into);
    let answer = cluster.client().send(follow).await.unwrap();
    let warning = answer.headers()["warning"].to_str().unwrap();
    assert!(warning.starts_with("299 - \"simcluster does not support logs: "), "{warning}");
    assert_eq!(answer.status(), 200);
}
