//! Plays one case against a server.

use std::collections::BTreeMap;
use std::io::{Result, Write};
use std::sync::LazyLock;
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt as _;
use regex::Regex;
use serde::Serialize as _;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::case::{Case, Step, fixture};
use crate::compare::{differences, in_one_order, managers_in_one_order, without_hashes};
use crate::placeholders::Placeholders;
use crate::server::{Body, send};
use simcluster::env::Cluster;

/// How long a step may take until its answer has what `until` says.
const STEP: Duration = Duration::from_secs(15);
/// The pause before a request is sent again.
const PAUSE: Duration = Duration::from_millis(100);

/// What went differently in one step.
pub(crate) struct Difference {
    /// The step, counted from 1.
    pub(crate) step: usize,
    /// Its request.
    pub(crate) line: String,
    /// One entry for each place.
    pub(crate) places: Vec<String>,
}

/// What counts as equal though it is not.
pub(crate) struct Liberties<'a> {
    /// The steps in which every list of faults is a set.
    pub(crate) unordered: &'a (dyn Fn(usize) -> bool + Sync),
    /// Whether all hashes of Pod templates are equal.
    pub(crate) hashes: bool,
}

/// Plays a case in a fresh namespace and compares every answer with the recorded one.
/// `liberties` says what counts as equal though it is not.
pub(crate) async fn play(
    case: &Case,
    cluster: &Cluster,
    namespace: &str,
    liberties: &Liberties<'_>,
) -> Vec<Difference> {
    for name in &case.needs {
        for object in fixture(name) {
            apply_fixture(cluster, object).await;
        }
    }
    let group = format!("{namespace}.example.com");
    let mut names =
        BTreeMap::from([("ns".to_owned(), namespace.to_owned()), ("group".to_owned(), group)]);
    let mut placeholders = Placeholders::new(namespace);
    let mut found = Vec::new();
    for (index, step) in case.steps.iter().enumerate() {
        let mut answered = play_step(step, cluster, &mut names, &mut placeholders).await;
        let mut recorded = step.got.clone();
        for document in [&mut answered, &mut recorded] {
            in_one_order(document, (liberties.unordered)(index + 1));
            // Where time is real, one run of a case crosses a second and another does not.
            if cluster.sim().is_none() {
                managers_in_one_order(document);
            }
            if liberties.hashes {
                *document = without_hashes(document);
            }
        }
        let answered = placeholders.name(&answered, &recorded);
        let places = differences(&recorded, &answered);
        if !places.is_empty() {
            found.push(Difference { step: index + 1, line: step.line.clone(), places });
        }
    }
    found
}

fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> http::request::Builder {
    let request = Request::builder().method(method).uri(path);
    headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))
}

/// Applies an object of a fixture and waits, if it is a CRD, until its resource is served.
async fn apply_fixture(cluster: &Cluster, mut object: Value) {
    let collection = object["x-path"].as_str().expect("fixtures have x-path").to_owned();
    object.as_object_mut().expect("an object").remove("x-path");
    let name = object["metadata"]["name"].as_str().expect("fixtures have names").to_owned();
    let path = format!("{collection}/{name}?fieldManager=fixtures&force=true");
    let headers =
        [("Content-Type", "application/apply-patch+yaml"), ("Accept", "application/json")];
    let apply =
        request("PATCH", &path, &headers).body(object.to_string().into()).expect("a valid request");
    let answer = send(cluster, apply).await;
    let status = answer.status();
    let body = read(answer).await;
    assert!(status.is_success(), "fixture {name}: {status} {}", String::from_utf8_lossy(&body));
    if object["kind"] != "CustomResourceDefinition" {
        return;
    }
    let spec = &object["spec"];
    let versions = spec["versions"].as_array().expect("CRDs have versions");
    let shown = versions.iter().find(|version| version["served"] == true);
    let probe = format!(
        "/apis/{}/{}/{}",
        spec["group"].as_str().expect("CRDs have a group"),
        shown.and_then(|version| version["name"].as_str()).expect("a version is served"),
        spec["names"]["plural"].as_str().expect("CRDs have a plural"),
    );
    let deadline = Instant::now() + STEP;
    loop {
        let get = request("GET", &probe, &[]).body(Bytes::new()).expect("a valid request");
        if send(cluster, get).await.status() == 200 {
            return;
        }
        assert!(Instant::now() < deadline, "{probe} is never served");
        sleep(PAUSE).await;
    }
}

/// Sends one step until its answer has what it waits for; returns the marked answer.
async fn play_step(
    step: &Step,
    cluster: &Cluster,
    names: &mut BTreeMap<String, String>,
    placeholders: &mut Placeholders,
) -> Value {
    let until = &step.until;
    let deadline = Instant::now() + STEP;
    loop {
        let answer = send(cluster, build(step, names, placeholders)).await;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let mut got = head(step, status, &headers, placeholders);
        let document = if let Some(count) = step.events {
            let events = Value::Array(read_events(answer, count, step.seconds).await);
            got.insert("events".to_owned(), placeholders.mark(&events));
            events
        } else {
            let body = read(answer).await;
            let document = body_of(&body, &headers, placeholders, &step.pick);
            got.insert("body".to_owned(), document.1);
            document.0
        };
        let has = |(path, wanted): (&String, &Value)| match path.as_str() {
            "status_code" => json!(status) == *wanted,
            path => lookup(&document, path).unwrap_or(&Value::Null) == &fill(wanted, names),
        };
        let done = until.iter().all(has);
        if !done && Instant::now() <= deadline {
            sleep(PAUSE).await;
            continue;
        }
        if !done {
            got.insert("timeout".to_owned(), format!("{until:?} did not come").into());
        }
        for (name, path) in &step.save {
            let value = lookup(&document, path).unwrap_or(&Value::Null);
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            names.insert(name.clone(), text);
        }
        return Value::Object(got);
    }
}

fn build(
    step: &Step,
    names: &BTreeMap<String, String>,
    placeholders: &mut Placeholders,
) -> Request<Bytes> {
    let line = fill_text(&step.line, names);
    let (method, path) = line.split_once(' ').expect("a method and a path");
    let mut headers = BTreeMap::from([("Accept".to_owned(), "application/json".to_owned())]);
    headers.extend(
        step.headers.iter().map(|(name, value)| (fill_text(name, names), fill_text(value, names))),
    );
    let body = match (&step.text, &step.body) {
        (Some(text), _) => fill_text(text, names),
        (None, Some(body)) => {
            headers
                .entry("Content-Type".to_owned())
                .or_insert_with(|| "application/json".to_owned());
            spaced(&fill(body, names))
        }
        (None, None) => String::new(),
    };
    placeholders.note_prefixes(&body);
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    request.body(body.into()).expect("a valid request")
}

/// JSON with a space after each comma and colon, as the recorder sent it: some answers quote it.
fn spaced(body: &Value) -> String {
    struct Spaces;
    impl serde_json::ser::Formatter for Spaces {
        fn begin_array_value<W: Write + ?Sized>(&mut self, to: &mut W, first: bool) -> Result<()> {
            to.write_all(if first { b"" } else { b", " })
        }
        fn begin_object_key<W: Write + ?Sized>(&mut self, to: &mut W, first: bool) -> Result<()> {
            to.write_all(if first { b"" } else { b", " })
        }
        fn begin_object_value<W: Write + ?Sized>(&mut self, to: &mut W) -> Result<()> {
            to.write_all(b": ")
        }
    }
    let mut text = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, Spaces);
    body.serialize(&mut serializer).expect("a Value can be written to memory");
    String::from_utf8(text).expect("JSON is UTF-8")
}

/// The status line and headers of an answer.
fn head(
    step: &Step,
    status: u16,
    headers: &HeaderMap,
    placeholders: &Placeholders,
) -> Map<String, Value> {
    let header = |name: &str| -> Value {
        let values: Vec<&str> =
            headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
        if values.is_empty() {
            Value::Null
        } else {
            placeholders.mark_text(&values.join(", ")).into()
        }
    };
    let mut got = Map::new();
    got.insert("status".to_owned(), status.into());
    got.insert("type".to_owned(), header("content-type"));
    if !step.keep.is_empty() {
        let kept: Map<String, Value> =
            step.keep.iter().map(|name| (name.clone(), header(name))).collect();
        got.insert("headers".to_owned(), kept.into());
    }
    got
}

/// The document in a body, if it is JSON, and the marked body cut down to what counts.
fn body_of(
    body: &Bytes,
    headers: &HeaderMap,
    placeholders: &Placeholders,
    pick: &[String],
) -> (Value, Value) {
    let kind =
        headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let document: Option<Value> =
        kind.contains("json").then(|| serde_json::from_slice(body).ok()).flatten();
    let marked = match &document {
        Some(document) => placeholders.mark(document),
        None if kind.contains("protobuf") => {
            json!({ "base64": base64::engine::general_purpose::STANDARD.encode(body) })
        }
        None => placeholders.mark_text(&String::from_utf8_lossy(body)).into(),
    };
    let marked = if pick.is_empty() {
        marked
    } else {
        let picked = pick
            .iter()
            .map(|path| (path.clone(), lookup(&marked, path).cloned().unwrap_or_default()));
        Value::Object(picked.collect())
    };
    (document.unwrap_or_default(), marked)
}

async fn read(answer: Response<Body>) -> Bytes {
    timeout(STEP, answer.into_body().collect())
        .await
        .expect("the answer ends")
        .expect("the answer can be read")
        .to_bytes()
}

/// Reads watch events, one JSON document a line, until `count` came or `seconds` passed without one.
async fn read_events(answer: Response<Body>, count: usize, seconds: f64) -> Vec<Value> {
    if answer.status() != 200 {
        let body = read(answer).await;
        return vec![serde_json::from_slice(&body).expect("an error is JSON")];
    }
    let mut body = answer.into_body();
    let mut pending: Vec<u8> = Vec::new();
    let mut events = Vec::new();
    while events.len() < count {
        if let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            events.push(serde_json::from_slice(&line).expect("an event is a line of JSON"));
            continue;
        }
        match timeout(Duration::from_secs_f64(seconds), body.frame()).await {
            Ok(Some(Ok(frame))) => pending.extend(frame.into_data().unwrap_or_default()),
            Ok(Some(Err(_)) | None) | Err(_) => break,
        }
    }
    events
}

/// Puts saved values where a case says `{name}`; other braces stay.
fn fill_text(text: &str, names: &BTreeMap<String, String>) -> String {
    static BRACES: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\{(\w+)\}").expect("a valid pattern"));
    let value = |found: &regex::Captures<'_>| {
        names.get(&found[1]).cloned().unwrap_or_else(|| found[0].to_owned())
    };
    BRACES.replace_all(text, value).into()
}

fn fill(node: &Value, names: &BTreeMap<String, String>) -> Value {
    match node {
        Value::String(text) => fill_text(text, names).into(),
        Value::Array(items) => items.iter().map(|item| fill(item, names)).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (fill_text(key, names), fill(value, names)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => node.clone(),
    }
}

/// The value at a dotted path; numbers index lists, negative ones from their end.
fn lookup<'a>(document: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(document, |node, part| match node {
        Value::Array(items) => {
            let index: isize = part.parse().ok()?;
            let index = if index < 0 {
                items.len().checked_add_signed(index)?
            } else {
                index.unsigned_abs()
            };
            items.get(index)
        }
        Value::Object(map) => map.get(part),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}
