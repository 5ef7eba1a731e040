//! Values that are nested as deeply as possible, and deeper.

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use simcluster::SimCluster;
use simcluster::User;

use crate::mutate::nested;

const BAGS: &str = "/apis/example.com/v1/namespaces/default/bags";
const JSON: &str = "application/json";

/// A cluster with a kind that holds anything.
fn cluster() -> SimCluster {
    let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = definition("bags", "Bag", &anything);
    SimCluster::builder().controllers(false).crd(definition).start().unwrap()
}

fn definition(plural: &str, kind: &str, schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.example.com") },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": plural, "kind": kind },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema }, "subresources": { "status": {} },
            }],
        },
    })
}

async fn send(
    cluster: &SimCluster,
    method: &str,
    path: &str,
    media_type: &str,
    body: impl Into<Bytes>,
) -> (StatusCode, Value) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media_type)
        .body(body.into())
        .unwrap();
    let answer = cluster.handle(&User::admin(), request).await.unwrap();
    let status = answer.status();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

fn bag(name: &str, content: &Value) -> String {
    json!({
        "apiVersion": "example.com/v1", "kind": "Bag", "metadata": { "name": name }, "x": content,
    })
    .to_string()
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_nested_too_deeply_are_refused() {
    let cluster = cluster();
    let bomb = "[".repeat(3_000_000);
    let maps = r#"{"a":"#.repeat(500_000);
    for body in [bomb.as_str(), &maps, &bag("a", &nested(127))] {
        let (status, answer) = send(&cluster, "POST", BAGS, JSON, body.to_owned()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        let message = answer["message"].as_str().unwrap();
        assert!(message.contains("exceeded max depth ("), "{message}");
    }
    let (status, _) = send(&cluster, "POST", BAGS, "application/yaml", bomb.clone()).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    for kind in ["json-patch+json", "merge-patch+json", "apply-patch+yaml"] {
        let path = format!("{BAGS}/a?fieldManager=m");
        let (status, _) =
            send(&cluster, "PATCH", &path, &format!("application/{kind}"), bomb.clone()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{kind}");
    }
    for body in [bomb, maps] {
        let (status, _) = send(&cluster, "DELETE", &format!("{BAGS}/a"), JSON, body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
    }
}

#[tokio::test(start_paused = true)]
async fn the_deepest_values_go_all_ways() {
    let cluster = cluster();
    let content = nested(126);
    let (status, made) = send(&cluster, "POST", BAGS, JSON, bag("a", &content)).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let apply = "application/apply-patch+yaml";
    let path = format!("{BAGS}/b?fieldManager=m");
    let (status, answer) = send(&cluster, "PATCH", &path, apply, bag("b", &content)).await;
    assert_eq!(status, StatusCode::CREATED, "{answer}");
    let (status, _) = send(&cluster, "PATCH", &path, apply, bag("b", &json!("y"))).await;
    assert_eq!(status, StatusCode::OK);
    for patch in [json!({ "y": content }), json!({ "x": null }), json!({ "x": content })] {
        let path = format!("{BAGS}/a");
        let kind = "application/merge-patch+json";
        let (status, answer) = send(&cluster, "PATCH", &path, kind, patch.to_string()).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
    }
    let (status, _) = send(&cluster, "GET", BAGS, JSON, "").await;
    assert_eq!(status, StatusCode::OK);
    let (status, _) = send(&cluster, "DELETE", &format!("{BAGS}/a"), JSON, "").await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn patches_build_nothing_that_is_nested_too_deeply() {
    let cluster = cluster();
    let path = format!("{BAGS}/a");
    send(&cluster, "POST", BAGS, JSON, bag("a", &nested(100))).await;
    let inside: String = (0..100).rev().map(|level| ["/0", "/a"][level % 2]).collect();
    let operation = json!({ "op": "copy", "from": "/x", "path": format!("/x{inside}") });
    let add = json!({ "op": "replace", "path": format!("/x{inside}"), "value": nested(100) });
    for patch in [json!([operation]), json!([add])] {
        let kind = "application/json-patch+json";
        let (status, answer) = send(&cluster, "PATCH", &path, kind, patch.to_string()).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");
    }
}

/// The deepest schema that a body can hold: each level of objects takes two of JSON.
fn deep_schema(mut schema: Value, levels: usize) -> Value {
    for _ in 0..levels {
        schema = json!({ "type": "object", "properties": { "a": schema } });
    }
    schema
}

#[tokio::test(start_paused = true)]
async fn the_deepest_schema_is_served() {
    let cluster = cluster();
    let leaf = json!({ "type": "string", "default": "d", "maxLength": 5 });
    let schema = deep_schema(leaf, 58);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let body = definition("wells", "Well", &schema).to_string();
    let (status, answer) = send(&cluster, "POST", definitions, JSON, body).await;
    assert_eq!(status, StatusCode::CREATED, "{answer}");
    let wells = "/apis/example.com/v1/namespaces/default/wells";
    let mut well = (0..57).fold(json!({ "a": "long text" }), |inner, _| json!({ "a": inner }));
    well["metadata"] = json!({ "name": "w" });
    well["kind"] = json!("Well");
    well["apiVersion"] = json!("example.com/v1");
    let (status, _) = send(&cluster, "POST", wells, JSON, well.to_string()).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let short = well.to_string().replace("long text", "text");
    let (status, answer) = send(&cluster, "POST", wells, JSON, short).await;
    assert_eq!(status, StatusCode::CREATED, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn expressions_that_are_nested_deeply_do_no_harm() {
    let cluster = cluster();
    let deep = |open: &str, inner: &str, close: &str, depth: usize| {
        open.repeat(depth) + inner + &close.repeat(depth)
    };
    let expressions = [
        deep("(", "true", ")", 5_000),
        deep("!", "true", "", 5_000),
        deep("[", "1", "]", 5_000) + " == []",
        deep("self.all(x, ", "true", ")", 300),
        format!("true{}", " && true".repeat(5_000)),
        format!("self{} == 1", ".a".repeat(5_000)),
        deep("-", "1", "", 5_000) + " == 1",
        deep("true ? ", "true", " : true", 2_000),
    ];
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for (index, rule) in expressions.iter().enumerate() {
        let schema = json!({
            "type": "object", "properties": { "spec": {
                "type": "object", "properties": { "a": { "type": "string" } },
                "x-kubernetes-validations": [{ "rule": rule }],
            } },
        });
        let body = definition(&format!("rules{index}"), &format!("Rule{index}"), &schema);
        let (status, _) = send(&cluster, "POST", definitions, JSON, body.to_string()).await;
        assert!(!status.is_server_error(), "{index}: {status}");
        let rules = format!("/apis/example.com/v1/namespaces/default/rules{index}");
        let body = json!({
            "apiVersion": "example.com/v1", "kind": format!("Rule{index}"),
            "metadata": { "name": "r" }, "spec": { "a": "b" },
        });
        let (status, _) = send(&cluster, "POST", &rules, JSON, body.to_string()).await;
        assert!(!status.is_server_error(), "{index}: {status}");
    }
}

#[tokio::test(start_paused = true)]
async fn paths_and_selectors_that_are_nested_deeply_do_no_harm() {
    let cluster = cluster();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let paths = [
        format!(".{}", "a.".repeat(5_000)),
        format!(".a{}", "[".repeat(50_000)),
        format!(".a{}1{}", "[?(@.a==".repeat(5_000), ")]".repeat(5_000)),
        format!(".a[?{}@.b{}]", "(".repeat(20_000), ")".repeat(20_000)),
    ];
    for (index, path) in paths.iter().enumerate() {
        let schema = json!({ "type": "object" });
        let mut body = definition(&format!("paths{index}"), &format!("Path{index}"), &schema);
        let column = json!({ "name": "c", "type": "string", "jsonPath": path });
        body["spec"]["versions"][0]["additionalPrinterColumns"] = json!([column]);
        body["spec"]["versions"][0]["selectableFields"] = json!([{ "jsonPath": path }]);
        let (status, _) = send(&cluster, "POST", definitions, JSON, body.to_string()).await;
        assert!(!status.is_server_error(), "{index}: {status}");
        body["spec"]["versions"][0]["selectableFields"] = json!([]);
        let (status, _) = send(&cluster, "POST", definitions, JSON, body.to_string()).await;
        assert!(!status.is_server_error(), "{index}: {status}");
        let request = Request::get(format!("/apis/example.com/v1/namespaces/default/paths{index}"))
            .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
            .body(Bytes::new())
            .unwrap();
        let answer = cluster.handle(&User::admin(), request).await.unwrap();
        assert!(!answer.status().is_server_error());
    }
    for selector in ["(".repeat(9_000), "a+in+(".repeat(1_500), "!".repeat(9_000)] {
        for key in ["labelSelector", "fieldSelector"] {
            let path = format!("{BAGS}?{key}={selector}");
            assert!(!send(&cluster, "GET", &path, JSON, "").await.0.is_server_error());
        }
    }
}
