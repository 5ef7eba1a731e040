//! Role-based access control over the stored roles and bindings.
//!
//! Follows `k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac`. Aggregated cluster roles are computed
//! when they are asked for, so no controller has to fill their rules.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::auth::User;
use crate::auth::policy::{Binding, Scope};
use simcluster_model::error::{ApiError, Details, Names};

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// Looks up what the bindings of a namespace grant, and those of the cluster if it is empty.
pub type Scopes<'a> = &'a dyn Fn(&str) -> Arc<Scope>;

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

/// Decides on a request.
#[must_use]
pub fn authorize(scopes: Scopes<'_>, user: &User, wanted: &Attributes) -> Decision {
    if user.is_master() {
        return Decision { allowed: true, reason: String::new() };
    }
    let mut faults: Vec<String> = Vec::new();
    let granted = find(scopes, user, &wanted.namespace, |binding| match &binding.rules {
        Ok(rules) => {
            let allowed = rules.iter().any(|rule| allows(rule, wanted));
            allowed.then(|| format!("RBAC: allowed by {}", binding.source(user)))
        }
        Err(fault) => {
            faults.push(fault.clone());
            None
        }
    });
    if let Some(reason) = granted {
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
    scopes: Scopes<'_>,
    user: &User,
    namespace: &str,
) -> (Vec<GrantedRule>, Vec<String>) {
    let mut rules = Vec::new();
    let mut faults = Vec::new();
    let nothing: Option<()> = find(scopes, user, namespace, |binding| {
        match &binding.rules {
            Ok(own) => {
                let source = binding.source(user);
                let granted = own.iter().cloned();
                rules.extend(granted.map(|rule| GrantedRule { rule, source: source.clone() }));
            }
            Err(fault) => faults.push(fault.clone()),
        }
        None
    });
    debug_assert!(nothing.is_none(), "all bindings were gone through");
    (rules, faults)
}

/// Goes through the bindings that name a user, those of the cluster first, until `look` finds something.
fn find<T>(
    scopes: Scopes<'_>,
    user: &User,
    namespace: &str,
    mut look: impl FnMut(&Binding) -> Option<T>,
) -> Option<T> {
    let cluster = scopes("");
    let own = (!namespace.is_empty()).then(|| scopes(namespace));
    std::iter::once(&cluster).chain(&own).flat_map(|scope| scope.of(user)).find_map(&mut look)
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

fn strings<'a>(rule: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    rule.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// The rules of a user as `SelfSubjectRulesReview` lists them.
#[must_use]
pub fn rules_status(scopes: Scopes<'_>, user: &User, namespace: &str) -> Value {
    let (rules, _) = rules_of(scopes, user, namespace);
    let with = |field: &str| -> Vec<&Value> {
        rules.iter().map(|granted| &granted.rule).filter(|rule| rule.get(field).is_some()).collect()
    };
    json!({
        "resourceRules": with("resources"),
        "nonResourceRules": with("nonResourceURLs"),
        "incomplete": false,
    })
}
