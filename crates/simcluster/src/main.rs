//! The simulated cluster as a program: serves the API until it is told to stop.

mod cli;

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;
use simcluster::SimCluster;
use simcluster::serve::{Options, RequestLog};

use self::cli::arguments::{Arguments, Command};
use self::cli::config::{Config, RequestLogTarget};

fn main() -> ExitCode {
    let Command::Serve(arguments) = Arguments::parse().command;
    let outcome = Config::try_from(arguments).map_err(anyhow::Error::from).and_then(|config| {
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("start the runtime")?
            .block_on(run(config))
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("simcluster: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(config: Config) -> anyhow::Result<()> {
    let request_log = config.request_log.as_ref().map(open_log).transpose()?;
    let mut builder = SimCluster::builder()
        .seed(config.seed)
        .controllers(!config.controllers.is_empty())
        .kinds(config.controllers)
        .service_network(config.service_network)
        .without_admission(config.disabled_admission)
        .real_time();
    for path in &config.crds {
        let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        builder = builder.crd(text);
    }
    let cluster = builder.start().context("start the cluster")?;
    let options = Options { request_log, ..Options::default() };
    let served = cluster
        .serve_with(&config.listen, options)
        .await
        .with_context(|| format!("listen on {}", config.listen))?;
    let (path, directory) = kubeconfig_path(config.kubeconfig)?;
    served.write_kubeconfig(&path).with_context(|| format!("write {}", path.display()))?;
    eprintln!("simcluster: https://{} (kubeconfig: {})", served.address(), path.display());
    stop_signal().await?;
    served.shutdown().await;
    if let Some(directory) = directory {
        fs::remove_dir_all(&directory)
            .with_context(|| format!("remove {}", directory.display()))?;
    }
    Ok(())
}

/// Opens what requests are written to.
fn open_log(target: &RequestLogTarget) -> anyhow::Result<RequestLog> {
    match target {
        RequestLogTarget::Stdout => Ok(RequestLog::new(io::stdout())),
        RequestLogTarget::File(path) => {
            let file = OpenOptions::new().append(true).create(true).open(path);
            file.map(RequestLog::new).with_context(|| format!("open {}", path.display()))
        }
    }
}

/// Where the kubeconfig goes, and the directory that was made for it if nobody said where.
fn kubeconfig_path(asked: Option<PathBuf>) -> anyhow::Result<(PathBuf, Option<PathBuf>)> {
    if let Some(path) = asked {
        return Ok((path, None));
    }
    // Of several tries, for others may have made directories of such names.
    let directory = (0..100)
        .map(|attempt| format!("simcluster-{}-{attempt}", std::process::id()))
        .map(|name| std::env::temp_dir().join(name))
        .find(|path| DirBuilder::new().mode(0o700).create(path).is_ok())
        .with_context(|| format!("make a directory in {}", std::env::temp_dir().display()))?;
    Ok((directory.join("kubeconfig"), Some(directory)))
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
