//! The scheduler: binds Pods to nodes that are ready, match the node selector and whose taints are
//! tolerated; of those to the one with the fewest Pods. Resources, affinity and priorities are not
//! weighed: simulated nodes never run full.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    ledger: Arc<Mutex<Ledger>>,
    own: OwnWrites,
}

/// What scheduling asks of all Pods together, kept up with each change of one.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ledger {
    /// The active Pods of each node.
    load: BTreeMap<String, usize>,
    /// The Pods that want a node.
    unbound: BTreeSet<Key>,
}

impl Ledger {
    /// A Pod was one thing and is another.
    fn replace(&mut self, old: Option<&Pod>, new: Option<&Pod>) {
        if let Some(pod) = old {
            self.unbound.remove(&Key::of(pod));
            if let Some(node) = taken(pod)
                && let Some(count) = self.load.get_mut(node)
            {
                *count -= 1;
                if *count == 0 {
                    self.load.remove(node);
                }
            }
        }
        if let Some(pod) = new {
            if wants_node(pod) {
                self.unbound.insert(Key::of(pod));
            }
            if let Some(node) = taken(pod) {
                *self.load.entry(node.to_owned()).or_default() += 1;
            }
        }
    }
}

/// The node on which a Pod takes room.
fn taken(pod: &Pod) -> Option<&str> {
    Some(pods::node(pod)).filter(|node| !node.is_empty() && pods::is_active(pod))
}

fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Controller {
    /// Hooks the scheduler to the informers.
    pub(crate) fn wire(hands: Hands, informers: &mut Informers) -> (Self, Arc<Queue<Key>>) {
        let queue = Arc::new(Queue::new());
        let controller = Self {
            hands,
            nodes: Arc::clone(&informers.nodes.store),
            pods: Arc::clone(&informers.pods.store),
            ledger: Arc::default(),
            own: OwnWrites::default(),
        };
        let (to, ledger) = (Arc::clone(&queue), Arc::clone(&controller.ledger));
        informers.pods.on_change(&queue, move |change| {
            lock(&ledger).replace(change.old.map(Arc::as_ref), change.new.map(Arc::as_ref));
            if let Some(pod) = change.states().filter(|pod| wants_node(pod)).last() {
                to.add(Key::of(pod.as_ref()));
            }
        });
        let (to, ledger) = (Arc::clone(&queue), Arc::clone(&controller.ledger));
        informers.nodes.on_change(&queue, move |_| {
            for key in &lock(&ledger).unbound {
                to.add(key.clone());
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
        let choice = choose(&pod, &self.nodes.all(), &lock(&self.ledger).load);
        match choice {
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
    let spec = pod.spec.as_ref();
    let mut refusals: BTreeMap<String, usize> = BTreeMap::new();
    let mut best: Option<(usize, &str)> = None;
    for node in nodes {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        if let Some(why) = refusal(spec, node) {
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
fn refusal(spec: Option<&PodSpec>, node: &Node) -> Option<String> {
    let node_spec = node.spec.as_ref();
    if node_spec.is_some_and(|spec| spec.unschedulable == Some(true)) {
        return Some("node(s) were unschedulable".to_owned());
    }
    let labels = node.metadata.labels.as_ref();
    let selects =
        |(key, value): (&String, &String)| labels.and_then(|all| all.get(key)) == Some(value);
    if !spec.and_then(|spec| spec.node_selector.as_ref()).into_iter().flatten().all(selects) {
        return Some("node(s) didn't match Pod's node affinity/selector".to_owned());
    }
    let tolerations = || spec.and_then(|spec| spec.tolerations.as_ref()).into_iter().flatten();
    if let Some(taint) = node_spec
        .and_then(|spec| spec.taints.as_ref())
        .into_iter()
        .flatten()
        .filter(|taint| taint.effect != "PreferNoSchedule")
        .find(|taint| !tolerations().any(|toleration| tolerates(toleration, taint)))
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;

    /// A Pod in one of four states, on one of two nodes if it is bound.
    fn pod(name: u8, state: u8, node: bool) -> Pod {
        let node = if node { "one" } else { "two" };
        let pod = match state {
            0 => json!({}),
            1 => json!({ "spec": { "containers": [], "nodeName": node } }),
            2 => json!({
                "spec": { "containers": [], "nodeName": node }, "status": { "phase": "Succeeded" },
            }),
            _ => json!({ "spec": { "containers": [], "schedulerName": "another" } }),
        };
        let mut pod: Pod = serde_json::from_value(pod).unwrap();
        pod.metadata.name = Some(name.to_string());
        pod
    }

    proptest! {
        #[test]
        fn the_ledger_says_what_all_pods_say(
            changes in proptest::collection::vec((0..5_u8, 0..6_u8, proptest::bool::ANY), 0..40),
        ) {
            let mut ledger = Ledger::default();
            let mut all: BTreeMap<u8, Pod> = BTreeMap::new();
            for (name, state, node) in changes {
                let new = (state < 4).then(|| pod(name, state, node));
                let old = match new.clone() {
                    Some(new) => all.insert(name, new),
                    None => all.remove(&name),
                };
                ledger.replace(old.as_ref(), new.as_ref());
            }
            let mut scanned = Ledger::default();
            for pod in all.values() {
                if wants_node(pod) {
                    scanned.unbound.insert(Key::of(pod));
                } else if pods::is_active(pod) && !pods::node(pod).is_empty() {
                    *scanned.load.entry(pods::node(pod).to_owned()).or_default() += 1;
                }
            }
            prop_assert_eq!(ledger, scanned);
        }
    }
}
