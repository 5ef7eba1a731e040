//! What the arguments mean.

use std::collections::BTreeSet;
use std::path::PathBuf;

use simcluster::controllers::Kind;
use simcluster::{InvalidNetwork, ServiceNetwork};

use super::admission;
use super::arguments::Serve;
use super::controllers;

/// A cluster to serve.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Config {
    /// Where the kubeconfig goes; nowhere in particular if it is not said.
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Files with CRDs.
    pub(crate) crds: Vec<PathBuf>,
    /// Address to listen on.
    pub(crate) listen: String,
    /// The controllers that run.
    pub(crate) controllers: BTreeSet<Kind>,
    /// The admission plugins that do not.
    pub(crate) disabled_admission: BTreeSet<String>,
    /// The addresses of Services.
    pub(crate) service_network: ServiceNetwork,
    /// Where requests are written down.
    pub(crate) request_log: Option<RequestLogTarget>,
    /// The seed of everything random.
    pub(crate) seed: u64,
}

/// Where requests are written down.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RequestLogTarget {
    /// Standard output.
    Stdout,
    /// At the end of a file.
    File(PathBuf),
}

/// Arguments that mean nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConfigError {
    /// `--controllers`
    #[error("--controllers")]
    Controllers(#[source] controllers::UnknownController),
    /// `--disable-admission-plugins`
    #[error("--disable-admission-plugins")]
    Admission(#[source] admission::UnknownPlugin),
    /// `--service-cluster-ip-range`
    #[error("--service-cluster-ip-range")]
    Network(#[source] InvalidNetwork),
}

impl TryFrom<Serve> for Config {
    type Error = ConfigError;

    fn try_from(arguments: Serve) -> Result<Self, ConfigError> {
        let controllers = if arguments.no_controllers {
            BTreeSet::new()
        } else {
            controllers::parse(&arguments.controllers).map_err(ConfigError::Controllers)?
        };
        let disabled_admission = admission::parse(&arguments.disable_admission_plugins)
            .map_err(ConfigError::Admission)?;
        let service_network =
            arguments.service_cluster_ip_range.parse().map_err(ConfigError::Network)?;
        let request_log = arguments.request_log.map(|path| match path.to_str() {
            Some("-") => RequestLogTarget::Stdout,
            _ => RequestLogTarget::File(path),
        });
        Ok(Self {
            kubeconfig: arguments.kubeconfig,
            crds: arguments.crds,
            listen: arguments.listen,
            controllers,
            disabled_admission,
            service_network,
            request_log,
            seed: arguments.seed,
        })
    }
}
