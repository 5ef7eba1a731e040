//! Built-in admission: what the server refuses before it looks at an object's own rules.

use serde_json::Value;

use crate::server::ApiServer;
use crate::store;
use crate::verbs::{Call, namespace_terminating};
use simcluster_model::error::{ApiError, Names};
use simcluster_model::object;

/// Storage key of Namespaces.
pub(crate) const NAMESPACES: &str = "/namespaces";

/// Namespaces that cannot be deleted.
const PROTECTED: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Whether an object may be created: its namespace must exist and stay (rows CR18, CR19), its CRD
/// must not be going (row CR20).
pub(crate) fn create(server: &ApiServer, call: &Call, object: &Value) -> Result<(), ApiError> {
    let resource = &call.resource;
    let name = match object::name(object) {
        "" => object::meta_str(object, "generateName"),
        name => name,
    };
    if resource.custom && crate::lifecycle::is_terminating(server, resource) {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(ApiError::forbidden(resource.names(), name, why));
    }
    if !resource.namespaced || is_review(&resource.kind) {
        return Ok(());
    }
    let Some(namespace) = server.store().get(NAMESPACES, &store::key("", &call.namespace)) else {
        let names = Names { group: "", plural: "namespaces", kind: "Namespace" };
        return Err(ApiError::not_found(names, &call.namespace));
    };
    if object::is_deleting(&namespace) {
        return Err(namespace_terminating(call, name));
    }
    Ok(())
}

/// Access reviews are answered, not stored: their namespace need not exist.
fn is_review(kind: &str) -> bool {
    kind.ends_with("AccessReview")
}

/// Whether an object may be deleted.
pub(crate) fn delete(call: &Call, name: &str) -> Result<(), ApiError> {
    let resource = &call.resource;
    if resource.storage_key == NAMESPACES && PROTECTED.contains(&name) {
        let why = "this namespace may not be deleted";
        return Err(ApiError::forbidden(resource.names(), name, why));
    }
    Ok(())
}
