//! Makes a cluster of a bare kube-apiserver: runs the simulated controllers against the API server of
//! the current kubeconfig, until interrupted.
//!
//! ```sh
//! CONTROLLER_MANAGER=0 hack/kube-assets/up /tmp/cluster 17500
//! KUBECONFIG=/tmp/cluster/kubeconfig cargo run -p simcluster --example controllers
//! ```
//!
//! With `--no-pods` neither scheduler nor kubelet runs: Pods stay Pending until somebody writes their
//! status, as with a kube-controller-manager alone.

use anyhow::Context;
use kube::Client;
use simcluster::Clock;
use simcluster_controllers::{Config, Kind};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let client = Client::try_default().await.context("no cluster")?;
    let mut config = Config::new(Clock::real(), 1);
    if std::env::args().any(|argument| argument == "--no-pods") {
        config.kinds.remove(&Kind::Scheduler);
        config.kinds.remove(&Kind::Kubelet);
    }
    let controllers = simcluster_controllers::start(|_user| client.clone(), &config);
    tokio::signal::ctrl_c().await.context("no signals")?;
    controllers.stop().await;
    Ok(())
}
