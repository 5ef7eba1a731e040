//! Nodes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::builtin::addresses::cidr_warning;
use crate::builtin::cells::{View, or};
use crate::builtin::defaults::{Fields, set};
use crate::builtin::kind::Kind;
use crate::builtin::value::{at, items, text};
use crate::object;

/// `nodes`.
pub(super) static KIND: Kind = Kind {
    status_subresource: true,
    keeps_status_on_create: true,
    default,
    prepare_for_create,
    warnings,
    cells,
    field_labels: &[("spec.unschedulable", &["spec.unschedulable"])],
    ..Kind::new("", "nodes")
};

fn default(node: &mut Fields) {
    if let Some(Value::Object(status)) = node.get_mut("status")
        && let Some(capacity) = status.get("capacity").cloned()
    {
        set(status, "allocatable", || capacity);
    }
}

/// A new node takes no Pods until a controller has seen that it is ready.
fn prepare_for_create(node: &mut Value) {
    const NOT_READY: &str = "node.kubernetes.io/not-ready";
    let mut taints = items(node, &["spec", "taints"]).to_vec();
    let known =
        |one: &Value| text(one, &["key"]) == NOT_READY && text(one, &["effect"]) == "NoSchedule";
    if !taints.iter().any(known) {
        taints.push(json!({ "key": NOT_READY, "effect": "NoSchedule" }));
        object::set_path(node, "spec.taints", json!(taints));
    }
}

fn cells(view: View<'_>) -> Vec<Value> {
    let conditions = view.list("/status/conditions");
    let ready = conditions.iter().rfind(|condition| text(condition, &["type"]) == "Ready");
    let mut status = match ready.map(|condition| text(condition, &["status"])) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if view.flag("/spec/unschedulable") {
        status.push_str(",SchedulingDisabled");
    }
    let address = |kind: &str| {
        let found = view.list("/status/addresses").iter().find(|one| text(one, &["type"]) == kind);
        json!(found.map_or("<none>", |one| text(one, &["address"])))
    };
    let info = |field: &str| view.str(&format!("/status/nodeInfo/{field}"));
    let architecture = info("architecture");
    let mut kernel = or(info("kernelVersion"), "<unknown>").to_owned();
    if !architecture.is_empty() {
        kernel = format!("{kernel} ({architecture})");
    }
    view.named(vec![
        json!(status),
        json!(node_roles(view)),
        view.age(),
        json!(info("kubeletVersion")),
        address("InternalIP"),
        address("ExternalIP"),
        json!(or(info("osImage"), "<unknown>")),
        json!(kernel),
        json!(or(info("containerRuntimeVersion"), "<unknown>")),
    ])
}

fn node_roles(view: View<'_>) -> String {
    let labels = object::metadata(view.object).get("labels").and_then(Value::as_object);
    let roles: BTreeSet<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    let roles: Vec<&str> = roles.into_iter().collect();
    or(&roles.join(","), "<none>").to_owned()
}

fn warnings(node: &Value, _old: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    if at(node, &["spec", "configSource"]).is_some() {
        found.push("spec.configSource: the feature is removed".to_owned());
    }
    if !text(node, &["spec", "externalID"]).is_empty() {
        let why = "this field is deprecated, and is unused by Kubernetes";
        found.push(format!("spec.externalID: {why}"));
    }
    for (index, range) in items(node, &["spec", "podCIDRs"]).iter().enumerate() {
        let field = format!("spec.podCIDRs[{index}]");
        found.extend(cidr_warning(&field, range.as_str().unwrap_or_default()));
    }
    found
}
