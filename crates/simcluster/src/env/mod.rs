//! The clusters that tests run on: the same test on a simulated and on a real one.
//!
//! `TEST_CLUSTER` chooses: `sim` (or nothing) the simulated cluster in this process, in virtual time;
//! `control-plane` a real etcd and kube-apiserver from `KUBEBUILDER_ASSETS`; `kubeconfig` the cluster
//! of the current context, if its name is one that tests may touch. What was asked for by name and is
//! not there fails the test. What a cluster lacks of the [`Needs`] of a test skips it, with the reason
//! on standard error.
//!
//! ```no_run
//! use simcluster::env::{self, Needs};
//!
//! env::run(&Needs::default(), async |cluster| {
//!     let namespace = cluster.namespace().await;
//!     let client = cluster.client();
//!     // ... and then wait for a level, never for an edge:
//!     cluster.eventually("the namespace is empty", async || true).await;
//! });
//! ```

mod backend;
mod cluster;
mod real;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::Duration;

use futures::FutureExt as _;
use serde_json::Value;
use tokio::time::timeout;

pub use backend::Backend;
pub use cluster::{Cluster, Reached};

use crate::cluster::SimCluster;
use crate::definitions;
use crate::settle::NotSettled;
use simcluster_controllers::Kind;

/// Those who make Pods run.
const POD_KINDS: [Kind; 2] = [Kind::Scheduler, Kind::Kubelet];

/// How long one test may take on a real cluster.
const REAL_TEST: Duration = Duration::from_mins(5);

/// How long one test may take on a simulated cluster, in virtual time.
const VIRTUAL_TEST: Duration = Duration::from_hours(30 * 24);

/// Why a cluster cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    fn new(text: impl fmt::Display) -> Self {
        Self(text.to_string())
    }
}

/// What a test needs of its cluster.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    crds: Vec<Value>,
    only: Option<BTreeSet<Kind>>,
    pods: bool,
    requests: bool,
    sockets: bool,
    virtual_time: bool,
}

impl Needs {
    /// The kinds that CRDs describe are served: typed ones, JSON, lists or YAML, as for
    /// [`Builder::crd`](crate::Builder::crd).
    ///
    /// # Panics
    /// If what is given is no CRD.
    #[must_use]
    #[expect(clippy::panic, reason = "a test harness reports by panicking")]
    pub fn crd(mut self, crds: impl serde::Serialize) -> Self {
        match definitions::parse(crds) {
            Ok(crds) => self.crds.extend(crds),
            Err(error) => panic!("{error}"),
        }
        self
    }

    /// Only these controllers act on the cluster: a test that asks for few has fewer events to wait
    /// for, one that asks for none is alone. A real cluster has all, or, if it is of our own, none.
    #[must_use]
    pub fn only(mut self, controllers: impl IntoIterator<Item = Kind>) -> Self {
        self.only = Some(controllers.into_iter().collect());
        self
    }

    /// Pods are scheduled, run and become ready. Without this need nobody but the test changes them
    /// (unless another test on the same real cluster needs it).
    #[must_use]
    pub fn pods(mut self) -> Self {
        self.pods = true;
        self
    }

    /// The cluster keeps a record of the requests: [`Cluster::requests`].
    #[must_use]
    pub fn requests(mut self) -> Self {
        self.requests = true;
        self
    }

    /// Other processes can reach the cluster: [`Cluster::kubeconfig`].
    #[must_use]
    pub fn sockets(mut self) -> Self {
        self.sockets = true;
        self
    }

    /// Time is virtual and the cluster a simulated one: [`Cluster::sim`].
    #[must_use]
    pub fn virtual_time(mut self) -> Self {
        self.virtual_time = true;
        self
    }

    /// The controllers of a simulated cluster.
    fn controllers(&self) -> BTreeSet<Kind> {
        let mut kinds = self.only.clone().unwrap_or_else(Kind::all);
        if !self.pods && self.only.is_none() {
            kinds.retain(|kind| !POD_KINDS.contains(kind));
        }
        kinds
    }

    /// The first of these needs that a backend does not meet.
    fn unmet(&self, backend: Backend) -> Option<&'static str> {
        match backend {
            Backend::Sim if self.sockets => Some("other processes cannot reach it"),
            Backend::ControlPlane | Backend::Kubeconfig if self.virtual_time => {
                Some("its time is real")
            }
            Backend::ControlPlane if self.only.as_ref().is_some_and(|only| !only.is_empty()) => {
                Some("it has all controllers or none")
            }
            Backend::Kubeconfig if self.only.is_some() => Some("it has controllers of its own"),
            Backend::Kubeconfig if self.requests => Some("it keeps no record of requests for us"),
            Backend::Sim | Backend::ControlPlane | Backend::Kubeconfig => None,
        }
    }
}

/// Runs a test on the cluster that `TEST_CLUSTER` chooses.
///
/// # Panics
/// If the test does, if the cluster cannot be had, if a test on a real one takes over 5 minutes, or if
/// one on a simulated one lets no virtual time pass.
#[expect(clippy::panic, reason = "a test harness reports by panicking")]
pub fn run(needs: &Needs, test: impl AsyncFnOnce(Cluster)) {
    match Backend::from_environment() {
        Ok(backend) => run_on(backend, needs, test),
        Err(error) => panic!("{error}"),
    }
}

/// Runs a test on a cluster of one kind, whatever `TEST_CLUSTER` says.
///
/// # Panics
/// As [`run`].
#[expect(clippy::panic, reason = "a test harness reports by panicking")]
pub fn run_on(backend: Backend, needs: &Needs, test: impl AsyncFnOnce(Cluster)) {
    if let Some(reason) = needs.unmet(backend) {
        skipped(&format!("{backend}: {reason}"));
        return;
    }
    let runtime = match backend.runtime() {
        Ok(runtime) => runtime,
        Err(error) => panic!("no runtime for tests: {error}"),
    };
    runtime.block_on(async {
        let cluster = match Cluster::start(backend, needs).await {
            Ok(cluster) => cluster,
            Err(error) => panic!("TEST_CLUSTER={backend}: {error}"),
        };
        let body = AssertUnwindSafe(test(cluster.clone())).catch_unwind();
        let outcome = match backend {
            Backend::Sim => match cluster.sim() {
                Some(sim) => within_virtual_time(sim, body).await,
                None => body.await,
            },
            Backend::ControlPlane | Backend::Kubeconfig => timeout(REAL_TEST, body)
                .await
                .unwrap_or_else(|_| failed("the test took over 5 minutes".to_owned())),
        };
        cluster.finish(outcome.is_err()).await;
        if let Err(panic) = outcome {
            resume_unwind(panic);
        }
    });
}

/// Waits for a test in virtual time: as long as that moves, and not for ever.
async fn within_virtual_time(
    sim: &SimCluster,
    body: impl Future<Output = std::thread::Result<()>>,
) -> std::thread::Result<()> {
    let faults = sim.faults();
    tokio::select! {
        biased;
        what = faults.runaway() => failed(NotSettled::Runaway(what).to_string()),
        outcome = timeout(VIRTUAL_TEST, body) => {
            outcome.unwrap_or_else(|_| failed("the test took over 30 virtual days".to_owned()))
        }
    }
}

/// Fails a test for a reason.
fn failed(why: String) -> std::thread::Result<()> {
    note(&why);
    Err(Box::new(why))
}

/// Says that a test was not run, and why.
pub fn skipped(reason: &str) {
    let thread = std::thread::current();
    note(&format!("skipped {}: {reason}", thread.name().unwrap_or("a test")));
}

/// Says something past the test harness, which hides the output of what passes.
fn note(text: &str) {
    // Nothing can be done about a standard error that is closed.
    drop(writeln!(std::io::stderr(), "{text}"));
}
