//! The ReplicaSet controller: keeps the wanted number of Pods.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::types::ReplicaSet;
use k8s_openapi::api::apps::v1::ReplicaSetStatus;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Preconditions};

use self::plan::{Sizing, Trouble};
use super::owners::{self, claim, controller_of, is_controlled_by, labels_of, matches};
use super::runtime::recorder::Severity;
use super::runtime::{
    Api, Doing, Failure, Hands, Key, Next, OwnWrites, Queue, Reconcile, Selectors, Store,
    message_of, namespace_is_terminating, status_of,
};
use super::{Informers, pods, post_params};

mod plan;
#[cfg(test)]
mod tests;

/// The controller's hands and memory.
pub(crate) struct Controller {
    hands: Hands,
    sets: Arc<Store<ReplicaSet>>,
    selectors: Arc<Selectors>,
    pods: Arc<Store<Pod>>,
    own: OwnWrites,
}

/// A request about a Pod failed: what the status says of it, and the error.
struct Refused {
    reason: &'static str,
    message: String,
    error: kube::Error,
}

impl Controller {
    /// Hooks the controller to the informers.
    pub(crate) fn wire(hands: Hands, informers: &mut Informers) -> (Self, Arc<Queue<Key>>) {
        let queue = Arc::new(Queue::new());
        let controller = Self {
            hands,
            sets: Arc::clone(&informers.replica_sets.store),
            selectors: informers
                .replica_sets
                .enqueue_selecting(&queue, |set| Some(labels_of(&set.spec.selector))),
            pods: Arc::clone(&informers.pods.store),
            own: OwnWrites::default(),
        };
        let (to, sets) = (Arc::clone(&queue), Arc::clone(&controller.sets));
        let selectors = Arc::clone(&controller.selectors);
        informers.pods.on_change(&queue, move |change| {
            let of = |pod: &Arc<Pod>| replica_sets_of(&sets, &selectors, pod);
            let keys: BTreeSet<Key> = change.states().flat_map(of).collect();
            for key in keys {
                to.add(key);
            }
        });
        (controller, queue)
    }

    async fn resize(&self, key: &Key, set: &ReplicaSet, active: &[Arc<Pod>]) -> Option<Refused> {
        match plan::size(set, active, &self.related_pods(set), self.hands.clock.now()) {
            Sizing::Enough => None,
            Sizing::Create(count) => self.create(key, set, count).await,
            Sizing::Delete(surplus) => {
                let mut first = None;
                for pod in surplus {
                    let refused = self.delete(key, set, &pod).await;
                    first = first.or(refused);
                }
                first
            }
        }
    }

    /// Creates Pods until one is refused: so many that are refused for the same reason would only be
    /// noise.
    async fn create(&self, key: &Key, set: &ReplicaSet, count: usize) -> Option<Refused> {
        let api = self.pods_api(key);
        let pod = plan::new_pod(set);
        for _ in 0..count {
            match api.create(&post_params(), &pod).await {
                Ok(pod) => {
                    self.own.wrote(key, &self.pods, &pod);
                    let message = format!("Created pod: {}", pod.metadata.name);
                    self.hands.recorder.about(set, Severity::Normal, "SuccessfulCreate", message);
                }
                Err(error) if namespace_is_terminating(&error) => return None,
                Err(error) => {
                    let message = message_of(&error);
                    let note = format!("Error creating: {message}");
                    self.hands.recorder.about(set, Severity::Warning, "FailedCreate", note);
                    return Some(Refused { reason: "FailedCreate", message, error });
                }
            }
        }
        None
    }

    async fn delete(&self, key: &Key, set: &ReplicaSet, pod: &Pod) -> Option<Refused> {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: pod.metadata.uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match self.pods_api(key).delete(name, &params).await {
            Ok(()) => {
                self.own.deleted(key, &self.pods, pod);
                let message = format!("Deleted pod: {name}");
                self.hands.recorder.about(set, Severity::Normal, "SuccessfulDelete", message);
                None
            }
            Err(error) if status_of(&error).is_some_and(kube::core::Status::is_not_found) => None,
            Err(error) => {
                let note = format!("Error deleting: {}", message_of(&error));
                self.hands.recorder.about(set, Severity::Warning, "FailedDelete", note);
                let message = format!("unable to delete pods: {}", message_of(&error));
                Some(Refused { reason: "FailedDelete", message, error })
            }
        }
    }

    /// The Pods of all ReplicaSets of the same owner.
    fn related_pods(&self, set: &ReplicaSet) -> Vec<Arc<Pod>> {
        let uid = |set: &ReplicaSet| set.metadata.uid.clone().unwrap_or_default();
        match controller_of(&set.metadata) {
            None => self.pods.group(&uid(set)),
            Some(owner) => {
                let sets = self.sets.group(&owner.uid);
                sets.iter().flat_map(|set| self.pods.group(&uid(set))).collect()
            }
        }
    }

    /// Writes the status; on a conflict once more on the current version, because a change of size by
    /// somebody else does not make the counts wrong.
    async fn write_status(
        &self,
        key: &Key,
        set: &ReplicaSet,
        status: ReplicaSetStatus,
    ) -> Result<(), Failure> {
        let api = self.sets_api(key);
        let mut set = ReplicaSet { status: Some(status), ..set.clone() };
        let mut result = api.replace_status(&key.name, &post_params(), &set).await;
        if let Err(error) = &result
            && status_of(error).is_some_and(kube::core::Status::is_conflict)
        {
            let fresh = api.get(&key.name).await.doing("get a ReplicaSet")?;
            set.metadata = fresh.metadata;
            set.spec = fresh.spec;
            result = api.replace_status(&key.name, &post_params(), &set).await;
        }
        let written = result.doing("write a ReplicaSet's status")?;
        self.own.wrote(key, &self.sets, &written);
        Ok(())
    }

    fn sets_api(&self, key: &Key) -> Api<ReplicaSet> {
        self.hands.api(&key.namespace)
    }

    fn pods_api(&self, key: &Key) -> Api<Pod> {
        self.hands.api(&key.namespace)
    }
}

impl Reconcile for Controller {
    const NAME: &'static str = "replicaset";
    type Key = Key;

    async fn ready(&self) {
        self.sets.synced().await;
        self.pods.synced().await;
    }

    async fn reconcile(&self, key: Key) -> Result<Next, Failure> {
        let Some(set) = self.sets.get(&key) else {
            self.own.forget(&key);
            return Ok(Next::Done);
        };
        if !self.own.all_heard(&key) {
            return Ok(Next::Wait);
        }
        let mut mine = self.pods.group(set.metadata.uid.as_deref().unwrap_or_default());
        let terminating = mine
            .iter()
            .filter(|pod| pods::is_deleting(pod) && !pods::is_finished(pod))
            .filter(|pod| matches(&set.spec.selector, pod.metadata.labels.as_ref()))
            .count();
        mine.retain(|pod| pods::is_active(pod));
        let labels = set.spec.selector.match_labels.as_ref();
        let orphans = pods::orphans(&self.pods, &key.namespace, labels);
        mine.extend(orphans.into_iter().filter(|pod| pods::is_active(pod)));
        let claims = claim(&set.metadata, &set.spec.selector, mine);
        if !(claims.adopt.is_empty() && claims.release.is_empty()) {
            let changed = owners::settle_claims(
                &self.sets_api(&key),
                &self.pods_api(&key),
                set.as_ref(),
                &claims,
            )
            .await?;
            for pod in &changed {
                self.own.wrote(&key, &self.pods, pod);
            }
            return Ok(Next::Wait);
        }
        let active = claims.mine;
        let refused = if set.metadata.deletion_timestamp.is_none() {
            self.resize(&key, &set, &active).await
        } else {
            None
        };
        let trouble = refused
            .as_ref()
            .map(|refused| Trouble { reason: refused.reason, message: &refused.message });
        let now = self.hands.clock.now();
        let status = plan::status(&set, &active, terminating, trouble, now);
        if plan::differs(&set, &status) {
            self.write_status(&key, &set, status).await?;
        }
        if let Some(refused) = refused {
            return Err(refused.error).doing("create or delete Pods");
        }
        Ok(plan::next_available(&set, &active, now).map_or(Next::Done, Next::After))
    }
}

/// The ReplicaSet that controls a Pod, or those that would adopt it.
fn replica_sets_of(sets: &Store<ReplicaSet>, selectors: &Selectors, pod: &Pod) -> Vec<Key> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    if let Some(owner) = controller_of(&pod.metadata) {
        let key = Key::new(namespace, &owner.name);
        let is_ours =
            sets.get(&key).is_some_and(|set| is_controlled_by(&pod.metadata, &set.metadata));
        return is_ours.then_some(key).into_iter().collect();
    }
    let labels = pod.metadata.labels.as_ref();
    let mut keys = selectors.matching(namespace, labels);
    keys.retain(|key| sets.get(key).is_some_and(|set| matches(&set.spec.selector, labels)));
    keys
}
