//! Who sends a request.

/// An authenticated user (`authentication.k8s.io/v1 UserInfo`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct User {
    /// User name.
    pub name: String,
    /// UID; empty if there is none.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
}

impl User {
    /// The cluster's admin, a member of `system:masters`: every request is allowed.
    #[must_use]
    pub fn admin() -> Self {
        Self {
            name: "admin".to_owned(),
            uid: "admin".to_owned(),
            groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
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
        }
    }

    /// A controller of the control plane, allowed everything (the real ones have roles of their own).
    #[must_use]
    pub fn controller(name: &str) -> Self {
        let mut user = Self::service_account("kube-system", name);
        user.groups.push("system:masters".to_owned());
        user
    }

    /// Whether the user may do everything.
    #[must_use]
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == "system:masters")
    }
}
