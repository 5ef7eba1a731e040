//! Watches: nothing is lost, and no number that a client sends does harm.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http::Request;
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use simcluster::SimCluster;
use simcluster::User;

use super::support::{api, create, create_raw};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn post(cluster: &SimCluster, name: &str) {
    create_raw(cluster, CONFIG_MAPS, &json!({ "metadata": { "name": name } })).await;
}

async fn get(cluster: &SimCluster, uri: &str) -> http::Response<simcluster::Body> {
    let request = Request::get(uri).body(Bytes::new()).unwrap();
    cluster.handle(&User::admin(), request).await.unwrap()
}

/// Names of the objects that a streamed list and the watch after it show, up to the one named `last`.
async fn names_until_last(cluster: &SimCluster) -> BTreeSet<String> {
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&\
                 allowWatchBookmarks=true";
    let answer = get(cluster, &format!("{CONFIG_MAPS}?{query}")).await;
    let mut lines = answer.into_body().into_data_stream();
    let mut names = BTreeSet::new();
    while let Some(line) = lines.next().await {
        let event: Value = serde_json::from_slice(&line.unwrap()).unwrap();
        if let Some(name) = event["object"]["metadata"]["name"].as_str() {
            names.insert(name.to_owned());
            if name == "last" {
                break;
            }
        }
    }
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bookmark_vouches_for_nothing_that_was_not_sent() {
    let cluster = SimCluster::builder().controllers(false).start().unwrap();
    let mut expected: BTreeSet<String> = (0..100).map(|n| format!("before-{n}")).collect();
    for name in &expected {
        post(&cluster, name).await;
    }
    let cluster = std::sync::Arc::new(cluster);
    let mut watchers = tokio::task::JoinSet::new();
    for n in 0..100 {
        let other = cluster.clone();
        watchers.spawn(async move { names_until_last(&other).await });
        post(&cluster, &format!("during-{n}")).await;
        expected.insert(format!("during-{n}"));
    }
    post(&cluster, "last").await;
    expected.insert("last".to_owned());
    let limit = Duration::from_mins(1);
    while let Some(seen) = tokio::time::timeout(limit, watchers.join_next()).await.unwrap() {
        let seen = seen.unwrap();
        let lost: Vec<&String> = expected.difference(&seen).collect();
        assert!(lost.is_empty(), "lost: {lost:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_number_of_seconds_does_harm() {
    let cluster = SimCluster::builder().controllers(false).start().unwrap();
    // Go counts nanoseconds in 64 bits: what does not fit wraps around, here to less than nothing.
    for seconds in ["9223372036854775807", "-1", "-9223372036854775807", "9223372037"] {
        let answer =
            get(&cluster, &format!("{CONFIG_MAPS}?watch=1&timeoutSeconds={seconds}")).await;
        assert_eq!(answer.status(), 200);
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(text, "", "timeoutSeconds={seconds} ends at once");
    }
    for uri in [
        format!("{CONFIG_MAPS}?limit=9223372036854775807"),
        format!("{CONFIG_MAPS}?limit=-9223372036854775808"),
        format!("{CONFIG_MAPS}?labelSelector=a%3E9223372036854775807"),
    ] {
        assert_eq!(get(&cluster, &uri).await.status(), 200, "{uri}");
    }
    // A year from now is the longest that fits into no surprise.
    let answer = get(&cluster, &format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=31536000")).await;
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "");
}

#[tokio::test(start_paused = true)]
async fn no_grace_period_does_harm() {
    let cluster = SimCluster::builder().controllers(false).start().unwrap();
    let spec = json!({
        "nodeName": "somewhere", "serviceAccountName": "default", "automountServiceAccountToken": false,
        "containers": [{ "name": "c", "image": "nginx" }],
    });
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    create_raw(&cluster, accounts, &json!({ "metadata": { "name": "default" } })).await;
    for seconds in [i64::MAX, i64::MIN, 9_223_372_037] {
        let name = format!("pod{}", seconds.unsigned_abs());
        let pod = json!({ "metadata": { "name": name }, "spec": spec });
        create::<Pod>(&cluster, pod).await;
        for again in [seconds, 3, 9_223_372_037] {
            let uri = format!("/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds={again}");
            let request = Request::delete(uri).body(Bytes::new()).unwrap();
            let answer = cluster.handle(&User::admin(), request).await.unwrap();
            assert_eq!(answer.status(), 200, "{name} {again}");
        }
        let pod: Pod = api(&cluster).get(&name).await.unwrap();
        assert!(pod.metadata.deletion_timestamp.is_some());
    }
}
