use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::hook::Hook;
use super::review::request;
use crate::admission::{Attributes, Operation};
use crate::auth::User;
use crate::gate::View;
use crate::server::ApiServer;
use crate::trace::Changed;
use crate::verbs::{Call, Warnings};
use simcluster_clock::Clock;
use simcluster_model::registry;

/// A write of an object of a built-in resource in the namespace `n`.
fn attributes(plural: &str, subresource: &str, object: Value) -> Attributes {
    let found = registry::built_in().iter().find(|resource| resource.plural == plural);
    let resource = Arc::clone(found.unwrap());
    let call = Call {
        user: User::admin(),
        user_agent: String::new(),
        namespace: if resource.namespaced { "n" } else { "" }.to_owned(),
        resource,
        name: "a".to_owned(),
        subresource: subresource.to_owned(),
        query: Vec::new(),
        content_type: String::new(),
        body: Bytes::new(),
        warnings: Warnings::default(),
        view: View::HEAD,
        changed: Changed::default(),
    };
    let mut attributes = Attributes::of(&call, Operation::Update, "a");
    attributes.object = Some(object);
    attributes
}

fn hook(rule: Value, more: Value) -> Hook {
    let mut full = json!({
        "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"],
    });
    full.as_object_mut().unwrap().extend(rule.as_object().unwrap().clone());
    let mut webhook = json!({ "name": "w.example.com", "rules": [full] });
    webhook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let configuration = json!({ "metadata": { "name": "c" }, "webhooks": [webhook] });
    Hook::all(&configuration).remove(0)
}

#[track_caller]
fn check(rule: Value, plural: &str, subresource: &str, wanted: bool) {
    let server = ApiServer::new(Clock::real(), 1);
    let attributes = attributes(plural, subresource, json!({}));
    let found = hook(rule.clone(), json!({})).matches(&server, &attributes).unwrap();
    assert_eq!(found.is_some(), wanted, "{rule} {plural} {subresource}");
}

#[test]
fn rules_name_resources_and_subresources() {
    for (resources, object, status) in [
        (json!(["pods"]), true, false),
        (json!(["pods/status"]), false, true),
        (json!(["pods/*"]), true, true),
        (json!(["*"]), true, false),
        (json!(["*/*"]), true, true),
        (json!(["*/status"]), false, true),
        (json!(["services"]), false, false),
    ] {
        check(json!({ "resources": resources }), "pods", "", object);
        check(json!({ "resources": resources }), "pods", "status", status);
    }
}

#[test]
fn rules_name_groups_versions_operations_and_scopes() {
    check(json!({ "apiGroups": [""] }), "pods", "", true);
    check(json!({ "apiGroups": ["apps"] }), "pods", "", false);
    check(json!({ "apiVersions": ["v1"] }), "pods", "", true);
    check(json!({ "apiVersions": ["v2"] }), "pods", "", false);
    check(json!({ "operations": ["UPDATE"] }), "pods", "", true);
    check(json!({ "operations": ["CREATE", "DELETE"] }), "pods", "", false);
    check(json!({ "scope": "Namespaced" }), "pods", "", true);
    check(json!({ "scope": "Cluster" }), "pods", "", false);
    check(json!({ "scope": "Cluster" }), "namespaces", "", true);
    check(json!({ "scope": "Namespaced" }), "namespaces", "", false);
}

#[test]
fn selectors_look_at_either_object_and_at_namespaces_themselves() {
    let server = ApiServer::new(Clock::real(), 1);
    let labels = json!({ "matchLabels": { "l": "x" } });
    let labelled = json!({ "metadata": { "labels": { "l": "x" } } });
    let by_object = hook(json!({}), json!({ "objectSelector": labels }));
    let mut attributes = self::attributes("pods", "", json!({}));
    assert!(by_object.matches(&server, &attributes).unwrap().is_none());
    attributes.old_object = Some(Arc::new(labelled.clone()));
    assert!(by_object.matches(&server, &attributes).unwrap().is_some());
    let by_namespace = hook(json!({}), json!({ "namespaceSelector": labels }));
    let namespace = self::attributes("namespaces", "", labelled);
    assert!(by_namespace.matches(&server, &namespace).unwrap().is_some());
    // The namespace of the Pod is not there.
    assert_eq!(by_namespace.matches(&server, &attributes).unwrap_err().code, 404);
    let node = self::attributes("nodes", "", json!({}));
    assert!(by_namespace.matches(&server, &node).unwrap().is_some());
}

#[test]
fn a_condition_that_cannot_be_evaluated_is_a_failure() {
    let with = |policy: &str, conditions: Value| {
        hook(json!({}), json!({ "failurePolicy": policy, "matchConditions": conditions }))
    };
    let bad = json!([{ "name": "a", "expression": "object.nope == 1" }]);
    let both = json!([
        { "name": "a", "expression": "object.nope == 1" }, { "name": "b", "expression": "false" },
    ]);
    let holds = |hook: &Hook| hook.conditions_hold(&json!({}), &Value::Null, &json!({}));
    assert!(holds(&with("Fail", bad.clone())).unwrap_err().ends_with("no such key: nope"));
    assert_eq!(holds(&with("Ignore", bad)), Ok(false));
    assert_eq!(holds(&with("Fail", both)), Ok(false));
}

#[test]
fn a_request_names_what_was_asked_for_twice() {
    let attributes = attributes("pods", "status", json!({}));
    let request = request(&attributes, &attributes.resource);
    let kind = json!({ "group": "", "version": "v1", "kind": "Pod" });
    assert_eq!((&request["kind"], &request["requestKind"]), (&kind, &kind));
    assert_eq!(request["subResource"], "status");
    assert_eq!(request["userInfo"]["username"], "admin");
    assert_eq!(request["dryRun"], false);
    assert!(request.get("object").is_none());
}
