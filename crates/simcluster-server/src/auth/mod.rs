//! Who sends a request, and whether he may.

pub(crate) mod account_tokens;
pub(crate) mod escalation;
pub mod impersonate;
pub mod policy;
pub mod rbac;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::server::ApiServer;
use simcluster_model::object::put;

/// An authenticated user (`authentication.k8s.io/v1 UserInfo`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct User {
    /// User name.
    pub name: String,
    /// UID; empty if there is none.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// What else is known, by name.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// The cluster's admin, a member of `system:masters`: every request is allowed.
    #[must_use]
    pub fn admin() -> Self {
        Self {
            name: "admin".to_owned(),
            uid: "admin".to_owned(),
            groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
            extra: BTreeMap::new(),
        }
    }

    /// A service account, allowed what RBAC grants it.
    #[must_use]
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            uid: String::new(),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated".to_owned(),
            ],
            extra: BTreeMap::new(),
        }
    }

    /// A controller of the control plane, allowed everything (the real ones have roles of their own).
    #[must_use]
    pub fn controller(name: &str) -> Self {
        let mut user = Self::service_account("kube-system", name);
        user.groups.push("system:masters".to_owned());
        user
    }

    /// A request without credentials.
    #[must_use]
    pub fn anonymous() -> Self {
        Self {
            name: "system:anonymous".to_owned(),
            uid: String::new(),
            groups: vec!["system:unauthenticated".to_owned()],
            extra: BTreeMap::new(),
        }
    }

    /// `authentication.k8s.io/v1 UserInfo`, without what is empty.
    pub(crate) fn info(&self) -> Value {
        let mut info = json!({ "username": self.name });
        if !self.uid.is_empty() {
            put(&mut info, "uid", json!(self.uid));
        }
        if !self.groups.is_empty() {
            put(&mut info, "groups", json!(self.groups));
        }
        if !self.extra.is_empty() {
            put(&mut info, "extra", json!(self.extra));
        }
        info
    }

    /// Whether the user may do everything.
    #[must_use]
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == "system:masters")
    }
}

/// The `ClusterRole`s and `ClusterRoleBinding`s that every cluster has from its start, without what
/// the server fills in.
#[must_use]
pub fn bootstrap_roles() -> Vec<Value> {
    serde_json::from_str(include_str!("bootstrap.json"))
        .expect("the roles are part of this program and parse")
}

/// Bearer tokens and whose they are.
#[derive(Debug, Clone, Default)]
pub struct Tokens(Arc<BTreeMap<String, User>>);

impl Tokens {
    /// A fixed set of tokens.
    #[must_use]
    pub fn new(tokens: BTreeMap<String, User>) -> Self {
        Self(Arc::new(tokens))
    }

    /// The user of a token.
    #[must_use]
    pub fn user(&self, token: &str) -> Option<&User> {
        self.0.get(token)
    }
}

/// The `ServiceAccount` whose token this is, if the server issued it for itself and it is still good.
#[must_use]
pub fn account_of(server: &ApiServer, token: &str) -> Option<User> {
    let own = account_tokens::own_audiences();
    account_tokens::authenticate(server, token, &own).ok().map(|found| found.user)
}
