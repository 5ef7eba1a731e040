//! What a real API server made of the objects in `answers.json` (hack/builtin-schemas/ask.py), against
//! what the strategies make of them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use regex::Regex;
use serde_json::{Value, json};

use crate::allocation::ServiceAllocator;
use crate::builtin::admission;
use crate::error::{ApiError, Names};
use crate::field::FieldError;
use crate::names;
use crate::object;
use crate::registry;
use crate::resource::{Resource, Surroundings};

const NAMESPACE: &str = "ask";
const UID: &str = "6f1ed002-ab5a-4e5b-8c1e-3b1d1e1b1a11";

#[test]
fn answers_are_those_of_a_real_server() {
    let questions: Vec<Value> = serde_json::from_str(include_str!("answers.json")).unwrap();
    let mut wrong = Vec::new();
    for (number, question) in questions.iter().enumerate() {
        let place = question["in"].as_str().unwrap();
        let got = ask(&resource(place), question).unwrap_or_else(|error| refusal(&error));
        let (expected, got) = (normal(&question["answer"]), normal(&got));
        if expected != got && !(question["any_order"] == true && same_faults(&expected, &got)) {
            let asked = question.get("text").unwrap_or(&question["body"]);
            wrong.push(format!(
                "{number} {place}\n  asked    {asked}\n  expected {expected}\n  got      {got}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        questions.len(),
        wrong.join("\n")
    );
}

/// What a dry run does not tell.
#[test]
fn addresses_that_a_service_cannot_have() {
    let refused = |spec: Value| {
        let body = json!({"metadata": {"name": "n"}, "spec": spec});
        create(&resource("v1/services"), body).unwrap_err().message
    };
    let port = json!([{"port": 80}]);
    assert_eq!(
        refused(json!({"ports": port, "clusterIP": "10.0.0.1"})),
        "Service \"n\" is invalid: spec.clusterIPs: Invalid value: [\"10.0.0.1\"]: failed to \
         allocate IP 10.0.0.1: provided IP is already allocated"
    );
    assert_eq!(
        refused(json!({"ports": port, "clusterIP": "10.1.0.1"})),
        "Service \"n\" is invalid: spec.clusterIPs: Invalid value: [\"10.1.0.1\"]: failed to \
         allocate IP 10.1.0.1: the provided network does not match the current range"
    );
    assert_eq!(
        refused(json!({"ports": [{"port": 80, "nodePort": 80}], "type": "NodePort"})),
        "Service \"n\" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in \
         the valid range. The range of valid ports is 30000-32767"
    );
    let twice = json!([{"name": "a", "port": 80, "nodePort": 30080},
        {"name": "b", "port": 81, "nodePort": 30080}]);
    assert_eq!(
        refused(json!({"ports": twice, "type": "NodePort"})),
        "Service \"n\" is invalid: spec.ports[1].nodePort: Invalid value: 30080: provided port is \
         already allocated"
    );
}

fn resource(place: &str) -> Arc<Resource> {
    let (version, plural) = place.rsplit_once('/').unwrap();
    let all = registry::built_in();
    let found = all.iter().find(|one| one.plural == plural && one.api_version() == version);
    Arc::clone(found.unwrap())
}

fn ask(resource: &Arc<Resource>, question: &Value) -> Result<Value, ApiError> {
    let parsed =
        question.get("text").map(|text| serde_json::from_str(text.as_str().unwrap()).unwrap());
    let body = parsed.unwrap_or_else(|| question["body"].clone());
    let Some(old) = question.get("old") else { return create(resource, body) };
    let old = create(resource, old.clone()).unwrap();
    let sub = question.get("sub").and_then(Value::as_str).unwrap_or_default();
    update(resource, sub, body, &old)
}

fn decode(resource: &Resource, body: Value) -> Result<Value, ApiError> {
    let decoded = resource.strategy.decode(resource, body)?;
    if !decoded.unknown.is_empty() {
        let list: Vec<String> =
            decoded.unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
        let (version, kind) = (&resource.version, &resource.kind);
        return Err(ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: strict decoding error: {}",
            list.join(", ")
        )));
    }
    let mut object = decoded.object;
    resource.strategy.default(resource, &mut object);
    if resource.namespaced {
        object::metadata_mut(&mut object).insert("namespace".to_owned(), json!(NAMESPACE));
    }
    Ok(object)
}

fn create(resource: &Arc<Resource>, body: Value) -> Result<Value, ApiError> {
    let mut object = decode(resource, body)?;
    object::metadata_mut(&mut object).insert("uid".to_owned(), json!(UID));
    let strategy = &resource.strategy;
    if resource.plural == "pods" {
        // What the plugins that are on by default fill in comes first.
        surrounded(|around| admission::service_account(resource, &mut object, around))?;
        surrounded(|around| admission::priority(resource, &mut object, around))?;
        admission::default_tolerations(&mut object);
    }
    surrounded(|around| strategy.prepare_for_create(resource, &mut object, around))?;
    let texts = strategy.name_faults(object::name(&object), false);
    let name = json!(object::name(&object));
    let mut faults: Vec<FieldError> =
        texts.iter().map(|text| FieldError::invalid("metadata.name", &name, text)).collect();
    for (index, name) in object::meta_list(&object, "finalizers").enumerate() {
        faults.extend(names::kube_finalizer(&format!("metadata.finalizers[{index}]"), name));
    }
    faults.extend(strategy.create_faults(resource, &object, Vec::new()));
    checked(resource, object, &faults)
}

fn update(
    resource: &Arc<Resource>,
    sub: &str,
    body: Value,
    old: &Value,
) -> Result<Value, ApiError> {
    let mut object = decode(resource, body)?;
    object::metadata_mut(&mut object).insert("uid".to_owned(), json!(UID));
    let strategy = &resource.strategy;
    if resource.plural == "pods" {
        admission::keep_priority(&mut object, old);
        admission::default_tolerations(&mut object);
    }
    surrounded(|around| strategy.allocate_for_update(resource, "", &mut object, old, around))?;
    strategy.prepare_for_update(resource, sub, &mut object, old);
    let verdict = strategy.update_verdict(resource, sub, &object, old, Vec::new());
    checked(resource, object, &verdict.faults)
}

fn surrounded<T>(run: impl FnOnce(&mut Surroundings<'_>) -> T) -> T {
    let account = json!({"metadata": {"name": "default", "namespace": NAMESPACE}});
    let taken = json!({
        "metadata": {"name": "kubernetes", "namespace": "default", "uid": "k"},
        "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]},
    });
    let stored = move |key: &str| match key {
        "/serviceaccounts" => vec![Arc::new(account.clone())],
        _ => Vec::new(),
    };
    let mut random = || 7;
    let now = Timestamp::UNIX_EPOCH;
    let get = |key: &str, namespace: &str, name: &str| {
        let is_it =
            |one: &Arc<Value>| object::namespace(one) == namespace && object::name(one) == name;
        stored(key).into_iter().find(is_it)
    };
    // The network of the server that was asked.
    let services = ServiceAllocator::new("10.0.0.0/24".parse().unwrap());
    services.follow(None, Some(&taken));
    let mut reservation = services.reservation(false);
    let reservation = &mut reservation;
    let requester = || Value::Null;
    run(&mut Surroundings {
        now,
        random: &mut random,
        stored: &stored,
        get: &get,
        requester: &requester,
        reservation,
        allocates: true,
    })
}

fn checked(resource: &Resource, object: Value, faults: &[FieldError]) -> Result<Value, ApiError> {
    if faults.is_empty() {
        return Ok(object);
    }
    let names = Names { group: resource.strategy.invalid_group(resource), ..resource.names() };
    Err(ApiError::invalid(names, object::name(&object), faults))
}

fn refusal(error: &ApiError) -> Value {
    let status = error.to_status();
    let mut out = json!({"code": status["code"], "message": status["message"]});
    if let Some(causes) = status.pointer("/details/causes") {
        object::put(&mut out, "causes", causes.clone());
    }
    out
}

/// The same faults in another order: the server walks Go maps, which have none.
fn same_faults(expected: &Value, got: &Value) -> bool {
    let causes = |answer: &Value| {
        let list = answer["causes"].as_array().into_iter().flatten();
        list.map(Value::to_string).collect::<BTreeSet<_>>()
    };
    let words = |answer: &Value| {
        let message = answer["message"].as_str().unwrap_or_default();
        message.split([' ', ',', '[', ']']).map(str::to_owned).collect::<BTreeSet<_>>()
    };
    expected["code"] == got["code"]
        && causes(expected) == causes(got)
        && words(expected) == words(got)
}

/// Without what the server picks at random.
fn normal(answer: &Value) -> Value {
    let mut answer = answer.clone();
    if let Some(metadata) = answer.get_mut("metadata") {
        let metadata = object::as_map(metadata);
        metadata.remove("uid");
        metadata.remove("generation");
    }
    // What follows is a comparison of Go structs, field by field.
    for path in ["/message", "/causes/0/message"] {
        if let Some(Value::String(text)) = answer.pointer_mut(path)
            && let Some((first, _)) = text.clone().split_once("\n@@")
        {
            first.clone_into(text);
        }
    }
    let mut text = answer.to_string().replace(UID, "<uid>");
    for (pattern, with) in PATTERNS.iter() {
        text = pattern.replace_all(&text, *with).into_owned();
    }
    serde_json::from_str(&text).unwrap()
}

static PATTERNS: LazyLock<[(Regex, &str); 3]> = LazyLock::new(|| {
    [
        (r"kube-api-access-\w{5}", "kube-api-access-x"),
        (r"10\.0\.0\.\d+", "10.0.0.x"),
        (r#""(nodePort|healthCheckNodePort)":3\d{4}"#, r#""$1":30000"#),
    ]
    .map(|(pattern, with)| (Regex::new(pattern).unwrap(), with))
});
