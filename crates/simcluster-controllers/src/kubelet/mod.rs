//! The kubelets of all simulated nodes: bound Pods live through their stages on a clock instead of in
//! containers. What a Pod lives through depends on its images (see `image`).
//!
//! The nodes register themselves at the start; they send no heartbeats, and nobody misses them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, PodStatus};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::json;

use self::container::{Happened, Steps};
use self::life::{Incident, Life};
use super::runtime::recorder::{Note, Severity, reference};
use super::runtime::{
    Api, Doing, Failure, Hands, Key, Next, OwnWrites, Queue, Reconcile, Store, unless_overtaken,
};
use super::{Delays, Informers, pods};
use simcluster_model::random::Random;

mod container;
mod image;
mod life;
mod node;
mod status;
#[cfg(test)]
mod tests;

/// Field manager of the kubelets' writes.
pub(super) const MANAGER: &str = "kubelet";
/// Size that events say images have, in bytes.
const IMAGE_SIZE: u32 = 20_971_520;
/// How a program ends that is told to and does not obey in time: by SIGKILL.
const KILLED: i32 = 137;

/// The kubelets' hands and memory.
pub(crate) struct Controller {
    hands: Hands,
    seed: u64,
    delays: Delays,
    /// Addresses of the nodes by name.
    nodes: BTreeMap<String, String>,
    pods: Arc<Store<Pod>>,
    own: OwnWrites,
    residents: Mutex<Residents>,
}

/// The Pods on the nodes.
#[derive(Default)]
struct Residents {
    pods: BTreeMap<Key, Resident>,
    /// Pod addresses given out so far, by node.
    addresses: BTreeMap<String, u32>,
}

struct Resident {
    uid: Option<String>,
    life: Life,
    /// When the containers have stopped, once the Pod is being deleted.
    stopped_at: Option<Timestamp>,
    /// The final DELETE was sent; what remains is up to finalizers.
    is_over: bool,
}

/// What a pass over a Pod that is being deleted comes to.
struct Stopping {
    /// When the containers have stopped.
    until: Timestamp,
    /// Whether they were told to just now.
    is_new: bool,
    /// What the status says of it, if it does not yet.
    status: Option<PodStatus>,
}

/// What a pass over a Pod comes to.
struct Outcome {
    status: PodStatus,
    incidents: Vec<Incident>,
    next: Option<Timestamp>,
}

impl Controller {
    /// Hooks the kubelets to the informers.
    pub(crate) fn wire(
        hands: Hands,
        config: &super::Config,
        informers: &mut Informers,
    ) -> (Self, Arc<Queue<Key>>) {
        let queue = Arc::new(Queue::new());
        let controller = Self {
            hands,
            seed: config.seed,
            delays: config.delays,
            nodes: node::addresses(config.nodes),
            pods: Arc::clone(&informers.pods.store),
            own: OwnWrites::default(),
            residents: Mutex::default(),
        };
        let to = Arc::clone(&queue);
        informers.pods.on_change(&queue, move |change| {
            if let Some(pod) = change.states().last()
                && !pods::node(pod).is_empty()
            {
                to.add(Key::of(pod.as_ref()));
            }
        });
        (controller, queue)
    }

    fn lock(&self) -> MutexGuard<'_, Residents> {
        self.residents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn until(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.hands.clock.now())).unwrap_or(Duration::ZERO)
    }

    /// Lets the Pod live until now.
    fn live(&self, key: &Key, pod: &Pod, host: &str) -> Outcome {
        let now = self.hands.clock.now();
        let mut residents = self.lock();
        let Residents { pods, addresses } = &mut *residents;
        let resident =
            resident(pods, key, pod, || Life::new(pod, now, |name| self.steps(pod, name)));
        let incidents = resident.life.advance(now);
        if resident.life.ip.is_none() && resident.life.has_sandbox() {
            let is_on_host = pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
            resident.life.ip = Some(if is_on_host {
                host.to_owned()
            } else {
                let count = addresses.entry(pods::node(pod).to_owned()).or_insert(1);
                *count = count.saturating_add(1);
                node::pod_address(host, *count)
            });
        }
        Outcome {
            status: status::of(pod, &resident.life, host, now),
            incidents,
            next: resident.life.next_change(now),
        }
    }

    fn steps(&self, pod: &Pod, container: &str) -> Steps {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        // Chance depends on the step, not on the order in which steps are asked for.
        let vary = |delay: Duration, step: &str| {
            let stream = format!("kubelet {uid} {container} {step}");
            let part = u128::from(Random::stream(self.seed, &stream).next_u64() % 1000);
            let most = delay.as_nanos() * u128::from(self.delays.spread_percent) / 100;
            let extra = u64::try_from(most * part / 1000).unwrap_or(0);
            delay + Duration::from_nanos(extra)
        };
        Steps {
            pull: vary(self.delays.pull, "pull"),
            start: vary(self.delays.start, "start"),
            ready: vary(self.delays.ready, "ready"),
            run: vary(self.delays.run, "run"),
        }
    }

    /// Stops the containers of a Pod that is being deleted, says so in its status, and then lets the
    /// object go.
    async fn end(&self, key: &Key, pod: &Pod, host: &str) -> Result<Next, Failure> {
        let now = self.hands.clock.now();
        let stopping = {
            let mut residents = self.lock();
            let resident = resident(&mut residents.pods, key, pod, || {
                Life::new(pod, now, |name| self.steps(pod, name))
            });
            if resident.is_over {
                return Ok(Next::Done);
            }
            self.stop(resident, pod, host, now)
        };
        if stopping.is_new {
            for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
                let message = format!("Stopping container {}", container.name);
                self.note_container(
                    pod,
                    &container.name,
                    false,
                    Severity::Normal,
                    "Killing",
                    message,
                );
            }
        }
        if stopping.until > now {
            return Ok(Next::After(self.until(stopping.until)));
        }
        if let Some(status) = stopping.status {
            self.write_status(key, pod, status).await?;
        }
        self.let_go(key, pod).await?;
        if let Some(resident) = self.lock().pods.get_mut(key) {
            resident.is_over = true;
        }
        Ok(Next::Done)
    }

    /// Tells the containers of a Pod to stop; once they have, what the status says.
    fn stop(&self, resident: &mut Resident, pod: &Pod, host: &str, now: Timestamp) -> Stopping {
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
        let grace = Duration::from_secs(u64::try_from(grace).unwrap_or(0));
        let is_new = resident.stopped_at.is_none();
        let runs = !pods::is_finished(pod) && resident.life.has_sandbox();
        let stop = if runs { self.delays.stop.min(grace) } else { Duration::ZERO };
        let until =
            *resident.stopped_at.get_or_insert_with(|| now.checked_add(stop).unwrap_or(now));
        let mut status = None;
        if runs && until <= now {
            let code = if self.delays.stop <= grace { 0 } else { KILLED };
            resident.life.stop(until, code);
            status = Some(status::of(pod, &resident.life, host, now))
                .filter(|status| !status::is_same(pod, status));
        }
        Stopping { until, is_new: is_new && runs, status }
    }

    /// Deletes a Pod whose containers have stopped.
    async fn let_go(&self, key: &Key, pod: &Pod) -> Result<(), Failure> {
        let params = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions {
                uid: pod.metadata.uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let deleted = self.api(key).delete(&key.name, &params).await;
        unless_overtaken(deleted).map(drop).doing("delete a Pod whose containers have stopped")
    }

    async fn write_status(&self, key: &Key, pod: &Pod, status: PodStatus) -> Result<(), Failure> {
        let mut status = serde_json::to_value(status).expect("a Pod's status is plain data");
        // A merge leaves alone what it does not name: these are named to go away.
        for field in ["message", "reason"] {
            simcluster_model::object::put(&mut status, field, serde_json::Value::Null);
        }
        let patch = json!({"metadata": {"uid": pod.metadata.uid}, "status": status});
        let params =
            PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let written =
            self.api(key).patch_status(&key.name, &params, &Patch::Strategic(patch)).await;
        // The Pod may be gone, or another by now.
        if let Some(written) = unless_overtaken(written).doing("write a Pod's status")? {
            self.own.wrote(key, &self.pods, &written);
        }
        Ok(())
    }

    fn note(&self, pod: &Pod, incident: &Incident) {
        let image = &incident.image;
        let (severity, reason, message) = match incident.what {
            Happened::Pulling => (Severity::Normal, "Pulling", format!("Pulling image {image:?}")),
            Happened::Pulled => (Severity::Normal, "Pulled", pulled(image, self.delays.pull)),
            Happened::Present => (
                Severity::Normal,
                "Pulled",
                format!(
                    "Container image {image:?} already present on machine and can be accessed by the pod"
                ),
            ),
            Happened::Created => (Severity::Normal, "Created", "Container created".to_owned()),
            Happened::Started => (Severity::Normal, "Started", "Container started".to_owned()),
            Happened::PullFailed => (
                Severity::Warning,
                "Failed",
                format!("Failed to pull image {image:?}: {}", status::pull_error(image)),
            ),
            Happened::PullBackOff => {
                (Severity::Normal, "BackOff", format!("Back-off pulling image {image:?}"))
            }
            Happened::BadName => (Severity::Warning, "InspectFailed", status::bad_name(image)),
            Happened::CrashBackOff => (
                Severity::Warning,
                "BackOff",
                format!(
                    "Back-off restarting failed container {} in pod {}_{}({})",
                    incident.container,
                    pod.metadata.name.as_deref().unwrap_or_default(),
                    pod.metadata.namespace.as_deref().unwrap_or_default(),
                    pod.metadata.uid.as_deref().unwrap_or_default(),
                ),
            ),
        };
        self.note_container(pod, &incident.container, incident.is_init, severity, reason, message);
        if incident.what == Happened::PullFailed {
            let message = "Error: ErrImagePull".to_owned();
            self.note_container(
                pod,
                &incident.container,
                incident.is_init,
                severity,
                "Failed",
                message,
            );
        }
    }

    fn note_container(
        &self,
        pod: &Pod,
        container: &str,
        is_init: bool,
        severity: Severity,
        reason: &str,
        message: String,
    ) {
        let list = if is_init { "initContainers" } else { "containers" };
        let mut object = reference(pod);
        object.field_path = Some(format!("spec.{list}{{{container}}}"));
        self.hands.recorder.note(Note { object, severity, reason: reason.to_owned(), message });
    }

    fn api(&self, key: &Key) -> Api<Pod> {
        self.hands.api(&key.namespace)
    }
}

impl Reconcile for Controller {
    const NAME: &'static str = "kubelet";
    type Key = Key;

    async fn ready(&self) {
        let api: Api<Node> = Api::all(self.hands.client.clone());
        for (name, address) in &self.nodes {
            let mut failures = 0;
            while let Err(failure) =
                node::register(&api, name, address, self.hands.clock.now()).await
            {
                tracing::debug!(name, %failure, "the node is not registered, will try again");
                tokio::time::sleep(super::runtime::queue::retry_delay(failures)).await;
                failures = failures.saturating_add(1);
            }
        }
        self.pods.synced().await;
    }

    async fn reconcile(&self, key: Key) -> Result<Next, Failure> {
        let Some(pod) = self.pods.get(&key) else {
            self.lock().pods.remove(&key);
            self.own.forget(&key);
            return Ok(Next::Done);
        };
        let Some(host) = self.nodes.get(pods::node(&pod)) else { return Ok(Next::Done) };
        if !self.own.all_heard(&key) {
            return Ok(Next::Wait);
        }
        if pods::is_deleting(&pod) {
            return self.end(&key, &pod, host).await;
        }
        if pods::is_finished(&pod) {
            return Ok(Next::Done);
        }
        let outcome = self.live(&key, &pod, host);
        for incident in &outcome.incidents {
            self.note(&pod, incident);
        }
        if !status::is_same(&pod, &outcome.status) {
            self.write_status(&key, &pod, outcome.status).await?;
        }
        Ok(outcome.next.map_or(Next::Done, |at| Next::After(self.until(at))))
    }
}

fn pulled(image: &str, took: Duration) -> String {
    let took = took.as_millis();
    format!(
        "Successfully pulled image {image:?} in {took}ms ({took}ms including waiting). Image size: \
         {IMAGE_SIZE} bytes."
    )
}

/// The Pod's entry; a new one if the Pod is new, or new under an old name.
fn resident<'a>(
    pods: &'a mut BTreeMap<Key, Resident>,
    key: &Key,
    pod: &Pod,
    life: impl Fn() -> Life,
) -> &'a mut Resident {
    let new = || Resident {
        uid: pod.metadata.uid.clone(),
        life: life(),
        stopped_at: None,
        is_over: false,
    };
    let resident = pods.entry(key.clone()).or_insert_with(new);
    if resident.uid != pod.metadata.uid {
        *resident = new();
    }
    resident
}
