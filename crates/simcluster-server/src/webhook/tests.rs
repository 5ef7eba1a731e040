use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Address, WebhookReply, read};

fn answered(status: u16, content_type: &str, body: &str) -> Result<Value, String> {
    let asked = json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1" });
    let body = Bytes::from(body.to_owned());
    read(
        &WebhookReply { status, content_type: content_type.to_owned(), body, retry_after: None },
        &asked,
    )
}

#[track_caller]
fn refused(status: u16, content_type: &str, body: &str, why: &str) {
    assert_eq!(answered(status, content_type, body), Err(why.to_owned()));
}

#[test]
fn addresses_are_shown_as_they_are_called() {
    let check = |config: Value, seconds: u64, shown: &str| {
        let address = Address::parse(&config);
        assert_eq!(address.with_timeout(Duration::from_secs(seconds)), shown);
    };
    check(json!({ "url": "https://127.0.0.1:1/x" }), 10, "https://127.0.0.1:1/x?timeout=10s");
    check(json!({ "url": "https://a.example.com" }), 1, "https://a.example.com/?timeout=1s");
    let service = json!({ "namespace": "n", "name": "s", "path": "/p/", "port": 8443 });
    check(json!({ "service": service }), 30, "https://s.n.svc:8443/p?timeout=30s");
    let service = json!({ "namespace": "n", "name": "s" });
    check(json!({ "service": service }), 30, "https://s.n.svc:443/?timeout=30s");
}

#[test]
fn what_is_no_review_is_refused_in_the_words_of_the_client() {
    const JSON: &str = "application/json";
    const NO_TYPE: &str = "couldn't get version/kind; json parse error: ";
    refused(
        200,
        JSON,
        "",
        "0-length response with status code: 200 and content type: application/json",
    );
    refused(
        200,
        JSON,
        "{\"kind\": \"AdmissionReview\", \"apiVersion\": ",
        &format!("{NO_TYPE}unexpected end of JSON input"),
    );
    let listed = answered(200, JSON, "[]").unwrap_err();
    assert!(listed.starts_with(&format!("{NO_TYPE}json: cannot unmarshal array")), "{listed}");
    refused(
        200,
        JSON,
        r#"{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1"}"#,
        "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
    );
    refused(
        200,
        JSON,
        r#"{"kind": "Review", "apiVersion": "admission.k8s.io/v1"}"#,
        "no kind \"Review\" is registered for version \"admission.k8s.io/v1\" in scheme \
         \"pkg/runtime/scheme.go:111\"",
    );
    assert!(answered(200, JSON, "{}").is_ok());
    assert!(answered(201, "text/plain", r#"{"kind": "AdmissionReview"}"#).is_ok());
}

#[test]
fn codes_of_http_have_the_texts_of_the_client() {
    const JSON: &str = "application/json";
    let broken = |what: &str| {
        format!("an error on the server ({what:?}) has prevented the request from succeeding")
    };
    refused(500, JSON, "no", &broken("unknown"));
    refused(500, "text/plain", "it broke\n", &broken("it broke"));
    refused(404, JSON, "no", "the server could not find the requested resource");
    refused(415, JSON, "no", "unknown");
    refused(
        418,
        JSON,
        "no",
        "the server responded with the status code 418 but did not return more information",
    );
    let status = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "m"}"#;
    refused(500, JSON, status, "m");
    refused(
        200,
        JSON,
        status,
        "converting (v1.Status) to (v1.AdmissionReview): unknown conversion",
    );
}
