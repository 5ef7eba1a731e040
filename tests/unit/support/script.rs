//! A scripted API server. Every request has to be the next one of the script: method, path, query
//! and content type by the script, the body by the snapshot of the whole conversation. A request
//! that is not in the script fails the test, and so does one that is missing.

use std::{fmt::Write as _, future::Future, pin::pin};

use http::{Request, Response};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tower_test::mock;

const NAMESPACE: &str = super::fixtures::NAMESPACE;

pub(crate) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/shop/deployments";
pub(crate) const SERVICES: &str = "/api/v1/namespaces/shop/services";
pub(crate) const INGRESSES: &str = "/apis/networking.k8s.io/v1/namespaces/shop/ingresses";
pub(crate) const APPS: &str = "/apis/apps.bootcamp.local/v1/namespaces/shop/simpleapps";
pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/shop/configmaps";
pub(crate) const PODS: &str = "/api/v1/namespaces/shop/pods";

const APPLY: &str = "application/apply-patch+yaml";
const JSON_PATCH: &str = "application/json-patch+json";
const JSON: &str = "application/json";

/// What the server does with a request.
pub(crate) enum Answer {
    /// Answers with this.
    Reply(u16, Value),
    /// Answers 200 with what this makes of the request's body.
    Made(Box<dyn Fn(&Value) -> Value>),
    /// Never answers.
    Silence,
}

/// A request and what the server does with it.
pub(crate) struct Step {
    line: String,
    content_type: Option<&'static str>,
    answer: Answer,
}

/// `PATCH` by which we apply.
pub(crate) fn apply(list: &str, name: &str, answer: Answer) -> Step {
    let line = format!("PATCH {list}/{name}?&force=true&fieldManager=simpleapp-operator");
    Step { line, content_type: Some(APPLY), answer }
}

/// JSON patch of an app.
pub(crate) fn patch_app(name: &str, answer: Answer) -> Step {
    let line = format!("PATCH {APPS}/{name}?&fieldManager=simpleapp-operator");
    Step { line, content_type: Some(JSON_PATCH), answer }
}

/// JSON patch of an app's status.
pub(crate) fn patch_status(name: &str, answer: Answer) -> Step {
    let line = format!("PATCH {APPS}/{name}/status?&fieldManager=simpleapp-operator");
    Step { line, content_type: Some(JSON_PATCH), answer }
}

pub(crate) fn delete(list: &str, name: &str, answer: Answer) -> Step {
    Step { line: format!("DELETE {list}/{name}?"), content_type: Some(JSON), answer }
}

pub(crate) fn create(list: &str, answer: Answer) -> Step {
    let line = format!("POST {list}?&fieldManager=simpleapp-operator");
    Step { line, content_type: Some(JSON), answer }
}

pub(crate) fn get(list: &str, name: &str, answer: Answer) -> Step {
    Step { line: format!("GET {list}/{name}"), content_type: None, answer }
}

pub(crate) fn list_pods(name: &str, answer: Answer) -> Step {
    let selector =
        format!("app.kubernetes.io%2Finstance%3D{name}%2Capp.kubernetes.io%2Fname%3D{name}");
    let line = format!("GET {PODS}?&labelSelector={selector}&limit=500");
    Step { line, content_type: None, answer }
}

/// Echoes an applied object as the server stores it.
pub(crate) fn applies(uid: &'static str, version: u64) -> Answer {
    Answer::Made(Box::new(move |body| super::fixtures::stored(body, uid, version)))
}

/// Carries out a JSON patch on `object`, whose tests are taken to hold.
pub(crate) fn patches(object: &Value, version: u64) -> Answer {
    let object = object.clone();
    Answer::Made(Box::new(move |patch| {
        let changes = patch.as_array().unwrap().iter().filter(|entry| entry["op"] != "test");
        let changes = Value::Array(changes.cloned().collect());
        let mut object = object.clone();
        json_patch::patch(
            &mut object,
            &serde_json::from_value::<json_patch::Patch>(changes).unwrap(),
        )
        .unwrap();
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        object
    }))
}

/// A failure as the server words it.
pub(crate) fn fails(code: u16, reason: &str, message: &str) -> Answer {
    Answer::Reply(code, failure(code, reason, message))
}

pub(crate) fn failure(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    })
}

/// The refusal to create something in a namespace that is being deleted.
pub(crate) fn terminating(name: &str) -> Answer {
    let text = format!(
        "configmaps \"{name}\" is forbidden: unable to create new content in namespace {NAMESPACE} because it is being terminated"
    );
    let mut status = failure(403, "Forbidden", &text);
    status["details"] = json!({
        "name": name,
        "kind": "configmaps",
        "causes": [{
            "reason": "NamespaceTerminating",
            "message": format!("namespace {NAMESPACE} is being terminated"),
            "field": "metadata.namespace",
        }],
    });
    Answer::Reply(403, status)
}

/// Runs `work` with a client of a server that follows `script`. Returns what `work` returned and
/// the conversation.
pub(crate) async fn play<T, F: Future<Output = T>>(
    script: Vec<Step>,
    work: impl FnOnce(Client) -> F,
) -> (T, String) {
    let (service, mut server) = mock::pair::<Request<Body>, Response<Body>>();
    let client = Client::new(service, "default");
    let mut conversation = String::new();
    let mut script = script.into_iter();
    let mut unanswered = Vec::new();
    let mut work = pin!(work(client));
    let outcome = loop {
        tokio::select! {
            biased;
            outcome = &mut work => break outcome,
            Some((request, respond)) = server.next_request() => {
                let heard = Heard::of(request).await;
                let step = script.next();
                let line = step.as_ref().map(|step| (step.line.as_str(), step.content_type));
                assert_eq!(
                    Some((heard.line.as_str(), heard.content_type.as_deref())), line,
                    "not the request that the script expects; so far:\n{conversation}"
                );
                heard.write(&mut conversation);
                match step.unwrap().answer {
                    Answer::Reply(code, body) => respond.send_response(response(code, &body)),
                    Answer::Made(make) => respond.send_response(response(200, &make(&heard.body))),
                    Answer::Silence => unanswered.push(respond),
                }
            }
        }
    };
    let missing: Vec<String> = script.map(|step| step.line).collect();
    assert!(missing.is_empty(), "requests that did not come: {missing:#?}; came:\n{conversation}");
    (outcome, conversation)
}

struct Heard {
    line: String,
    content_type: Option<String>,
    body: Value,
}

impl Heard {
    async fn of(request: Request<Body>) -> Self {
        let mut line = format!("{} {}", request.method(), request.uri());
        if let Some(name) = line.find("/events/web.") {
            let hash = name + "/events/web.".len();
            line.replace_range(hash..hash + 16, "HASH");
        }
        let content_type = request.headers().get(http::header::CONTENT_TYPE);
        let content_type = content_type.map(|value| value.to_str().unwrap().to_owned());
        let bytes = request.into_body().collect_bytes().await.unwrap();
        let body =
            if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() };
        // Without a body there is nothing to name the type of.
        let content_type = content_type.filter(|_| !body.is_null());
        Self { line, content_type, body }
    }

    fn write(&self, conversation: &mut String) {
        writeln!(conversation, "{}", self.line).unwrap();
        if let Some(content_type) = &self.content_type {
            writeln!(conversation, "Content-Type: {content_type}").unwrap();
        }
        if !self.body.is_null() {
            writeln!(conversation, "{}", serde_json::to_string_pretty(&self.body).unwrap())
                .unwrap();
        }
        conversation.push('\n');
    }
}

fn response(code: u16, body: &Value) -> Response<Body> {
    let bytes = serde_json::to_vec(body).unwrap();
    Response::builder().status(code).body(Body::from(bytes)).unwrap()
}

/// Merge patch of an event about `web`.
pub(crate) fn patch_event(answer: Answer) -> Step {
    let line = "PATCH /apis/events.k8s.io/v1/namespaces/shop/events/web.HASH?&fieldManager=simpleapp-operator";
    Step { line: line.to_owned(), content_type: Some("application/merge-patch+json"), answer }
}
