//! Admission webhooks: those of this process in virtual time, and a real one over HTTPS.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::{BodyExt as _, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{
    Api, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use kube::core::ApiResource;
use rcgen::generate_simple_self_signed;
use serde_json::{Value, json};
use simcluster::SimCluster;
use simcluster::admission::{ApiError, ApiServer, Attributes, Operation, Plugin};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::support::{api, cluster};

const URL: &str = "https://hooks.example.com/review";

fn rule(operations: &[&str]) -> Value {
    json!({
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
        "operations": operations,
    })
}

/// Makes a configuration of one webhook.
async fn configure(cluster: &SimCluster, kind: &str, webhook: Value) {
    let gvk = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
    let api: Api<DynamicObject> = Api::all_with(cluster.client(), &ApiResource::from_gvk(&gvk));
    let mut hook = json!({
        "name": "hook.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "clientConfig": { "url": URL }, "rules": [rule(&["*"])],
    });
    hook.as_object_mut().unwrap().extend(webhook.as_object().unwrap().clone());
    let name = format!("{}-hooks", kind.to_lowercase());
    let object: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": { "name": name }, "webhooks": [hook],
    }))
    .unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

fn answer(review: &Value, response: Value) -> Value {
    let mut full = json!({ "uid": review["request"]["uid"] });
    full.as_object_mut().unwrap().extend(response.as_object().unwrap().clone());
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": full })
}

/// A JSON patch that puts a value under `data`.
fn patch(review: &Value, key: &str, value: &str) -> Value {
    let text = json!([{ "op": "add", "path": format!("/data/{key}"), "value": value }]).to_string();
    let patch = STANDARD.encode(text);
    answer(review, json!({ "allowed": true, "patchType": "JSONPatch", "patch": patch }))
}

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name }, "data": { "a": "1" } })).unwrap()
}

async fn create(cluster: &SimCluster, name: &str) -> Result<ConfigMap, kube::Error> {
    api::<ConfigMap>(cluster).create(&PostParams::default(), &config_map(name)).await
}

fn message(outcome: Result<ConfigMap, kube::Error>) -> String {
    match outcome.unwrap_err() {
        kube::Error::Api(status) => status.message,
        other => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_webhook_of_this_process_changes_what_is_written() {
    let cluster = cluster().await;
    cluster.webhooks().handle(URL, |review| async move { patch(&review, "b", "2") });
    configure(&cluster, "MutatingWebhookConfiguration", json!({})).await;
    let created = create(&cluster, "one").await.unwrap();
    assert_eq!(created.data.unwrap()["b"], "2");
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_write_is_shown_with_the_object_and_the_old_one() {
    let cluster = cluster().await;
    let seen: Arc<Mutex<Vec<(String, bool, bool, String)>>> = Arc::default();
    let log = Arc::clone(&seen);
    cluster.webhooks().handle(URL, move |review| {
        let request = &review["request"];
        let text = |key: &str| request[key].as_str().unwrap_or_default().to_owned();
        let entry = (
            text("operation"),
            request["object"].is_object(),
            request["oldObject"].is_object(),
            text("name"),
        );
        log.lock().unwrap().push(entry);
        async move { answer(&review, json!({ "allowed": true })) }
    });
    configure(&cluster, "ValidatingWebhookConfiguration", json!({})).await;
    create(&cluster, "one").await.unwrap();
    let maps = api::<ConfigMap>(&cluster);
    let change = json!({ "data": { "a": "2" } });
    maps.patch("one", &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
    let apply = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "two" }, "data": { "c": "3" },
    });
    maps.patch("two", &PatchParams::apply("test"), &Patch::Apply(apply)).await.unwrap();
    maps.delete("one", &DeleteParams::default()).await.unwrap();
    maps.delete_collection(&DeleteParams::default(), &kube::api::ListParams::default())
        .await
        .unwrap();
    let seen = seen.lock().unwrap().clone();
    let entry = |operation: &str, object, old, name: &str| {
        (operation.to_owned(), object, old, name.to_owned())
    };
    let wanted = [
        entry("CREATE", true, false, "one"),
        entry("UPDATE", true, true, "one"),
        entry("CREATE", true, false, "two"),
        entry("DELETE", false, true, "one"),
        // The objects of a collection are deleted one by one, without names.
        entry("DELETE", false, true, ""),
    ];
    assert_eq!(seen[..wanted.len()], wanted);
}

#[tokio::test(start_paused = true)]
async fn a_slow_webhook_costs_virtual_time_only() {
    let cluster = cluster().await;
    cluster.webhooks().handle(URL, |review| async move {
        tokio::time::sleep(Duration::from_mins(1)).await;
        answer(&review, json!({ "allowed": true }))
    });
    configure(&cluster, "ValidatingWebhookConfiguration", json!({ "timeoutSeconds": 3 })).await;
    let before = Instant::now();
    let text = message(create(&cluster, "one").await);
    assert_eq!(
        text,
        "Internal error occurred: failed calling webhook \"hook.example.com\": failed to call webhook: \
         Post \"https://hooks.example.com/review?timeout=3s\": context deadline exceeded"
    );
    assert!(before.elapsed() >= Duration::from_secs(3));
    assert!(api::<ConfigMap>(&cluster).get_opt("one").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_overtaken_during_admission_begins_again() {
    let cluster = Arc::new(cluster().await);
    create(&cluster, "one").await.unwrap();
    let (again, calls) = (Arc::clone(&cluster), Arc::new(Mutex::new(0)));
    let counted = Arc::clone(&calls);
    cluster.webhooks().handle(URL, move |review| {
        let (cluster, calls) = (Arc::clone(&again), Arc::clone(&counted));
        async move {
            let call = {
                let mut calls = calls.lock().unwrap();
                *calls += 1;
                *calls
            };
            if call == 1 {
                let change = json!({ "data": { "other": "first" } });
                let maps = api::<ConfigMap>(&cluster);
                maps.patch("one", &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
            }
            answer(&review, json!({ "allowed": true }))
        }
    });
    configure(&cluster, "ValidatingWebhookConfiguration", json!({ "rules": [rule(&["UPDATE"])] }))
        .await;
    let change = json!({ "data": { "a": "2" } });
    let maps = api::<ConfigMap>(&cluster);
    let done = maps.patch("one", &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
    let data = done.data.unwrap();
    assert_eq!((data["a"].as_str(), data["other"].as_str()), ("2", "first"));
    assert_eq!(*calls.lock().unwrap(), 3);
}

/// Refuses what is called `no`, and labels everything else.
#[derive(Debug)]
struct House;

impl Plugin for House {
    fn name(&self) -> &'static str {
        "House"
    }

    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.is_of("", "configmaps") && attributes.operation == Operation::Create
    }

    fn admit<'a>(
        &'a self,
        _server: &'a ApiServer,
        attributes: &'a mut Attributes,
    ) -> BoxFuture<'a, Result<(), ApiError>> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if let Some(object) = &mut attributes.object {
                object["metadata"]["labels"] = json!({ "house": "yes" });
            }
            Ok(())
        })
    }

    fn validate<'a>(
        &'a self,
        _server: &'a ApiServer,
        attributes: &'a Attributes,
    ) -> BoxFuture<'a, Result<(), ApiError>> {
        let refused = attributes.name == "no";
        let verdict = if refused { Err(attributes.forbidden("not in this house")) } else { Ok(()) };
        Box::pin(async move { verdict })
    }
}

#[tokio::test(start_paused = true)]
async fn a_plugin_of_the_test_is_asked_like_the_built_in_ones() {
    let cluster = SimCluster::builder().admission(House).start().unwrap();
    let created = create(&cluster, "one").await.unwrap();
    assert_eq!(created.metadata.labels.unwrap()["house"], "yes");
    let text = message(create(&cluster, "no").await);
    assert_eq!(text, "configmaps \"no\" is forbidden: not in this house");
}

/// Serves reviews over HTTPS on loopback; answers its port and its certificate.
async fn serve(respond: fn(Value) -> Value) -> (u16, String) {
    let names = vec!["127.0.0.1".to_owned(), "hooks.default.svc".to_owned()];
    let identity = generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(identity.signing_key.serialize_der()));
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![identity.cert.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let service =
                service_fn(move |request: http::Request<hyper::body::Incoming>| async move {
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    let answer = respond(serde_json::from_slice(&body).unwrap());
                    Ok::<_, std::convert::Infallible>(http::Response::new(Full::new(Bytes::from(
                        answer.to_string(),
                    ))))
                });
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connection);
        }
    });
    (port, STANDARD.encode(identity.cert.pem()))
}

fn deny_two(review: Value) -> Value {
    let two = review["request"]["name"] == "two";
    let status = json!({ "message": "one is enough", "code": 403, "reason": "Forbidden" });
    answer(&review, json!({ "allowed": !two, "status": status, "warnings": ["seen"] }))
}

#[tokio::test(start_paused = true)]
async fn a_real_webhook_is_called_while_virtual_time_stands_still() {
    let cluster = cluster().await;
    let (port, authority) = serve(deny_two).await;
    let config = json!({
        "url": format!("https://127.0.0.1:{port}/review"), "caBundle": authority,
    });
    configure(&cluster, "ValidatingWebhookConfiguration", json!({ "clientConfig": config })).await;
    let before = Instant::now();
    create(&cluster, "one").await.unwrap();
    let text = message(create(&cluster, "two").await);
    assert_eq!(text, "admission webhook \"hook.example.com\" denied the request: one is enough");
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_service_leads_where_the_test_says() {
    let cluster = cluster().await;
    let (port, authority) = serve(deny_two).await;
    let service: k8s_openapi::api::core::v1::Service = serde_json::from_value(json!({
        "metadata": { "name": "hooks" }, "spec": { "ports": [{ "port": 443 }] },
    }))
    .unwrap();
    api(&cluster).create(&PostParams::default(), &service).await.unwrap();
    cluster.webhooks().resolve("default", "hooks", 443, ([127, 0, 0, 1], port).into());
    let config = json!({
        "service": { "namespace": "default", "name": "hooks", "path": "/review" },
        "caBundle": authority,
    });
    configure(&cluster, "ValidatingWebhookConfiguration", json!({ "clientConfig": config })).await;
    create(&cluster, "one").await.unwrap();
    assert!(message(create(&cluster, "two").await).contains("one is enough"));
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_nobody_vouches_for_is_not_trusted() {
    let cluster = cluster().await;
    let (port, _) = serve(deny_two).await;
    let config = json!({ "url": format!("https://127.0.0.1:{port}/review") });
    configure(&cluster, "ValidatingWebhookConfiguration", json!({ "clientConfig": config })).await;
    let text = message(create(&cluster, "one").await);
    let why = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    assert!(text.ends_with(why), "{text}");
}
