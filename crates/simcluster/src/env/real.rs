//! Clusters that are not simulated: how the environments reach them, with the feature `control-plane`.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use futures::future::BoxFuture;
use kube::Client;

use super::{Backend, Error, Needs};
use simcluster_server::auth::User;
use simcluster_server::trace::Request;

#[cfg(feature = "control-plane")]
mod attach;
#[cfg(feature = "control-plane")]
mod audit;
#[cfg(feature = "control-plane")]
mod control_plane;
#[cfg(feature = "control-plane")]
mod kubeconfig;
#[cfg(all(test, feature = "control-plane"))]
mod tests;

/// A real cluster.
pub(super) trait Real: fmt::Debug + Send + Sync {
    /// Which kind it is.
    fn backend(&self) -> Backend;

    /// A client of the admin, or in the name of another user, whose rights are then enforced.
    fn client<'a>(&'a self, user: Option<&'a User>) -> BoxFuture<'a, Result<Client, Error>>;

    /// The value of `KUBECONFIG` that leads other processes to it.
    fn kubeconfig(&self) -> OsString;

    /// All requests that it has recorded so far; the error says that it keeps no record.
    fn requests(&self) -> Result<Vec<Request>, Error>;

    /// Whether it stays when the tests are over, and with it what they do not remove.
    fn outlives_tests(&self) -> bool;

    /// Keeps its logs after the tests, and says where.
    fn keep_logs(&self) -> Option<PathBuf>;
}

/// The real cluster of a backend, ready for what a test needs.
#[cfg(feature = "control-plane")]
pub(super) async fn open(backend: Backend, needs: &Needs) -> Result<Box<dyn Real>, Error> {
    match backend {
        Backend::Sim => Err(Error::new("the simulated cluster is no real one")),
        Backend::ControlPlane => {
            let controllers = !needs.controllers().is_empty();
            let plane = control_plane::ControlPlane::shared(controllers).await?;
            if needs.pods {
                plane.run_pods().await?;
            }
            Ok(Box::new(plane))
        }
        Backend::Kubeconfig => Ok(Box::new(kubeconfig::Remote::from_environment()?)),
    }
}

/// Real clusters are left out of builds that do not ask for them.
#[cfg(not(feature = "control-plane"))]
pub(super) async fn open(_backend: Backend, _needs: &Needs) -> Result<Box<dyn Real>, Error> {
    Err(Error::new("real clusters need simcluster's feature `control-plane`"))
}
