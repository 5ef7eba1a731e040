//! A whole cluster in a value: the API server, its controllers and the clients to use it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::client;
use crate::serve::{self, Served};
use simcluster_clock::Clock;
use simcluster_controllers::{self as controllers, Controllers};
use simcluster_model::error::ApiError;
use simcluster_server::auth::{self, User};
use simcluster_server::http;
use simcluster_server::server::ApiServer;
use simcluster_server::trace::Request;

/// When virtual time starts: a fixed moment, so that equal tests see equal times.
const START: &str = "2026-01-01T00:00:00Z";

/// What the `kubernetes` Service leads to: endpoints may not be loopback addresses, and this one is for
/// documentation, so that nothing is there.
const API_SERVER_IP: &str = "192.0.2.2";

/// Virtual time without a single write after which a cluster counts as settled. Longer than the
/// delays of the simulated controllers, shorter than the back-off of a container that crashes for
/// ever.
const QUIET: Duration = Duration::from_mins(1);

/// Virtual time after which a cluster that is still busy never will be quiet.
const BUSY_MAX: Duration = Duration::from_hours(1);

/// How to start a cluster; see [`SimCluster::builder`].
#[derive(Debug)]
pub struct Builder {
    crds: Vec<Value>,
    seed: u64,
    controllers: bool,
    kinds: BTreeSet<controllers::Kind>,
    nodes: u8,
    clock: Option<Clock>,
}

impl Builder {
    /// Installs a CRD (as JSON) before anything else happens.
    #[must_use]
    pub fn crd(mut self, crd: Value) -> Self {
        self.crds.push(crd);
        self
    }

    /// The seed of everything random. Equal seeds give equal clusters.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Whether the controllers run that turn Deployments into Pods, collect garbage, ... (default:
    /// yes). Without them the cluster is a bare API server, like Go's envtest.
    #[must_use]
    pub fn controllers(mut self, run: bool) -> Self {
        self.controllers = run;
        self
    }

    /// Which controllers run, if not all: without scheduler and kubelet, Pods stay as they are written.
    #[must_use]
    pub fn kinds(mut self, kinds: BTreeSet<controllers::Kind>) -> Self {
        self.kinds = kinds;
        self
    }

    /// How many Nodes there are (default: 1).
    #[must_use]
    pub fn nodes(mut self, count: u8) -> Self {
        self.nodes = count;
        self
    }

    /// Uses the machine's time instead of virtual time, for clusters that people use.
    #[must_use]
    pub fn real_time(mut self) -> Self {
        self.clock = Some(Clock::real());
        self
    }

    /// Starts the cluster. Must be called on a tokio runtime: a paused one for virtual time. The error
    /// is the server's answer to a CRD that it refuses.
    pub fn start(self) -> Result<SimCluster, ApiError> {
        let start: Timestamp = START.parse().expect("a constant that is a timestamp");
        let clock = self.clock.unwrap_or_else(|| Clock::starting_at(start));
        let server = Arc::new(ApiServer::new(clock, self.seed));
        bootstrap(&server)?;
        for crd in self.crds {
            server.install("apiextensions.k8s.io", "v1", "customresourcedefinitions", crd)?;
        }
        server.compact(server.revision());
        let controllers = self.controllers.then(|| {
            let clients = server.clone();
            let client_for = move |name: &str| client::client(&clients, User::controller(name));
            let config = controllers::Config {
                nodes: self.nodes,
                kinds: self.kinds,
                ..controllers::Config::new(clock, self.seed)
            };
            controllers::start(client_for, &config)
        });
        Ok(SimCluster { server, controllers })
    }
}

/// A simulated cluster. Dropping it stops its controllers.
#[derive(Debug)]
pub struct SimCluster {
    server: Arc<ApiServer>,
    #[expect(dead_code, reason = "holds the controllers, which stop when it is dropped")]
    controllers: Option<Controllers>,
}

impl SimCluster {
    /// What to start.
    #[must_use]
    pub fn builder() -> Builder {
        Builder {
            crds: Vec::new(),
            seed: 0,
            controllers: true,
            kinds: controllers::Kind::all(),
            nodes: 1,
            clock: None,
        }
    }

    /// The API server.
    #[must_use]
    pub fn server(&self) -> &Arc<ApiServer> {
        &self.server
    }

    /// The cluster's clock.
    #[must_use]
    pub fn clock(&self) -> Clock {
        *self.server.clock()
    }

    /// A client for the cluster's admin. It reaches the server without sockets.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        self.client_as(User::admin())
    }

    /// A client for somebody else, who may do what RBAC allows.
    #[must_use]
    pub fn client_as(&self, user: User) -> kube::Client {
        client::client(&self.server, user)
    }

    /// A client that does not repeat requests by itself, for programs that own that policy.
    #[must_use]
    pub fn client_without_retry(&self, user: User) -> kube::Client {
        client::client_without_retry(&self.server, user)
    }

    /// Answers one request as the HTTP server would.
    pub async fn handle(
        &self,
        user: &User,
        request: ::http::Request<Bytes>,
    ) -> ::http::Response<http::Body> {
        http::handle(&self.server, user, request).await
    }

    /// Serves the API over HTTPS on an address such as `127.0.0.1:0`, for the cluster's admin.
    /// [`serve::serve`] takes tokens of other users, too.
    pub async fn serve(&self, listen: &str) -> io::Result<Served> {
        serve::serve(Arc::clone(&self.server), listen, BTreeMap::new()).await
    }

    /// A position in the record of requests, for [`Self::requests_since`].
    #[must_use]
    pub fn position(&self) -> usize {
        self.server.trace().position()
    }

    /// All requests that were answered after a position.
    #[must_use]
    pub fn requests_since(&self, position: usize) -> Vec<Request> {
        self.server.trace().since(position)
    }

    /// All requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.requests_since(0)
    }

    /// Lets virtual time pass until a minute has gone by without a write.
    pub async fn settle(&self) -> Result<(), NotSettled> {
        let mut passed = Duration::ZERO;
        loop {
            let (revision, position) = (self.server.revision(), self.position());
            tokio::time::sleep(QUIET).await;
            if self.server.revision() == revision {
                return Ok(());
            }
            passed += QUIET;
            if passed >= BUSY_MAX {
                return Err(NotSettled::new(&self.requests_since(position)));
            }
        }
    }
}

/// A cluster that never came to rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotSettled {
    busiest: Vec<(String, usize)>,
}

impl NotSettled {
    fn new(requests: &[Request]) -> Self {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for request in requests.iter().filter(|request| request.is_write()) {
            let Request { user, verb, resource, namespace, name, .. } = request;
            *counts.entry(format!("{user}: {verb} {resource} {namespace}/{name}")).or_default() +=
                1;
        }
        let mut busiest: Vec<(String, usize)> = counts.into_iter().collect();
        busiest.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        busiest.truncate(5);
        Self { busiest }
    }
}

impl fmt::Display for NotSettled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the cluster is still busy after {} s; in the last minute", BUSY_MAX.as_secs())?;
        for (what, count) in &self.busiest {
            write!(f, "\n  {count} times {what}")?;
        }
        Ok(())
    }
}

impl std::error::Error for NotSettled {}

/// What every cluster has from the start (rows NS02, HT07).
fn bootstrap(server: &Arc<ApiServer>) -> Result<(), ApiError> {
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        server.install("", "v1", "namespaces", json!({ "metadata": { "name": name } }))?;
    }
    for role in auth::bootstrap_roles() {
        let plural = match role.get("kind").and_then(Value::as_str) {
            Some("ClusterRole") => "clusterroles",
            _ => "clusterrolebindings",
        };
        server.install("rbac.authorization.k8s.io", "v1", plural, role)?;
    }
    let port = json!({ "name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443 });
    server.install(
        "",
        "v1",
        "services",
        json!({
            "metadata": {
                "name": "kubernetes", "namespace": "default",
                "labels": { "component": "apiserver", "provider": "kubernetes" },
            },
            "spec": { "clusterIP": "10.0.0.1", "ports": [port] },
        }),
    )?;
    server.install(
        "",
        "v1",
        "endpoints",
        json!({
            "metadata": {
                "name": "kubernetes", "namespace": "default",
                "labels": { "endpointslice.kubernetes.io/skip-mirror": "true" },
            },
            "subsets": [{
                "addresses": [{ "ip": API_SERVER_IP }],
                "ports": [{ "name": "https", "port": 6443, "protocol": "TCP" }],
            }],
        }),
    )?;
    server.install(
        "discovery.k8s.io",
        "v1",
        "endpointslices",
        json!({
            "metadata": {
                "name": "kubernetes", "namespace": "default",
                "labels": { "kubernetes.io/service-name": "kubernetes" },
            },
            "addressType": "IPv4",
            "endpoints": [{ "addresses": [API_SERVER_IP], "conditions": { "ready": true } }],
            "ports": [{ "name": "https", "port": 6443, "protocol": "TCP" }],
        }),
    )?;
    Ok(())
}
