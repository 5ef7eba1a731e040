//! A cluster that is there already, such as one of kind.

use kube::config::Kubeconfig;

use super::Error;
use super::control_plane::config_of;
use simcluster_server::auth::User;

/// A cluster reached through the current context of the kubeconfig.
#[derive(Debug, Clone)]
pub(super) struct Remote {
    kubeconfig: Kubeconfig,
}

impl Remote {
    /// The cluster of the current context, if tests may touch it: kind's (`kind-*`), and the one
    /// that `TEST_CONTEXT` names in full.
    pub(super) fn from_environment() -> Result<Self, Error> {
        let kubeconfig = Kubeconfig::read().map_err(Error::new)?;
        let context = kubeconfig.current_context.as_deref().unwrap_or_default();
        let allowed = std::env::var("TEST_CONTEXT").ok();
        if !may_touch(context, allowed.as_deref()) {
            return Err(Error::new(format!(
                "tests do not touch the context {context:?}: they use kind-* and what TEST_CONTEXT names"
            )));
        }
        Ok(Self { kubeconfig })
    }

    /// A client of the context's user, or in the name of another one.
    pub(super) async fn client(&self, user: Option<&User>) -> Result<kube::Client, Error> {
        let config = config_of(self.kubeconfig.clone(), user).await?;
        kube::Client::try_from(config).map_err(Error::new)
    }
}

/// Whether tests may touch a context.
pub(super) fn may_touch(context: &str, allowed: Option<&str>) -> bool {
    !context.is_empty() && (context.starts_with("kind-") || allowed == Some(context))
}
