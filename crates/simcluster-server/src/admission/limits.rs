//! `LimitRanger`: the defaults and bounds that `LimitRanges` set for Pods.

use std::sync::Arc;

use serde_json::Value;

use super::{Attributes, Operation};
use crate::server::ApiServer;
use simcluster_model::builtin::admission::limits;
use simcluster_model::error::ApiError;
use simcluster_model::object;

const KEY: &str = "/limitranges";

fn of_namespace(server: &ApiServer, namespace: &str) -> Vec<Arc<Value>> {
    let mut all = server.stored(KEY);
    all.retain(|one| object::namespace(one) == namespace);
    all
}

/// Fills in the defaults.
#[expect(clippy::unnecessary_wraps, reason = "has the form of all plugins")]
pub(super) fn admit(server: &ApiServer, attributes: &mut Attributes) -> Result<(), ApiError> {
    if attributes.operation != Operation::Create {
        return Ok(());
    }
    let ranges = of_namespace(server, &attributes.namespace);
    if let Some(pod) = &mut attributes.object {
        for range in ranges {
            limits::fill(&range, pod);
        }
    }
    Ok(())
}

/// Refuses what is out of bounds.
pub(super) fn validate(server: &ApiServer, attributes: &Attributes) -> Result<(), ApiError> {
    let Some(pod) = &attributes.object else { return Ok(()) };
    for range in of_namespace(server, &attributes.namespace) {
        let faults = limits::faults(&range, pod);
        match faults.as_slice() {
            [] => {}
            [one] => return Err(attributes.forbidden(one)),
            many => return Err(attributes.forbidden(&format!("[{}]", many.join(", ")))),
        }
    }
    Ok(())
}
