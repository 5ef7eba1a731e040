//! A namespace with an operator that works in it.

use std::future::Future;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use simcluster::Request;
use simcluster::User;
use simcluster::env::{self, Cluster, Needs};
use simpleapp_operator::api::simpleapp::{self, Phase, SimpleApp};
use simpleapp_operator::kernel::clock::Clock;
use simpleapp_operator::ops::rbac;
use simpleapp_operator::run;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Path of the namespaces that hold apps.
pub(crate) const APPS: &str = "/apis/apps.bootcamp.local/v1/namespaces";

/// A namespace, an operator that works in it, and what a test does there.
pub(crate) struct Scene {
    pub(crate) cluster: Cluster,
    pub(crate) namespace: String,
    /// The service account of the operator.
    pub(crate) operator: User,
    running: Option<Running>,
}

struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<anyhow::Result<()>>,
}

/// What these tests need of a cluster.
pub(crate) fn needs() -> Needs {
    Needs::default().crd(simpleapp::definition()).pods().requests()
}

/// Runs a test with an operator in a namespace of its own.
pub(crate) fn with_operator(test: impl AsyncFnOnce(&mut Scene)) {
    with_operator_on(&needs(), test);
}

/// The same with other needs.
pub(crate) fn with_operator_on(needs: &Needs, test: impl AsyncFnOnce(&mut Scene)) {
    env::run(needs, async |cluster| {
        let mut scene = Scene::without_operator(cluster).await;
        scene.start().await;
        test(&mut scene).await;
        scene.stop().await;
    });
}

impl Scene {
    /// The namespace and its RBAC; the operator does not run yet.
    pub(crate) async fn without_operator(cluster: Cluster) -> Self {
        let namespace = cluster.namespace().await;
        let operator = User::service_account(&namespace, "operator");
        let scene = Self { cluster, namespace, operator, running: None };
        scene.grant().await;
        scene
    }

    /// Gives the operator's account what the generated ClusterRole allows, in this namespace.
    async fn grant(&self) {
        let metadata = json!({ "name": "operator" });
        self.create::<ServiceAccount>(json!({ "metadata": metadata })).await;
        let rules = rbac::cluster_role_rules();
        self.create::<Role>(json!({ "metadata": metadata, "rules": rules })).await;
        self.create::<RoleBinding>(json!({
            "metadata": metadata,
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "operator" },
            "subjects": [{ "kind": "ServiceAccount", "name": "operator", "namespace": self.namespace }],
        }))
        .await;
    }

    /// Starts the operator.
    pub(crate) async fn start(&mut self) {
        let client = match self.cluster.sim() {
            Some(sim) => sim.client_without_retry(self.operator.clone()),
            None => self.cluster.client_as(self.operator.clone()).await,
        };
        let clock = match self.cluster.sim() {
            Some(sim) => {
                let clock = sim.clock();
                Clock::new(move || clock.now())
            }
            None => Clock::real(),
        };
        let config = run::Config {
            clock,
            watch_namespaces: vec![self.namespace.clone()],
            operator_namespace: None,
            instance: "operator".to_owned(),
            cleanup_timeout: Duration::from_mins(5),
            concurrency: 4,
            shutdown_timeout: Duration::from_secs(5),
            dry_run: false,
        };
        let (stop, stopped) = oneshot::channel();
        let shutdown = async move {
            let _ = stopped.await;
        };
        let task = tokio::spawn(run::run(client, config, shutdown));
        self.running = Some(Running { stop, task });
    }

    /// Stops the operator and waits for its end.
    pub(crate) async fn stop(&mut self) {
        if let Some(Running { stop, task }) = self.running.take() {
            drop(stop);
            task.await.unwrap().unwrap();
        }
    }

    fn client(&self) -> Client {
        self.cluster.client()
    }

    /// The objects of a kind in the namespace.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// Creates an object as the admin.
    pub(crate) async fn create<K>(&self, object: Value) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + DeserializeOwned + Serialize + std::fmt::Debug,
    {
        let object = serde_json::from_value(object).unwrap();
        self.api::<K>().create(&PostParams::default(), &object).await.unwrap()
    }

    /// Creates an app.
    pub(crate) async fn app(&self, name: &str, spec: Value) -> SimpleApp {
        let options = PostParams { field_manager: Some("user".into()), ..PostParams::default() };
        let app = serde_json::from_value(app_of(name, &spec)).unwrap();
        self.api::<SimpleApp>().create(&options, &app).await.unwrap()
    }

    /// Creates an app whose JSON its type may not be able to hold.
    pub(crate) async fn post_app(&self, name: &str, spec: &Value) -> kube::Result<Value> {
        let request = http::Request::post(format!("{APPS}/{}/simpleapps", self.namespace))
            .header("content-type", "application/json")
            .body(app_of(name, spec).to_string().into_bytes())
            .unwrap();
        self.client().request(request).await
    }

    /// Merges a patch into an object as a user.
    pub(crate) async fn patch<K>(&self, name: &str, patch: Value) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + DeserializeOwned + std::fmt::Debug,
    {
        let options = PatchParams { field_manager: Some("user".into()), ..PatchParams::default() };
        self.api::<K>().patch(name, &options, &Patch::Merge(patch)).await.unwrap()
    }

    /// Deletes an object.
    pub(crate) async fn delete<K>(&self, name: &str)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + DeserializeOwned + std::fmt::Debug,
    {
        self.api::<K>().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// An object, or `None`.
    pub(crate) async fn find<K>(&self, name: &str) -> Option<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + DeserializeOwned + std::fmt::Debug,
    {
        self.api::<K>().get_opt(name).await.unwrap()
    }

    /// An object that must be there.
    pub(crate) async fn get<K>(&self, name: &str) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + DeserializeOwned + std::fmt::Debug,
    {
        self.api::<K>().get(name).await.unwrap()
    }

    /// Waits until an app's status fulfils a condition and speaks of the present spec.
    pub(crate) async fn until(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&SimpleApp) -> bool,
    ) -> SimpleApp {
        let look = async || -> Result<SimpleApp, String> {
            let app = self.find::<SimpleApp>(name).await.ok_or("the app is not there")?;
            let status = app.status.clone().unwrap_or_default();
            let current = status.observed_generation == app.metadata.generation;
            if current && holds(&app) { Ok(app) } else { Err(format!("{status:?}")) }
        };
        self.cluster.eventually(&format!("{name}: {what}"), look).await
    }

    /// Waits until Service and container of an app have this port, named ours, and no other.
    pub(crate) async fn until_ports(&self, name: &str, port: i32) {
        let ours = Some("http".to_owned());
        let look = async || {
            let service = self.get::<Service>(name).await.spec.unwrap_or_default();
            let service: Vec<_> =
                service.ports.into_iter().flatten().map(|port| (port.name, port.port)).collect();
            let template = self.get::<Deployment>(name).await.spec.template;
            let containers = template.spec.unwrap_or_default().containers;
            let container: Vec<_> = containers
                .into_iter()
                .flat_map(|container| container.ports.unwrap_or_default())
                .map(|port| (port.name, port.container_port))
                .collect();
            let wanted = [(ours.clone(), port)];
            if service == wanted && container == wanted {
                Ok(())
            } else {
                Err(format!("Service {service:?}, container {container:?}"))
            }
        };
        self.cluster.eventually(&format!("{name}: port {port}"), look).await;
    }

    /// Waits until an app is available.
    pub(crate) async fn available(&self, name: &str) -> SimpleApp {
        self.until(name, "available", |app| phase(app) == Some(Phase::Available)).await
    }

    /// Waits until the operator and the cluster have nothing left to do.
    pub(crate) async fn quiet(&self) {
        match self.cluster.sim() {
            Some(sim) => sim.settle().await.unwrap(),
            None => self.cluster.rest(Duration::ZERO, Duration::from_secs(2)).await,
        }
    }

    /// The operator's requests since the test began, watches and lists included.
    pub(crate) async fn requests(&self) -> Vec<Request> {
        self.cluster.requests(&self.operator).await
    }

    /// The operator's writes after a position of the record, without Events.
    pub(crate) async fn writes_since(&self, position: usize) -> Vec<Request> {
        let mut writes = self.cluster.requests_since(&self.operator, position).await;
        writes.retain(|request| request.is_write() && request.resource != "events");
        writes
    }

    /// Runs `action`, waits for rest, and returns the operator's writes meanwhile; none may have
    /// failed.
    pub(crate) async fn writes_of(&self, action: impl Future<Output = ()>) -> Vec<Request> {
        let before = self.cluster.position().await;
        action.await;
        self.quiet().await;
        let writes = self.writes_since(before).await;
        let failed: Vec<_> = writes.iter().filter(|request| request.code >= 400).collect();
        assert!(failed.is_empty(), "writes that failed: {failed:?}");
        writes
    }

    /// The audit records of the namespace.
    pub(crate) async fn records(&self) -> Vec<ConfigMap> {
        let label = ListParams::default().labels("audit.bootcamp.local/source=simpleapp-operator");
        self.api::<ConfigMap>().list(&label).await.unwrap().items
    }

    /// What there is of an app: the names of the kinds.
    pub(crate) async fn parts(&self, name: &str) -> Vec<&'static str> {
        let parts = [
            self.find::<SimpleApp>(name).await.map(|_| "SimpleApp"),
            self.find::<Deployment>(name).await.map(|_| "Deployment"),
            self.find::<Service>(name).await.map(|_| "Service"),
            self.find::<Ingress>(name).await.map(|_| "Ingress"),
        ];
        parts.into_iter().flatten().collect()
    }

    /// Waits until nothing of an app is left.
    pub(crate) async fn gone(&self, name: &str) {
        let look = async || {
            let left = self.parts(name).await;
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?} left")) }
        };
        self.cluster.eventually(&format!("the end of {name}"), look).await;
    }
}

/// The JSON of an app.
pub(crate) fn app_of(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "apps.bootcamp.local/v1", "kind": "SimpleApp",
        "metadata": { "name": name }, "spec": spec,
    })
}

/// The phase of an app.
pub(crate) fn phase(app: &SimpleApp) -> Option<Phase> {
    app.status.as_ref()?.phase
}

/// The message of an app.
pub(crate) fn message(app: &SimpleApp) -> String {
    app.status.as_ref().and_then(|status| status.message.clone()).unwrap_or_default()
}

/// Status of a condition of an app.
pub(crate) fn condition(app: &SimpleApp, kind: &str) -> Option<String> {
    let conditions = &app.status.as_ref()?.conditions;
    conditions.iter().find(|one| one.type_ == kind).map(|one| one.status.clone())
}

/// Requests in short, for messages of assertions.
pub(crate) fn shown(requests: &[Request]) -> Vec<String> {
    requests.iter().map(|r| format!("{} {} {}", r.code, r.verb, r.line)).collect()
}
