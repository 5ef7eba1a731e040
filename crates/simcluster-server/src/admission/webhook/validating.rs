//! Webhooks that accept or refuse.

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;

use super::review::{self, Versioned};
use super::{Hooks, invocation, is_exempt};
use crate::admission::{Attributes, Plugin};
use crate::server::ApiServer;
use simcluster_model::error::ApiError;

const CONFIGURATIONS: &str = "admissionregistration.k8s.io/validatingwebhookconfigurations";

/// Asks all webhooks at once; of those that say no the one that does so first is answered (row AD04).
#[derive(Debug, Default)]
pub(super) struct Validating {
    hooks: Hooks,
}

impl Plugin for Validating {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionWebhook"
    }

    fn handles(&self, attributes: &Attributes) -> bool {
        !is_exempt(attributes)
    }

    fn changes_anything(&self, _server: &ApiServer) -> bool {
        false
    }

    fn validate<'a>(
        &'a self,
        server: &'a ApiServer,
        attributes: &'a Attributes,
    ) -> BoxFuture<'a, Result<(), ApiError>> {
        Box::pin(async move {
            let hooks = self.hooks.present(server, CONFIGURATIONS);
            let mut relevant = Vec::new();
            for hook in hooks.iter() {
                if let Some(resource) = invocation(server, hook, attributes).await? {
                    let versioned = Versioned::of(server, attributes, &resource).await?;
                    relevant.push((hook, resource, versioned));
                }
            }
            let asked = relevant.iter().map(async |(hook, resource, versioned)| {
                let asked = review::ask(server, hook, attributes, resource, versioned, false);
                asked.await.err().and_then(|failure| failure.error(hook))
            });
            let answers: Vec<_> = asked.collect::<FuturesUnordered<_>>().collect().await;
            answers.into_iter().flatten().next().map_or(Ok(()), Err)
        })
    }
}
