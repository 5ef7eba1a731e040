//! One cluster as tests see it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::{self, Display};
use std::fs;
use std::io::Read as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::real::{self, Real};
use super::{Backend, Error, Needs};
use crate::cluster::SimCluster;
use simcluster_controllers::Kind;
use simcluster_model::golang;
use simcluster_server::auth::User;
use simcluster_server::trace::Request;

/// How long [`Cluster::eventually`] waits; virtual on a simulated cluster.
const PATIENCE: Duration = Duration::from_mins(1);
/// The pause between two looks; virtual on a simulated cluster.
const PAUSE: Duration = Duration::from_millis(50);

/// A cluster for one test. Clones are the same cluster.
#[derive(Clone)]
pub struct Cluster(Arc<Inner>);

struct Inner {
    place: Place,
    admin: Client,
    namespaces: Mutex<Vec<String>>,
    /// The controllers of a simulated cluster. If there are none, a control plane of our own has none
    /// either.
    controllers: BTreeSet<Kind>,
    /// Requests that were recorded before this test began.
    requests_before: usize,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cluster").field(&self.0.place).finish()
    }
}

#[derive(Debug)]
enum Place {
    Sim(Box<SimCluster>),
    Real(Box<dyn Real>),
}

/// The record is asked for by tests that have said so.
const RECORD_NEEDED: &str = "the test said that it needs the record of requests";

/// What a look at a cluster says: there, or not yet.
pub trait Reached {
    /// What is there.
    type Value;

    /// What is there, or what is missing.
    fn reached(self) -> Result<Self::Value, String>;
}

impl Reached for bool {
    type Value = ();

    fn reached(self) -> Result<(), String> {
        self.then_some(()).ok_or_else(|| "not so".to_owned())
    }
}

impl<T> Reached for Option<T> {
    type Value = T;

    fn reached(self) -> Result<T, String> {
        self.ok_or_else(|| "not there".to_owned())
    }
}

impl<T, E: Display> Reached for Result<T, E> {
    type Value = T;

    fn reached(self) -> Result<T, String> {
        self.map_err(|error| error.to_string())
    }
}

impl Cluster {
    pub(super) async fn start(backend: Backend, needs: &Needs) -> Result<Self, Error> {
        let (place, admin) = match backend {
            Backend::Sim => {
                let kinds = needs.controllers();
                // A test that runs on several clusters gets the same answers from all.
                let builder = SimCluster::builder().warn_of_idle_kinds(false);
                let builder = builder.controllers(!kinds.is_empty()).kinds(kinds);
                let builder = needs.crds.iter().fold(builder, |all, crd| all.crd(crd.clone()));
                let sim = builder.start().map_err(Error::new)?;
                let admin = sim.client();
                (Place::Sim(Box::new(sim)), admin)
            }
            Backend::ControlPlane | Backend::Kubeconfig => {
                let real = real::open(backend, needs).await?;
                let admin = real.client(None).await?;
                (Place::Real(real), admin)
            }
        };
        let inner = Inner {
            place,
            admin,
            namespaces: Mutex::default(),
            controllers: needs.controllers(),
            requests_before: 0,
        };
        let mut cluster = Self(Arc::new(inner));
        if backend != Backend::Sim {
            for crd in &needs.crds {
                cluster.install(crd).await?;
            }
        }
        if needs.requests {
            let before = cluster.recorded().await.map_or(0, |requests| requests.len());
            if let Some(inner) = Arc::get_mut(&mut cluster.0) {
                inner.requests_before = before;
            }
        }
        Ok(cluster)
    }

    /// Applies a CRD and waits until its kind is served.
    async fn install(&self, crd: &Value) -> Result<(), Error> {
        let crd: CustomResourceDefinition =
            serde_json::from_value(crd.clone()).map_err(Error::new)?;
        let api = Api::<CustomResourceDefinition>::all(self.client());
        let name = crd.name_any();
        let params = PatchParams::apply("test-environment").force();
        api.patch(&name, &params, &Patch::Apply(&crd)).await.map_err(Error::new)?;
        let established = async || -> Result<bool, kube::Error> {
            let status = api.get(&name).await?.status.unwrap_or_default();
            let mut conditions = status.conditions.into_iter().flatten();
            Ok(conditions.any(|one| one.type_ == "Established" && one.status == "True"))
        };
        let deadline = Instant::now() + PATIENCE;
        while !established().await.map_err(Error::new)? {
            if Instant::now() > deadline {
                return Err(Error::new(format!("{name} is never established")));
            }
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Which kind of cluster this is.
    #[must_use]
    pub fn backend(&self) -> Backend {
        match &self.0.place {
            Place::Sim(_) => Backend::Sim,
            Place::Real(real) => real.backend(),
        }
    }

    /// The simulated cluster itself, for tests that need virtual time or faults.
    #[must_use]
    pub fn sim(&self) -> Option<&SimCluster> {
        match &self.0.place {
            Place::Sim(sim) => Some(sim),
            Place::Real(_) => None,
        }
    }

    /// A client of the cluster's admin.
    #[must_use]
    pub fn client(&self) -> Client {
        self.0.admin.clone()
    }

    /// A client of somebody else, who may do what RBAC allows. Requests are counted by user name:
    /// tests that count, and share a real cluster, choose a name that only they use, such as a
    /// service account of their namespace.
    ///
    /// # Panics
    /// If a real cluster's kubeconfig gives no client.
    pub async fn client_as(&self, user: User) -> Client {
        match &self.0.place {
            Place::Sim(sim) => sim.client_as(user),
            Place::Real(real) => {
                real.client(Some(&user)).await.expect("the admin has a client already")
            }
        }
    }

    /// The value of `KUBECONFIG` that leads other processes to this cluster, as its admin; `None` if
    /// they cannot reach it ([`Needs::sockets`]).
    #[must_use]
    pub fn kubeconfig(&self) -> Option<OsString> {
        match &self.0.place {
            Place::Sim(_) => None,
            Place::Real(real) => Some(real.kubeconfig()),
        }
    }

    /// A fresh namespace, ready for Pods where somebody looks after service accounts.
    ///
    /// # Panics
    /// If it cannot be made.
    pub async fn namespace(&self) -> String {
        let name = self.next_name();
        let api = Api::<Namespace>::all(self.client());
        let namespace = Namespace {
            metadata: ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() },
            ..Namespace::default()
        };
        api.create(&PostParams::default(), &namespace).await.expect("a namespace can be made");
        if self.looks_after_service_accounts() {
            let accounts = Api::<ServiceAccount>::namespaced(self.client(), &name);
            self.eventually("the default service account", async || accounts.get("default").await)
                .await;
        }
        name
    }

    fn next_name(&self) -> String {
        let mut names = self.0.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        let name = match &self.0.place {
            Place::Sim(_) => format!("test-{}", names.len() + 1),
            Place::Real(_) => {
                format!("test-{}", random_hex(4).expect("the machine has random numbers"))
            }
        };
        names.push(name.clone());
        name
    }

    fn looks_after_service_accounts(&self) -> bool {
        match &self.0.place {
            Place::Sim(_) => self.0.controllers.contains(&Kind::ServiceAccount),
            // Only a control plane of our own can be without controllers.
            Place::Real(real) => {
                real.backend() == Backend::Kubeconfig || !self.0.controllers.is_empty()
            }
        }
    }

    /// Looks at the cluster until it shows what is wanted, for a minute at most; what is there is
    /// returned. A look says `true`, `Some` or `Ok` for that, and anything else for not yet.
    ///
    /// # Panics
    /// If it does not come.
    #[expect(clippy::panic, reason = "a test harness reports by panicking")]
    pub async fn eventually<R: Reached>(
        &self,
        what: &str,
        mut look: impl AsyncFnMut() -> R,
    ) -> R::Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match look().await.reached() {
                Ok(value) => return value,
                Err(missing) if Instant::now() > deadline => {
                    let seconds = PATIENCE.as_secs();
                    panic!("{what}: not within {seconds} s; at last: {missing}");
                }
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    /// The requests of a user since this test began, as the cluster itself recorded them: its audit
    /// log on a real one.
    ///
    /// # Panics
    /// If the cluster keeps no record: see [`Needs::requests`].
    pub async fn requests(&self, user: &User) -> Vec<Request> {
        self.requests_since(user, self.0.requests_before).await
    }

    /// A position in the record of requests, for [`Self::requests_since`].
    ///
    /// # Panics
    /// If the cluster keeps no record: see [`Needs::requests`].
    pub async fn position(&self) -> usize {
        match self.sim() {
            Some(sim) => sim.position(),
            None => self.recorded().await.expect(RECORD_NEEDED).len(),
        }
    }

    /// The requests of a user after a position.
    ///
    /// # Panics
    /// If the cluster keeps no record: see [`Needs::requests`].
    pub async fn requests_since(&self, user: &User, position: usize) -> Vec<Request> {
        let mut requests = match self.sim() {
            Some(sim) => sim.requests_since(position),
            None => self.recorded().await.expect(RECORD_NEEDED).split_off(position),
        };
        requests.retain(|request| request.user == user.name);
        requests
    }

    /// All requests that a real cluster recorded.
    async fn recorded(&self) -> Result<Vec<Request>, Error> {
        match &self.0.place {
            Place::Sim(_) => {
                Err(Error::new("a simulated cluster is asked for parts of its record"))
            }
            Place::Real(real) => {
                real.requests()?;
                // An answer can be here a moment before its line in the log: a request of our own
                // that comes later marks the place up to which the log is whole.
                let mark = format!("/version?mark={}", random_hex(8)?);
                let request = http::Request::get(&mark).body(Vec::new()).map_err(Error::new)?;
                self.0.admin.request_text(request).await.map_err(Error::new)?;
                let deadline = Instant::now() + PATIENCE;
                loop {
                    let mut requests = real.requests()?;
                    if requests.iter().any(|request| request.line.ends_with(&mark)) {
                        requests.retain(|request| !request.line.contains("/version?mark="));
                        return Ok(requests);
                    }
                    if Instant::now() > deadline {
                        return Err(Error::new("the audit log does not show our own request"));
                    }
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Lets time pass in which nothing should happen: `virtual_time` on a simulated cluster,
    /// `real_time` on a real one.
    pub async fn rest(&self, virtual_time: Duration, real_time: Duration) {
        let time = if self.sim().is_some() { virtual_time } else { real_time };
        sleep(time).await;
    }

    /// Removes what the test made where it would stay, and keeps the logs of a cluster of our own if
    /// the test failed.
    pub(super) async fn finish(&self, failed: bool) {
        let Place::Real(real) = &self.0.place else { return };
        if failed && let Some(folder) = real.keep_logs() {
            super::note(&format!("the logs of the cluster stay in {}", folder.display()));
        }
        if !real.outlives_tests() {
            return;
        }
        let names = {
            let mut names = self.0.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *names)
        };
        let api = Api::<Namespace>::all(self.client());
        for name in names {
            if let Err(error) = api.delete(&name, &DeleteParams::default()).await {
                super::note(&format!("the namespace {name} stays behind: {error}"));
            }
        }
    }
}

/// A random number of so many bytes in hexadecimal: names and tokens of real things.
pub(super) fn random_hex(bytes: usize) -> Result<String, Error> {
    let mut random = vec![0_u8; bytes];
    let mut source = fs::File::open("/dev/urandom").map_err(Error::new)?;
    source.read_exact(&mut random).map_err(Error::new)?;
    Ok(golang::hex(&random))
}
