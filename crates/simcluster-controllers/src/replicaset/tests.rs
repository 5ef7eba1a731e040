#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::sync::Arc;

use crate::types::ReplicaSet;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::plan::{self, Sizing, Trouble};

fn now() -> Timestamp {
    "2026-01-01T01:00:00Z".parse().unwrap()
}

fn set(replicas: i32) -> ReplicaSet {
    serde_json::from_value(json!({
        "metadata": { "name": "web-1", "namespace": "default", "uid": "s", "generation": 4 },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } } },
        },
    }))
    .unwrap()
}

/// A Pod that is ready since so many minutes, if at all.
fn pod(name: &str, node: &str, phase: &str, ready_for: Option<i64>) -> Arc<Pod> {
    let conditions = ready_for.map_or_else(Vec::new, |minutes| {
        let since = now() - jiff::SignedDuration::from_mins(minutes);
        vec![json!({ "type": "Ready", "status": "True", "lastTransitionTime": since })]
    });
    pod_of(json!({
        "metadata": { "name": name, "uid": name, "labels": { "app": "web" } },
        "spec": { "nodeName": node, "containers": [] },
        "status": { "phase": phase, "conditions": conditions },
    }))
}

fn pod_of(value: Value) -> Arc<Pod> {
    Arc::new(serde_json::from_value(value).unwrap())
}

fn deleted(pods: &[Arc<Pod>], keep: i32) -> Vec<String> {
    match plan::size(&set(keep), pods, pods, now()) {
        Sizing::Delete(pods) => pods.iter().map(|pod| pod.metadata.name.clone().unwrap()).collect(),
        Sizing::Enough | Sizing::Create(_) => Vec::new(),
    }
}

#[test]
fn missing_pods_are_created() {
    assert_eq!(plan::size(&set(3), &[], &[], now()), Sizing::Create(3));
    assert_eq!(plan::size(&set(0), &[], &[], now()), Sizing::Enough);
    assert_eq!(plan::size(&set(9000), &[], &[], now()), Sizing::Create(500));
}

#[test]
fn those_that_serve_least_are_deleted_first() {
    let pods = [
        pod("old", "a", "Running", Some(40)),
        pod("young", "a", "Running", Some(1)),
        pod("unready", "a", "Running", None),
        pod("pending", "a", "Pending", None),
        pod("unbound", "", "Pending", None),
    ];
    assert_eq!(deleted(&pods, 4), ["unbound"]);
    assert_eq!(deleted(&pods, 1), ["unbound", "pending", "unready", "young"]);
}

#[test]
fn crowded_nodes_lose_pods_first() {
    let pods = [
        pod("a1", "a", "Running", Some(40)),
        pod("b1", "b", "Running", Some(40)),
        pod("b2", "b", "Running", Some(40)),
    ];
    assert_eq!(deleted(&pods, 2), ["b1"]);
}

#[test]
fn the_status_counts_what_is_written_and_leaves_out_zeros() {
    let pods = [pod("one", "a", "Running", Some(1)), pod("two", "a", "Pending", None)];
    let status = plan::status(&set(2), &pods, 1, None, now());
    let value = serde_json::to_value(&status).unwrap();
    assert_eq!(
        value,
        json!({
            "replicas": 2, "fullyLabeledReplicas": 2, "readyReplicas": 1, "availableReplicas": 1,
            "terminatingReplicas": 1, "observedGeneration": 4,
        })
    );
    let empty = serde_json::to_value(plan::status(&set(0), &[], 0, None, now())).unwrap();
    assert_eq!(empty, json!({ "replicas": 0, "terminatingReplicas": 0, "observedGeneration": 4 }));
}

#[test]
fn a_failure_shows_until_it_is_over() {
    let trouble = Trouble { reason: "FailedCreate", message: "exceeded quota" };
    let mut set = set(1);
    let failed = plan::status(&set, &[], 0, Some(trouble), now());
    assert_eq!(failed.conditions.as_ref().unwrap()[0].message.as_deref(), Some("exceeded quota"));
    set.status = Some(failed);
    let other = Trouble { reason: "FailedCreate", message: "exceeded quota again" };
    let again = plan::status(&set, &[], 0, Some(other), now());
    assert!(!plan::differs(&set, &again), "the first message stays");
    assert_eq!(plan::status(&set, &[], 0, None, now()).conditions, None);
}

#[test]
fn a_ready_pod_becomes_available_later() {
    let mut set = set(1);
    set.spec.min_ready_seconds = Some(90);
    let pods = [pod("one", "a", "Running", Some(1))];
    assert_eq!(plan::status(&set, &pods, 0, None, now()).available_replicas, None);
    assert_eq!(plan::next_available(&set, &pods, now()).unwrap().as_secs(), 30);
    let later = now() + jiff::SignedDuration::from_secs(30);
    assert_eq!(plan::status(&set, &pods, 0, None, later).available_replicas, Some(1));
    assert_eq!(plan::next_available(&set, &pods, later), None);
}
