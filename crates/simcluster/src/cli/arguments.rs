//! The arguments as they are typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// A simulated Kubernetes cluster.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Starts a cluster and serves its API over HTTPS until SIGINT or SIGTERM.
    Serve(Serve),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// File to write the admin's kubeconfig to (mode 0600); without it, one in a directory of its own,
    /// which is named on standard error and removed at the end.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// File with CRDs (YAML, several documents allowed) to install first; repeatable.
    #[arg(long = "crd", value_name = "FILE")]
    pub(crate) crds: Vec<PathBuf>,

    /// Address to listen on; port 0 takes any free one.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDR")]
    pub(crate) listen: String,

    /// Controllers, as kube-controller-manager takes them: `*` for all, `NAME` to turn one on, `-NAME`
    /// to turn one off. `scheduler` and `kubelet` are controllers, too.
    #[arg(
        long,
        default_value = "*",
        value_name = "LIST",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub(crate) controllers: Vec<String>,

    /// Bare API server, as `--controllers=-*`.
    #[arg(long, conflicts_with = "controllers")]
    pub(crate) no_controllers: bool,

    /// Admission plugins to turn off, by kube-apiserver's names.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) disable_admission_plugins: Vec<String>,

    /// Network of the addresses that Services get.
    #[arg(long, default_value = "10.0.0.0/16", value_name = "CIDR")]
    pub(crate) service_cluster_ip_range: String,

    /// File to which a line is appended for each request; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) request_log: Option<PathBuf>,

    /// Seed of uids, names and delays.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}
