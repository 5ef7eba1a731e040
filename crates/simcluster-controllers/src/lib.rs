//! The controllers that make an API server a cluster.
//!
//! Each is an ordinary client of the API under a user of its own, so the same controllers also make a
//! cluster of a bare kube-apiserver. They are level-triggered and quiet: once the cluster is as it is
//! asked to be, they write nothing.
//!
//! StatefulSets, DaemonSets, Jobs and CronJobs have no controller here: the server keeps the objects, and
//! nothing acts on them. Quota is not a controller's business but the server's.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::types::{Deployment, EndpointSlice, PodDisruptionBudget, ReplicaSet};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{
    ConfigMap, Endpoints, Namespace, Node, Pod, Service, ServiceAccount,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::PostParams;
use kube::runtime::watcher;

use self::runtime::{Hands, Informer, Recorder, Tasks};
use simcluster_clock::Clock;

mod certificates;
mod deployment;
mod disruption;
mod endpoints;
mod garbage;
mod kinds;
mod kubelet;
mod namespace;
mod owners;
mod pod_garbage;
mod pods;
mod replicaset;
mod runtime;
mod scheduler;
mod serviceaccount;
mod types;

pub use self::certificates::{Authority, start_signer};
pub use self::runtime::Work;

/// Field manager of what kube-controller-manager's controllers write.
const MANAGER: &str = "kube-controller-manager";

fn post_params() -> PostParams {
    PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() }
}

/// A controller that can be switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Deployments make ReplicaSets.
    Deployment,
    /// ReplicaSets make Pods.
    ReplicaSet,
    /// Pods are bound to nodes.
    Scheduler,
    /// Nodes register, bound Pods start, run and end.
    Kubelet,
    /// Each namespace gets its default ServiceAccount and the API server's CA.
    ServiceAccount,
    /// Dependents follow their owners.
    Garbage,
    /// Namespaces that are deleted are emptied.
    Namespace,
    /// Services lead to the Pods that they select.
    Endpoints,
    /// `PodDisruptionBudgets` say how many of their Pods may go.
    Disruption,
    /// Pods go whose Node is gone.
    PodGarbage,
    /// Kubelets' requests for certificates are approved; old requests go.
    Certificates,
}

impl Kind {
    /// All controllers.
    #[must_use]
    pub fn all() -> BTreeSet<Self> {
        BTreeSet::from([
            Self::Deployment,
            Self::ReplicaSet,
            Self::Scheduler,
            Self::Kubelet,
            Self::ServiceAccount,
            Self::Garbage,
            Self::Namespace,
            Self::Endpoints,
            Self::Disruption,
            Self::PodGarbage,
            Self::Certificates,
        ])
    }
}

/// How long the steps of a Pod's life take, before chance makes them longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delays {
    /// Pulling an image.
    pub pull: Duration,
    /// Creating and starting a container.
    pub start: Duration,
    /// From running to ready, for containers with a readiness probe (beyond its initial delay).
    pub ready: Duration,
    /// From running to the end, for images whose life ends.
    pub run: Duration,
    /// Stopping the containers of a deleted Pod, at most its grace period.
    pub stop: Duration,
    /// How much longer each step may take by chance, in percent.
    pub spread_percent: u32,
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            pull: Duration::from_millis(200),
            start: Duration::from_millis(100),
            ready: Duration::from_millis(100),
            run: Duration::from_millis(500),
            stop: Duration::from_millis(200),
            spread_percent: 20,
        }
    }
}

/// How the controllers run.
#[derive(Debug, Clone)]
pub struct Config {
    /// The time that goes into objects.
    pub clock: Clock,
    /// Where delays vary by chance, this decides how.
    pub seed: u64,
    /// How many nodes the kubelets register, named `sim-node-0` and so on.
    pub nodes: u8,
    /// The pace of Pods.
    pub delays: Delays,
    /// The API server's CA certificate (PEM), for the ConfigMap `kube-root-ca.crt` of each namespace.
    pub root_ca: String,
    /// The controllers that run.
    pub kinds: BTreeSet<Kind>,
}

impl Config {
    /// All controllers, one node, usual delays.
    #[must_use]
    pub fn new(clock: Clock, seed: u64) -> Self {
        Self {
            clock,
            seed,
            nodes: 1,
            delays: Delays::default(),
            root_ca: String::new(),
            kinds: Kind::all(),
        }
    }
}

/// The running controllers. They stop when this is dropped.
pub struct Controllers {
    tasks: Tasks,
}

impl std::fmt::Debug for Controllers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controllers").field("work", &self.work()).finish_non_exhaustive()
    }
}

impl Controllers {
    /// The work that lies before them now. Changes that no watch has delivered yet do not show.
    #[must_use]
    pub fn work(&self) -> Work {
        self.tasks.work()
    }

    /// Stops them; passes that have begun are finished.
    pub async fn stop(mut self) {
        self.tasks.stop().await;
    }
}

/// The shared caches.
struct Informers {
    deployments: Informer<Deployment>,
    replica_sets: Informer<ReplicaSet>,
    pods: Informer<Pod>,
    nodes: Informer<Node>,
    services: Informer<Service>,
    endpoint_slices: Informer<EndpointSlice>,
    endpoints: Informer<Endpoints>,
    namespaces: Informer<Namespace>,
    default_accounts: Informer<ServiceAccount>,
    root_cas: Informer<ConfigMap>,
    definitions: Informer<CustomResourceDefinition>,
    budgets: Informer<PodDisruptionBudget>,
    certificate_requests: Informer<CertificateSigningRequest>,
}

impl Informers {
    fn new() -> Self {
        Self {
            deployments: Informer::new(),
            replica_sets: Informer::indexed(|set| vec![owners::group_of(set)]),
            pods: Informer::indexed(pods::groups_of),
            nodes: Informer::new(),
            services: Informer::new(),
            endpoint_slices: Informer::indexed(|slice| {
                Vec::from_iter(endpoints::service_of(slice))
            }),
            endpoints: Informer::new(),
            namespaces: Informer::new(),
            default_accounts: Informer::new(),
            root_cas: Informer::new(),
            definitions: Informer::new(),
            budgets: Informer::indexed(|budget| Vec::from_iter(budget.metadata.namespace.clone())),
            certificate_requests: Informer::new(),
        }
    }

    fn start(self, client: &Client, tasks: &mut Tasks) {
        let config = watcher::Config::default;
        self.deployments.start(client, config(), tasks);
        self.replica_sets.start(client, config(), tasks);
        self.pods.start(client, config(), tasks);
        self.nodes.start(client, config(), tasks);
        let slices = config().labels(&endpoints::slice_selector());
        self.services.start(client, config(), tasks);
        self.endpoint_slices.start(client, slices, tasks);
        self.endpoints.start(client, config(), tasks);
        self.namespaces.start(client, config(), tasks);
        self.definitions.start(client, config(), tasks);
        self.budgets.start(client, config(), tasks);
        self.certificate_requests.start(client, config(), tasks);
        let named = |name: &str| config().fields(&format!("metadata.name={name}"));
        let (accounts, root_cas) = (named(serviceaccount::DEFAULT), named(serviceaccount::ROOT_CA));
        self.default_accounts.start(client, accounts, tasks);
        self.root_cas.start(client, root_cas, tasks);
    }
}

/// Starts controllers on the current runtime. `client_for` makes a client for a controller's user, by
/// its short name: `deployment-controller`, `replicaset-controller`, `service-account-controller`,
/// `root-ca-cert-publisher`, `generic-garbage-collector`, `namespace-controller`,
/// `endpointslice-controller`, `endpoint-controller`, `disruption-controller`,
/// `pod-garbage-collector`, `certificate-controller`, `kube-scheduler`, `kubelet`, and
/// `kube-controller-manager` for the watches that all share.
pub fn start(client_for: impl Fn(&str) -> Client, config: &Config) -> Controllers {
    let mut tasks = Tasks::new();
    let mut informers = Informers::new();
    let Config { clock, kinds, .. } = config;
    let hands = |user: &str, component: &str, manager: &'static str, tasks: &mut Tasks| {
        let client = client_for(user);
        let recorder = Recorder::start(client.clone(), *clock, component, manager, tasks);
        Hands { client, clock: *clock, recorder }
    };
    if kinds.contains(&Kind::Deployment) {
        let user = "deployment-controller";
        let hands = hands(user, user, MANAGER, &mut tasks);
        let (controller, queue) = deployment::Controller::wire(hands, &mut informers);
        tasks.run(controller, queue);
    }
    if kinds.contains(&Kind::ReplicaSet) {
        let user = "replicaset-controller";
        let hands = hands(user, user, MANAGER, &mut tasks);
        let (controller, queue) = replicaset::Controller::wire(hands, &mut informers);
        tasks.run(controller, queue);
    }
    if kinds.contains(&Kind::Scheduler) {
        let hands = hands("kube-scheduler", scheduler::NAME, scheduler::MANAGER, &mut tasks);
        let (controller, queue) = scheduler::Controller::wire(hands, &mut informers);
        tasks.run(controller, queue);
    }
    if kinds.contains(&Kind::Kubelet) {
        let hands = hands("kubelet", "kubelet", kubelet::MANAGER, &mut tasks);
        let (controller, queue) = kubelet::Controller::wire(hands, config, &mut informers);
        tasks.run(controller, queue);
    }
    if kinds.contains(&Kind::ServiceAccount) {
        let (controller, queue) = serviceaccount::Controller::wire(
            client_for("service-account-controller"),
            client_for("root-ca-cert-publisher"),
            config.root_ca.clone(),
            &mut informers,
        );
        tasks.run(controller, queue);
    }
    if kinds.contains(&Kind::Garbage) {
        let component = "garbage-collector-controller";
        let hands = hands("generic-garbage-collector", component, MANAGER, &mut tasks);
        let (controller, queue) = garbage::Controller::wire(hands, &mut informers);
        tasks.run(controller, queue);
    }
    if kinds.contains(&Kind::Namespace) {
        let client = client_for("namespace-controller");
        let (controller, queue) = namespace::Controller::wire(client, *clock, &mut informers);
        tasks.run(controller, queue);
    }
    if kinds.contains(&Kind::Endpoints) {
        let (controller, queue) = endpoints::Controller::wire(
            client_for("endpointslice-controller"),
            client_for("endpoint-controller"),
            &mut informers,
        );
        tasks.run(controller, queue);
    }
    if kinds.contains(&Kind::Disruption) {
        let user = "disruption-controller";
        let hands = hands(user, "controllermanager", MANAGER, &mut tasks);
        let (controller, queue) = disruption::Controller::wire(hands, &mut informers);
        tasks.run(controller, queue);
    }
    if kinds.contains(&Kind::PodGarbage) {
        let client = client_for("pod-garbage-collector");
        let (controller, queue) = pod_garbage::Controller::wire(client, *clock, &mut informers);
        tasks.run(controller, queue);
    }
    if kinds.contains(&Kind::Certificates) {
        let client = client_for("certificate-controller");
        let (controller, queue) = certificates::Controller::wire(client, *clock, &mut informers);
        tasks.run(controller, queue);
    }
    informers.start(&client_for(MANAGER), &mut tasks);
    Controllers { tasks }
}
