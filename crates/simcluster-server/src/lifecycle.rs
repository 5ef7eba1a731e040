//! What the real server's own controllers do with CRDs: accept their names,
//! establish them, serve their resources, and clean up when they are deleted. All of it happens
//! right after the write that calls for it, so that a test sees the same order every time.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::server::ApiServer;
use simcluster_model::crd::{self, FINALIZER as CLEANUP};
use simcluster_model::fieldmanager::{self, OneVersion, Writing};
use simcluster_model::object;
use simcluster_model::resource::Resource;
use simcluster_model::time;

/// Storage key of CRDs.
pub(crate) const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// Field manager of the server's own status writes.
const MANAGER: &str = "kube-apiserver";

/// A CRD as its DELETE leaves it.
pub(crate) fn mark_definition(stored: &Value, now: Timestamp) -> Value {
    let mut definition = stored.clone();
    let metadata = object::metadata_mut(&mut definition);
    metadata.insert("deletionTimestamp".to_owned(), json!(time::format_seconds(now)));
    let mut finalizers: Vec<String> =
        object::meta_list(stored, "finalizers").map(str::to_owned).collect();
    if !finalizers.iter().any(|name| name == CLEANUP) {
        finalizers.push(CLEANUP.to_owned());
    }
    metadata.insert("finalizers".to_owned(), json!(finalizers));
    let status = crd::terminating(&definition, crd::Termination::Pending, now);
    object::put(&mut definition, "status", status);
    definition
}

/// Whether the CRD of a custom resource is being deleted.
pub(crate) fn is_terminating(server: &ApiServer, resource: &Resource) -> bool {
    let name = format!("{}.{}", resource.plural, resource.group);
    server.store().get(DEFINITIONS, &name).is_some_and(|crd| crd::is_terminating(&crd))
}

/// What follows a write of `resource`.
pub(crate) fn after_write(
    server: &ApiServer,
    resource: &Resource,
    before: Option<&Arc<Value>>,
    after: Option<&Arc<Value>>,
) {
    if resource.storage_key == DEFINITIONS {
        let _alone = server.lifecycle();
        if let Some(definition) = before.or(after) {
            unserve_if_gone(server, definition, after);
        }
        progress_names(server);
        if let Some(definition) = after {
            progress(server, object::name(definition));
        }
    } else if resource.custom && after.is_none() && is_terminating(server, resource) {
        let _alone = server.lifecycle();
        progress(server, &format!("{}.{}", resource.plural, resource.group));
    }
}

/// Serves what the CRDs that are there define.
pub(crate) fn serve_all(server: &ApiServer) {
    let _alone = server.lifecycle();
    for definition in server.stored(DEFINITIONS) {
        progress(server, object::name(&definition));
    }
}

fn unserve_if_gone(server: &ApiServer, definition: &Value, after: Option<&Arc<Value>>) {
    if after.is_none() {
        let (group, plural) = names(definition);
        server.serve_custom(&group, &plural, Vec::new());
    }
}

fn names(definition: &Value) -> (String, String) {
    let text = |path: &str| {
        object::at_path(definition, path).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    (text("spec.group"), text("spec.names.plural"))
}

/// Accepts the names of CRDs and establishes them, as far as they are free.
fn progress_names(server: &ApiServer) {
    let definitions = server.stored(DEFINITIONS);
    for definition in &definitions {
        let name = object::name(definition).to_owned();
        let others: Vec<Arc<Value>> =
            server.stored(DEFINITIONS).into_iter().filter(|o| object::name(o) != name).collect();
        let now = server.clock().now();
        write_status(server, &name, |current| crd::approval(current, now));
        write_status(server, &name, |current| crd::naming_conditions(current, &others, now));
        write_status(server, &name, |current| crd::established(current, now));
    }
}

/// Serves what a CRD defines now; cleans up after it if it is being deleted.
fn progress(server: &ApiServer, name: &str) {
    let Some(definition) = server.store().get(DEFINITIONS, name) else { return };
    let (group, plural) = names(&definition);
    if !object::is_deleting(&definition) {
        server.serve_if_changed(&group, &plural, crd::resources(&definition), &definition);
        return;
    }
    server.serve_if_changed(&group, &plural, ending(&definition), &definition);
    let key = format!("{group}/{plural}");
    let now = server.clock().now();
    let step = crd::Termination::InProgress;
    write_status(server, name, |current| Some(crd::terminating(current, step, now)));
    remove_instances(server, &key);
    if server.stored(&key).is_empty() {
        drop_cleanup(server, name);
        return;
    }
    let Some(definition) = server.store().get(DEFINITIONS, name) else { return };
    let now = server.clock().now();
    let step = crd::Termination::InProgress;
    write_status(server, name, |current| Some(crd::terminating(current, step, now)));
    // Nothing but reading and deleting is offered from now on.
    server.serve_custom(&group, &plural, crd::resources(&definition));
}

/// What is still served of a CRD that is being deleted: nothing that makes or changes objects is
/// offered any more (row DI06).
fn ending(definition: &Value) -> Vec<Resource> {
    let mut resources = crd::resources(definition);
    for resource in &mut resources {
        resource.verbs.retain(|verb| !matches!(verb.as_str(), "create" | "update" | "patch"));
    }
    resources
}

/// Deletes the objects of a CRD; those with finalizers are marked and stay for now.
fn remove_instances(server: &ApiServer, key: &str) {
    let now = time::format_seconds(server.clock().now());
    // The store stays locked, so that nobody changes an object in between.
    let mut store = server.store();
    for stored in store.all(key) {
        let object_key = crate::store::key(object::namespace(&stored), object::name(&stored));
        let waits = object::meta_list(&stored, "finalizers").next().is_some();
        if !waits {
            store.remove(key, &object_key);
        } else if !object::is_deleting(&stored) {
            let mut marked = Value::clone(&stored);
            let generation = object::generation(&marked).saturating_add(1);
            let metadata = object::metadata_mut(&mut marked);
            metadata.insert("deletionTimestamp".to_owned(), json!(now));
            metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(0));
            metadata.insert("generation".to_owned(), json!(generation));
            store.put(key, &object_key, marked);
        }
    }
}

/// Takes the clean-up finalizer off a CRD; without others the CRD is gone.
fn drop_cleanup(server: &ApiServer, name: &str) {
    let outcome = replace(server, name, |definition| {
        let finalizers = || object::meta_list(definition, "finalizers");
        let left: Vec<&str> = finalizers().filter(|name| *name != CLEANUP).collect();
        if left.is_empty() {
            return Some(None);
        }
        finalizers().any(|name| name == CLEANUP).then(|| {
            let mut changed = definition.clone();
            object::metadata_mut(&mut changed).insert("finalizers".to_owned(), json!(left));
            Some(changed)
        })
    });
    let Some(Replaced::Removed(definition)) = outcome else { return };
    let (group, plural) = names(&definition);
    server.serve_custom(&group, &plural, Vec::new());
    // Names that this CRD held are free for others now.
    progress_names(server);
    for other in server.stored(DEFINITIONS) {
        if !object::is_deleting(&other) {
            progress(server, object::name(&other));
        }
    }
}

/// Writes a CRD's status if `change` makes another one.
fn write_status(server: &ApiServer, name: &str, change: impl Fn(&Value) -> Option<Value>) {
    replace(server, name, |current| {
        let status = change(current)?;
        if current.get("status") == Some(&status) {
            return None;
        }
        let mut changed = current.clone();
        object::put(&mut changed, "status", status);
        let now = server.clock().now();
        if let Some(resource) = server.find_stored(DEFINITIONS) {
            let writing = Writing {
                resource: &resource,
                versions: &OneVersion,
                manager: MANAGER,
                subresource: "status",
                now,
            };
            fieldmanager::record_update(&writing, Some(current), &mut changed);
        }
        Some(Some(changed))
    });
}

/// What `replace` did to a CRD.
enum Replaced {
    /// It has another form.
    Changed,
    /// It is gone; this was it.
    Removed(Arc<Value>),
}

/// Gives a CRD the form that `change` makes of the present one (`Some(None)`: it goes), however many
/// others write it at the same time. `None`: nothing is to be done, or there is no such CRD.
fn replace(
    server: &ApiServer,
    name: &str,
    change: impl Fn(&Value) -> Option<Option<Value>>,
) -> Option<Replaced> {
    loop {
        let current = server.store().get(DEFINITIONS, name)?;
        let new = change(&current)?;
        let mut store = server.store();
        if !store.is_current(DEFINITIONS, name, &current) {
            continue;
        }
        return Some(if let Some(new) = new {
            store.put(DEFINITIONS, name, new);
            Replaced::Changed
        } else {
            store.remove(DEFINITIONS, name);
            Replaced::Removed(current)
        });
    }
}
