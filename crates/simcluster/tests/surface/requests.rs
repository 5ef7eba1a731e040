//! Requests: recorded ones with some harm done to them.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request};
use serde_json::Value;
use simcluster_model::codec::yaml;

use crate::corpus::Recorded;
use crate::mutate::{self, Dice, NUMBERS, TEXTS};

const METHODS: [&str; 9] =
    ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "BREW"];

const CONTENT_TYPES: [&str; 10] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/json; charset=utf-8; q=99",
    "text/plain",
    ";;;",
];

const ACCEPTS: [&str; 12] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    "application/json;as=Table;v=v9;g=x",
    "*/*;q=0.0001, a/b;c=\"d;e\"",
    "application/json;stream=watch",
    ",,,;=;q=q",
    "text/html",
];

const PARAMETERS: [&str; 27] = [
    "watch", "limit", "continue", "resourceVersion", "resourceVersionMatch", "labelSelector",
    "fieldSelector", "timeoutSeconds", "timeout", "sendInitialEvents", "allowWatchBookmarks",
    "dryRun", "fieldManager", "fieldValidation", "force", "gracePeriodSeconds", "orphanDependents",
    "propagationPolicy", "pretty", "includeObject", "tailLines", "sinceSeconds", "container",
    "follow", "limitBytes", "sinceTime", "ignoreStoreReadErrorWithClusterBreakingPotential",
];

/// Parameters that are numbers.
const NUMBERED: [&str; 7] = [
    "limit", "resourceVersion", "timeoutSeconds", "gracePeriodSeconds", "tailLines", "sinceSeconds",
    "limitBytes",
];

const SEGMENTS: [&str; 34] = [
    "api", "apis", "v1", "v2", "apps", "example.com", "batch", "namespaces", "default",
    "kube-system", "pods", "services", "deployments", "widgets", "customresourcedefinitions",
    "configmaps", "nodes", "events", "status", "scale", "log", "binding", "eviction", "finalize",
    "token", "exec", "watch", "proxy", "x", "a", "..", "%2F", "%00", "%F0%9F%98%80",
];

/// The next request of a stream; `None` where the harm left nothing that HTTP can carry.
pub(crate) fn next(dice: &mut Dice, corpus: &[Recorded]) -> Option<Request<Bytes>> {
    let recorded = &corpus[dice.below(corpus.len())];
    let (method, target) = recorded.line.split_once(' ')?;
    let method = if dice.percent(7) { dice.pick(&METHODS) } else { method };
    let target = address(dice, target);
    let method = Method::from_bytes(method.as_bytes()).ok()?;
    let mut request = Request::builder().method(method).uri(target).body(Bytes::new()).ok()?;
    for (name, value) in &recorded.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        request.headers_mut().insert(name, HeaderValue::from_str(value).ok()?);
    }
    headers(dice, &mut request);
    *request.body_mut() = Bytes::from(body(dice, recorded, corpus, &mut request));
    Some(request)
}

fn address(dice: &mut Dice, target: &str) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut path = path.to_owned();
    if dice.percent(12) {
        let mut segments: Vec<&str> = path.split('/').collect();
        let at = dice.below(segments.len());
        match dice.below(4) {
            0 => drop(segments.remove(at)),
            1 => segments.insert(at, dice.pick(&SEGMENTS)),
            2 => segments.push(dice.pick(&SEGMENTS)),
            _ => segments[at] = dice.pick(&SEGMENTS),
        }
        path = segments.join("/");
    }
    if !path.starts_with('/') {
        path.insert(0, '/');
    }
    let mut query = query.to_owned();
    while dice.percent(25) {
        let numbered = dice.percent(40);
        let name = dice.pick(if numbered { &NUMBERED[..] } else { &PARAMETERS[..] });
        let text = dice.pick(if numbered { &NUMBERS[..] } else { &TEXTS[..] });
        query = format!("{query}&{name}={}", percent_encoded(text));
    }
    if query.is_empty() { path } else { format!("{path}?{}", query.trim_start_matches('&')) }
}

fn percent_encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

fn headers(dice: &mut Dice, request: &mut Request<Bytes>) {
    let headers = request.headers_mut();
    if dice.percent(20) {
        headers.insert("accept", HeaderValue::from_static(dice.pick(&ACCEPTS)));
    }
    if dice.percent(10) {
        headers.insert("content-type", HeaderValue::from_static(dice.pick(&CONTENT_TYPES)));
    }
    if dice.percent(4) {
        let names = ["impersonate-user", "impersonate-group", "impersonate-uid", "user-agent",
            "audit-id", "impersonate-extra-a%ZZ", "accept-encoding"];
        let junk: Vec<u8> = (0..dice.below(40)).map(|_| dice.byte() | 0x20).collect();
        if let Ok(value) = HeaderValue::from_bytes(&junk) {
            headers.insert(HeaderName::from_static(dice.pick(&names[..5]).trim()), value);
        }
    }
}

fn body(
    dice: &mut Dice,
    recorded: &Recorded,
    corpus: &[Recorded],
    request: &mut Request<Bytes>,
) -> Vec<u8> {
    let mut value = recorded.body.clone();
    if dice.percent(4) {
        value.clone_from(&corpus[dice.below(corpus.len())].body);
    }
    let Some(mut value) = value else {
        let mut text = recorded.text.clone().unwrap_or_default().into_bytes();
        if dice.percent(if text.is_empty() { 3 } else { 60 }) {
            mutate::bytes(dice, &mut text);
        }
        return text;
    };
    while dice.percent(55) {
        mutate::value(dice, &mut value);
    }
    if dice.percent(3) {
        return as_protobuf(dice, &value, request);
    }
    let mut bytes = if dice.percent(8) {
        if !request.headers().contains_key("content-type") {
            let yaml = HeaderValue::from_static("application/yaml");
            request.headers_mut().insert("content-type", yaml);
        }
        yaml::write(&value).into_bytes()
    } else {
        value.to_string().into_bytes()
    };
    while dice.percent(12) {
        mutate::bytes(dice, &mut bytes);
    }
    bytes
}

fn as_protobuf(dice: &mut Dice, value: &Value, request: &mut Request<Bytes>) -> Vec<u8> {
    let media_type = HeaderValue::from_static("application/vnd.kubernetes.protobuf");
    request.headers_mut().insert("content-type", media_type);
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut bytes = mutate::protobuf(dice, text("apiVersion"), text("kind"));
    if dice.percent(30) {
        mutate::bytes(dice, &mut bytes);
    }
    bytes
}
