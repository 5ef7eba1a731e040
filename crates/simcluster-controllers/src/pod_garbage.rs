//! The garbage collector of Pods: those whose Node is gone, and those that end without ever having had
//! one. A real one looks at all Pods every 20 seconds; this one at those that changed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::runtime::recorder::whole_seconds;
use super::runtime::{Api, Doing, Failure, Key, Next, Queue, Reconcile, Store, status_of};
use super::{Informers, MANAGER, pods};
use simcluster_clock::Clock;

/// How long a Node must have been away before its Pods are given up: it may be new.
const QUARANTINE: SignedDuration = SignedDuration::from_secs(40);

/// The collector's hands and memory.
pub(crate) struct Controller {
    client: Client,
    clock: Clock,
    pods: Arc<Store<Pod>>,
    nodes: Arc<Store<Node>>,
    /// Nodes that Pods are bound to and that are not there, and since when that is known.
    missing: Mutex<BTreeMap<String, Timestamp>>,
}

impl Controller {
    /// Hooks the collector to the informers. The keys are Pods.
    pub(crate) fn wire(
        client: Client,
        clock: Clock,
        informers: &mut Informers,
    ) -> (Self, Arc<Queue<Key>>) {
        let queue = Arc::new(Queue::new());
        let controller = Self {
            client,
            clock,
            pods: Arc::clone(&informers.pods.store),
            nodes: Arc::clone(&informers.nodes.store),
            missing: Mutex::default(),
        };
        informers.pods.enqueue_changed(&queue);
        let (to, pods) = (Arc::clone(&queue), Arc::clone(&controller.pods));
        informers.nodes.on_change(&queue, move |change| {
            let (None, Some(gone)) = (change.new, change.old) else { return };
            let name = gone.metadata.name.as_deref().unwrap_or_default();
            for pod in pods.all().iter().filter(|pod| pods::node(pod) == name) {
                to.add(Key::of(pod.as_ref()));
            }
        });
        (controller, queue)
    }

    fn missing(&self) -> MutexGuard<'_, BTreeMap<String, Timestamp>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn api(&self, key: &Key) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &key.namespace)
    }

    /// Whether a Node has been away for long enough; how long it must wait otherwise. `None`: it is
    /// there.
    async fn absence(&self, node: &str) -> Result<Option<Duration>, Failure> {
        if self.nodes.get(&Key::new("", node)).is_some() {
            self.missing().remove(node);
            return Ok(None);
        }
        let now = self.clock.now();
        let since = *self.missing().entry(node.to_owned()).or_insert(now);
        let left = QUARANTINE - now.duration_since(since);
        if left.is_positive() {
            return Ok(Some(Duration::try_from(left).unwrap_or_default()));
        }
        let nodes: Api<Node> = Api::all(self.client.clone());
        let found = nodes.get_opt(node).await.doing("look up a node")?;
        Ok(found.is_none().then_some(Duration::ZERO))
    }

    /// Marks a Pod as failed and deletes it at once.
    async fn collect(&self, key: &Key, pod: &Pod, condition: Option<Value>) -> Result<(), Failure> {
        if !pods::is_finished(pod) {
            let generation = pod.metadata.generation;
            let mut status = json!({ "phase": "Failed", "observedGeneration": generation });
            if let Some(condition) = condition {
                simcluster_model::object::put(&mut status, "conditions", json!([condition]));
            }
            let patch = json!({ "metadata": { "uid": pod.metadata.uid }, "status": status });
            let params =
                PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
            let written =
                self.api(key).patch_status(&key.name, &params, &Patch::Strategic(patch)).await;
            found(written).doing("mark a Pod as failed")?;
        }
        let params = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        found(self.api(key).delete(&key.name, &params).await).doing("delete a Pod")?;
        Ok(())
    }

    fn node_is_gone(&self, pod: &Pod) -> Value {
        json!({
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists", "lastProbeTime": null,
            "lastTransitionTime": whole_seconds(self.clock.now()),
            "observedGeneration": pod.metadata.generation,
        })
    }
}

/// What became of a request about an object that may be gone by now.
fn found<T>(result: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
    match result {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if status_of(&error).is_some_and(kube::core::Status::is_not_found) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Reconcile for Controller {
    const NAME: &'static str = "pod-garbage";
    type Key = Key;

    async fn ready(&self) {
        self.pods.synced().await;
        self.nodes.synced().await;
    }

    async fn reconcile(&self, key: Key) -> Result<Next, Failure> {
        let Some(pod) = self.pods.get(&key) else { return Ok(Next::Done) };
        let node = pods::node(&pod);
        if node.is_empty() {
            // Deletion has taken it but for its finalizers.
            if pods::is_deleting(&pod) && !pods::is_finished(&pod) {
                self.collect(&key, &pod, None).await?;
            }
            return Ok(Next::Done);
        }
        let is_asked_to_go =
            pods::is_deleting(&pod) && pod.metadata.deletion_grace_period_seconds == Some(0);
        match self.absence(node).await? {
            Some(left) if !left.is_zero() => Ok(Next::After(left)),
            Some(_) if !(is_asked_to_go && pods::is_finished(&pod)) => {
                self.collect(&key, &pod, Some(self.node_is_gone(&pod))).await?;
                Ok(Next::Done)
            }
            Some(_) | None => Ok(Next::Done),
        }
    }
}
