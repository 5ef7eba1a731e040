//! Which cluster tests run on.

use std::fmt;

use tokio::runtime::{Builder, Runtime};

use super::Error;

/// A kind of cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// The simulated cluster, in this process and in virtual time.
    Sim,
    /// A real etcd and kube-apiserver of our own.
    ControlPlane,
    /// The cluster of a kubeconfig.
    Kubeconfig,
}

impl Backend {
    /// What `TEST_CLUSTER` chooses; the simulated cluster if it is not set.
    pub fn from_environment() -> Result<Self, Error> {
        Self::named(&std::env::var("TEST_CLUSTER").unwrap_or_default())
    }

    pub(super) fn named(name: &str) -> Result<Self, Error> {
        match name {
            "" | "sim" => Ok(Self::Sim),
            "control-plane" => Ok(Self::ControlPlane),
            "kubeconfig" => Ok(Self::Kubeconfig),
            other => Err(Error::new(format!(
                "TEST_CLUSTER={other} is not known: sim, control-plane or kubeconfig"
            ))),
        }
    }

    pub(super) fn runtime(self) -> std::io::Result<Runtime> {
        let mut runtime = Builder::new_current_thread();
        runtime.enable_all();
        if self == Self::Sim {
            runtime.start_paused(true);
        }
        runtime.build()
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sim => "sim",
            Self::ControlPlane => "control-plane",
            Self::Kubeconfig => "kubeconfig",
        })
    }
}
