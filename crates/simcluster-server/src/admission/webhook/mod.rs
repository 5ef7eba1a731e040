//! The webhooks that configurations name (`k8s.io/apiserver/pkg/admission/plugin/webhook`).

mod hook;
mod mutating;
mod review;
#[cfg(test)]
mod tests;
mod validating;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use self::hook::Hook;
pub(super) use self::mutating::NAME as MUTATING;
use super::{Attributes, Plugin};
use crate::server::ApiServer;
use simcluster_model::error::ApiError;
use simcluster_model::resource::Resource;

/// The two plugins that ask webhooks, in their order.
pub(super) fn plugins() -> [Arc<dyn Plugin>; 2] {
    [Arc::new(mutating::Mutating::default()), Arc::new(validating::Validating::default())]
}

/// Why a webhook did not let a write pass.
#[derive(Debug)]
enum Failure {
    /// It could not be asked, or what it answered is no answer: its `failurePolicy` decides.
    Call(String),
    /// It said no, or its change cannot be made.
    Refused(ApiError),
}

impl Failure {
    /// What the client is told; nothing if the failure is to be ignored.
    fn error(self, hook: &Hook) -> Option<ApiError> {
        match self {
            Self::Refused(error) => Some(error),
            Self::Call(_) if hook.ignores_failures => None,
            Self::Call(why) => {
                Some(ApiError::internal(&format!("failed calling webhook {:?}: {why}", hook.name)))
            }
        }
    }
}

/// The configurations as they were last read, and their webhooks.
#[derive(Debug, Default)]
struct Hooks(Mutex<(Vec<Arc<Value>>, Arc<Vec<Hook>>)>);

impl Hooks {
    /// All webhooks of the configurations under a storage key: by name of the configuration.
    fn present(&self, server: &ApiServer, key: &str) -> Arc<Vec<Hook>> {
        let stored = server.stored(key);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = known.0.len() == stored.len()
            && known.0.iter().zip(&stored).all(|(one, other)| Arc::ptr_eq(one, other));
        if !same {
            let hooks = stored.iter().flat_map(|one| Hook::all(one)).collect();
            *known = (stored, Arc::new(hooks));
        }
        Arc::clone(&known.1)
    }
}

/// Webhook configurations themselves are no business of webhooks (row AD15).
fn is_exempt(attributes: &Attributes) -> bool {
    attributes.kind.group == "admissionregistration.k8s.io"
}

/// The resource in whose version a webhook is asked, conditions included.
async fn invocation(
    server: &ApiServer,
    hook: &Hook,
    attributes: &Attributes,
) -> Result<Option<Arc<Resource>>, ApiError> {
    let Some(resource) = hook.matches(server, attributes)? else { return Ok(None) };
    if !hook.has_conditions() {
        return Ok(Some(resource));
    }
    let versioned = review::Versioned::of(server, attributes, &resource).await?;
    let request = review::request(attributes, &resource);
    match hook.conditions_hold(&versioned.object, &versioned.old, &request) {
        Ok(holds) => Ok(holds.then_some(resource)),
        Err(why) => Err(attributes.forbidden(&why)),
    }
}

/// Which webhooks are asked a second time: those that allow it, if the object changed after they saw it.
#[derive(Debug, Default)]
pub(crate) struct Reinvocation {
    /// Whether somebody changed the object.
    wanted: bool,
    /// Whether this is the second round.
    second: bool,
    /// Webhooks that were asked since the last change.
    asked: BTreeSet<String>,
    /// Webhooks that are to be asked again.
    again: BTreeSet<String>,
    /// The object as the webhooks left it.
    left: Option<Value>,
}

impl Reinvocation {
    /// Whether there is to be a second round.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Begins the second round.
    pub(super) fn begin(&mut self) {
        self.second = true;
    }

    /// Everybody who was asked so far is to be asked again.
    fn changed(&mut self) {
        self.again.append(&mut self.asked);
    }
}
