//! The namespace controller: empties namespaces that are being deleted, and then lets them go.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{DeleteParams, DynamicObject, ListParams, PropagationPolicy};
use kube::core::PartialObjectMeta;
use kube::{Client, ResourceExt};

use self::conditions::Round;
use super::kinds::{self, Kind};
use super::runtime::{
    Api, Doing, Failure, Key, Next, OwnWrites, Queue, Reconcile, Store, message_of, status_of,
};
use super::{Informers, pods, post_params};
use simcluster_clock::Clock;

mod conditions;
#[cfg(test)]
mod tests;

/// How long after the deletion the work begins, so that others can learn of it.
const GRACE: Duration = Duration::from_secs(5);
/// How long finalizers are expected to take.
const FINALIZERS_TAKE: SignedDuration = SignedDuration::from_secs(15);
/// The controller's own finalizer in `spec.finalizers`.
const FINALIZER: &str = "kubernetes";

type Meta = PartialObjectMeta<DynamicObject>;

/// The controller's hands and memory.
pub(crate) struct Controller {
    client: Client,
    clock: Clock,
    namespaces: Arc<Store<Namespace>>,
    own: OwnWrites,
    /// When the deletion of a namespace (by UID) was first seen.
    seen: Mutex<BTreeMap<String, Timestamp>>,
}

impl Controller {
    /// Hooks the controller to the informers.
    pub(crate) fn wire(
        client: Client,
        clock: Clock,
        informers: &mut Informers,
    ) -> (Self, Arc<Queue<Key>>) {
        let queue = Arc::new(Queue::new());
        let to = Arc::clone(&queue);
        informers.namespaces.on_change(&queue, move |change| {
            // A round's own writes are no reason for the next: what remains takes its time.
            let began = |namespace: &Arc<Namespace>| {
                (namespace.metadata.deletion_timestamp.clone(), namespace.spec.clone())
            };
            let Some(new) = change.new else { return };
            let key = Key::of(new.as_ref());
            if new.metadata.deletion_timestamp.is_some()
                && change.old.map(began) != Some(began(new))
            {
                to.add(key);
            } else {
                to.let_go(&key);
            }
        });
        let namespaces = Arc::clone(&informers.namespaces.store);
        let (own, seen) = (OwnWrites::default(), Mutex::default());
        (Self { client, clock, namespaces, own, seen }, queue)
    }

    /// How long is left until the work on a namespace begins.
    fn grace_left(&self, namespace: &Namespace) -> Duration {
        let now = self.clock.now();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let since = *seen.entry(namespace.uid().unwrap_or_default()).or_insert(now);
        let passed = Duration::try_from(now.duration_since(since)).unwrap_or(Duration::ZERO);
        GRACE.saturating_sub(passed)
    }

    fn forget(&self, namespace: &Namespace) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.remove(&namespace.uid().unwrap_or_default());
    }

    /// Deletes what there is and tells what is left, with the time that it is expected to take.
    async fn round(
        &self,
        name: &str,
        since: Timestamp,
    ) -> Result<(Round, SignedDuration), Failure> {
        let kinds =
            kinds::served(&self.client).await.doing("discover what a namespace may hold")?;
        let mut round = Round::default();
        let mut expected = SignedDuration::ZERO;
        let (pods, others): (Vec<Kind>, Vec<Kind>) =
            kinds.into_iter().filter(|kind| kind.namespaced).partition(is_pods);
        for kind in pods {
            let grace = self.pods_take(name, since).await?;
            expected = self.empty(name, &kind, grace, &mut round).await.max(expected);
        }
        if !round.remaining.is_empty() {
            round.is_waiting_for_pods = true;
            return Ok((round, expected));
        }
        for kind in others {
            let took = self.empty(name, &kind, SignedDuration::ZERO, &mut round).await;
            expected = took.max(expected);
        }
        Ok((round, expected))
    }

    /// The longest grace period of the Pods, while it has not passed since the deletion.
    async fn pods_take(&self, name: &str, since: Timestamp) -> Result<SignedDuration, Failure> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), name);
        let all = api.list(&ListParams::default()).await.doing("list Pods")?;
        let grace = all
            .iter()
            .filter(|pod| !pods::is_finished(pod))
            .filter_map(|pod| pod.spec.as_ref()?.termination_grace_period_seconds)
            .max();
        let grace = SignedDuration::from_secs(grace.unwrap_or(0));
        let has_passed = self.clock.now().duration_since(since) >= grace;
        Ok(if has_passed { SignedDuration::ZERO } else { grace })
    }

    /// Deletes all objects of a kind, and counts those that remain. Answers how long they are expected
    /// to take.
    async fn empty(
        &self,
        name: &str,
        kind: &Kind,
        grace: SignedDuration,
        round: &mut Round,
    ) -> SignedDuration {
        let resource = format!("{}.{}", kind.resource.plural, kind.resource.group);
        let left = match self.delete_all(name, kind).await {
            Ok(left) => left,
            // The kind is gone, or cannot be deleted after all: nothing of it is left to do.
            Err(error) if status_of(&error).is_some_and(|one| matches!(one.code, 404 | 405)) => {
                return SignedDuration::ZERO;
            }
            Err(error) => {
                round.failures.push(message_of(&error));
                return SignedDuration::ZERO;
            }
        };
        if left.is_empty() {
            return SignedDuration::ZERO;
        }
        let mut has_finalizers = false;
        for finalizer in left.iter().flat_map(|object| object.metadata.finalizers.iter().flatten())
        {
            *round.finalizers.entry(finalizer.clone()).or_default() += 1;
            has_finalizers = true;
        }
        round.remaining.insert(resource, left.len());
        if !grace.is_zero() {
            return grace;
        }
        if has_finalizers {
            return FINALIZERS_TAKE;
        }
        let group = &kind.resource.group;
        let (version, plural) = (&kind.resource.version, &kind.resource.plural);
        round.failures.push(format!(
            "unexpected items still remain in namespace: {name} for gvr: {group}/{version}, \
             Resource={plural}"
        ));
        SignedDuration::ZERO
    }

    async fn delete_all(&self, name: &str, kind: &Kind) -> Result<Vec<Meta>, kube::Error> {
        let api: kube::Api<Meta> =
            kube::Api::namespaced_with(self.client.clone(), name, &kind.resource);
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default()
        };
        if kind.has_delete_collection {
            api.delete_collection(&params, &ListParams::default()).await?;
        } else {
            for object in api.list(&ListParams::default()).await? {
                match api.delete(&object.name_any(), &params).await {
                    Err(error)
                        if status_of(&error).is_some_and(kube::core::Status::is_not_found) => {}
                    result => drop(result?),
                }
            }
        }
        Ok(api.list(&ListParams::default()).await?.items)
    }

    async fn write_conditions(&self, namespace: &Namespace, round: &Round) -> Result<(), Failure> {
        let status = namespace.status.clone().unwrap_or_default();
        let current = status.conditions.clone().unwrap_or_default();
        let Some(conditions) = conditions::after(&current, round, self.clock.now()) else {
            return Ok(());
        };
        let mut changed = namespace.clone();
        changed.status.get_or_insert_default().conditions = Some(conditions);
        let written = self
            .api()
            .replace_status(&namespace.name_any(), &post_params(), &changed)
            .await
            .doing("write a namespace's conditions")?;
        self.own.wrote(&Key::of(namespace), &self.namespaces, &written);
        Ok(())
    }

    /// Takes the controller's finalizer away; with the last one the namespace is gone.
    async fn finalize(&self, name: &str) -> Result<(), Failure> {
        let Some(mut namespace) = self.api().get_opt(name).await.doing("get a namespace")? else {
            return Ok(());
        };
        let spec = namespace.spec.get_or_insert_default();
        spec.finalizers.get_or_insert_default().retain(|one| one != FINALIZER);
        let result =
            self.api().replace_subresource("finalize", name, &post_params(), &namespace).await;
        match result {
            Err(error) if status_of(&error).is_some_and(kube::core::Status::is_not_found) => {}
            result => drop(result.doing("finalize a namespace")?),
        }
        self.forget(&namespace);
        Ok(())
    }

    fn api(&self) -> Api<Namespace> {
        Api::all(self.client.clone())
    }
}

impl Reconcile for Controller {
    const NAME: &'static str = "namespace";
    type Key = Key;

    async fn ready(&self) {
        self.namespaces.synced().await;
    }

    async fn reconcile(&self, key: Key) -> Result<Next, Failure> {
        let Some(namespace) = self.namespaces.get(&key) else {
            self.own.forget(&key);
            return Ok(Next::Done);
        };
        let Some(since) = namespace.metadata.deletion_timestamp.as_ref().map(|time| time.0) else {
            return Ok(Next::Done);
        };
        let spec = namespace.spec.as_ref();
        let is_finalized =
            spec.is_none_or(|spec| spec.finalizers.iter().flatten().next().is_none());
        if is_finalized {
            return Ok(Next::Done);
        }
        if !self.own.all_heard(&key) {
            return Ok(Next::Wait);
        }
        let left = self.grace_left(&namespace);
        if !left.is_zero() {
            return Ok(Next::After(left));
        }
        let (round, expected) = match self.round(&key.name, since).await {
            Ok(done) => done,
            Err(failure) => {
                let discovery = Some(failure.to_string());
                let round = Round { discovery, is_waiting_for_pods: true, ..Round::default() };
                self.write_conditions(&namespace, &round).await?;
                return Err(failure);
            }
        };
        self.write_conditions(&namespace, &round).await?;
        if !round.failures.is_empty() {
            return Err(Failure::Missing(round.failures.join(", ")));
        }
        if !expected.is_zero() {
            // Half of what it is expected to take, and a second.
            let wait = u64::try_from(expected.as_secs() / 2 + 1).unwrap_or(1);
            return Ok(Next::After(Duration::from_secs(wait)));
        }
        self.finalize(&key.name).await?;
        Ok(Next::Done)
    }
}

fn is_pods(kind: &Kind) -> bool {
    kind.resource.group.is_empty() && kind.resource.plural == "pods"
}
