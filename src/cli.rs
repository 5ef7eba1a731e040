//! What was typed, and what it means.

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use kube::Client;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

#[cfg(feature = "sandbox")]
use crate::sandbox;
use crate::{
    kernel::{clock::Clock, ownership::FIELD_MANAGER},
    ops::{
        manifests, shutdown,
        telemetry::{self, LogFormat},
    },
    run::{self, Config},
    simpleapp::validate::parse_namespace,
};

/// The client's own line about each answer of 500 and above says nothing that ours does not.
const LOG_LEVEL: &str = "info,kube_client::client::builder=off";

/// Runs SimpleApps: a few lines of YAML become a running, reachable, self-repairing app.
#[derive(Debug, Parser)]
#[command(name = "simpleapp-operator", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the operator on a cluster: the one it runs in, or the one that KUBECONFIG names.
    Run(RunArgs),
    /// Print what has to be installed: CRD, RBAC, Deployment.
    Manifests(ManifestsArgs),
    /// Run the operator on a simulated cluster in this process, with sample apps.
    #[cfg(feature = "sandbox")]
    Sandbox(SandboxArgs),
}

/// Flags of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Namespace to work in. Repeat it for several; without it: all namespaces.
    #[arg(long, env = "WATCH_NAMESPACE", value_delimiter = ',', value_parser = parse_namespace)]
    pub watch_namespace: Vec<String>,

    /// Namespace of the operator. Takes the audit records of apps whose own namespace is being
    /// deleted; without it those go to the log only.
    #[arg(long, env = "OPERATOR_NAMESPACE", value_parser = parse_namespace)]
    pub operator_namespace: Option<String>,

    /// How long the clean-up of a deleted app may take before it is let go without.
    #[arg(long, env = "CLEANUP_TIMEOUT", default_value = "5m", value_parser = parse_duration)]
    pub cleanup_timeout: Duration,

    /// How many apps may be worked on at once.
    #[arg(long, env = "CONCURRENCY", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrency: u16,

    /// How long running work may take to finish at shutdown.
    #[arg(long, env = "SHUTDOWN_TIMEOUT", default_value = "20s", value_parser = parse_duration)]
    pub shutdown_timeout: Duration,

    /// Log what would be done, and do nothing.
    #[arg(long, env = "DRY_RUN")]
    pub dry_run: bool,

    /// Name of this instance in Events.
    #[arg(long, env = "POD_NAME", default_value = FIELD_MANAGER)]
    pub instance: String,

    /// How log lines look.
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,

    /// Least severity of log lines, for all (`debug`) or by module (`info,kube=debug`).
    #[arg(long, env = "LOG_LEVEL", default_value = LOG_LEVEL, value_parser = parse_log_level)]
    pub log_level: String,
}

/// Flags of `manifests`.
#[derive(Debug, Args)]
pub struct ManifestsArgs {
    /// Write files into this directory instead of one stream to standard output.
    #[arg(long)]
    pub output_dir: Option<PathBuf>,
}

/// What `sandbox --help` says beside the flags.
#[cfg(feature = "sandbox")]
const SANDBOX_HELP: &str = "\
Exit codes with --exit-when-settled:
  0  every app settled
  1  one did not, or the API server refused it; the reason is the last line
  2  bad usage, or a file that cannot be used

Images choose how their containers live:
  NAME:not-exist  cannot be pulled
  sim/crash:3     crashes, with a back-off after three starts
  sim/slow:30s    starts slowly
  sim/unready     is never ready";

/// Flags of `sandbox`.
#[cfg(feature = "sandbox")]
#[derive(Debug, Args)]
#[command(after_help = SANDBOX_HELP)]
pub struct SandboxArgs {
    /// Files with SimpleApps to apply; without any: the litmus samples.
    pub files: Vec<PathBuf>,

    /// Stop when every app has settled; exit with 0 only if each did so as expected.
    #[arg(long)]
    pub exit_when_settled: bool,

    /// Print every request that the operator makes.
    #[arg(long)]
    pub print_requests: bool,

    /// Address to serve the API on.
    #[arg(long, default_value = "127.0.0.1:0")]
    pub listen: std::net::SocketAddr,

    /// File to write the kubeconfig to.
    #[arg(long, default_value = "sandbox.kubeconfig")]
    pub kubeconfig: PathBuf,

    /// How long the apps may take to settle.
    #[arg(long, default_value = "2m", value_parser = parse_duration)]
    pub timeout: Duration,

    /// Least severity of log lines.
    #[arg(long, env = "LOG_LEVEL", default_value = "warn", value_parser = parse_log_level)]
    pub log_level: String,
}

/// Does what was typed.
pub fn execute(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        Command::Run(args) => run_on_cluster(args),
        Command::Manifests(args) => print_manifests(&args),
        #[cfg(feature = "sandbox")]
        Command::Sandbox(args) => run_sandbox(&args),
    }
}

fn run_on_cluster(args: RunArgs) -> anyhow::Result<ExitCode> {
    let filter = EnvFilter::try_new(&args.log_level).context("--log-level")?;
    telemetry::start(args.log_format, filter);
    let config = Config {
        clock: Clock::real(),
        watch_namespaces: args.watch_namespace,
        operator_namespace: args.operator_namespace,
        instance: args.instance,
        cleanup_timeout: args.cleanup_timeout,
        concurrency: usize::from(args.concurrency),
        shutdown_timeout: args.shutdown_timeout,
        dry_run: args.dry_run,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let shutdown = shutdown::on_signal().context("listen for signals")?;
        let mut cluster = kube::Config::infer().await.context("find the cluster")?;
        // One place decides when a request is repeated: the queue.
        cluster.default_retry = false;
        let client = Client::try_from(cluster).context("make a client")?;
        run::run(client, config, shutdown).await
    })?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(feature = "sandbox")]
fn run_sandbox(args: &SandboxArgs) -> anyhow::Result<ExitCode> {
    let filter = EnvFilter::try_new(&args.log_level).context("--log-level")?;
    telemetry::start(LogFormat::Text, filter);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(sandbox::run(args))
}

fn print_manifests(args: &ManifestsArgs) -> anyhow::Result<ExitCode> {
    let Some(root) = &args.output_dir else {
        io::stdout()
            .write_all(manifests::stream().as_bytes())
            .context("write to standard output")?;
        return Ok(ExitCode::SUCCESS);
    };
    for (path, content) in manifests::files() {
        let path = root.join(path);
        let directory = path.parent().expect("every manifest lies in a directory");
        fs::create_dir_all(directory).with_context(|| format!("make {}", directory.display()))?;
        fs::write(&path, content).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A duration as Go and Kubernetes write it: `90s`, `5m`, `1h30m`.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let duration: kube::core::Duration = text.parse().map_err(|error| format!("{error}"))?;
    if duration.is_negative() {
        return Err("is negative".into());
    }
    Ok(duration.into())
}

fn parse_log_level(text: &str) -> Result<String, String> {
    // The filter takes a word that is no level for the name of a module, and says nothing at all.
    let is_level = |word: &str| word.contains('=') || word.parse::<LevelFilter>().is_ok();
    if let Some(word) = text.split(',').map(str::trim).find(|word| !is_level(word)) {
        return Err(format!("{word:?} is no level; use off, error, warn, info, debug or trace"));
    }
    EnvFilter::try_new(text).map(|_filter| text.to_owned()).map_err(|error| error.to_string())
}
