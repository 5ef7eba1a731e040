//! What Services are given, and give back.

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use simcluster::SimCluster;
use simcluster::User;

const SERVICES: &str = "/api/v1/namespaces/default/services";

/// A cluster of few addresses: 14, of which the API server has the first.
fn cluster() -> SimCluster {
    let network = "10.0.0.0/28".parse().unwrap();
    SimCluster::builder().controllers(false).service_network(network).start().unwrap()
}

async fn send(cluster: &SimCluster, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder()
        .method(method)
        .uri(format!("{SERVICES}{path}"))
        .header("content-type", kind)
        .body(Bytes::from(body.to_string()))
        .unwrap();
    let answer = cluster.handle(&User::admin(), request).await.unwrap();
    let status = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap())
}

fn service(name: &str, spec: &Value) -> Value {
    let mut service = json!({
        "metadata": { "name": name }, "spec": { "ports": [{ "port": 80, "targetPort": 80 }] },
    });
    for (field, value) in spec.as_object().unwrap() {
        service["spec"][field] = value.clone();
    }
    service
}

/// Takes all addresses but so many.
async fn fill(cluster: &SimCluster, left: usize) {
    for index in left..13 {
        let service = service(&format!("s{index}"), &json!({}));
        assert_eq!(send(cluster, "POST", "", &service).await.0, 201);
    }
}

#[track_caller]
fn check_message(answer: &(u16, Value), code: u16, message: &str) {
    assert_eq!((answer.0, answer.1["message"].as_str().unwrap()), (code, message));
}

#[tokio::test(start_paused = true)]
async fn a_full_network_says_so() {
    let cluster = cluster();
    fill(&cluster, 0).await;
    check_message(
        &send(&cluster, "POST", "", &service("late", &json!({}))).await,
        500,
        "Internal error occurred: failed to allocate a serviceIP for Service \"late\": range is full",
    );
    check_message(
        &send(&cluster, "POST", "", &service("late", &json!({ "clusterIP": "10.0.0.9" }))).await,
        422,
        "Service \"late\" is invalid: spec.clusterIPs: Invalid value: [\"10.0.0.9\"]: failed to \
         allocate IP 10.0.0.9: provided IP is already allocated",
    );
    check_message(
        &send(&cluster, "POST", "", &service("late", &json!({ "clusterIP": "10.0.0.15" }))).await,
        422,
        "Service \"late\" is invalid: spec.clusterIPs: Invalid value: [\"10.0.0.15\"]: failed to \
         allocate IP 10.0.0.15: the provided network does not match the current range",
    );
    check_message(
        &send(
            &cluster,
            "POST",
            "?dryRun=All",
            &service("late", &json!({ "clusterIP": "10.0.1.9" })),
        )
        .await,
        422,
        "Service \"late\" is invalid: spec.clusterIPs: Invalid value: [\"10.0.1.9\"]: failed to \
         allocate IP 10.0.1.9: the provided IP (10.0.1.9) is not in the valid range. The range of \
         valid IPs is 10.0.0.0/28",
    );
    assert_eq!(send(&cluster, "DELETE", "/s3", &json!({})).await.0, 200);
    assert_eq!(send(&cluster, "POST", "", &service("late", &json!({}))).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_takes_nothing() {
    let cluster = cluster();
    fill(&cluster, 1).await;
    let wanted =
        service("dry", &json!({ "type": "LoadBalancer", "externalTrafficPolicy": "Local" }));
    for _ in 0..3 {
        let (status, made) = send(&cluster, "POST", "?dryRun=All", &wanted).await;
        assert_eq!(status, 201, "{made}");
        // What a real server answers: addresses and ports that no Service can have.
        assert_eq!(made["spec"]["clusterIP"], "10.0.0.0");
        assert_eq!(made["spec"]["ports"][0]["nodePort"], 32769);
        assert_eq!(made["spec"]["healthCheckNodePort"], 32770);
    }
    assert_eq!(send(&cluster, "POST", "", &service("last", &json!({}))).await.0, 201);
    assert_eq!(send(&cluster, "POST", "?dryRun=All", &service("more", &json!({}))).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn a_refused_service_takes_nothing() {
    let cluster = cluster();
    fill(&cluster, 1).await;
    for _ in 0..3 {
        let invalid = service("bad", &json!({ "sessionAffinity": "no" }));
        assert_eq!(send(&cluster, "POST", "", &invalid).await.0, 422);
        let taken = service("s5", &json!({}));
        assert_eq!(send(&cluster, "POST", "", &taken).await.0, 409);
    }
    assert_eq!(send(&cluster, "POST", "", &service("last", &json!({}))).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn external_names_need_no_address() {
    let cluster = cluster();
    fill(&cluster, 0).await;
    let external = json!({ "spec": { "type": "ExternalName", "externalName": "a.example" } });
    assert_eq!(send(&cluster, "PATCH", "/s1", &external).await.0, 200);
    let (status, made) = send(&cluster, "POST", "", &service("next", &json!({}))).await;
    assert_eq!(status, 201, "{made}");
    let back = json!({ "spec": { "type": "ClusterIP", "externalName": null } });
    check_message(
        &send(&cluster, "PATCH", "/s1", &back).await,
        500,
        "Internal error occurred: failed to allocate a serviceIP for Service \"s1\": range is full",
    );
    assert_eq!(send(&cluster, "DELETE", "/next", &json!({})).await.0, 200);
    let (status, back) = send(&cluster, "PATCH", "/s1", &back).await;
    assert_eq!((status, &back["spec"]["clusterIP"]), (200, &made["spec"]["clusterIP"]));
}

#[tokio::test(start_paused = true)]
async fn node_ports_are_kept_changed_and_given_back() {
    let cluster = cluster();
    let port = |number: i64| json!([{ "port": 80, "targetPort": 80, "nodePort": number }]);
    let spec = |number| json!({ "type": "NodePort", "ports": port(number) });
    assert_eq!(send(&cluster, "POST", "", &service("a", &spec(30100))).await.0, 201);
    check_message(
        &send(&cluster, "POST", "", &service("b", &spec(30100))).await,
        422,
        "Service \"b\" is invalid: spec.ports[0].nodePort: Invalid value: 30100: provided port is \
         already allocated",
    );
    let change = json!({ "spec": { "ports": port(30101) } });
    for _ in 0..2 {
        assert_eq!(send(&cluster, "PATCH", "/a", &change).await.0, 200);
    }
    assert_eq!(send(&cluster, "POST", "", &service("b", &spec(30100))).await.0, 201);
    let plain = json!({ "spec": { "type": "ClusterIP" } });
    assert_eq!(send(&cluster, "PATCH", "/a", &plain).await.0, 200);
    assert_eq!(send(&cluster, "POST", "", &service("c", &spec(30101))).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn there_are_addresses_for_many_services() {
    let cluster = SimCluster::builder().controllers(false).start().unwrap();
    for index in 0..600 {
        let service = service(&format!("s{index}"), &json!({}));
        assert_eq!(send(&cluster, "POST", "", &service).await.0, 201);
    }
}
