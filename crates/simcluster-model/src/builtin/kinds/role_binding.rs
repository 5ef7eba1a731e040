//! Bindings of roles.

use serde_json::{Value, json};

use crate::builtin::cells::View;
use crate::builtin::check::Faults;
use crate::builtin::defaults::{Fields, field_text, inner, set};
use crate::builtin::kind::Kind;
use crate::builtin::value::{at, items, objects_mut, text};
use crate::field::FieldError;
use crate::names;

/// `rolebindings`.
pub(super) static KIND: Kind = Kind {
    name_faults: names::path_segment,
    allow_create_on_update: true,
    default,
    validate: role_binding,
    validate_update: Some(role_binding_update),
    cells,
    ..Kind::new("rbac.authorization.k8s.io", "rolebindings")
};

/// `clusterrolebindings`.
pub(super) static CLUSTER: Kind = Kind {
    name_faults: names::path_segment,
    allow_create_on_update: true,
    default,
    validate: cluster_role_binding,
    validate_update: Some(cluster_role_binding_update),
    cells,
    ..Kind::new("rbac.authorization.k8s.io", "clusterrolebindings")
};

const RBAC: &str = "rbac.authorization.k8s.io";

fn default(binding: &mut Fields) {
    set(inner(binding, "roleRef"), "apiGroup", || json!(RBAC));
    for subject in objects_mut(binding.get_mut("subjects")) {
        if matches!(field_text(subject, "kind"), "User" | "Group") {
            set(subject, "apiGroup", || json!(RBAC));
        }
    }
}

fn role_binding(binding: &Value) -> Vec<FieldError> {
    self::binding(binding, &["Role", "ClusterRole"])
}

fn cluster_role_binding(binding: &Value) -> Vec<FieldError> {
    self::binding(binding, &["ClusterRole"])
}

fn role_binding_update(binding: &Value, old: &Value) -> Vec<FieldError> {
    with_role(role_binding(binding), binding, old)
}

fn cluster_role_binding_update(binding: &Value, old: &Value) -> Vec<FieldError> {
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

fn cells(view: View<'_>) -> Vec<Value> {
    let subjects = |kind: &str| {
        let names: Vec<String> = view
            .list("/subjects")
            .iter()
            .filter(|subject| text(subject, &["kind"]) == kind)
            .map(|subject| match (kind, text(subject, &["namespace"])) {
                ("ServiceAccount", namespace) => {
                    format!("{namespace}/{}", text(subject, &["name"]))
                }
                _ => text(subject, &["name"]).to_owned(),
            })
            .collect();
        json!(names.join(", "))
    };
    view.named(vec![
        json!(format!("{}/{}", view.str("/roleRef/kind"), view.str("/roleRef/name"))),
        view.age(),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ])
}
