//! Acting as somebody else: the `Impersonate-*` headers.

use std::collections::BTreeMap;

use http::HeaderMap;

use crate::auth::User;
use crate::auth::rbac::{self, Attributes, Scopes};
use crate::http::request;
use simcluster_model::error::ApiError;

/// What the name of a header starts with that gives the impersonated user an extra field.
const EXTRA: &str = "impersonate-extra-";

/// The API group of the resources `uids` and `userextras`, by which RBAC speaks of them.
const GROUP: &str = "authentication.k8s.io";

/// Whom a request impersonates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impersonation {
    /// The user as which the request goes on.
    pub user: User,
    /// The groups that the headers name, which must be allowed one by one.
    pub named_groups: Vec<String>,
}

/// Reads the headers; `None` if the request impersonates nobody.
pub fn wanted(headers: &HeaderMap) -> Result<Option<Impersonation>, ApiError> {
    let all = |name: &str| -> Vec<String> {
        headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .map(str::to_owned)
            .collect()
    };
    let name = all("impersonate-user").into_iter().next().unwrap_or_default();
    let uid = all("impersonate-uid").into_iter().next().unwrap_or_default();
    let named_groups = all("impersonate-group");
    let extra = extra(headers);
    if name.is_empty() {
        if uid.is_empty() && named_groups.is_empty() && extra.is_empty() {
            return Ok(None);
        }
        return Err(ApiError::internal("requested groups or a UID without impersonating a user"));
    }
    let groups = groups_of(&name, &named_groups);
    Ok(Some(Impersonation { user: User { name, uid, groups, extra }, named_groups }))
}

/// The extra fields that headers name.
fn extra(headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        let (Some(key), Ok(value)) = (name.as_str().strip_prefix(EXTRA), value.to_str()) else {
            continue;
        };
        extra.entry(unescape(key)).or_default().push(value.to_owned());
    }
    extra
}

/// Keys are percent-encoded; one that is not so as a whole stays as it is.
fn unescape(key: &str) -> String {
    let is_escape = |rest: &str| rest.chars().take(2).filter(char::is_ascii_hexdigit).count() == 2;
    if key.split('%').skip(1).all(is_escape) { request::decode(key, false) } else { key.to_owned() }
}

/// The groups of the impersonated user: those named, those of a service account, and whether
/// authenticated.
fn groups_of(name: &str, named: &[String]) -> Vec<String> {
    let mut groups = named.to_vec();
    if groups.is_empty()
        && let Some((namespace, _)) =
            name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'))
    {
        groups.push("system:serviceaccounts".to_owned());
        groups.push(format!("system:serviceaccounts:{namespace}"));
    }
    let own =
        if name == "system:anonymous" { "system:unauthenticated" } else { "system:authenticated" };
    if !groups.iter().any(|group| group == own) {
        groups.push(own.to_owned());
    }
    groups
}

/// Whether a user may impersonate another one.
pub fn check(scopes: Scopes<'_>, user: &User, wanted: &Impersonation) -> Result<(), ApiError> {
    let account = wanted
        .user
        .name
        .strip_prefix("system:serviceaccount:")
        .and_then(|rest| rest.split_once(':'));
    let user_of = |resource: &str, namespace: &str, name: &str| Attributes {
        verb: "impersonate".to_owned(),
        resource: resource.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        ..Attributes::default()
    };
    let field_of = |resource: &str, key: &str, value: &str| Attributes {
        group: GROUP.to_owned(),
        subresource: key.to_owned(),
        ..user_of(resource, "", value)
    };
    let target = &wanted.user;
    let mut needed = vec![match account {
        Some((namespace, name)) => user_of("serviceaccounts", namespace, name),
        None => user_of("users", "", &target.name),
    }];
    if !target.uid.is_empty() {
        needed.push(field_of("uids", "", &target.uid));
    }
    needed.extend(wanted.named_groups.iter().map(|group| user_of("groups", "", group)));
    for (key, values) in &target.extra {
        needed.extend(values.iter().map(|value| field_of("userextras", key, value)));
    }
    for attributes in needed {
        let decision = rbac::authorize(scopes, user, &attributes);
        if !decision.allowed {
            return Err(rbac::forbidden(user, &attributes, &decision.reason));
        }
    }
    Ok(())
}
