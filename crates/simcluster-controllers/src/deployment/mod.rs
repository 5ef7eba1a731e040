//! The Deployment controller: ReplicaSets follow templates and sizes, the status follows the
//! ReplicaSets. It never touches Pods.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::types::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Preconditions};

use self::numbers::Strategy;
use self::plan::{Action, Plan};
use super::owners::{self, claim, controller_of, is_controlled_by, labels_of, matches, orphans_of};
use super::runtime::recorder::Severity;
use super::runtime::{
    Api, Doing, Failure, Hands, Key, Next, OwnWrites, Queue, Reconcile, Selectors, Store, Written,
    message_of, namespace_is_terminating, status_of,
};
use super::{Informers, post_params};

mod annotations;
mod hash;
mod numbers;
mod plan;
mod status;
mod template;
#[cfg(test)]
mod tests;

/// The controller's hands and memory.
pub(crate) struct Controller {
    hands: Hands,
    deployments: Arc<Store<Deployment>>,
    selectors: Arc<Selectors>,
    sets: Arc<Store<ReplicaSet>>,
    pods: Arc<Store<Pod>>,
    own: OwnWrites,
}

impl Controller {
    /// Hooks the controller to the informers.
    pub(crate) fn wire(hands: Hands, informers: &mut Informers) -> (Self, Arc<Queue<Key>>) {
        let queue = Arc::new(Queue::new());
        let controller = Self {
            hands,
            deployments: Arc::clone(&informers.deployments.store),
            selectors: informers
                .deployments
                .enqueue_selecting(&queue, |one| Some(labels_of(&one.spec.selector))),
            sets: Arc::clone(&informers.replica_sets.store),
            pods: Arc::clone(&informers.pods.store),
            own: OwnWrites::default(),
        };
        let (to, deployments) = (Arc::clone(&queue), Arc::clone(&controller.deployments));
        let selectors = Arc::clone(&controller.selectors);
        informers.replica_sets.on_change(&queue, move |change| {
            let of = |set: &Arc<ReplicaSet>| deployments_of(&deployments, &selectors, set);
            let keys: BTreeSet<Key> = change.states().flat_map(of).collect();
            for key in keys {
                to.add(key);
            }
        });
        let (to, deployments) = (Arc::clone(&queue), Arc::clone(&controller.deployments));
        let sets = Arc::clone(&controller.sets);
        informers.pods.on_change(&queue, move |change| {
            if let Some(key) = change.states().last().and_then(|pod| owner_of_owner(&sets, pod))
                && deployments
                    .get(&key)
                    .is_some_and(|one| numbers::strategy(&one) == Strategy::Recreate)
            {
                to.add(key);
            }
        });
        (controller, queue)
    }

    async fn execute(
        &self,
        key: &Key,
        deployment: &Deployment,
        plan: Plan,
    ) -> Result<Next, Failure> {
        let next = plan.recheck.map_or(Next::Done, Next::After);
        // A ReplicaSet may be written twice in one plan; the second write needs the first one's version.
        let mut written: Vec<Written> = Vec::new();
        for action in plan.actions {
            match action {
                Action::Create(set) => match self.create(key, deployment, &set).await? {
                    Some(set) => written.push(set),
                    None => return Ok(Next::Done),
                },
                Action::Update(mut set) => {
                    if let Some(newer) =
                        written.iter().rev().find(|one| one.metadata.uid == set.metadata.uid)
                    {
                        set.metadata.resource_version.clone_from(&newer.metadata.resource_version);
                    }
                    let name = set.metadata.name.clone().unwrap_or_default();
                    let set = self
                        .sets_api(key)
                        .replace(&name, &post_params(), &set)
                        .await
                        .doing("update a ReplicaSet")?;
                    self.own.wrote(key, &self.sets, &set);
                    written.push(set);
                }
                Action::Delete(set) => self.delete(key, &set).await?,
                Action::Scaled { name, from, to } => {
                    let way = if from < to { "up" } else { "down" };
                    let message = format!("Scaled {way} replica set {name} from {from} to {to}");
                    self.hands.recorder.about(
                        deployment,
                        Severity::Normal,
                        "ScalingReplicaSet",
                        message,
                    );
                }
                Action::WriteStatus(deployment) => self.write_status(key, &deployment).await?,
            }
        }
        Ok(next)
    }

    /// Creates the new ReplicaSet. `None`: the namespace is going away, nothing can be done.
    async fn create(
        &self,
        key: &Key,
        deployment: &Deployment,
        set: &ReplicaSet,
    ) -> Result<Option<Written>, Failure> {
        let api = self.sets_api(key);
        let error = match api.create(&post_params(), set).await {
            Ok(set) => {
                self.own.wrote(key, &self.sets, &set);
                return Ok(Some(set));
            }
            Err(error) => error,
        };
        let name = set.metadata.name.as_deref().unwrap_or_default();
        if namespace_is_terminating(&error) {
            return Ok(None);
        }
        if status_of(&error).is_some_and(kube::core::Status::is_already_exists) {
            let in_the_way = api.get(name).await.doing("get a ReplicaSet")?;
            if !plan::is_the_new_set(deployment, &in_the_way) {
                let mut deployment = deployment.clone();
                let status = deployment.status.get_or_insert_default();
                status.collision_count =
                    Some(status.collision_count.unwrap_or(0).saturating_add(1));
                self.write_status(key, &deployment).await?;
            }
            return Err(error).doing("create a ReplicaSet");
        }
        let message = format!("Failed to create new replica set {name:?}: {}", message_of(&error));
        self.hands.recorder.about(
            deployment,
            Severity::Warning,
            "ReplicaSetCreateError",
            message.clone(),
        );
        if let Some(deployment) =
            plan::after_failed_create(deployment, &message, self.hands.clock.now())
        {
            self.write_status(key, &deployment).await?;
        }
        Err(error).doing("create a ReplicaSet")
    }

    async fn delete(&self, key: &Key, set: &ReplicaSet) -> Result<(), Failure> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: set.metadata.uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let name = set.metadata.name.as_deref().unwrap_or_default();
        match self.sets_api(key).delete(name, &params).await {
            Err(error) if status_of(&error).is_some_and(kube::core::Status::is_not_found) => Ok(()),
            result => result.map(drop).doing("delete a ReplicaSet"),
        }?;
        self.own.deleted(key, &self.sets, set);
        Ok(())
    }

    async fn write_status(&self, key: &Key, deployment: &Deployment) -> Result<(), Failure> {
        let written = self
            .deployments_api(key)
            .replace_status(&key.name, &post_params(), deployment)
            .await
            .doing("write a Deployment's status")?;
        self.own.wrote(key, &self.deployments, &written);
        Ok(())
    }

    fn deployments_api(&self, key: &Key) -> Api<Deployment> {
        self.hands.api(&key.namespace)
    }

    fn sets_api(&self, key: &Key) -> Api<ReplicaSet> {
        self.hands.api(&key.namespace)
    }
}

impl Reconcile for Controller {
    const NAME: &'static str = "deployment";
    type Key = Key;

    async fn ready(&self) {
        self.deployments.synced().await;
        self.sets.synced().await;
        self.pods.synced().await;
    }

    async fn reconcile(&self, key: Key) -> Result<Next, Failure> {
        let Some(deployment) = self.deployments.get(&key) else {
            self.own.forget(&key);
            return Ok(Next::Done);
        };
        if !self.own.all_heard(&key) {
            return Ok(Next::Wait);
        }
        let uid = deployment.metadata.uid.as_deref().unwrap_or_default();
        let mut candidates = self.sets.group(uid);
        candidates.extend(self.sets.group(&orphans_of(&key.namespace)));
        let claims = claim(&deployment.metadata, &deployment.spec.selector, candidates);
        if !(claims.adopt.is_empty() && claims.release.is_empty()) {
            let changed = owners::settle_claims(
                &self.deployments_api(&key),
                &self.sets_api(&key),
                deployment.as_ref(),
                &claims,
            )
            .await?;
            for set in &changed {
                self.own.wrote(&key, &self.sets, set);
            }
            return Ok(Next::Wait);
        }
        let sets: Vec<ReplicaSet> = claims.mine.iter().map(|set| set.as_ref().clone()).collect();
        let pods: Vec<Pod> = if numbers::strategy(&deployment) == Strategy::Recreate {
            let uids = sets.iter().filter_map(|set| set.metadata.uid.as_deref());
            uids.flat_map(|uid| self.pods.group(uid)).map(|pod| pod.as_ref().clone()).collect()
        } else {
            Vec::new()
        };
        let plan = plan::plan(&deployment, &sets, &pods, self.hands.clock.now());
        self.execute(&key, &deployment, plan).await
    }
}

/// The Deployment that controls a ReplicaSet, or those that would adopt it.
fn deployments_of(
    deployments: &Store<Deployment>,
    selectors: &Selectors,
    set: &ReplicaSet,
) -> Vec<Key> {
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    if let Some(owner) = controller_of(&set.metadata) {
        let key = Key::new(namespace, &owner.name);
        let is_ours =
            deployments.get(&key).is_some_and(|one| is_controlled_by(&set.metadata, &one.metadata));
        return is_ours.then_some(key).into_iter().collect();
    }
    let labels = set.metadata.labels.as_ref();
    let mut keys = selectors.matching(namespace, labels);
    keys.retain(|key| deployments.get(key).is_some_and(|one| matches(&one.spec.selector, labels)));
    keys
}

/// The Deployment that a Pod belongs to through its ReplicaSet.
fn owner_of_owner(sets: &Store<ReplicaSet>, pod: &Pod) -> Option<Key> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let set = sets.get(&Key::new(namespace, &controller_of(&pod.metadata)?.name))?;
    Some(Key::new(namespace, &controller_of(&set.metadata)?.name))
}
