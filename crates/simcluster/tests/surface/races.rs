//! Many clients on many threads.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use simcluster::SimCluster;
use simcluster::User;

const SERVICES: &str = "/api/v1/namespaces/default/services";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CLIENTS: usize = 8;

fn cluster() -> Arc<SimCluster> {
    Arc::new(SimCluster::builder().controllers(false).real_time().start().unwrap())
}

async fn send(cluster: &SimCluster, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .body(Bytes::from(body.to_string()))
        .unwrap();
    let answer = cluster.handle(&User::admin(), request).await.unwrap();
    let status = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// Runs a client on each of several threads, to the end.
async fn clients<F>(count: usize, client: impl Fn(usize) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let running: Vec<_> = (0..count).map(|index| tokio::spawn(client(index))).collect();
    for one in running {
        one.await.unwrap();
    }
}

fn node_port(index: usize) -> Value {
    json!({
        "metadata": { "name": format!("s{index}") },
        "spec": { "type": "NodePort", "ports": [{ "port": 80 }, { "port": 81, "name": "b" }] },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_two_services_get_one_address_or_port() {
    let cluster = cluster();
    let shared = Arc::clone(&cluster);
    clients(CLIENTS, move |client| {
        let cluster = Arc::clone(&shared);
        async move {
            for round in 0..40 {
                let index = client * 40 + round;
                let mut service = node_port(index);
                service["spec"]["ports"][1]["name"] = json!("b");
                service["spec"]["ports"][0]["name"] = json!("a");
                let (status, answer) = send(&cluster, "POST", SERVICES, &service).await;
                assert_eq!(status, 201, "{answer}");
                if round % 3 == 0 {
                    send(&cluster, "DELETE", &format!("{SERVICES}/s{index}"), &json!({})).await;
                }
            }
        }
    })
    .await;
    let (_, list) = send(&cluster, "GET", SERVICES, &json!({})).await;
    let services = list["items"].as_array().unwrap();
    let addresses: BTreeSet<&str> =
        services.iter().map(|one| one["spec"]["clusterIP"].as_str().unwrap()).collect();
    assert_eq!(addresses.len(), services.len());
    let ports: Vec<i64> = services
        .iter()
        .flat_map(|one| one["spec"]["ports"].as_array().unwrap())
        .filter_map(|port| port["nodePort"].as_i64())
        .collect();
    assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), ports.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_address_goes_to_one_of_those_who_ask_for_it() {
    let cluster = cluster();
    for round in 1..20 {
        let shared = Arc::clone(&cluster);
        clients(CLIENTS, move |client| {
            let cluster = Arc::clone(&shared);
            async move {
                let service = json!({
                    "metadata": { "name": format!("s{round}-{client}") },
                    "spec": { "clusterIP": format!("10.0.1.{round}"), "ports": [{ "port": 80 }] },
                });
                send(&cluster, "POST", SERVICES, &service).await;
            }
        })
        .await;
        let (_, list) = send(&cluster, "GET", SERVICES, &json!({})).await;
        // The API server's own Service is there, too.
        assert_eq!(list["items"].as_array().unwrap().len(), round + 1);
    }
}

fn definition(group: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("bags.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": { "plural": "bags", "kind": "Bag" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_write_to_a_definition_is_lost() {
    let cluster = cluster();
    let (status, _) = send(&cluster, "POST", DEFINITIONS, &definition("example.com")).await;
    assert_eq!(status, 201);
    let path = format!("{DEFINITIONS}/bags.example.com");
    let shared = (Arc::clone(&cluster), path.clone());
    clients(CLIENTS, move |client| {
        let (cluster, path) = shared.clone();
        async move {
            for round in 0..20 {
                // Other names make the server write the status, too.
                let names = json!({ "shortNames": [format!("b{client}x{round}")] });
                let label = json!({ format!("l{client}-{round}"): "x" });
                let change = if client % 2 == 0 {
                    json!({ "metadata": { "labels": label }, "spec": { "names": names } })
                } else {
                    json!({ "metadata": { "labels": label } })
                };
                let (status, answer) = send(&cluster, "PATCH", &path, &change).await;
                assert_eq!(status, 200, "{answer}");
            }
        }
    })
    .await;
    let (_, definition) = send(&cluster, "GET", &path, &json!({})).await;
    assert_eq!(definition["metadata"]["labels"].as_object().unwrap().len(), CLIENTS * 20);
    assert_eq!(definition["status"]["acceptedNames"], definition["spec"]["names"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn definitions_come_and_go_on_many_threads() {
    let cluster = cluster();
    let shared = Arc::clone(&cluster);
    clients(CLIENTS, move |client| {
        let cluster = Arc::clone(&shared);
        async move {
            let group = format!("g{client}.example.com");
            let bags = format!("/apis/{group}/v1/namespaces/default/bags");
            let bag = json!({
                "apiVersion": format!("{group}/v1"), "kind": "Bag", "metadata": { "name": "a" },
            });
            for _ in 0..4 {
                let (status, _) = send(&cluster, "POST", DEFINITIONS, &definition(&group)).await;
                assert_eq!(status, 201);
                assert_eq!(send(&cluster, "POST", &bags, &bag).await.0, 201);
                let path = format!("{DEFINITIONS}/bags.{group}");
                assert_eq!(send(&cluster, "DELETE", &path, &json!({})).await.0, 200);
                assert_eq!(send(&cluster, "GET", &path, &json!({})).await.0, 404);
                assert_eq!(send(&cluster, "GET", &bags, &json!({})).await.0, 404);
            }
        }
    })
    .await;
}
