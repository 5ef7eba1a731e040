//! `ResourceQuota`: what a namespace may use, counted before each write.

use std::sync::Arc;

use serde_json::Value;

use super::{Attributes, Operation};
use crate::server::ApiServer;
use crate::store;
use simcluster_model::builtin::admission::quota::{self, Counted};
use simcluster_model::error::ApiError;
use simcluster_model::fieldmanager::{self, OneVersion, Writing};
use simcluster_model::object;
use simcluster_model::resource::Resource;

/// Storage key of `ResourceQuotas`.
pub(crate) const QUOTAS: &str = "/resourcequotas";

/// Whether a write can use anything that quotas count.
pub(super) fn handles(attributes: &Attributes) -> bool {
    let changes = attributes.operation == Operation::Create
        || (attributes.operation == Operation::Update && attributes.is_of("", "services"));
    changes
        && attributes.subresource.is_empty()
        && attributes.resource.namespaced
        && !attributes.namespace.is_empty()
}

/// Charges the write to all quotas of its namespace, or refuses it.
pub(super) fn validate(server: &ApiServer, attributes: &Attributes) -> Result<(), ApiError> {
    let Some(object) = &attributes.object else { return Ok(()) };
    let counted = |object| Counted {
        group: &attributes.resource.group,
        plural: &attributes.resource.plural,
        object,
    };
    let charge = |quota: &Value| {
        let old = attributes.old_object.as_deref().map(counted);
        quota::charge(quota, counted(object), old).map_err(|why| attributes.forbidden(&why))
    };
    let quotas = of_namespace(server, &attributes.namespace);
    // A write that one quota refuses is charged to none.
    for quota in &quotas {
        charge(quota)?;
    }
    if attributes.dry_run {
        return Ok(());
    }
    for quota in &quotas {
        let name = object::name(quota);
        loop {
            let key = store::key(&attributes.namespace, name);
            let Some(current) = server.store().get(QUOTAS, &key) else { break };
            let Some(used) = charge(&current)? else { break };
            let mut status = current.get("status").cloned().unwrap_or_default();
            object::put(&mut status, "used", used);
            if write_status(server, &current, status, "kube-apiserver") {
                break;
            }
        }
    }
    Ok(())
}

fn of_namespace(server: &ApiServer, namespace: &str) -> Vec<Arc<Value>> {
    let mut quotas = server.stored(QUOTAS);
    quotas.retain(|quota| object::namespace(quota) == namespace);
    quotas
}

/// Writes a quota's status, unless somebody else wrote the quota meanwhile.
fn write_status(server: &ApiServer, current: &Arc<Value>, status: Value, manager: &str) -> bool {
    let mut changed = Value::clone(current);
    object::put(&mut changed, "status", status);
    if let Some(resource) = server.find("", "v1", "resourcequotas") {
        let now = server.clock().now();
        let writing = Writing {
            resource: &resource,
            versions: &OneVersion,
            manager,
            subresource: "status",
            now,
        };
        fieldmanager::record_update(&writing, Some(current), &mut changed);
    }
    let key = store::key(object::namespace(current), object::name(current));
    let mut store = server.store();
    if !store.is_current(QUOTAS, &key, current) {
        return false;
    }
    store.put(QUOTAS, &key, changed);
    true
}

/// Counts anew what the quotas of a namespace limit, after a write that may have changed it: the work
/// of a real cluster's quota controller.
pub(crate) fn after_write(
    server: &ApiServer,
    resource: &Resource,
    before: Option<&Arc<Value>>,
    after: Option<&Arc<Value>>,
) {
    let ends = || {
        let phase = after.and_then(|object| object::at_path(object, "status.phase"));
        resource.storage_key == "/pods"
            && matches!(phase.and_then(Value::as_str), Some("Failed" | "Succeeded"))
    };
    let is_quota = resource.storage_key == QUOTAS;
    let concerns = is_quota || after.is_none() || ends();
    let Some(object) = before.or(after).filter(|_| concerns && resource.namespaced) else { return };
    let namespace = object::namespace(object).to_owned();
    for quota in of_namespace(server, &namespace) {
        recount(server, &namespace, object::name(&quota));
    }
}

fn recount(server: &ApiServer, namespace: &str, name: &str) {
    let mut objects: Vec<(Arc<Resource>, Arc<Value>)> = Vec::new();
    let mut keys: Vec<String> = Vec::new();
    for resource in server.resources() {
        if resource.namespaced && !keys.contains(&resource.storage_key) {
            keys.push(resource.storage_key.clone());
            let revision = server.revision();
            let list = server.store().list_at(&resource.storage_key, namespace, revision);
            let list = list.unwrap_or_default().into_iter();
            objects.extend(list.map(|(_, object)| (Arc::clone(&resource), object)));
        }
    }
    loop {
        let current = server.store().get(QUOTAS, &store::key(namespace, name));
        let Some(current) = current else { return };
        let counted = objects.iter().map(|(resource, object)| Counted {
            group: &resource.group,
            plural: &resource.plural,
            object,
        });
        let status = quota::status(&current, counted);
        if current.get("status") == Some(&status)
            || write_status(server, &current, status, "kube-controller-manager")
        {
            return;
        }
    }
}
