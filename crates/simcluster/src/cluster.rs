//! A whole cluster in a value: the API server, its controllers and the clients to use it.

use std::collections::BTreeSet;
#[cfg(feature = "serve")]
use std::io;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::client;
use crate::definitions::{self, InvalidDefinition};
#[cfg(feature = "serve")]
use crate::serve::{self, Served};
use crate::settle::{NotSettled, Settle};
use crate::webhooks::Webhooks;
use simcluster_clock::Clock;
use simcluster_controllers::{self as controllers, Controllers};
use simcluster_model::allocation::ServiceNetwork;
use simcluster_model::error::ApiError;
use simcluster_model::resource::Resource;
use simcluster_server::admission::Plugin;
use simcluster_server::auth::{self, User};
use simcluster_server::gate::{ConnectionReset, Faults};
use simcluster_server::http;
use simcluster_server::server::ApiServer;
use simcluster_server::trace::Request;

/// When virtual time starts: a fixed moment, so that equal tests see equal times.
const START: &str = "2026-01-01T00:00:00Z";

/// What the `kubernetes` Service leads to: endpoints may not be loopback addresses, and this one is for
/// documentation, so that nothing is there.
const API_SERVER_IP: &str = "192.0.2.2";

/// How to start a cluster; see [`SimCluster::builder`].
#[derive(Debug)]
pub struct Builder {
    crds: Result<Vec<Value>, InvalidDefinition>,
    seed: u64,
    controllers: bool,
    kinds: BTreeSet<controllers::Kind>,
    nodes: u8,
    delays: controllers::Delays,
    clock: Option<Clock>,
    plugins: Vec<Arc<dyn Plugin>>,
    warn_of_idle_kinds: bool,
    shuffled: bool,
    bodies: bool,
    service_network: ServiceNetwork,
    disabled_admission: BTreeSet<String>,
}

impl Builder {
    /// Installs CRDs before anything else happens: a typed one, one in JSON, a list of them, or a text of
    /// YAML documents, such as a file that a cluster is set up with. What is no CRD fails
    /// [`Builder::start`].
    #[must_use]
    pub fn crd(mut self, crds: impl Serialize) -> Self {
        self.crds = self.crds.and_then(|mut all| {
            all.extend(definitions::parse(crds)?);
            Ok(all)
        });
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

    /// Adds a plugin to admission: a rule of this process that is asked about every write, before the
    /// webhooks that configurations name.
    #[must_use]
    pub fn admission(mut self, plugin: impl Plugin + 'static) -> Self {
        self.plugins.push(Arc::new(plugin));
        self
    }

    /// Whether a client that creates a `StatefulSet`, a Job or another object that nothing acts on here is
    /// told so by a `Warning` header, which no real server sends (default: yes).
    #[must_use]
    pub fn warn_of_idle_kinds(mut self, warn: bool) -> Self {
        self.warn_of_idle_kinds = warn;
        self
    }

    /// How long the steps of a Pod's life take.
    #[must_use]
    pub fn delays(mut self, delays: controllers::Delays) -> Self {
        self.delays = delays;
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

    /// Lets requests run in an order that the seed chooses, and not in that in which they came: another
    /// seed is another order of tasks.
    #[must_use]
    pub fn shuffled(mut self) -> Self {
        self.shuffled = true;
        self
    }

    /// Keeps the bodies of requests and answers in the record of requests.
    #[must_use]
    pub fn record_bodies(mut self) -> Self {
        self.bodies = true;
        self
    }

    /// The network of the addresses that Services get (default: `10.0.0.0/16`).
    #[must_use]
    pub fn service_network(mut self, network: ServiceNetwork) -> Self {
        self.service_network = network;
        self
    }

    /// Turns admission plugins off, by kube-apiserver's names (`--disable-admission-plugins`). A name
    /// that no plugin has turns nothing off.
    #[must_use]
    pub fn without_admission(mut self, plugins: BTreeSet<String>) -> Self {
        self.disabled_admission = plugins;
        self
    }

    /// Starts the cluster. Must be called on a tokio runtime: a paused one for virtual time.
    pub fn start(self) -> Result<SimCluster, StartError> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(StartError::NoRuntime);
        }
        let start: Timestamp = START.parse().expect("a constant that is a timestamp");
        let clock = self.clock.unwrap_or_else(|| Clock::starting_at(start));
        let mut server = ApiServer::new(clock, self.seed);
        server.set_service_network(self.service_network);
        for name in &self.disabled_admission {
            server.disable_admission_plugin(name);
        }
        if self.shuffled {
            server.shuffle();
        }
        server.trace().keep_bodies(self.bodies);
        let server = Arc::new(server);
        bootstrap(&server)?;
        let webhooks = Webhooks::default();
        server.set_webhook_caller(Arc::new(webhooks.clone()));
        for plugin in self.plugins {
            server.add_admission_plugin(plugin);
        }
        for crd in self.crds? {
            server.install("apiextensions.k8s.io", "v1", "customresourcedefinitions", crd)?;
        }
        server.compact(server.revision());
        server.set_has_controllers(self.controllers);
        server.warn_of_idle_kinds(self.warn_of_idle_kinds);
        #[cfg(feature = "serve")]
        let signs = self.controllers && self.kinds.contains(&controllers::Kind::Certificates);
        let controllers = self.controllers.then(|| {
            let clients = server.clone();
            let client_for = move |name: &str| client::client(&clients, User::controller(name));
            let config = controllers::Config {
                nodes: self.nodes,
                delays: self.delays,
                kinds: self.kinds,
                ..controllers::Config::new(clock, self.seed)
            };
            controllers::start(client_for, &config)
        });
        Ok(SimCluster {
            server,
            controllers,
            webhooks,
            #[cfg(feature = "serve")]
            signs,
        })
    }
}

/// A simulated cluster. Dropping it stops its controllers.
#[derive(Debug)]
pub struct SimCluster {
    server: Arc<ApiServer>,
    #[expect(dead_code, reason = "holds the controllers, which stop when it is dropped")]
    controllers: Option<Controllers>,
    webhooks: Webhooks,
    /// Whether requests for certificates are signed where there is an authority: when it is served.
    #[cfg(feature = "serve")]
    signs: bool,
}

impl SimCluster {
    /// What to start.
    #[must_use]
    pub fn builder() -> Builder {
        Builder {
            crds: Ok(Vec::new()),
            seed: 0,
            controllers: true,
            kinds: controllers::Kind::all(),
            nodes: 1,
            delays: controllers::Delays::default(),
            clock: None,
            plugins: Vec::new(),
            warn_of_idle_kinds: true,
            shuffled: false,
            bodies: false,
            service_network: ServiceNetwork::default(),
            disabled_admission: BTreeSet::new(),
        }
    }

    /// How the cluster reaches webhooks: by HTTPS, unless this says otherwise.
    #[must_use]
    pub fn webhooks(&self) -> &Webhooks {
        &self.webhooks
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

    /// Answers one request as the HTTP server would. The error is that of a fault: the connection broke
    /// before there was an answer.
    pub async fn handle(
        &self,
        user: &User,
        request: ::http::Request<Bytes>,
    ) -> Result<::http::Response<http::Body>, ConnectionReset> {
        http::handle(&self.server, user, request).await
    }

    /// What a request is answered whose credentials nobody knows.
    #[must_use]
    pub fn unauthorized(&self, request: &::http::Request<Bytes>) -> ::http::Response<http::Body> {
        http::unauthorized(&self.server, request)
    }

    /// Serves the API over HTTPS on an address such as `127.0.0.1:0`, for the cluster's admin.
    #[cfg(feature = "serve")]
    pub async fn serve(&self, listen: &str) -> io::Result<Served> {
        self.serve_with(listen, serve::Options::default()).await
    }

    /// Serves the API with tokens of other users, a request log or other limits.
    #[cfg(feature = "serve")]
    pub async fn serve_with(&self, listen: &str, options: serve::Options) -> io::Result<Served> {
        serve::serve(Arc::clone(&self.server), listen, options, self.signs).await
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

    /// What goes wrong on this cluster: errors, lost answers, late events, ...
    #[must_use]
    pub fn faults(&self) -> Faults {
        Faults::new(Arc::clone(&self.server))
    }

    /// The revision of the newest state: it grows with every change.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.server.revision()
    }

    /// Lets virtual time pass until a minute has gone by without a change. Requests that find
    /// everything as they want it disturb nobody; a client that is refused again and again is an error,
    /// and so is one that never stops. [`Self::settle_with`] can make exceptions.
    pub async fn settle(&self) -> Result<(), NotSettled> {
        self.settle_with(&Settle::default()).await
    }

    /// [`Self::settle`] with another notion of rest.
    pub async fn settle_with(&self, rest: &Settle) -> Result<(), NotSettled> {
        rest.wait(self).await
    }
}

/// Why a cluster does not start.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StartError {
    /// There is no runtime to start it on.
    #[error(
        "a simulated cluster runs on a tokio runtime, and there is none here: start it in \
         #[tokio::test(start_paused = true)], or in Runtime::block_on"
    )]
    NoRuntime,
    /// What was given as a CRD is none.
    #[error(transparent)]
    Definition(#[from] InvalidDefinition),
    /// The server refuses what the cluster was to begin with; its answer says why.
    #[error("{0}")]
    Refused(ApiError),
}

impl From<ApiError> for StartError {
    fn from(answer: ApiError) -> Self {
        Self::Refused(answer)
    }
}

/// Makes what every cluster has from the start. It is the same each time but for UIDs and times, so the
/// work of checking it is done once in a process.
fn bootstrap(server: &ApiServer) -> Result<(), ApiError> {
    static MADE: OnceLock<Vec<(Arc<Resource>, Arc<Value>)>> = OnceLock::new();
    let made = if let Some(made) = MADE.get() {
        made
    } else {
        let first = ApiServer::new(*server.clock(), 0);
        install(&first)?;
        MADE.get_or_init(|| first.snapshot())
    };
    for (resource, object) in made {
        server.adopt(resource, object);
    }
    Ok(())
}

/// What every cluster has from the start (rows NS02, HT07).
fn install(server: &ApiServer) -> Result<(), ApiError> {
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
            "spec": { "clusterIP": server.services().network().first(), "ports": [port] },
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
