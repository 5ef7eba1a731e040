//! Kinds with few rules of their own: namespaces, service accounts, jobs.

use serde_json::{Value, json};

use super::value::{flag, items, text};
use crate::object::{self, as_map};
use crate::resource::Resource;

const JOB_UID: &str = "batch.kubernetes.io/controller-uid";

/// A namespace is active, and kept by a finalizer in its spec until its content is gone.
pub(super) fn create_namespace(namespace: &mut Value) {
    object::put(namespace, "status", json!({ "phase": "Active" }));
    let mut finalizers = items(namespace, &["spec", "finalizers"]).to_vec();
    if !finalizers.contains(&json!("kubernetes")) {
        finalizers.push(json!("kubernetes"));
    }
    object::set_path(namespace, "spec.finalizers", json!(finalizers));
    label_namespace(namespace);
}

pub(super) fn update_namespace(
    _resource: &Resource,
    subresource: &str,
    namespace: &mut Value,
    old: &Value,
) {
    if subresource == "finalize" {
        let status = old.get("status").cloned().unwrap_or_else(|| json!({}));
        object::put(namespace, "status", status);
    } else if subresource.is_empty() {
        let spec = old.get("spec").cloned().unwrap_or_else(|| json!({}));
        object::put(namespace, "spec", spec);
    }
    label_namespace(namespace);
}

/// The label that selects a namespace by its name cannot be changed.
fn label_namespace(namespace: &mut Value) {
    let name = object::name(namespace).to_owned();
    if !name.is_empty() {
        let labels = object::metadata_mut(namespace).entry("labels").or_insert(Value::Null);
        object::put(labels, "kubernetes.io/metadata.name", json!(name));
    }
}

/// Whether nothing in the spec keeps a deleted namespace.
pub(super) fn may_namespace_be_removed(namespace: &Value) -> bool {
    items(namespace, &["spec", "finalizers"]).is_empty()
}

/// A new node takes no Pods until a controller has seen that it is ready.
pub(super) fn create_node(node: &mut Value) {
    const NOT_READY: &str = "node.kubernetes.io/not-ready";
    let mut taints = items(node, &["spec", "taints"]).to_vec();
    let known =
        |one: &Value| text(one, &["key"]) == NOT_READY && text(one, &["effect"]) == "NoSchedule";
    if !taints.iter().any(known) {
        taints.push(json!({ "key": NOT_READY, "effect": "NoSchedule" }));
        object::set_path(node, "spec.taints", json!(taints));
    }
}

/// Leases have no fields of coordinated leader election, which is off.
pub(super) fn create_lease(lease: &mut Value) {
    let spec = as_map(object::child(lease, "spec"));
    spec.remove("strategy");
    spec.remove("preferredHolder");
}

pub(super) fn update_lease(
    _resource: &Resource,
    _subresource: &str,
    lease: &mut Value,
    _old: &Value,
) {
    create_lease(lease);
}

/// A write to a Deployment's status leaves its labels alone.
pub(super) fn update_deployment(
    _resource: &Resource,
    subresource: &str,
    deployment: &mut Value,
    old: &Value,
) {
    if subresource == "status" {
        let metadata = object::metadata_mut(deployment);
        match object::metadata(old).get("labels") {
            Some(labels) => metadata.insert("labels".to_owned(), labels.clone()),
            None => metadata.remove("labels"),
        };
    }
}

/// References to secrets keep their names only.
pub(super) fn create_service_account(account: &mut Value) {
    clean_secrets(account);
}

pub(super) fn update_service_account(
    _resource: &Resource,
    _subresource: &str,
    account: &mut Value,
    _old: &Value,
) {
    clean_secrets(account);
}

fn clean_secrets(account: &mut Value) {
    let secrets: Vec<Value> = items(account, &["secrets"])
        .iter()
        .map(|secret| match text(secret, &["name"]) {
            "" => json!({}),
            name => json!({ "name": name }),
        })
        .collect();
    if !secrets.is_empty() {
        object::put(account, "secrets", json!(secrets));
    }
}

/// A Job selects its Pods by its own uid, unless it was told otherwise.
pub(super) fn create_job(job: &mut Value) {
    if flag(job, &["spec", "manualSelector"]) {
        return;
    }
    let (uid, name) = (object::uid(job).to_owned(), object::name(job).to_owned());
    let template = object::child(object::child(job, "spec"), "template");
    let labels = as_map(object::metadata_mut(template).entry("labels").or_insert(Value::Null));
    for (key, value) in [
        ("job-name", &name),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        (JOB_UID, &uid),
    ] {
        labels.entry(key).or_insert_with(|| json!(value));
    }
    let labels = labels.clone();
    let own = as_map(object::metadata_mut(job).entry("labels").or_insert(Value::Null));
    if own.is_empty() {
        *own = labels;
    }
    let selector = object::child(object::child(job, "spec"), "selector");
    as_map(object::child(selector, "matchLabels")).entry(JOB_UID).or_insert_with(|| json!(uid));
}
