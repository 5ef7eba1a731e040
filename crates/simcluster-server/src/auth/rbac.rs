//! Role-based access control over the stored roles and bindings.
//!
//! Follows `k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac`. Aggregated cluster roles are computed
//! when they are asked for, so no controller has to fill their rules.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::auth::User;
use simcluster_model::error::{ApiError, Details, Names};
use simcluster_model::object;

/// Looks up all stored objects of a resource, by `group/plural`.
pub type Stored<'a> = &'a dyn Fn(&str) -> Vec<Arc<Value>>;

/// What somebody wants to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Verb; for paths without a resource the method in lower case.
    pub verb: String,
    /// API group.
    pub group: String,
    /// Plural resource; empty for paths without a resource.
    pub resource: String,
    /// Subresource.
    pub subresource: String,
    /// Namespace; empty at the cluster scope.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// Path, for requests without a resource.
    pub path: String,
}

/// What the authorizer says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// Why, if there is something to say.
    pub reason: String,
}

/// A rule with the binding that grants it.
#[derive(Debug, Clone)]
pub struct GrantedRule {
    /// A `PolicyRule`.
    pub rule: Value,
    /// Names the binding, as reasons do.
    pub source: String,
}

const GROUP: &str = "rbac.authorization.k8s.io";

/// Decides on a request.
#[must_use]
pub fn authorize(stored: Stored<'_>, user: &User, wanted: &Attributes) -> Decision {
    if user.is_master() {
        return Decision { allowed: true, reason: String::new() };
    }
    let (rules, faults) = rules_of(stored, user, &wanted.namespace);
    if let Some(granted) = rules.iter().find(|granted| allows(&granted.rule, wanted)) {
        let reason = format!("RBAC: allowed by {}", granted.source);
        return Decision { allowed: true, reason };
    }
    let reason = match faults.as_slice() {
        [] => String::new(),
        [one] => format!("RBAC: {one}"),
        many => format!("RBAC: [{}]", many.join(", ")),
    };
    Decision { allowed: false, reason }
}

/// All rules that a user has in a namespace (empty: at the cluster scope only), and what is wrong with
/// the bindings.
#[must_use]
pub fn rules_of(
    stored: Stored<'_>,
    user: &User,
    namespace: &str,
) -> (Vec<GrantedRule>, Vec<String>) {
    let mut rules = Vec::new();
    let mut faults = Vec::new();
    for binding in stored(&format!("{GROUP}/clusterrolebindings")) {
        if let Some(subject) = subject_of(&binding, user, "") {
            let role = role_name(&binding);
            let source = format!(
                "ClusterRoleBinding \"{}\" of ClusterRole \"{role}\" to {subject}",
                object::name(&binding)
            );
            collect(stored, &binding, "", &source, &mut rules, &mut faults);
        }
    }
    if namespace.is_empty() {
        return (rules, faults);
    }
    for binding in stored(&format!("{GROUP}/rolebindings")) {
        if object::namespace(&binding) != namespace {
            continue;
        }
        if let Some(subject) = subject_of(&binding, user, namespace) {
            let source = format!(
                "RoleBinding \"{}/{namespace}\" of {} \"{}\" to {subject}",
                object::name(&binding),
                text(binding.get("roleRef"), "kind"),
                role_name(&binding)
            );
            collect(stored, &binding, namespace, &source, &mut rules, &mut faults);
        }
    }
    (rules, faults)
}

/// The 403 of a denied request.
#[must_use]
pub fn forbidden(user: &User, wanted: &Attributes, reason: &str) -> ApiError {
    let mut why = denial(user, wanted);
    if !reason.is_empty() {
        why = format!("{why}: {reason}");
    }
    if wanted.resource.is_empty() {
        return ApiError::new(403, "Forbidden", format!("forbidden: {why}"))
            .with_details(Details::default());
    }
    let names = Names { group: &wanted.group, plural: &wanted.resource, kind: "" };
    ApiError::forbidden(names, &wanted.name, &why)
}

fn denial(user: &User, wanted: &Attributes) -> String {
    let Attributes { verb, group, resource, subresource, namespace, path, .. } = wanted;
    let name = &user.name;
    if resource.is_empty() {
        return format!("User {name:?} cannot {verb} path {path:?}");
    }
    let resource =
        if subresource.is_empty() { resource.clone() } else { format!("{resource}/{subresource}") };
    let scope = if namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {namespace:?}")
    };
    format!("User {name:?} cannot {verb} resource {resource:?} in API group {group:?} {scope}")
}

/// The subject of a binding that the user is, as reasons name it.
fn subject_of(binding: &Value, user: &User, namespace: &str) -> Option<String> {
    let subjects = binding.get("subjects").and_then(Value::as_array)?;
    subjects.iter().find_map(|subject| {
        let name = text(Some(subject), "name");
        match text(Some(subject), "kind") {
            "User" if name == user.name => Some(format!("User \"{name}\"")),
            "Group" if user.groups.iter().any(|group| group == name) => {
                Some(format!("Group \"{name}\""))
            }
            "ServiceAccount" => {
                let of_subject = text(Some(subject), "namespace");
                let namespace = if of_subject.is_empty() { namespace } else { of_subject };
                let full = format!("system:serviceaccount:{namespace}:{name}");
                let same = !namespace.is_empty() && full == user.name;
                same.then(|| format!("ServiceAccount \"{name}/{namespace}\""))
            }
            _ => None,
        }
    })
}

fn collect(
    stored: Stored<'_>,
    binding: &Value,
    namespace: &str,
    source: &str,
    rules: &mut Vec<GrantedRule>,
    faults: &mut Vec<String>,
) {
    let name = role_name(binding);
    let kind = text(binding.get("roleRef"), "kind");
    let (plural, namespace) =
        if kind == "Role" { ("roles", namespace) } else { ("clusterroles", "") };
    let all = stored(&format!("{GROUP}/{plural}"));
    let found =
        all.iter().find(|role| object::name(role) == name && object::namespace(role) == namespace);
    let Some(role) = found else {
        faults.push(format!("{}.{GROUP} \"{name}\" not found", plural.trim_end_matches('s')));
        return;
    };
    for rule in rules_in(role, &all) {
        rules.push(GrantedRule { rule, source: source.to_owned() });
    }
}

/// The rules of a role, those that it aggregates included.
fn rules_in(role: &Arc<Value>, all: &[Arc<Value>]) -> Vec<Value> {
    let mut seen = vec![object::name(role).to_owned()];
    let mut rules = Vec::new();
    let mut queue = vec![Arc::clone(role)];
    while let Some(role) = queue.pop() {
        rules.extend(role.get("rules").and_then(Value::as_array).into_iter().flatten().cloned());
        for other in all {
            let name = object::name(other);
            if aggregates(&role, other) && !seen.iter().any(|one| one == name) {
                seen.push(name.to_owned());
                queue.push(Arc::clone(other));
            }
        }
    }
    rules
}

/// Whether a cluster role's aggregation rule selects another one (by labels).
fn aggregates(role: &Value, other: &Value) -> bool {
    let labels = object::metadata(other).get("labels");
    let selectors = role
        .get("aggregationRule")
        .and_then(|rule| rule.get("clusterRoleSelectors"))
        .and_then(Value::as_array);
    selectors.into_iter().flatten().any(|selector| {
        let wanted = selector.get("matchLabels").and_then(Value::as_object);
        wanted.is_some_and(|wanted| {
            wanted.iter().all(|(key, value)| labels.and_then(|all| all.get(key)) == Some(value))
        })
    })
}

/// Whether one rule allows a request.
#[must_use]
pub fn allows(rule: &Value, wanted: &Attributes) -> bool {
    let lists =
        |field: &str, value: &str| strings(rule, field).any(|one| one == "*" || one == value);
    if !lists("verbs", &wanted.verb) {
        return false;
    }
    if wanted.resource.is_empty() {
        return strings(rule, "nonResourceURLs").any(|url| {
            url == "*"
                || url == wanted.path
                || url.strip_suffix('*').is_some_and(|prefix| wanted.path.starts_with(prefix))
        });
    }
    let mut names = strings(rule, "resourceNames").peekable();
    lists("apiGroups", &wanted.group)
        && strings(rule, "resources").any(|one| resource_matches(one, wanted))
        && (names.peek().is_none() || names.any(|name| name == wanted.name))
}

fn resource_matches(rule: &str, wanted: &Attributes) -> bool {
    if rule == "*" {
        return true;
    }
    match rule.split_once('/') {
        None => wanted.subresource.is_empty() && rule == wanted.resource,
        Some((resource, subresource)) => {
            !wanted.subresource.is_empty()
                && subresource == wanted.subresource
                && (resource == "*" || resource == wanted.resource)
        }
    }
}

fn role_name(binding: &Value) -> &str {
    text(binding.get("roleRef"), "name")
}

fn strings<'a>(rule: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    rule.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn text<'a>(object: Option<&'a Value>, field: &str) -> &'a str {
    object.and_then(|object| object.get(field)).and_then(Value::as_str).unwrap_or_default()
}

/// The rules of a user as `SelfSubjectRulesReview` lists them.
#[must_use]
pub fn rules_status(stored: Stored<'_>, user: &User, namespace: &str) -> Value {
    let (rules, _) = rules_of(stored, user, namespace);
    let with = |field: &str| -> Vec<&Value> {
        rules.iter().map(|granted| &granted.rule).filter(|rule| rule.get(field).is_some()).collect()
    };
    json!({
        "resourceRules": with("resources"),
        "nonResourceRules": with("nonResourceURLs"),
        "incomplete": false,
    })
}
