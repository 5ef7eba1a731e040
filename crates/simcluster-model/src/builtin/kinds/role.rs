//! Roles and cluster roles.

use serde_json::Value;

use crate::builtin::check::Faults;
use crate::builtin::kind::{Kind, nil_lists};
use crate::builtin::selector::label_selector;
use crate::builtin::value::{at, items};
use crate::field::FieldError;
use crate::names;

/// `roles`.
pub(super) static KIND: Kind = Kind {
    name_faults: names::path_segment,
    allow_create_on_update: true,
    validate: role,
    encode_stored: nil_lists,
    ..Kind::new("rbac.authorization.k8s.io", "roles")
};

/// `clusterroles`.
pub(super) static CLUSTER: Kind = Kind {
    name_faults: names::path_segment,
    allow_create_on_update: true,
    validate: cluster_role,
    encode_stored: nil_lists,
    ..Kind::new("rbac.authorization.k8s.io", "clusterroles")
};

fn role(role: &Value) -> Vec<FieldError> {
    rules(role, true)
}

fn cluster_role(role: &Value) -> Vec<FieldError> {
    let mut faults = Faults(rules(role, false));
    if at(role, &["aggregationRule"]).is_some() {
        let field = "aggregationRule.clusterRoleSelectors";
        let selectors = items(role, &["aggregationRule", "clusterRoleSelectors"]);
        if selectors.is_empty() {
            let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
            faults.required(field, why);
        }
        for (index, selector) in selectors.iter().enumerate() {
            label_selector(selector, &format!("{field}[{index}]"), &mut faults);
        }
    }
    faults.0
}

fn rules(role: &Value, namespaced: bool) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let mut declared = Faults::default();
    for (index, rule) in items(role, &["rules"]).iter().enumerate() {
        let here = format!("rules[{index}]");
        let empty = |field: &str| items(rule, &[field]).is_empty();
        if empty("verbs") {
            declared.required(format!("{here}.verbs"), "");
        }
        if !empty("nonResourceURLs") {
            let urls = at(rule, &["nonResourceURLs"]).unwrap_or(&Value::Null);
            let field = format!("{here}.nonResourceURLs");
            if namespaced {
                let why = "namespaced rules cannot apply to non-resource URLs";
                faults.invalid(field.as_str(), urls, why);
            }
            if !(empty("apiGroups") && empty("resources") && empty("resourceNames")) {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                faults.invalid(field, urls, why);
            }
            continue;
        }
        if empty("apiGroups") {
            let why = "resource rules must supply at least one api group";
            faults.required(format!("{here}.apiGroups"), why);
        }
        if empty("resources") {
            let why = "resource rules must supply at least one resource";
            faults.required(format!("{here}.resources"), why);
        }
    }
    faults.extend(declared.0);
    faults.0
}
