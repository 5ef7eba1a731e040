//! The kinds that a cluster serves, as discovery tells.

use kube::Client;
use kube::core::ApiResource;
use kube::discovery::{Discovery, Scope, verbs};

/// A kind that objects can be listed and deleted of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) resource: ApiResource,
    pub(crate) namespaced: bool,
    /// Whether a whole collection can be deleted at once.
    pub(crate) has_delete_collection: bool,
}

/// Kinds that can be listed, watched and deleted, in the version that the server prefers: core ones
/// first, then by group, in discovery order.
pub(crate) async fn served(client: &Client) -> Result<Vec<Kind>, kube::Error> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await?;
    let mut kinds = Vec::new();
    for group in discovery.groups_alphabetical() {
        for (resource, capabilities) in group.recommended_resources() {
            let can = |verb| capabilities.supports_operation(verb);
            if can(verbs::LIST) && can(verbs::WATCH) && can(verbs::DELETE) {
                kinds.push(Kind {
                    resource,
                    namespaced: capabilities.scope == Scope::Namespaced,
                    has_delete_collection: can(verbs::DELETE_COLLECTION),
                });
            }
        }
    }
    Ok(kinds)
}
