//! Nobody grants what he does not have, unless he may `escalate` roles or `bind` them
//! (`k8s.io/kubernetes/pkg/registry/rbac`).

use serde_json::{Value, json};

use super::User;
use super::policy::{self, Roles};
use super::rbac::{self, Attributes, GROUP};
use crate::server::ApiServer;
use crate::verbs::Call;
use simcluster_model::error::ApiError;
use simcluster_model::object;

/// Refuses a role, or the binding of one, that gives more than its writer has.
pub(crate) fn check(
    server: &ApiServer,
    call: &Call,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    if call.resource.group != GROUP || call.user.is_master() {
        return Ok(());
    }
    let is_role = matches!(call.resource.plural.as_str(), "roles" | "clusterroles");
    let allowed = if is_role {
        may(server, call, "escalate", &call.resource.plural, &call.name)
    } else {
        may_bind(server, call, object)
    };
    if allowed || old.is_some_and(|old| only_for_garbage_collection(object, old)) {
        return Ok(());
    }
    let rules = if is_role { list(object, "rules") } else { bound_rules(server, call, object)? };
    let missing = missing(server, &call.user, &call.namespace, &rules);
    let name = object::name(object);
    let forbidden = |why: &str| Err(ApiError::forbidden(call.resource.names(), name, why));
    if !missing.is_empty() {
        return forbidden(&refusal(server, call, &missing));
    }
    let aggregates = |role: &Value| {
        let selectors = object::at_path(role, "aggregationRule.clusterRoleSelectors");
        selectors.and_then(Value::as_array).is_some_and(|list| !list.is_empty())
    };
    if is_role && (aggregates(object) || old.is_some_and(aggregates)) {
        let everything = [
            json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }),
            json!({ "verbs": ["*"], "nonResourceURLs": ["*"] }),
        ];
        if !self::missing(server, &call.user, &call.namespace, &everything).is_empty() {
            return forbidden("must have cluster-admin privileges to use the aggregationRule");
        }
    }
    Ok(())
}

fn may(server: &ApiServer, call: &Call, verb: &str, plural: &str, name: &str) -> bool {
    let wanted = Attributes {
        verb: verb.to_owned(),
        group: GROUP.to_owned(),
        resource: plural.to_owned(),
        namespace: call.namespace.clone(),
        name: name.to_owned(),
        ..Attributes::default()
    };
    rbac::authorize(&|namespace| server.scope(namespace), &call.user, &wanted).allowed
}

fn may_bind(server: &ApiServer, call: &Call, binding: &Value) -> bool {
    let reference = |field: &str| text(binding.get("roleRef"), field);
    let plural = if reference("kind") == "Role" { "roles" } else { "clusterroles" };
    may(server, call, "bind", plural, reference("name"))
}

/// Changes of owners and finalizers grant nothing.
fn only_for_garbage_collection(object: &Value, old: &Value) -> bool {
    let rest = |object: &Value| {
        let mut rest = object.clone();
        let metadata = object::metadata_mut(&mut rest);
        for field in ["ownerReferences", "finalizers", "managedFields"] {
            metadata.remove(field);
        }
        rest
    };
    rest(object) == rest(old)
}

/// The rules of the role that a binding names.
fn bound_rules(server: &ApiServer, call: &Call, binding: &Value) -> Result<Vec<Value>, ApiError> {
    let reference = binding.get("roleRef");
    let (kind, name) = (text(reference, "kind"), text(reference, "name"));
    let namespace = if kind == "Role" { call.namespace.as_str() } else { "" };
    // The real server names the resource of the request here, with the name of the role.
    let missing = || ApiError::not_found(call.resource.names(), name);
    let plural = if kind == "Role" { "roles" } else { "clusterroles" };
    let role = server.get(&format!("{GROUP}/{plural}"), namespace, name).ok_or_else(missing)?;
    let cluster = || server.stored(&format!("{GROUP}/clusterroles"));
    Ok(policy::rules_in(&role, Roles { get: &|_, _| None, cluster: &cluster }).to_vec())
}

/// The parts of rules that a user does not have himself.
fn missing(server: &ApiServer, user: &User, namespace: &str, rules: &[Value]) -> Vec<Value> {
    let (owned, _) = rbac::rules_of(&|namespace| server.scope(namespace), user, namespace);
    let parts = rules.iter().flat_map(broken_down);
    let mut missing: Vec<Value> = Vec::new();
    for part in parts.filter(|part| !owned.iter().any(|one| covers(&one.rule, part))) {
        if !missing.contains(&part) {
            missing.push(part);
        }
    }
    missing
}

/// A rule as one rule for each group, resource, verb and name.
fn broken_down(rule: &Value) -> Vec<Value> {
    let mut parts = Vec::new();
    for verb in strings(rule, "verbs") {
        for url in strings(rule, "nonResourceURLs") {
            parts.push(json!({ "verbs": [verb], "nonResourceURLs": [url] }));
        }
    }
    for group in strings(rule, "apiGroups") {
        for resource in strings(rule, "resources") {
            for verb in strings(rule, "verbs") {
                let part =
                    json!({ "apiGroups": [group], "resources": [resource], "verbs": [verb] });
                let mut names = strings(rule, "resourceNames").peekable();
                if names.peek().is_none() {
                    parts.push(part.clone());
                }
                for name in names {
                    let mut part = part.clone();
                    object::put(&mut part, "resourceNames", json!([name]));
                    parts.push(part);
                }
            }
        }
    }
    parts
}

/// Whether a rule gives all that a broken-down one gives.
fn covers(rule: &Value, part: &Value) -> bool {
    let has = |field: &str, value: &str| strings(rule, field).any(|one| one == "*" || one == value);
    let all = |field: &str| strings(part, field).all(|value| has(field, value));
    if !all("verbs") {
        return false;
    }
    let url = |wanted: &str| {
        strings(rule, "nonResourceURLs").any(|one| {
            one == wanted || one.strip_suffix('*').is_some_and(|prefix| wanted.starts_with(prefix))
        })
    };
    if strings(part, "nonResourceURLs").next().is_some() {
        return strings(part, "nonResourceURLs").all(url);
    }
    let resource = |wanted: &str| {
        let below = wanted.split_once('/').map(|(_, below)| format!("*/{below}"));
        strings(rule, "resources")
            .any(|one| one == "*" || one == wanted || below.as_deref() == Some(one))
    };
    let any_name = strings(rule, "resourceNames").next().is_none();
    let mut names = strings(part, "resourceNames").peekable();
    let named = any_name
        || (names.peek().is_some()
            && names.all(|name| strings(rule, "resourceNames").any(|one| one == name)));
    all("apiGroups") && strings(part, "resources").all(resource) && named
}

fn refusal(server: &ApiServer, call: &Call, missing: &[Value]) -> String {
    let user = &call.user;
    let groups: Vec<String> = user.groups.iter().map(|group| format!("{group:?}")).collect();
    let mut shown: Vec<String> = compacted(missing).iter().map(shown).collect();
    shown.sort();
    let mut text = format!(
        "user {:?} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        groups.join(" "),
        shown.join("\n")
    );
    let scopes = |namespace: &str| server.scope(namespace);
    let (_, faults) = rbac::rules_of(&scopes, user, &call.namespace);
    if !faults.is_empty() {
        let faults = match faults.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        text.extend(["; resolution errors: [", &faults, "]"]);
    }
    text
}

/// Rules that differ in their verbs only, as one.
fn compacted(rules: &[Value]) -> Vec<Value> {
    let mut compact: Vec<Value> = Vec::new();
    for rule in rules {
        let without_verbs = |rule: &Value| {
            let mut rest = rule.clone();
            object::as_map(&mut rest).remove("verbs");
            rest
        };
        let simple = rule.get("nonResourceURLs").is_none();
        let same = |one: &&mut Value| simple && without_verbs(one) == without_verbs(rule);
        if let Some(known) = compact.iter_mut().find(same) {
            let mut verbs = list(known, "verbs");
            verbs.extend(list(rule, "verbs"));
            object::put(known, "verbs", json!(verbs));
        } else {
            compact.push(rule.clone());
        }
    }
    compact
}

/// A rule as the server prints it.
fn shown(rule: &Value) -> String {
    let fields = [
        ("APIGroups", "apiGroups"),
        ("Resources", "resources"),
        ("ResourceNames", "resourceNames"),
        ("NonResourceURLs", "nonResourceURLs"),
        ("Verbs", "verbs"),
    ];
    let parts = fields.iter().filter_map(|(shown, field)| {
        let values: Vec<String> = strings(rule, field).map(|one| format!("{one:?}")).collect();
        (!values.is_empty()).then(|| format!("{shown}:[{}]", values.join(" ")))
    });
    format!("{{{}}}", parts.collect::<Vec<_>>().join(", "))
}

fn list(object: &Value, field: &str) -> Vec<Value> {
    object.get(field).and_then(Value::as_array).cloned().unwrap_or_default()
}

fn strings<'a>(rule: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    rule.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn text<'a>(object: Option<&'a Value>, field: &str) -> &'a str {
    object.and_then(|object| object.get(field)).and_then(Value::as_str).unwrap_or_default()
}
