#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::sync::Arc;

use crate::types::EndpointSlice;
use k8s_openapi::api::core::v1::{Pod, Service};
use serde_json::json;

use super::legacy;
use super::slices::{Action, plan};

fn service() -> Service {
    serde_json::from_value(json!({
        "metadata": { "name": "web", "namespace": "n", "uid": "s", "labels": { "team": "a" } },
        "spec": {
            "clusterIP": "10.0.0.9",
            "selector": { "app": "web" },
            "ports": [{ "name": "http", "port": 80, "targetPort": "http", "protocol": "TCP" }],
        },
    }))
    .unwrap()
}

fn pod(number: usize, is_ready: bool) -> Arc<Pod> {
    let ready = if is_ready { "True" } else { "False" };
    let name = format!("p{number:03}");
    let pod = json!({
        "metadata": { "name": name, "namespace": "n", "uid": name },
        "spec": {
            "nodeName": "node",
            "containers": [{
                "name": "c", "ports": [{ "name": "http", "containerPort": 8080, "protocol": "TCP" }],
            }],
        },
        "status": {
            "podIP": format!("10.1.0.{number}"), "phase": "Running",
            "conditions": [{ "type": "Ready", "status": ready }],
        },
    });
    Arc::new(serde_json::from_value(pod).unwrap())
}

/// Carries a plan out.
fn apply(actions: Vec<Action>, slices: &mut Vec<Arc<EndpointSlice>>) {
    for action in actions {
        match action {
            Action::Create(mut slice) => {
                slice.metadata.name = Some(format!("web-{}", slices.len()));
                slice.metadata.uid.clone_from(&slice.metadata.name);
                slices.push(Arc::new(*slice));
            }
            Action::Update(slice) => {
                let place =
                    slices.iter().position(|one| one.metadata.uid == slice.metadata.uid).unwrap();
                slices[place] = Arc::new(*slice);
            }
            Action::Delete(slice) => slices.retain(|one| one.metadata.uid != slice.metadata.uid),
        }
    }
}

fn counts(slices: &[Arc<EndpointSlice>]) -> Vec<usize> {
    slices.iter().map(|slice| slice.endpoints.as_ref().map_or(0, Vec::len)).collect()
}

#[test]
fn slices_are_filled_and_left_alone_when_right() {
    let service = service();
    let mut slices = Vec::new();
    apply(plan(&service, &[], &slices), &mut slices);
    assert_eq!(counts(&slices), [0], "an empty slice says that there is nothing");
    assert!(plan(&service, &[], &slices).is_empty());
    let mut pods: Vec<Arc<Pod>> = (0..130).map(|number| pod(number, true)).collect();
    let actions = plan(&service, &pods, &slices);
    let reused = matches!(actions.as_slice(), [Action::Create(_), Action::Update(_)]);
    assert!(reused, "the empty slice becomes one with endpoints: {actions:?}");
    apply(actions, &mut slices);
    assert_eq!(counts(&slices), [30, 100]);
    assert!(plan(&service, &pods, &slices).is_empty());
    pods[5] = pod(5, false);
    assert_eq!(plan(&service, &pods, &slices).len(), 1, "one endpoint is in one slice");
    pods.truncate(3);
    apply(plan(&service, &pods, &slices), &mut slices);
    assert_eq!(counts(&slices), [3]);
    let labels = slices[0].metadata.labels.clone().unwrap();
    assert_eq!(labels["team"], "a");
    assert_eq!(labels["kubernetes.io/service-name"], "web");
    assert_eq!(slices[0].ports.as_ref().unwrap()[0].port, Some(8080));
}

#[test]
fn legacy_endpoints_keep_ready_and_other_addresses_apart() {
    let service = service();
    let pods = [pod(1, true), pod(2, false)];
    let endpoints = legacy::wanted(&service, &pods, None).unwrap();
    let subset = &endpoints.subsets.as_ref().unwrap()[0];
    assert_eq!(subset.addresses.as_ref().unwrap()[0].ip, "10.1.0.1");
    assert_eq!(subset.not_ready_addresses.as_ref().unwrap()[0].ip, "10.1.0.2");
    assert_eq!(legacy::wanted(&service, &pods, Some(&endpoints)), None);
}
