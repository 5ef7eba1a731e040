//! The disruption controller: how many Pods of a `PodDisruptionBudget` may go now.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt as _};

use super::runtime::{Doing, Failure, Hands, Key, Next, OwnWrites, Queue, Reconcile, Store};
use super::types::{Deployment, PodDisruptionBudget, PodDisruptionBudgetStatus, ReplicaSet};
use super::{Informers, pods, post_params};

const CONDITION: &str = "DisruptionAllowed";

/// The controller's hands and memory.
pub(crate) struct Controller {
    hands: Hands,
    budgets: Arc<Store<PodDisruptionBudget>>,
    pods: Arc<Store<Pod>>,
    replica_sets: Arc<Store<ReplicaSet>>,
    deployments: Arc<Store<Deployment>>,
    own: OwnWrites,
}

impl Controller {
    /// Hooks the controller to the informers. The keys are budgets.
    pub(crate) fn wire(hands: Hands, informers: &mut Informers) -> (Self, Arc<Queue<Key>>) {
        let queue = Arc::new(Queue::new());
        let controller = Self {
            hands,
            budgets: Arc::clone(&informers.budgets.store),
            pods: Arc::clone(&informers.pods.store),
            replica_sets: Arc::clone(&informers.replica_sets.store),
            deployments: Arc::clone(&informers.deployments.store),
            own: OwnWrites::default(),
        };
        informers.budgets.enqueue_changed(&queue);
        let (to, budgets) = (Arc::clone(&queue), Arc::clone(&controller.budgets));
        informers.pods.on_change(&queue, move |change| {
            let namespace = change.states().last().and_then(|pod| pod.metadata.namespace.clone());
            for budget in budgets.group(namespace.as_deref().unwrap_or_default()) {
                let covered = coverage(&budget);
                if change.states().any(|pod| covered(pod)) {
                    to.add(Key::of(&*budget));
                }
            }
        });
        (controller, queue)
    }

    /// Pods of a namespace among which are all that a budget covers.
    fn candidates(&self, budget: &PodDisruptionBudget, namespace: &str) -> Vec<Arc<Pod>> {
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        match selector.and_then(|selector| selector.match_labels.as_ref()) {
            Some(labels) if !labels.is_empty() => pods::with_labels(&self.pods, namespace, labels),
            _ => {
                let mut all = self.pods.all();
                all.retain(|pod| pod.metadata.namespace.as_deref() == Some(namespace));
                all
            }
        }
    }

    /// How many Pods the owners of some want to have.
    fn expected(&self, pods: &[Arc<Pod>]) -> i32 {
        let mut owners: BTreeMap<String, i32> = BTreeMap::new();
        for pod in pods {
            let Some(owner) =
                pod.owner_references().iter().find(|one| one.controller == Some(true))
            else {
                continue;
            };
            let key = Key::new(&pod.namespace().unwrap_or_default(), &owner.name);
            let Some(set) = self.replica_sets.get(&key).filter(|_| owner.kind == "ReplicaSet")
            else {
                continue;
            };
            let above = set.owner_references().iter().find(|one| one.controller == Some(true));
            let deployment = above
                .filter(|one| one.kind == "Deployment")
                .and_then(|one| self.deployments.get(&Key::new(&key.namespace, &one.name)));
            let (uid, replicas) = match deployment {
                Some(deployment) => (deployment.uid(), deployment.spec.replicas),
                None => (set.uid(), set.spec.replicas),
            };
            owners.insert(uid.unwrap_or_default(), replicas.unwrap_or(1));
        }
        owners.values().sum()
    }

    fn status(&self, budget: &PodDisruptionBudget, pods: &[Arc<Pod>]) -> PodDisruptionBudgetStatus {
        let spec = budget.spec.clone().unwrap_or_default();
        let counted = i32::try_from(pods.len()).unwrap_or(i32::MAX);
        let (expected, desired) = match (&spec.max_unavailable, &spec.min_available) {
            (Some(most), _) => {
                let expected = self.expected(pods);
                (expected, (expected - scaled(most, expected)).max(0))
            }
            (None, Some(IntOrString::Int(least))) => (counted, *least),
            (None, Some(percent)) => {
                let expected = self.expected(pods);
                (expected, scaled(percent, expected))
            }
            (None, None) => (counted, 0),
        };
        let healthy = pods.iter().filter(|pod| is_healthy(pod)).count();
        let healthy = i32::try_from(healthy).unwrap_or(i32::MAX);
        let allowed = if expected <= 0 { 0 } else { (healthy - desired).max(0) };
        let old = budget.status.clone().unwrap_or_default();
        // Pods that an eviction has taken count as gone until they are.
        let disrupted = old.disrupted_pods.into_iter().filter(|(name, _)| {
            pods.iter()
                .any(|pod| pod.name_any() == *name && pod.metadata.deletion_timestamp.is_none())
        });
        PodDisruptionBudgetStatus {
            conditions: self.conditions(budget, allowed > 0),
            current_healthy: healthy,
            desired_healthy: desired,
            disrupted_pods: disrupted.collect(),
            disruptions_allowed: allowed,
            expected_pods: expected,
            observed_generation: budget.metadata.generation,
        }
    }

    fn conditions(&self, budget: &PodDisruptionBudget, allowed: bool) -> Vec<Condition> {
        let status = if allowed { "True" } else { "False" };
        let old = budget.status.iter().flat_map(|status| &status.conditions);
        let mut old = old.filter(|one| one.type_ == CONDITION);
        let since =
            old.find(|one| one.status == status).map(|one| one.last_transition_time.clone());
        let reason = if allowed { "SufficientPods" } else { "InsufficientPods" };
        vec![Condition {
            last_transition_time: since.unwrap_or_else(|| Time(self.hands.clock.now())),
            message: String::new(),
            observed_generation: budget.metadata.generation,
            reason: reason.to_owned(),
            status: status.to_owned(),
            type_: CONDITION.to_owned(),
        }]
    }
}

/// A number, or a share of a total rounded up.
fn scaled(value: &IntOrString, total: i32) -> i32 {
    match value {
        IntOrString::Int(number) => *number,
        IntOrString::String(text) => {
            let percent: i32 = text.trim_end_matches('%').parse().unwrap_or_default();
            let part = (i64::from(total) * i64::from(percent) + 99).div_euclid(100);
            i32::try_from(part).unwrap_or(i32::MAX)
        }
    }
}

fn is_healthy(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    pod.metadata.deletion_timestamp.is_none()
        && conditions
            .into_iter()
            .flatten()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Which Pods a budget covers; its selector is read once for all of them.
fn coverage(budget: &PodDisruptionBudget) -> impl Fn(&Pod) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.clone());
    let selector = selector.and_then(|selector| Selector::try_from(selector).ok());
    move |pod| {
        let ended = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        !matches!(ended, Some("Succeeded" | "Failed"))
            && selector.as_ref().is_some_and(|selector| selector.matches(pod.labels()))
    }
}

impl Reconcile for Controller {
    const NAME: &'static str = "disruption";
    type Key = Key;

    async fn ready(&self) {
        self.budgets.synced().await;
        self.pods.synced().await;
        self.replica_sets.synced().await;
        self.deployments.synced().await;
    }

    async fn reconcile(&self, key: Key) -> Result<Next, Failure> {
        let Some(budget) = self.budgets.get(&key) else {
            self.own.forget(&key);
            return Ok(Next::Done);
        };
        if !self.own.all_heard(&key) {
            return Ok(Next::Wait);
        }
        let mut pods = self.candidates(&budget, &key.namespace);
        let covered = coverage(&budget);
        pods.retain(|pod| covered(pod));
        let status = self.status(&budget, &pods);
        if budget.status.as_ref() == Some(&status) {
            return Ok(Next::Done);
        }
        let mut changed = budget.as_ref().clone();
        changed.status = Some(status);
        let api = self.hands.api::<PodDisruptionBudget>(&key.namespace);
        let written = api.replace_status(&key.name, &post_params(), &changed).await;
        self.own.wrote(&key, &self.budgets, &written.doing("write the status of a budget")?);
        Ok(Next::Done)
    }
}
