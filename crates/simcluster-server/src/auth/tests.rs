//! Tests of users and of who may do what.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by panicking"
)]

use std::sync::Arc;

use http::HeaderMap;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::policy::{Roles, Scope};
use super::rbac::{Attributes, GROUP, authorize, forbidden, rules_of, rules_status};
use super::{User, bootstrap_roles, impersonate};
use simcluster_model::object;

/// The default roles and a few of their own: `dev` may edit in `a`, the account `a/op` has a Role.
fn stored(key: &str) -> Vec<Arc<Value>> {
    let mut all = bootstrap_roles();
    let reference =
        |kind: &str, name: &str| json!({ "apiGroup": GROUP, "kind": kind, "name": name });
    all.push(json!({
        "kind": "RoleBinding", "metadata": { "name": "dev", "namespace": "a" },
        "roleRef": reference("ClusterRole", "edit"), "subjects": [{ "kind": "User", "name": "dev" }],
    }));
    all.push(json!({
        "kind": "Role", "metadata": { "name": "op", "namespace": "a" }, "rules": [
            { "apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get"] },
            { "apiGroups": ["e.com"], "resources": ["*/status"], "verbs": ["*"] },
            { "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"], "verbs": ["get"] },
        ],
    }));
    all.push(json!({
        "kind": "RoleBinding", "metadata": { "name": "op", "namespace": "a" },
        "roleRef": reference("Role", "op"), "subjects": [{ "kind": "ServiceAccount", "name": "op" }],
    }));
    all.push(json!({
        "kind": "RoleBinding", "metadata": { "name": "lost", "namespace": "b" },
        "roleRef": reference("Role", "gone"), "subjects": [{ "kind": "User", "name": "dev" }],
    }));
    all.into_iter()
        .filter(|one| {
            let kind = one.get("kind").and_then(Value::as_str).unwrap().to_lowercase();
            format!("{GROUP}/{kind}s") == key
        })
        .map(Arc::new)
        .collect()
}

/// The scopes of the roles and bindings above.
fn scopes(namespace: &str) -> Arc<Scope> {
    let of = |plural: &str, namespace: &str| {
        let mut all = stored(&format!("{GROUP}/{plural}"));
        all.retain(|one| object::namespace(one) == namespace);
        all
    };
    let get = |namespace: &str, name: &str| {
        let plural = if namespace.is_empty() { "clusterroles" } else { "roles" };
        of(plural, namespace).into_iter().find(|one| object::name(one) == name)
    };
    let roles = Roles { get: &get, cluster: &|| of("clusterroles", "") };
    let plural = if namespace.is_empty() { "clusterrolebindings" } else { "rolebindings" };
    Arc::new(Scope::compile(namespace, of(plural, namespace), roles))
}

/// `verb group resource[/subresource] namespace name`, `-` for what is empty.
fn attributes(line: &str) -> Attributes {
    let parts: Vec<String> =
        line.split(' ').map(|part| part.trim_matches('-').to_owned()).collect();
    let [verb, group, resource, namespace, name] = parts.try_into().unwrap();
    let (resource, subresource) = match resource.split_once('/') {
        Some((resource, subresource)) => (resource.to_owned(), subresource.to_owned()),
        None => (resource, String::new()),
    };
    let path = String::new();
    Attributes { verb, group, resource, subresource, namespace, name, path }
}

#[track_caller]
fn check(user: &User, line: &str, allowed: bool) {
    assert_eq!(authorize(&scopes, user, &attributes(line)).allowed, allowed, "{line}");
}

fn dev() -> User {
    let groups = vec!["system:authenticated".to_owned()];
    User { name: "dev".to_owned(), groups, ..User::anonymous() }
}

#[test]
fn rules_count_where_their_binding_stands() {
    check(&dev(), "create apps deployments a -", true);
    check(&dev(), "create apps deployments b -", false);
    check(&dev(), "list - pods a -", true);
    check(&dev(), "list - pods - -", false);
    check(&User::admin(), "delete - nodes - x", true);
}

#[test]
fn subresources_and_names_are_matched() {
    let op = User::service_account("a", "op");
    check(&op, "get - pods a x", true);
    check(&op, "get - pods/log a x", true);
    check(&op, "get - pods/exec a x", false);
    check(&op, "update e.com ws/status a x", true);
    check(&op, "update e.com ws a x", false);
    check(&op, "get - secrets a s", true);
    check(&op, "get - secrets a t", false);
    check(&op, "list - secrets a -", false);
    check(&User::service_account("b", "op"), "get - pods a x", false);
}

#[test]
fn paths_are_open_to_those_whom_the_default_roles_name() {
    let may = |user: &User, path: &str| {
        let (verb, path) = ("get".to_owned(), path.to_owned());
        authorize(&scopes, user, &Attributes { verb, path, ..Attributes::default() }).allowed
    };
    assert!(may(&User::anonymous(), "/healthz"));
    assert!(!may(&User::anonymous(), "/api"));
    assert!(may(&dev(), "/apis/apps/v1"));
    assert!(!may(&dev(), "/metrics"));
}

#[test]
fn denials_say_who_cannot_do_what_where() {
    let wanted = attributes("update - pods/status a x");
    let error = forbidden(&dev(), &wanted, "");
    let text = "pods \"x\" is forbidden: User \"dev\" cannot update resource \"pods/status\" in API \
                group \"\" in the namespace \"a\"";
    assert_eq!(error.message, text);
    let wanted = attributes("get - pods b x");
    let decision = authorize(&scopes, &dev(), &wanted);
    assert_eq!(decision.reason, format!("RBAC: role.{GROUP} \"gone\" not found"));
}

#[test]
fn the_rules_of_a_user_can_be_listed() {
    let status = rules_status(&scopes, &User::service_account("a", "op"), "a");
    let rules = status.get("resourceRules").and_then(Value::as_array).unwrap();
    assert!(rules.iter().any(|rule| rule.get("resourceNames") == Some(&json!(["s"]))));
    assert_eq!(status.get("incomplete"), Some(&json!(false)));
}

#[test]
fn impersonated_users_have_the_groups_of_their_headers() {
    let mut headers = HeaderMap::new();
    assert_eq!(impersonate::wanted(&headers).unwrap(), None);
    headers.append("impersonate-group", "g".parse().unwrap());
    assert!(impersonate::wanted(&headers).is_err());
    headers.append("impersonate-user", "system:serviceaccount:a:op".parse().unwrap());
    let wanted = impersonate::wanted(&headers).unwrap().unwrap();
    assert_eq!(wanted.user.groups, ["g", "system:authenticated"]);
    headers.remove("impersonate-group");
    let wanted = impersonate::wanted(&headers).unwrap().unwrap();
    let groups = ["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"];
    assert_eq!(wanted.user.groups, groups);
    assert!(impersonate::check(&scopes, &dev(), &wanted).is_ok(), "edit may impersonate accounts");
    headers.insert("impersonate-user", "boss".parse().unwrap());
    let wanted = impersonate::wanted(&headers).unwrap().unwrap();
    assert_eq!(impersonate::check(&scopes, &dev(), &wanted).unwrap_err().code, 403);
}

#[test]
fn impersonated_users_have_the_extra_fields_of_their_headers_if_rbac_lets_them() {
    let mut headers = HeaderMap::new();
    headers.append("impersonate-extra-Example.com%2fTeam", "a".parse().unwrap());
    assert!(impersonate::wanted(&headers).is_err(), "extra fields of nobody");
    headers.append("impersonate-extra-a%2fb%zz", "b".parse().unwrap());
    headers.append("impersonate-user", "system:serviceaccount:a:op".parse().unwrap());
    let wanted = impersonate::wanted(&headers).unwrap().unwrap();
    let extra: Vec<_> = wanted.user.extra.iter().collect();
    let team = ("example.com/team".to_owned(), vec!["a".to_owned()]);
    let spoiled = ("a%2fb%zz".to_owned(), vec!["b".to_owned()]);
    assert_eq!(extra, [(&spoiled.0, &spoiled.1), (&team.0, &team.1)]);
    let refused = impersonate::check(&scopes, &dev(), &wanted).unwrap_err();
    assert_eq!(refused.code, 403);
    assert!(refused.message.contains("userextras/a%2fb%zz"), "{}", refused.message);
    assert!(impersonate::check(&scopes, &User::admin(), &wanted).is_ok());
}

#[test]
fn impersonated_uids_need_a_right_of_their_own() {
    let mut headers = HeaderMap::new();
    headers.append("impersonate-user", "system:serviceaccount:a:op".parse().unwrap());
    headers.append("impersonate-uid", "u".parse().unwrap());
    let wanted = impersonate::wanted(&headers).unwrap().unwrap();
    let refused = impersonate::check(&scopes, &dev(), &wanted).unwrap_err();
    assert!(refused.message.starts_with("uids.authentication.k8s.io"), "{}", refused.message);
}

/// A user, a group or an account of namespace `a` or of the binding's own.
fn subject() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[xy]".prop_map(|name| json!({ "kind": "User", "name": name })),
        "[xy]".prop_map(|name| json!({ "kind": "Group", "name": name })),
        ("[xy]", "a?").prop_map(|(name, namespace)| {
            json!({ "kind": "ServiceAccount", "name": name, "namespace": namespace })
        }),
    ]
}

proptest! {
    /// Bindings that are found by the names in them are those that a look at each finds.
    #[test]
    fn a_user_has_the_bindings_that_name_him(
        bindings in prop::collection::vec(prop::collection::vec(subject(), 0..3), 0..6),
        name in prop_oneof![Just("x"), Just("system:serviceaccount:a:x"), Just("system:serviceaccount:n:y")],
        groups in prop::collection::vec("[xyz]", 0..3),
        namespace in "n?",
    ) {
        let user = User { name: name.to_owned(), groups, ..User::anonymous() };
        let names = |subject: &Value| {
            let text = |field: &str| subject[field].as_str().unwrap_or_default().to_owned();
            let own = if text("namespace").is_empty() { namespace.clone() } else { text("namespace") };
            let account = format!("system:serviceaccount:{own}:{}", text("name"));
            match text("kind").as_str() {
                "User" => text("name") == user.name,
                "Group" => user.groups.contains(&text("name")),
                _ => !own.is_empty() && account == user.name,
            }
        };
        let asked = bindings.iter().enumerate().filter(|(_, subjects)| subjects.iter().any(names));
        let asked: Vec<String> = asked
            .map(|(number, _)| format!("clusterrole.{GROUP} \"{number}\" not found"))
            .collect();
        let objects = bindings.iter().enumerate().map(|(number, subjects)| {
            let role = json!({ "kind": "ClusterRole", "name": number.to_string() });
            Arc::new(json!({ "metadata": {}, "roleRef": role, "subjects": subjects }))
        });
        let roles = Roles { get: &|_, _| None, cluster: &Vec::new };
        let own = Arc::new(Scope::compile(&namespace, objects.collect(), roles));
        let scopes = |of: &str| if of == namespace { Arc::clone(&own) } else { Arc::default() };
        prop_assert_eq!(rules_of(&scopes, &user, &namespace).1, asked);
    }
}
