//! Validation of roles and their bindings.

use serde_json::{Value, json};

use super::check::Faults;
use super::value::{at, items, text};
use super::workload::label_selector;
use crate::field::FieldError;
use crate::names;

const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) fn role(role: &Value) -> Vec<FieldError> {
    rules(role, true)
}

pub(super) fn cluster_role(role: &Value) -> Vec<FieldError> {
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

pub(super) fn role_binding(binding: &Value) -> Vec<FieldError> {
    self::binding(binding, &["Role", "ClusterRole"])
}

pub(super) fn cluster_role_binding(binding: &Value) -> Vec<FieldError> {
    self::binding(binding, &["ClusterRole"])
}

pub(super) fn role_binding_update(binding: &Value, old: &Value) -> Vec<FieldError> {
    with_role(role_binding(binding), binding, old)
}

pub(super) fn cluster_role_binding_update(binding: &Value, old: &Value) -> Vec<FieldError> {
    with_role(cluster_role_binding(binding), binding, old)
}

fn with_role(faults: Vec<FieldError>, binding: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults(faults);
    let (new, before) = (at(binding, &["roleRef"]), at(old, &["roleRef"]));
    if new != before {
        // The server prints its internal type, whose fields have no JSON names.
        let field = |name: &str| text(binding, &["roleRef", name]).to_owned();
        let body = format!(
            r#"Invalid value: {{"APIGroup":{:?},"Kind":{:?},"Name":{:?}}}: field is immutable"#,
            field("apiGroup"),
            field("kind"),
            field("name"),
        );
        let mut fault = FieldError::invalid("roleRef", &Value::Null, "");
        fault.body = body;
        faults.add(fault);
    }
    faults.0
}

fn binding(binding: &Value, kinds: &[&str]) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let reference = |field: &str| text(binding, &["roleRef", field]);
    let mut supported = |field: &str, list: &[&str]| {
        let value = reference(field);
        if !list.contains(&value) {
            let list: Vec<String> = list.iter().map(|one| (*one).to_owned()).collect();
            let field = format!("roleRef.{field}");
            faults.add(FieldError::not_supported(field, &json!(value), &list));
        }
    };
    supported("apiGroup", &[RBAC]);
    supported("kind", kinds);
    let role = reference("name");
    faults.texts("roleRef.name", role, names::path_segment(role));
    let in_namespace = kinds.contains(&"Role");
    let mut declared = Faults::default();
    for (index, subject) in items(binding, &["subjects"]).iter().enumerate() {
        let here = format!("subjects[{index}]");
        if text(subject, &["name"]).is_empty() {
            declared.required(format!("{here}.name"), "");
        }
        self::subject(subject, in_namespace, &here, &mut faults);
    }
    if role.is_empty() {
        declared.required("roleRef.name", "");
    }
    faults.extend(declared.0);
    faults.0
}

fn subject(subject: &Value, in_namespace: bool, path: &str, faults: &mut Faults) {
    let (name, group) = (text(subject, &["name"]), text(subject, &["apiGroup"]));
    let mut group_must_be = |wanted: &str| {
        if group != wanted {
            let field = format!("{path}.apiGroup");
            faults.add(FieldError::not_supported(field, &json!(group), &[wanted.to_owned()]));
        }
    };
    match text(subject, &["kind"]) {
        "ServiceAccount" => {
            if !name.is_empty() {
                let wrong = names::dns1123_subdomain(name);
                faults.texts(&format!("{path}.name"), name, wrong);
            }
            if !group.is_empty() {
                let field = format!("{path}.apiGroup");
                faults.add(FieldError::not_supported(field, &json!(group), &[String::new()]));
            }
            if !in_namespace && text(subject, &["namespace"]).is_empty() {
                faults.required(format!("{path}.namespace"), "");
            }
        }
        "User" | "Group" => group_must_be(RBAC),
        kind => {
            let supported = ["ServiceAccount", "User", "Group"].map(str::to_owned);
            let field = format!("{path}.kind");
            faults.add(FieldError::not_supported(field, &json!(kind), &supported));
        }
    }
}
