//! Versions of a custom kind between which a webhook of this process converts: `spec.host` of v1 is
//! `spec.address` of v2.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use simcluster::{SimCluster, User};
use tokio::time::Instant;

use crate::support::create_raw;

/// Nobody listens there, should nobody in this process answer.
const URL: &str = "https://127.0.0.1:1/convert";
const V1: &str = "/apis/e.com/v1/namespaces/default/things";
const V2: &str = "/apis/e.com/v2/namespaces/default/things";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn versions(storage: &str) -> Value {
    let version = |name: &str, field: &str| {
        json!({
            "name": name, "served": true, "storage": name == storage,
            "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": {
                "type": "object",
                "properties": { field: { "type": "string" }, "size": { "type": "integer" } },
            } } } },
        })
    };
    json!([version("v1", "host"), version("v2", "address")])
}

/// A cluster with the definition, stored as v1.
async fn cluster() -> SimCluster {
    let cluster = SimCluster::builder().controllers(false).start().unwrap();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.e.com" },
        "spec": {
            "group": "e.com", "scope": "Namespaced",
            "names": { "plural": "things", "kind": "Thing" },
            "versions": versions("v1"),
            "conversion": { "strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"], "clientConfig": { "url": URL },
            } },
        },
    });
    create_raw(&cluster, DEFINITIONS, &definition).await;
    cluster
}

/// The object in another version, with what else `change` does to it.
fn convert(mut object: Value, version: &Value, change: &dyn Fn(&mut Value)) -> Value {
    let (from, to) = if version == "e.com/v2" { ("host", "address") } else { ("address", "host") };
    object["apiVersion"] = version.clone();
    if let Some(spec) = object["spec"].as_object_mut()
        && let Some(value) = spec.remove(from)
    {
        spec.insert(to.to_owned(), value);
    }
    change(&mut object);
    object
}

fn answer(review: &Value, change: &dyn Fn(&mut Value)) -> Value {
    let request = &review["request"];
    let objects = request["objects"].as_array().unwrap().iter();
    let objects = objects.map(|one| convert(one.clone(), &request["desiredAPIVersion"], change));
    json!({
        "apiVersion": review["apiVersion"], "kind": review["kind"],
        "response": {
            "uid": request["uid"], "result": { "status": "Success" },
            "convertedObjects": objects.collect::<Vec<Value>>(),
        },
    })
}

fn plain(cluster: &SimCluster) {
    cluster.webhooks().handle(URL, |review| async move { answer(&review, &|_| {}) });
}

async fn send(
    cluster: &SimCluster,
    method: &str,
    uri: &str,
    media_type: &str,
    body: &Value,
) -> (u16, Value) {
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let request = Request::builder().method(method).uri(uri).header("content-type", media_type);
    let answer = cluster.handle(&User::admin(), request.body(body).unwrap()).await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap())
}

async fn get(cluster: &SimCluster, uri: &str) -> (u16, Value) {
    send(cluster, "GET", uri, "", &Value::Null).await
}

async fn merge(cluster: &SimCluster, uri: &str, patch: &Value) -> (u16, Value) {
    send(cluster, "PATCH", uri, "application/merge-patch+json", patch).await
}

async fn apply(cluster: &SimCluster, uri: &str, config: &Value) -> (u16, Value) {
    send(cluster, "PATCH", uri, "application/apply-patch+yaml", config).await
}

fn thing(version: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("e.com/{version}"), "kind": "Thing",
        "metadata": { "name": name }, "spec": spec,
    })
}

async fn create(cluster: &SimCluster, name: &str) {
    create_raw(cluster, V1, &thing("v1", name, &json!({ "host": "h" }))).await;
}

/// An open watch.
struct Watch(std::pin::Pin<Box<dyn futures::Stream<Item = Value> + Send>>);

impl Watch {
    async fn open(cluster: &SimCluster, uri: &str) -> Self {
        let request = Request::get(uri).body(Bytes::new()).unwrap();
        let answer = cluster.handle(&User::admin(), request).await.unwrap();
        assert_eq!(answer.status(), 200);
        let lines = answer.into_body().into_data_stream();
        Self(Box::pin(lines.map(|line| serde_json::from_slice(&line.unwrap()).unwrap())))
    }

    /// The next event within so many seconds; `Err` is silence.
    async fn next(&mut self, seconds: u64) -> Result<Option<Value>, ()> {
        tokio::time::timeout(Duration::from_secs(seconds), self.0.next()).await.map_err(drop)
    }
}

#[tokio::test(start_paused = true)]
async fn objects_are_read_and_written_in_every_version() {
    let cluster = cluster().await;
    plain(&cluster);
    create(&cluster, "a").await;
    let (_, shown) = get(&cluster, &format!("{V2}/a")).await;
    assert_eq!(shown["apiVersion"], "e.com/v2");
    assert_eq!(shown["spec"], json!({ "address": "h" }));
    let (status, changed) =
        merge(&cluster, &format!("{V2}/a"), &json!({ "spec": { "address": "i" } })).await;
    assert_eq!((status, &changed["spec"]), (200, &json!({ "address": "i" })));
    create_raw(&cluster, V2, &thing("v2", "b", &json!({ "address": "j", "size": 2 }))).await;
    let specs = |list: &Value| -> Vec<Value> {
        list["items"].as_array().unwrap().iter().map(|item| item["spec"].clone()).collect()
    };
    let (_, list) = get(&cluster, V1).await;
    assert_eq!(specs(&list), [json!({ "host": "i" }), json!({ "host": "j", "size": 2 })]);
    let (_, list) = get(&cluster, V2).await;
    assert_eq!(specs(&list), [json!({ "address": "i" }), json!({ "address": "j", "size": 2 })]);
    let (status, _) = send(&cluster, "DELETE", &format!("{V2}/a"), "", &Value::Null).await;
    assert_eq!(status, 200);
    assert_eq!(get(&cluster, &format!("{V1}/a")).await.0, 404);
    cluster.webhooks().forget(URL);
    let (status, _) = get(&cluster, &format!("{V1}/b")).await;
    assert_eq!(status, 200, "whoever wrote it, it is stored as v1");
}

#[tokio::test(start_paused = true)]
async fn a_watch_shows_every_change_in_its_version() {
    let cluster = cluster().await;
    plain(&cluster);
    create(&cluster, "a").await;
    let mut watch = Watch::open(&cluster, &format!("{V2}?watch=1")).await;
    let mut next = async || {
        let event = watch.next(1).await.unwrap().unwrap();
        (event["type"].clone(), event["object"]["spec"].clone())
    };
    assert_eq!(next().await, (json!("ADDED"), json!({ "address": "h" })));
    merge(&cluster, &format!("{V1}/a"), &json!({ "spec": { "host": "i" } })).await;
    send(&cluster, "DELETE", &format!("{V1}/a"), "", &Value::Null).await;
    assert_eq!(next().await, (json!("MODIFIED"), json!({ "address": "i" })));
    assert_eq!(next().await, (json!("DELETED"), json!({ "address": "i" })));
}

#[tokio::test(start_paused = true)]
async fn an_object_is_converted_once_for_all_who_list_and_watch() {
    let cluster = cluster().await;
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    cluster.webhooks().handle(URL, move |review| {
        count.fetch_add(1, Ordering::Relaxed);
        async move { answer(&review, &|_| {}) }
    });
    create(&cluster, "a").await;
    create(&cluster, "b").await;
    for _ in 0..3 {
        let (_, list) = get(&cluster, V2).await;
        assert_eq!(list["items"].as_array().unwrap().len(), 2);
        let mut watch = Watch::open(&cluster, &format!("{V2}?watch=1")).await;
        for _ in 0..2 {
            assert!(watch.next(1).await.unwrap().is_some());
        }
    }
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn no_write_waits_for_a_converter_that_it_does_not_need() {
    let cluster = cluster().await;
    cluster.webhooks().handle(URL, |review| async move {
        tokio::time::sleep(Duration::from_secs(10)).await;
        answer(&review, &|_| {})
    });
    let began = Instant::now();
    create(&cluster, "a").await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    let (status, _) = get(&cluster, &format!("{V2}/a")).await;
    assert_eq!((status, began.elapsed()), (200, Duration::from_secs(10)));
}

#[tokio::test(start_paused = true)]
async fn of_the_metadata_only_labels_and_annotations_are_the_converters() {
    let cluster = cluster().await;
    cluster.webhooks().handle(URL, |review| async move {
        answer(&review, &|object| {
            object["metadata"]["labels"] = json!({ "converted": "yes" });
            object["metadata"]["finalizers"] = json!(["e.com/f"]);
            object["metadata"]["generation"] = json!(7);
        })
    });
    create(&cluster, "a").await;
    let (_, shown) = get(&cluster, &format!("{V2}/a")).await;
    assert_eq!(shown["metadata"]["labels"], json!({ "converted": "yes" }));
    assert_eq!(shown["metadata"]["generation"], 1);
    assert!(shown["metadata"].get("finalizers").is_none());
    cluster.webhooks().handle(URL, |review| async move {
        answer(&review, &|object| object["metadata"]["name"] = json!("other"))
    });
    let (status, shown) = get(&cluster, &format!("{V2}/a")).await;
    let why = "conversion webhook for e.com/v1, Kind=Thing returned invalid object: must have the \
               same name: a != other";
    assert_eq!(status, 500);
    assert!(shown["message"].as_str().unwrap().ends_with(why), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn managers_of_one_version_own_fields_of_the_other() {
    let cluster = cluster().await;
    plain(&cluster);
    let config = thing("v1", "a", &json!({ "host": "h" }));
    apply(&cluster, &format!("{V1}/a?fieldManager=one"), &config).await;
    let other = thing("v2", "a", &json!({ "address": "i" }));
    let (status, refused) = apply(&cluster, &format!("{V2}/a?fieldManager=two"), &other).await;
    assert_eq!(status, 409);
    assert_eq!(
        refused["message"],
        "Apply failed with 1 conflict: conflict with \"one\": .spec.host"
    );
    let (status, forced) =
        apply(&cluster, &format!("{V2}/a?fieldManager=two&force=true"), &other).await;
    assert_eq!(status, 200);
    let managers = forced["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(managers.len(), 1, "{forced}");
    assert_eq!(managers[0]["manager"], "two");
    assert_eq!(managers[0]["apiVersion"], "e.com/v2");
}

#[tokio::test(start_paused = true)]
async fn the_next_write_stores_the_new_storage_version() {
    let cluster = cluster().await;
    plain(&cluster);
    create(&cluster, "a").await;
    create(&cluster, "b").await;
    let patch = json!({ "spec": { "versions": versions("v2") } });
    let (status, changed) = merge(&cluster, &format!("{DEFINITIONS}/things.e.com"), &patch).await;
    assert_eq!(status, 200);
    assert_eq!(changed["status"]["storedVersions"], json!(["v1", "v2"]));
    // A write that changes nothing else.
    assert_eq!(merge(&cluster, &format!("{V1}/a"), &json!({})).await.0, 200);
    for name in ["a", "b"] {
        assert_eq!(get(&cluster, &format!("{V1}/{name}")).await.1["spec"], json!({ "host": "h" }));
        let (_, shown) = get(&cluster, &format!("{V2}/{name}")).await;
        assert_eq!(shown["spec"], json!({ "address": "h" }));
    }
    // Without the converter each can only be read as it is stored.
    cluster.webhooks().forget(URL);
    for (path, status) in [
        (format!("{V2}/a"), 200),
        (format!("{V1}/a"), 500),
        (format!("{V2}/b"), 500),
        (format!("{V1}/b"), 200),
    ] {
        assert_eq!(get(&cluster, &path).await.0, status, "{path}");
    }
}

const REFUSED: &str = "conversion webhook for e.com/v1, Kind=Thing failed: Post \
                       \"https://127.0.0.1:1/convert?timeout=30s\": dial tcp 127.0.0.1:1: connect: \
                       connection refused";

#[tokio::test(start_paused = true)]
async fn without_its_converter_a_version_cannot_be_read() {
    let cluster = cluster().await;
    create(&cluster, "a").await;
    let (status, shown) = get(&cluster, &format!("{V1}/a")).await;
    assert_eq!((status, &shown["spec"]), (200, &json!({ "host": "h" })));
    let revision = shown["metadata"]["resourceVersion"].as_str().unwrap();
    let undecodable = format!("object not decodable revision={revision}: {REFUSED}");
    let corrupt = |key: &str| {
        format!(
            "StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, \
             AdditionalErrorMsg: {undecodable}"
        )
    };
    let (status, fault) = get(&cluster, &format!("{V2}/a")).await;
    assert_eq!((status, fault["reason"].as_str()), (500, Some("InternalError")));
    let why = format!("Internal error occurred: {}", corrupt("/e.com/things/default/a"));
    assert_eq!(fault["message"], json!(why));
    let (status, fault) = get(&cluster, &format!("{V2}?labelSelector=none")).await;
    assert_eq!((status, fault["reason"].as_str()), (500, Some("StorageReadError")));
    let why = format!(
        "failed to read one or more things.e.com from the storage: {}",
        corrupt("/registry/e.com/things/default/a")
    );
    assert_eq!(fault["message"], json!(why));
    let (status, fault) = merge(&cluster, &format!("{V2}/a"), &json!({})).await;
    assert_eq!((status, &fault["message"]), (500, &json!(undecodable)));
    let (status, _) = send(&cluster, "DELETE", &format!("{V2}/a"), "", &Value::Null).await;
    assert_eq!(status, 500);
    assert_eq!(get(&cluster, &format!("{V2}/other")).await.0, 404);
    let (status, _) = send(&cluster, "DELETE", &format!("{V1}/a"), "", &Value::Null).await;
    assert_eq!(status, 200);
    assert_eq!(get(&cluster, V2).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_silent_while_its_converter_is_away() {
    let cluster = cluster().await;
    plain(&cluster);
    create(&cluster, "a").await;
    let mut watch = Watch::open(&cluster, &format!("{V2}?watch=1")).await;
    assert_eq!(watch.next(1).await.unwrap().unwrap()["type"], "ADDED");
    cluster.webhooks().forget(URL);
    create(&cluster, "b").await;
    assert!(watch.next(10).await.is_err(), "nothing comes, and it does not end");
    let mut late = Watch::open(&cluster, &format!("{V2}?watch=1")).await;
    let error = late.next(4).await.unwrap().unwrap();
    assert_eq!((&error["type"], &error["object"]["code"]), (&json!("ERROR"), &json!(504)));
    plain(&cluster);
    let event = watch.next(2).await.unwrap().unwrap();
    assert_eq!(event["object"]["metadata"]["name"], "b");
    assert_eq!(event["object"]["spec"], json!({ "address": "h" }));
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_its_converter_stays_away() {
    let cluster = cluster().await;
    plain(&cluster);
    create(&cluster, "a").await;
    let mut watch = Watch::open(&cluster, &format!("{V2}?watch=1")).await;
    assert_eq!(watch.next(1).await.unwrap().unwrap()["type"], "ADDED");
    cluster.webhooks().forget(URL);
    create(&cluster, "b").await;
    assert!(watch.next(29).await.is_err());
    assert_eq!(watch.next(3).await.unwrap(), None);
    let (status, fault) = get(&cluster, &format!("{V2}?watch=1")).await;
    assert_eq!((status, &fault["message"]), (429, &json!("storage is (re)initializing")));
    plain(&cluster);
    let mut watch = Watch::open(&cluster, &format!("{V2}?watch=1")).await;
    assert_eq!(watch.next(1).await.unwrap().unwrap()["type"], "ADDED");
}

#[tokio::test(start_paused = true)]
async fn admission_asks_for_the_version_that_a_webhook_knows() {
    let cluster = cluster().await;
    plain(&cluster);
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let log = Arc::clone(&seen);
    cluster.webhooks().handle("https://hooks.example.com/v1", move |review| {
        log.lock().unwrap().push(review["request"]["object"]["spec"].clone());
        let uid = review["request"]["uid"].clone();
        let response = json!({ "uid": uid, "allowed": true });
        async move {
            json!({
                "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                "response": response,
            })
        }
    });
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "hooks" },
        "webhooks": [{
            "name": "hook.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": { "url": "https://hooks.example.com/v1" },
            "rules": [{
                "apiGroups": ["e.com"], "apiVersions": ["v1"], "resources": ["things"],
                "operations": ["CREATE"],
            }],
        }],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    create_raw(&cluster, path, &configuration).await;
    create_raw(&cluster, V2, &thing("v2", "a", &json!({ "address": "h" }))).await;
    assert_eq!(*seen.lock().unwrap(), [json!({ "host": "h" })]);
}
