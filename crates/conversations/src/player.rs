//! Plays steps on one server.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http::header::{CONNECTION, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::BodyExt as _;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::case::{Called, Case, Step};
use crate::error::Error;
use crate::hooks::{Call, Hooks};
use crate::placeholders::Placeholders;
use crate::stream::Stream;
use crate::target::{Body, Target};
use crate::text::{fill, fill_text, lookup, spaced};
use crate::websocket;

/// How long a step may take until its answer has what `until` says.
const STEP: Duration = Duration::from_secs(15);
/// The most events that are read from a stream at once.
const EVENTS_MAX: usize = 1000;
/// The pause before a request is sent again.
const PAUSE: Duration = Duration::from_millis(100);

/// One conversation on one server.
pub struct Player<'a> {
    target: Target<'a>,
    /// Values that steps refer to in braces.
    names: BTreeMap<String, String>,
    placeholders: Placeholders,
    hooks: Hooks,
    /// Watches that stay open.
    streams: BTreeMap<String, Stream>,
}

/// An answer: what of it is known before it is known to be the last one.
struct Answer {
    status: u16,
    headers: HeaderMap,
    content: Content,
}

/// What an answer has besides its head.
enum Content {
    Body(Bytes),
    Events(Vec<Value>),
    /// It is left open.
    Stream,
}

impl<'a> Player<'a> {
    /// A conversation in a namespace that nobody else uses.
    #[must_use]
    pub fn new(target: Target<'a>, placeholders: Placeholders) -> Self {
        let namespace = placeholders.namespace().to_owned();
        let group = format!("{namespace}.example.com");
        let names = BTreeMap::from([("ns".to_owned(), namespace), ("group".to_owned(), group)]);
        let hooks = Hooks::default();
        Self { target, names, placeholders, hooks, streams: BTreeMap::new() }
    }

    /// Starts the webhooks of a case.
    pub(crate) async fn start_hooks(&mut self, case: &Case) -> Result<(), Error> {
        self.hooks = Hooks::start(&case.hooks, &case.parallel)?;
        if !self.hooks.are_there() {
            return Ok(());
        }
        self.names.extend(self.hooks.names());
        self.placeholders.texts = self.hooks.texts();
        let mut who = Step::new("POST /apis/authentication.k8s.io/v1/selfsubjectreviews");
        who.body =
            Some(json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" }));
        self.placeholders.me = self.document(&who).await?.pointer("/status/userInfo").cloned();
        Ok(())
    }

    /// The server.
    pub(crate) fn target(&self) -> &Target<'a> {
        &self.target
    }

    /// The names that were given so far.
    pub(crate) fn placeholders(&mut self) -> &mut Placeholders {
        &mut self.placeholders
    }

    /// Sends a request that is no step of the conversation; returns the JSON of the answer.
    async fn document(&self, step: &Step) -> Result<Value, Error> {
        let answer = self.target.send(request(step, &self.names)?).await?;
        Ok(serde_json::from_slice(&read(step, answer).await?).unwrap_or_default())
    }

    /// Plays one step; returns what was answered, marked.
    pub(crate) async fn step(&mut self, step: &Step) -> Result<Value, Error> {
        match step.line.split_once(' ') {
            Some(("READ", name)) => return self.read_stream(step, name).await,
            Some(("CLOSE", name)) => {
                self.streams.remove(name);
                return Ok(json!({}));
            }
            _ => {}
        }
        for number in 1..=step.repeat {
            self.names.insert("n".to_owned(), number.to_string());
            if number < step.repeat {
                self.send(step).await?;
            }
        }
        self.ask(step).await
    }

    /// Reads from a watch that an earlier step left open.
    async fn read_stream(&mut self, step: &Step, name: &str) -> Result<Value, Error> {
        let stream = self.streams.get_mut(name).ok_or_else(|| Error::Answer {
            line: step.line.clone(),
            fault: "there is no such stream".to_owned(),
        })?;
        let events = stream.events(step.events.unwrap_or(EVENTS_MAX), step.seconds).await;
        let mut got = json!({
            "events": self.placeholders.mark(&Value::Array(events)), "end": stream.end,
        });
        if let (Some(got), false) = (got.as_object_mut(), stream.frames.is_empty()) {
            got.insert("frames".to_owned(), json!(stream.frames));
        }
        Ok(cut(got, &step.pick))
    }

    /// Sends a step's request until the answer has what it waits for.
    async fn ask(&mut self, step: &Step) -> Result<Value, Error> {
        let deadline = Instant::now() + STEP;
        let aside = step.called.as_ref().is_some_and(|called| called.aside);
        loop {
            if aside {
                self.hooks.quiet(self.target.is_real()).await;
            }
            self.hooks.begin(&self.names);
            let answer = self.send(step).await?;
            if aside {
                self.hooks.quiet(self.target.is_real()).await;
            }
            self.placeholders.reviews = self.hooks.reviews();
            let calls = self.hooks.calls(step.called.as_ref().map_or(&[], |called| &called.hooks));
            let document = answer.document();
            let done = self.is_awaited(step, &answer, &document, &calls);
            if !done && Instant::now() <= deadline {
                sleep(PAUSE).await;
                continue;
            }
            let mut got = self.head(step, answer.status, &answer.headers);
            match &answer.content {
                Content::Body(body) => {
                    got.insert("body".to_owned(), cut(self.body(body, &answer), &step.pick));
                }
                Content::Events(events) => {
                    got.insert("events".to_owned(), self.placeholders.mark(&json!(events)));
                }
                Content::Stream => {}
            }
            if let Some(called) = &step.called {
                got.insert("called".to_owned(), self.called(called, &calls));
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

    /// Whether an answer has what a step waits for.
    fn is_awaited(&self, step: &Step, answer: &Answer, document: &Value, calls: &[Call]) -> bool {
        let hooks: Vec<Value> = calls
            .iter()
            .map(|call| json!({ "hook": call.hook, "path": call.path, "body": call.body }))
            .collect();
        let extra = json!({
            "status_code": answer.status, "calls": calls.len(), "called": hooks,
        });
        step.until.iter().all(|(path, wanted)| {
            let first = path.split('.').next().unwrap_or_default();
            let place = if extra.get(first).is_some() { &extra } else { document };
            lookup(place, path).unwrap_or(&Value::Null) == &fill(wanted, &self.names)
        })
    }

    /// Sends a step's request once.
    async fn send(&mut self, step: &Step) -> Result<Answer, Error> {
        let mut request = request(step, &self.names)?;
        self.placeholders.note_prefixes(request.body());
        let mut answer = if step.websocket || step.window.is_some() {
            if step.websocket {
                ask_for_websocket(request.headers_mut());
            }
            self.target.connect(request, step.window).await?
        } else {
            self.target.send(request).await?
        };
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let content = match (&step.open, step.events) {
            (Some(name), _) if step.websocket && status == 101 => {
                let upgraded = hyper::upgrade::on(&mut answer).await;
                let upgraded = upgraded.map_err(|error| fault(step, error.to_string()))?;
                self.streams.insert(name.clone(), Stream::websocket(upgraded));
                Content::Stream
            }
            (Some(name), _) if !step.websocket && status == 200 => {
                self.streams.insert(name.clone(), Stream::http(answer.into_body()));
                Content::Stream
            }
            (None, Some(count)) if status == 200 => {
                let mut stream = Stream::http(answer.into_body());
                Content::Events(stream.events(count, step.seconds).await)
            }
            (None, Some(_)) => {
                let body = read(step, answer).await?;
                Content::Events(vec![serde_json::from_slice(&body).unwrap_or_default()])
            }
            _ => Content::Body(read(step, answer).await?),
        };
        Ok(Answer { status, headers, content })
    }

    /// The calls to webhooks, marked, as far as they count.
    fn called(&self, called: &Called, calls: &[Call]) -> Value {
        let mut entries: Vec<Value> = Vec::new();
        for call in calls {
            let mut entry = json!({
                "hook": call.hook,
                "path": self.placeholders.mark_text(&call.path),
                "body": cut(self.placeholders.mark(&call.body), &called.pick),
            });
            if let (Some(entry), false) = (entry.as_object_mut(), called.keep.is_empty()) {
                let header = |name: &String| {
                    let value = call.headers.get(&name.to_lowercase());
                    (name.clone(), json!(value.map(|value| self.placeholders.mark_text(value))))
                };
                let headers: Map<String, Value> = called.keep.iter().map(header).collect();
                entry.insert("headers".to_owned(), headers.into());
            }
            let again = (called.once || called.aside) && entries.contains(&entry);
            if !again {
                entries.push(entry);
            }
        }
        Value::Array(entries)
    }

    /// The status line and headers of an answer.
    fn head(&self, step: &Step, status: u16, headers: &HeaderMap) -> Map<String, Value> {
        let header = |name: &str| -> Value {
            let values = headers.get_all(name).iter();
            let values: Vec<_> =
                values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
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

    /// A body, marked.
    fn body(&self, body: &Bytes, answer: &Answer) -> Value {
        if let Ok(document) = serde_json::from_slice::<Value>(body)
            && answer.kind().contains("json")
        {
            self.placeholders.mark(&document)
        } else if answer.kind().contains("protobuf") {
            json!({ "base64": base64::engine::general_purpose::STANDARD.encode(body) })
        } else {
            self.placeholders.mark_text(&String::from_utf8_lossy(body)).into()
        }
    }

    /// Leaves nothing behind that would call webhooks after they are gone.
    pub(crate) async fn finish(&mut self) -> Result<(), Error> {
        self.streams.clear();
        if !self.hooks.are_there() || !self.target.is_real() {
            return Ok(());
        }
        for kind in ["validating", "mutating"] {
            let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations");
            for name in self.names_in(&path).await? {
                if name.starts_with(self.placeholders.namespace()) {
                    self.document(&Step::new(format!("DELETE {path}/{name}"))).await?;
                }
            }
        }
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        for name in self.names_in(path).await? {
            if !name.ends_with(&fill_text(".{group}", &self.names)) {
                continue;
            }
            // A conversion webhook that is gone would stop every deletion of a namespace.
            let mut patch = Step::new(format!("PATCH {path}/{name}"));
            patch.headers =
                BTreeMap::from([header("Content-Type", "application/merge-patch+json")]);
            patch.body =
                Some(json!({ "spec": { "conversion": { "strategy": "None", "webhook": null } } }));
            self.document(&patch).await?;
            self.document(&Step::new(format!("DELETE {path}/{name}"))).await?;
        }
        Ok(())
    }

    /// The names of the objects in a list.
    async fn names_in(&self, path: &str) -> Result<Vec<String>, Error> {
        let list = self.document(&Step::new(format!("GET {path}"))).await?;
        let items = list.get("items").and_then(Value::as_array).into_iter().flatten();
        let name = |item: &Value| item.pointer("/metadata/name")?.as_str().map(str::to_owned);
        Ok(items.filter_map(name).collect())
    }
}

impl Answer {
    fn kind(&self) -> &str {
        let kind = self.headers.get("content-type").and_then(|value| value.to_str().ok());
        kind.unwrap_or_default()
    }

    /// The JSON in it; `null` if there is none.
    fn document(&self) -> Value {
        match &self.content {
            Content::Body(body) if self.kind().contains("json") => {
                serde_json::from_slice(body).unwrap_or_default()
            }
            Content::Events(events) => json!(events),
            Content::Body(_) | Content::Stream => Value::Null,
        }
    }
}

/// Only the values at these paths; all of a document if there are none.
fn cut(document: Value, paths: &[String]) -> Value {
    if paths.is_empty() {
        return document;
    }
    let picked = paths
        .iter()
        .map(|path| (path.clone(), lookup(&document, path).cloned().unwrap_or_default()));
    Value::Object(picked.collect())
}

fn fault(step: &Step, fault: String) -> Error {
    Error::Answer { line: step.line.clone(), fault }
}

/// Asks for an upgrade, but for what the step says itself.
fn ask_for_websocket(headers: &mut HeaderMap) {
    let asked = [
        (UPGRADE, "websocket"),
        (CONNECTION, "Upgrade"),
        (SEC_WEBSOCKET_VERSION, "13"),
        (SEC_WEBSOCKET_KEY, websocket::KEY),
    ];
    for (name, value) in asked {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

pub(crate) fn header(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// The request of a step.
pub(crate) fn request(
    step: &Step,
    names: &BTreeMap<String, String>,
) -> Result<Request<Bytes>, Error> {
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
    let mut request = Request::builder().method(method).uri(encoded(path));
    for (name, value) in headers {
        request = request.header(name, value);
    }
    request.body(body.into()).map_err(|source| Error::Request { line: step.line.clone(), source })
}

/// A path as `Uri` takes it: some of what other clients send as it is must be encoded.
fn encoded(path: &str) -> String {
    path.replace('<', "%3C").replace('>', "%3E")
}

pub(crate) async fn read(step: &Step, answer: Response<Body>) -> Result<Bytes, Error> {
    match timeout(STEP, answer.into_body().collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) => Err(fault(step, error.to_string())),
        Err(_) => Err(fault(step, format!("it does not end within {} s", STEP.as_secs()))),
    }
}
