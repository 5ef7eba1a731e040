//! Plays steps on one server.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt as _;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::case::Step;
use crate::error::Error;
use crate::placeholders::Placeholders;
use crate::target::{Body, Target};
use crate::text::{fill, fill_text, lookup, spaced};

/// How long a step may take until its answer has what `until` says.
const STEP: Duration = Duration::from_secs(15);
/// The pause before a request is sent again.
const PAUSE: Duration = Duration::from_millis(100);

/// One conversation on one server.
pub struct Player<'a> {
    target: Target<'a>,
    /// Values that steps refer to in braces.
    names: BTreeMap<String, String>,
    placeholders: Placeholders,
}

impl<'a> Player<'a> {
    /// A conversation in a namespace that nobody else uses.
    #[must_use]
    pub fn new(target: Target<'a>, placeholders: Placeholders) -> Self {
        let namespace = placeholders.namespace().to_owned();
        let group = format!("{namespace}.example.com");
        let names = BTreeMap::from([("ns".to_owned(), namespace), ("group".to_owned(), group)]);
        Self { target, names, placeholders }
    }

    /// The server.
    pub(crate) fn target(&self) -> &Target<'a> {
        &self.target
    }

    /// The names that were given so far.
    pub(crate) fn placeholders(&mut self) -> &mut Placeholders {
        &mut self.placeholders
    }

    /// Applies an object of a fixture and waits, if it is a CRD, until its resource is served.
    pub async fn apply(&self, mut object: Value) -> Result<(), Error> {
        let text = |path| object.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let name = text("/metadata/name").unwrap_or_default();
        let fault = |fault: &str| Error::Fixture { name: name.clone(), fault: fault.to_owned() };
        let collection = text("/x-path").ok_or_else(|| fault("there is no x-path"))?;
        let probe = served_path(&object);
        if let Some(object) = object.as_object_mut() {
            object.remove("x-path");
        }
        let mut step =
            Step::new(format!("PATCH {collection}/{name}?fieldManager=fixtures&force=true"));
        step.headers = BTreeMap::from([header("Content-Type", "application/apply-patch+yaml")]);
        step.text = Some(object.to_string());
        let answer = self.target.send(request(&step, &BTreeMap::new())?).await?;
        if !answer.status().is_success() {
            return Err(fault(&String::from_utf8_lossy(&read(&step, answer).await?)));
        }
        let Some(probe) = probe else { return Ok(()) };
        let deadline = Instant::now() + STEP;
        let get = Step::new(format!("GET {probe}"));
        while self.target.send(request(&get, &BTreeMap::new())?).await?.status() != 200 {
            if Instant::now() >= deadline {
                return Err(fault("it is never served"));
            }
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Sends one step until its answer has what it waits for; returns the marked answer.
    pub(crate) async fn step(&mut self, step: &Step) -> Result<Value, Error> {
        let deadline = Instant::now() + STEP;
        loop {
            let request = request(step, &self.names)?;
            self.placeholders.note_prefixes(request.body());
            let answer = self.target.send(request).await?;
            let (document, mut got) = self.read(step, answer).await?;
            let wanted = step.until.iter().map(|(path, value)| (path, fill(value, &self.names)));
            let done = wanted.clone().all(|(path, wanted)| match path.as_str() {
                "status_code" => got.get("status") == Some(&wanted),
                path => lookup(&document, path).unwrap_or(&Value::Null) == &wanted,
            });
            if !done && Instant::now() <= deadline {
                sleep(PAUSE).await;
                continue;
            }
            if !done {
                let until = json!(step.until);
                got.insert("timeout".to_owned(), format!("{until} did not come").into());
            }
            for (name, path) in &step.save {
                let value = lookup(&document, path).unwrap_or(&Value::Null);
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                self.names.insert(name.clone(), text);
            }
            return Ok(Value::Object(got));
        }
    }

    /// Reads an answer: the document in it, and the marked answer as far as it counts.
    async fn read(
        &self,
        step: &Step,
        answer: Response<Body>,
    ) -> Result<(Value, Map<String, Value>), Error> {
        let headers = answer.headers().clone();
        let mut got = self.head(step, answer.status().as_u16(), &headers);
        if let Some(count) = step.events {
            let events = Value::Array(read_events(step, answer, count).await?);
            got.insert("events".to_owned(), self.placeholders.mark(&events));
            return Ok((events, got));
        }
        let body = read(step, answer).await?;
        let (document, marked) = self.body(step, &body, &headers);
        got.insert("body".to_owned(), marked);
        Ok((document, got))
    }

    /// The status line and headers of an answer.
    fn head(&self, step: &Step, status: u16, headers: &HeaderMap) -> Map<String, Value> {
        let header = |name: &str| -> Value {
            let values: Vec<&str> =
                headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
            if values.is_empty() {
                return Value::Null;
            }
            self.placeholders.mark_text(&values.join(", ")).into()
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
    fn body(&self, step: &Step, body: &Bytes, headers: &HeaderMap) -> (Value, Value) {
        let kind =
            headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let document: Option<Value> =
            kind.contains("json").then(|| serde_json::from_slice(body).ok()).flatten();
        let marked = match &document {
            Some(document) => self.placeholders.mark(document),
            None if kind.contains("protobuf") => {
                json!({ "base64": base64::engine::general_purpose::STANDARD.encode(body) })
            }
            None => self.placeholders.mark_text(&String::from_utf8_lossy(body)).into(),
        };
        let picked =
            |path: &String| (path.clone(), lookup(&marked, path).cloned().unwrap_or_default());
        let marked = if step.pick.is_empty() {
            marked
        } else {
            Value::Object(step.pick.iter().map(picked).collect())
        };
        (document.unwrap_or_default(), marked)
    }
}

fn header(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// The request of a step.
fn request(step: &Step, names: &BTreeMap<String, String>) -> Result<Request<Bytes>, Error> {
    let line = fill_text(&step.line, names);
    let (method, path) = line.split_once(' ').unwrap_or((&line, ""));
    let mut headers = BTreeMap::from([header("Accept", "application/json")]);
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
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    request.body(body.into()).map_err(|source| Error::Request { line: step.line.clone(), source })
}

/// Where the resource of a CRD is served; `None` if the object is none.
fn served_path(object: &Value) -> Option<String> {
    let text = |path| object.pointer(path).and_then(Value::as_str);
    if text("/kind") != Some("CustomResourceDefinition") {
        return None;
    }
    let versions = object.pointer("/spec/versions")?.as_array()?;
    let served = versions.iter().find(|version| version.get("served") == Some(&json!(true)))?;
    let version = served.get("name")?.as_str()?;
    Some(format!("/apis/{}/{version}/{}", text("/spec/group")?, text("/spec/names/plural")?))
}

async fn read(step: &Step, answer: Response<Body>) -> Result<Bytes, Error> {
    let fault = |fault: String| Error::Answer { line: step.line.clone(), fault };
    match timeout(STEP, answer.into_body().collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) => Err(fault(error.to_string())),
        Err(_) => Err(fault(format!("it does not end within {} s", STEP.as_secs()))),
    }
}

/// Reads watch events, one JSON document a line, until `count` came or the step's `seconds` passed
/// without one.
async fn read_events(
    step: &Step,
    answer: Response<Body>,
    count: usize,
) -> Result<Vec<Value>, Error> {
    let parse = |line: &[u8]| {
        serde_json::from_slice(line).map_err(|error| Error::Answer {
            line: step.line.clone(),
            fault: format!("an event is no JSON: {error}"),
        })
    };
    if answer.status() != 200 {
        return Ok(vec![parse(&read(step, answer).await?)?]);
    }
    let mut body = answer.into_body();
    let mut pending: Vec<u8> = Vec::new();
    let mut events = Vec::new();
    while events.len() < count {
        if let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            events.push(parse(&line)?);
            continue;
        }
        match timeout(Duration::from_secs_f64(step.seconds), body.frame()).await {
            Ok(Some(Ok(frame))) => pending.extend(frame.into_data().unwrap_or_default()),
            Ok(Some(Err(_)) | None) | Err(_) => break,
        }
    }
    Ok(events)
}
