//! The composition root: client, caches, controllers, and the order of shutdown.

use std::{future::Future, sync::Arc, time::Duration};

use kube::Client;

use crate::{
    kernel::{audit::AuditRecord, clock::Clock, events::ApiEvents, work::Limits},
    simpleapp::{controller, plan::Settings, reconcile::Context},
};

/// Everything that can be chosen about a run.
#[derive(Debug, Clone)]
pub struct Config {
    /// Wall clock.
    pub clock: Clock,
    /// Namespaces to work in; empty: all.
    pub watch_namespaces: Vec<String>,
    /// Takes the audit records of namespaces that are being deleted.
    pub operator_namespace: Option<String>,
    /// Name of this instance in Events: its pod.
    pub instance: String,
    /// How long a clean-up may take before a deleted app is let go without it.
    pub cleanup_timeout: Duration,
    /// How many apps may be worked on at once.
    pub concurrency: usize,
    /// How long running reconciles may take to finish at shutdown.
    pub shutdown_timeout: Duration,
    /// Log what would be done instead of doing it.
    pub dry_run: bool,
}

/// Runs the operator until `shutdown`. `client` must not retry by itself: a request that failed is
/// tried again by the queue, with a wait per object.
///
/// All scheduling is by tokio's clock, so a run on a paused runtime is a simulation.
pub async fn run(
    client: Client,
    config: Config,
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    anyhow::ensure!(config.concurrency > 0, "the concurrency must be at least 1");
    let events = ApiEvents::new(client.clone(), config.clock.clone(), config.instance);
    let clean_up = AuditRecord::new(client.clone(), config.operator_namespace);
    let settings = Settings { cleanup_timeout: config.cleanup_timeout };
    let mut ctx =
        Context::new(client, config.clock, Arc::new(events), Arc::new(clean_up), settings);
    ctx.dry_run = config.dry_run;
    let limits = Limits { concurrency: config.concurrency, drain: config.shutdown_timeout };
    tracing::info!(namespaces = ?config.watch_namespaces, "working on SimpleApps");
    controller::run(Arc::new(ctx), &config.watch_namespaces, limits, shutdown).await;
    tracing::info!("stopped");
    Ok(())
}
