//! The simulated cluster as a program: serves the API until it is told to stop.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Parser, Subcommand};
use serde_json::Value;
use simcluster::cluster::SimCluster;

/// A simulated Kubernetes cluster.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Starts a cluster and serves its API over HTTPS until SIGINT or SIGTERM.
    Serve(Serve),
}

#[derive(Debug, clap::Args)]
struct Serve {
    /// File to write the admin's kubeconfig to (mode 0600).
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,

    /// File with CRDs (YAML, several documents allowed) to install first; repeatable.
    #[arg(long = "crd", value_name = "FILE")]
    crds: Vec<PathBuf>,

    /// Address to listen on; port 0 takes any free one.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDR")]
    listen: String,

    /// Bare API server: no Deployment, `ReplicaSet`, Pod, garbage collection or namespace controllers.
    #[arg(long)]
    no_controllers: bool,

    /// Seed of uids, names and delays.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

fn main() -> ExitCode {
    let Command::Serve(arguments) = Arguments::parse().command;
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("start the runtime")
        .and_then(|runtime| runtime.block_on(run(arguments)));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("simcluster: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Serve) -> anyhow::Result<()> {
    let mut builder = SimCluster::builder()
        .seed(arguments.seed)
        .controllers(!arguments.no_controllers)
        .real_time();
    for path in &arguments.crds {
        for crd in definitions(path)? {
            builder = builder.crd(crd);
        }
    }
    let cluster = builder.start().context("start the cluster")?;
    let served = cluster
        .serve(&arguments.listen)
        .await
        .with_context(|| format!("listen on {}", arguments.listen))?;
    let path = &arguments.kubeconfig;
    served.write_kubeconfig(path).with_context(|| format!("write {}", path.display()))?;
    eprintln!("simcluster: https://{} (kubeconfig: {})", served.address(), path.display());
    stop_signal().await?;
    served.shutdown().await;
    Ok(())
}

/// The CRDs in a file of YAML documents.
fn definitions(path: &Path) -> anyhow::Result<Vec<Value>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text)
        .with_context(|| format!("{} is no YAML", path.display()))?;
    let documents: Vec<Value> = documents.into_iter().filter(|one| !one.is_null()).collect();
    for document in &documents {
        let kind = document.get("kind").and_then(Value::as_str).unwrap_or("nothing");
        if kind != "CustomResourceDefinition" {
            bail!("{} has a {kind} where only CustomResourceDefinitions may be", path.display());
        }
    }
    Ok(documents)
}

/// Waits for SIGINT or SIGTERM.
async fn stop_signal() -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted.context("listen for SIGINT"),
        _ = terminate.recv() => Ok(()),
    }
}
