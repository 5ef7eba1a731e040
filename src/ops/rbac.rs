//! What the operator may do: one table, from which the ClusterRole is made.

use serde_json::{Value, json};

/// One line of the table.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// API group; empty: the core group.
    pub group: &'static str,
    /// Resource, or resource and subresource.
    pub resource: &'static str,
    /// What may be done.
    pub verbs: &'static [&'static str],
    /// What it is needed for.
    pub reason: &'static str,
}

/// Everything the operator does on the API server. An apply of an object that does not exist needs
/// `create` beside `patch`.
pub const RULES: &[Rule] = &[
    Rule {
        group: "apps.bootcamp.local",
        resource: "simpleapps",
        verbs: &["list", "watch", "patch"],
        reason: "know the apps, put the finalizer on and take it off",
    },
    Rule {
        group: "apps.bootcamp.local",
        resource: "simpleapps/status",
        verbs: &["patch"],
        reason: "say how the apps are",
    },
    Rule {
        group: "apps.bootcamp.local",
        resource: "simpleapps/finalizers",
        verbs: &["update"],
        reason: "own children with blockOwnerDeletion where OwnerReferencesPermissionEnforcement is on",
    },
    Rule {
        group: "apps",
        resource: "deployments",
        verbs: &["list", "watch", "create", "patch"],
        reason: "run the apps; deleted by garbage collection",
    },
    Rule {
        group: "",
        resource: "services",
        verbs: &["list", "watch", "create", "patch"],
        reason: "reach the apps; deleted by garbage collection",
    },
    Rule {
        group: "networking.k8s.io",
        resource: "ingresses",
        verbs: &["list", "watch", "create", "patch", "delete"],
        reason: "reach the apps from outside; deleted when the host goes",
    },
    Rule {
        group: "",
        resource: "pods",
        verbs: &["list"],
        reason: "find out why an app does not start",
    },
    Rule {
        group: "",
        resource: "configmaps",
        verbs: &["get", "create"],
        reason: "keep a record of deleted apps",
    },
    Rule {
        group: "events.k8s.io",
        resource: "events",
        verbs: &["create", "patch"],
        reason: "tell what changed",
    },
];

/// The rules of the ClusterRole.
#[must_use]
pub fn cluster_role_rules() -> Vec<Value> {
    let rule = |rule: &Rule| json!({"apiGroups": [rule.group], "resources": [rule.resource], "verbs": rule.verbs});
    RULES.iter().map(rule).collect()
}
