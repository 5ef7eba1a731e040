//! Acting as somebody else: the `Impersonate-*` headers.

use std::collections::BTreeMap;

use http::HeaderMap;

use crate::auth::User;
use crate::auth::rbac::{self, Attributes, Scopes};
use simcluster_model::error::ApiError;

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
    if name.is_empty() {
        if uid.is_empty() && named_groups.is_empty() {
            return Ok(None);
        }
        return Err(ApiError::internal("requested groups or a UID without impersonating a user"));
    }
    let groups = groups_of(&name, &named_groups);
    Ok(Some(Impersonation {
        user: User { name, uid, groups, extra: BTreeMap::new() },
        named_groups,
    }))
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
    let (resource, namespace, name) = match account {
        Some((namespace, name)) => ("serviceaccounts", namespace, name),
        None => ("users", "", wanted.user.name.as_str()),
    };
    let groups = wanted.named_groups.iter().map(|group| ("groups", "", group.as_str()));
    for (resource, namespace, name) in std::iter::once((resource, namespace, name)).chain(groups) {
        let attributes = Attributes {
            verb: "impersonate".to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        };
        let decision = rbac::authorize(scopes, user, &attributes);
        if !decision.allowed {
            return Err(rbac::forbidden(user, &attributes, &decision.reason));
        }
    }
    Ok(())
}
