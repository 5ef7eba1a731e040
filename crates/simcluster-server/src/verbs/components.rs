//! Statuses of components: asked from them when somebody wants to see them, never stored.

use std::sync::Arc;

use serde_json::{Value, json};

use super::options::ListOptions;
use super::read::Selection;
use super::{Call, List, Outcome};
use crate::server::ApiServer;
use simcluster_model::error::{ApiError, Names};
use simcluster_model::object;

/// Storage key of their kind, under which nothing is stored.
pub(super) const KEY: &str = "/componentstatuses";

/// Where a real server looks for the components that are not its own, and what it calls them.
const PORTS: [(&str, u16); 2] = [("scheduler", 10259), ("controller-manager", 10257)];

/// All of them. The store is always there; of the others nobody answers if there are no controllers.
fn all(server: &ApiServer) -> Vec<Value> {
    let others = PORTS.iter().map(|(name, port)| {
        let why = || {
            format!(
                "Get \"https://127.0.0.1:{port}/healthz\": dial tcp 127.0.0.1:{port}: connect: connection \
                 refused"
            )
        };
        component(name, if server.has_controllers() { Ok(()) } else { Err(why()) })
    });
    others.chain([component("etcd-0", Ok(()))]).collect()
}

fn component(name: &str, health: Result<(), String>) -> Value {
    let status = if health.is_ok() { "True" } else { "False" };
    let message = health.err().unwrap_or_else(|| "ok".to_owned());
    json!({
        "apiVersion": "v1",
        "kind": "ComponentStatus",
        "metadata": { "name": name },
        "conditions": [{ "type": "Healthy", "status": status, "message": message }],
    })
}

/// GET of a component.
pub(super) fn get(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let found = all(server).into_iter().find(|one| object::name(one) == call.name);
    let names = Names { group: "", plural: "componentstatus", kind: "ComponentStatus" };
    found.map(|one| Outcome::made(200, one)).ok_or_else(|| ApiError::not_found(names, &call.name))
}

/// GET of all components.
pub(super) fn list(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let options = ListOptions::parse(call, false)?;
    let selection = Selection::parse(call, &options)?;
    let mut items = all(server);
    items.retain(|one| selection.matches(call, one));
    Ok(Outcome::List(List {
        resource: Arc::clone(&call.resource),
        metadata: json!({}),
        items: items.into_iter().map(Arc::new).collect(),
        converted: false,
    }))
}
