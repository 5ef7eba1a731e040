//! The scheduler: binds Pods to nodes that are ready, match the node selector and whose taints are
//! tolerated; of those to the one with the fewest Pods. Resources, affinity and priorities are not
//! weighed: simulated nodes never run full.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Binding, Node, ObjectReference, Pod, PodCondition, PodSpec, Taint, Toleration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use super::runtime::recorder::{Severity, whole_seconds};
use super::runtime::{
    Api, Doing, Failure, Hands, Key, Next, OwnWrites, Queue, Reconcile, Store, status_of,
};
use super::{Informers, pods};

/// Field manager of the scheduler's writes.
pub(super) const MANAGER: &str = "kube-scheduler";
/// Name that Pods ask for when they want this scheduler.
pub(super) const NAME: &str = "default-scheduler";

/// The scheduler's hands and memory.
pub(crate) struct Controller {
    hands: Hands,
    nodes: Arc<Store<Node>>,
    pods: Arc<Store<Pod>>,
    own: OwnWrites,
}

impl Controller {
    /// Hooks the scheduler to the informers.
    pub(crate) fn wire(hands: Hands, informers: &mut Informers) -> (Self, Arc<Queue<Key>>) {
        let queue = Arc::new(Queue::new());
        let controller = Self {
            hands,
            nodes: Arc::clone(&informers.nodes.store),
            pods: Arc::clone(&informers.pods.store),
            own: OwnWrites::default(),
        };
        let to = Arc::clone(&queue);
        informers.pods.on_change(&queue, move |change| match change.new {
            Some(pod) if wants_node(pod) => to.add(Key::of(pod.as_ref())),
            Some(_) | None => {}
        });
        let (to, pods) = (Arc::clone(&queue), Arc::clone(&controller.pods));
        informers.nodes.on_change(&queue, move |_| {
            for pod in pods.all().iter().filter(|pod| wants_node(pod)) {
                to.add(Key::of(pod.as_ref()));
            }
        });
        (controller, queue)
    }

    async fn bind(&self, key: &Key, pod: &Pod, node: &str) -> Result<(), Failure> {
        let binding = Binding {
            metadata: ObjectMeta {
                name: pod.metadata.name.clone(),
                namespace: pod.metadata.namespace.clone(),
                uid: pod.metadata.uid.clone(),
                ..ObjectMeta::default()
            },
            target: ObjectReference {
                kind: Some("Node".to_owned()),
                name: Some(node.to_owned()),
                ..ObjectReference::default()
            },
        };
        let params =
            PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        match self.api(key).create_subresource("binding", &key.name, &params, &binding).await {
            Ok(()) => {
                let message = format!("Successfully assigned {key} to {node}");
                self.hands.recorder.about(pod, Severity::Normal, "Scheduled", message);
                Ok(())
            }
            Err(error) if status_of(&error).is_some_and(kube::core::Status::is_not_found) => Ok(()),
            Err(error) => Err(error).doing("bind a Pod"),
        }
    }

    async fn report(&self, key: &Key, pod: &Pod, why: &str) -> Result<(), Failure> {
        let is_reported = pods::condition(pod, "PodScheduled").is_some_and(|condition| {
            condition.status == "False" && condition.message.as_deref() == Some(why)
        });
        if is_reported {
            return Ok(());
        }
        self.hands.recorder.about(pod, Severity::Warning, "FailedScheduling", why);
        let condition = PodCondition {
            type_: "PodScheduled".to_owned(),
            status: "False".to_owned(),
            reason: Some("Unschedulable".to_owned()),
            message: Some(why.to_owned()),
            last_transition_time: Some(Time(whole_seconds(self.hands.clock.now()))),
            observed_generation: pod.metadata.generation,
            last_probe_time: None,
        };
        let patch =
            json!({"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}});
        let params =
            PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let written = self
            .api(key)
            .patch_status(&key.name, &params, &Patch::Strategic(patch))
            .await
            .doing("report a Pod that fits no node")?;
        self.own.wrote(key, &self.pods, &written);
        Ok(())
    }

    fn api(&self, key: &Key) -> Api<Pod> {
        self.hands.api(&key.namespace)
    }
}

impl Reconcile for Controller {
    const NAME: &'static str = "scheduler";
    type Key = Key;

    async fn ready(&self) {
        self.nodes.synced().await;
        self.pods.synced().await;
    }

    async fn reconcile(&self, key: Key) -> Result<Next, Failure> {
        let Some(pod) = self.pods.get(&key).filter(|pod| wants_node(pod)) else {
            self.own.forget(&key);
            return Ok(Next::Done);
        };
        if !self.own.all_heard(&key) {
            return Ok(Next::Wait);
        }
        let mut load: BTreeMap<String, usize> = BTreeMap::new();
        for pod in self.pods.all().iter().filter(|pod| pods::is_active(pod)) {
            *load.entry(pods::node(pod).to_owned()).or_default() += 1;
        }
        match choose(&pod, &self.nodes.all(), &load) {
            Ok(node) => self.bind(&key, &pod, &node).await?,
            Err(why) => self.report(&key, &pod, &why).await?,
        }
        Ok(Next::Done)
    }
}

fn wants_node(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    let asks_us =
        spec.and_then(|spec| spec.scheduler_name.as_deref()).is_none_or(|name| name == NAME);
    let is_gated =
        spec.and_then(|spec| spec.scheduling_gates.as_ref()).is_some_and(|gates| !gates.is_empty());
    pods::node(pod).is_empty() && pods::is_active(pod) && asks_us && !is_gated
}

/// Chooses a node, or says why none fits.
fn choose(
    pod: &Pod,
    nodes: &[Arc<Node>],
    load: &BTreeMap<String, usize>,
) -> Result<String, String> {
    let spec = pod.spec.clone().unwrap_or_default();
    let mut refusals: BTreeMap<String, usize> = BTreeMap::new();
    let mut best: Option<(usize, &str)> = None;
    for node in nodes {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        if let Some(why) = refusal(&spec, node) {
            *refusals.entry(why).or_default() += 1;
            continue;
        }
        let candidate = (load.get(name).copied().unwrap_or(0), name);
        if best.is_none_or(|best| candidate < best) {
            best = Some(candidate);
        }
    }
    if let Some((_, name)) = best {
        return Ok(name.to_owned());
    }
    let total = nodes.len();
    if total == 0 {
        return Err("no nodes available to schedule pods".to_owned());
    }
    let reasons: Vec<String> =
        refusals.iter().map(|(why, count)| format!("{count} {why}")).collect();
    Err(format!("0/{total} nodes are available: {}.", reasons.join(", ")))
}

/// Why a node does not take a Pod.
fn refusal(spec: &PodSpec, node: &Node) -> Option<String> {
    let node_spec = node.spec.clone().unwrap_or_default();
    if node_spec.unschedulable == Some(true) {
        return Some("node(s) were unschedulable".to_owned());
    }
    let labels = node.metadata.labels.clone().unwrap_or_default();
    let selects = |(key, value): (&String, &String)| labels.get(key) == Some(value);
    if !spec.node_selector.iter().flatten().all(selects) {
        return Some("node(s) didn't match Pod's node affinity/selector".to_owned());
    }
    let tolerations = spec.tolerations.clone().unwrap_or_default();
    if let Some(taint) = node_spec
        .taints
        .iter()
        .flatten()
        .filter(|taint| taint.effect != "PreferNoSchedule")
        .find(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)))
    {
        let value = taint.value.as_deref().unwrap_or_default();
        return Some(format!("node(s) had untolerated taint {{{}: {value}}}", taint.key));
    }
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let is_ready = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    (!is_ready).then(|| "node(s) were not ready".to_owned())
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let key = toleration.key.as_deref().unwrap_or_default();
    let is_any_value = toleration.operator.as_deref() == Some("Exists");
    (effect.is_empty() || effect == taint.effect)
        && (key == taint.key || (key.is_empty() && is_any_value))
        && (is_any_value
            || toleration.value.as_deref().unwrap_or_default()
                == taint.value.as_deref().unwrap_or_default())
}
