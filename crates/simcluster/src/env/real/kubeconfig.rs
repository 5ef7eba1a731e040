//! A cluster that is there already, such as one of kind.

use std::ffi::OsString;
use std::path::PathBuf;

use futures::future::BoxFuture;
use kube::config::Kubeconfig;

use super::Real;
use super::control_plane::config_of;
use crate::env::{Backend, Error};
use simcluster_server::auth::User;
use simcluster_server::trace::Request;

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
}

impl Real for Remote {
    fn backend(&self) -> Backend {
        Backend::Kubeconfig
    }

    fn client<'a>(&'a self, user: Option<&'a User>) -> BoxFuture<'a, Result<kube::Client, Error>> {
        Box::pin(async move {
            let config = config_of(self.kubeconfig.clone(), user).await?;
            kube::Client::try_from(config).map_err(Error::new)
        })
    }

    fn kubeconfig(&self) -> OsString {
        std::env::var_os("KUBECONFIG").unwrap_or_else(|| {
            let home = std::env::home_dir().unwrap_or_default();
            home.join(".kube/config").into_os_string()
        })
    }

    fn requests(&self) -> Result<Vec<Request>, Error> {
        Err(Error::new("this cluster keeps no record for us"))
    }

    fn outlives_tests(&self) -> bool {
        true
    }

    fn keep_logs(&self) -> Option<PathBuf> {
        None
    }
}

/// Whether tests may touch a context.
pub(super) fn may_touch(context: &str, allowed: Option<&str>) -> bool {
    !context.is_empty() && (context.starts_with("kind-") || allowed == Some(context))
}
