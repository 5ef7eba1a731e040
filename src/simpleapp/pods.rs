//! Reads from pods why an app does not start.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use super::{children::CONTAINER, validate::Valid};

/// Label by which the Deployment controller tells the pods of one template from those of another.
const TEMPLATE_LABEL: &str = "pod-template-hash";

/// Reasons of a waiting container that need somebody to look, the most telling first: of several
/// pods that fail in different ways, the first reason in this list is reported.
const FAILURES: [&str; 7] = [
    "InvalidImageName",
    "ImagePullBackOff",
    "ErrImagePull",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "CrashLoopBackOff",
];

/// What we look at in a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodView {
    /// Which template it was made from.
    pub template: String,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Image of the app's container.
    pub image: Option<String>,
    /// Ports of the app's container.
    pub ports: Vec<i32>,
    /// Its containers.
    pub containers: Vec<ContainerView>,
}

/// What we look at in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerView {
    /// Its image, as the pod asks for it.
    pub image: String,
    /// Why it waits, if it does.
    pub waiting: Option<String>,
    /// Whether it has been started again and is not ready.
    pub restarted: bool,
}

impl PodView {
    /// What we look at in `pod`.
    #[must_use]
    pub fn of(pod: &Pod) -> Self {
        let spec = pod.spec.as_ref();
        let own = spec.and_then(|spec| spec.containers.iter().find(|c| c.name == CONTAINER));
        let status = pod.status.as_ref();
        let inits = status.and_then(|status| status.init_container_statuses.as_deref());
        let mains = status.and_then(|status| status.container_statuses.as_deref());
        let statuses = inits.unwrap_or_default().iter().chain(mains.unwrap_or_default());
        let labels = pod.metadata.labels.as_ref();
        Self {
            template: labels
                .and_then(|labels| labels.get(TEMPLATE_LABEL))
                .cloned()
                .unwrap_or_default(),
            created: pod.metadata.creation_timestamp.as_ref().map(|time| time.0),
            deleting: pod.metadata.deletion_timestamp.is_some(),
            image: own.and_then(|container| container.image.clone()),
            ports: own
                .and_then(|container| container.ports.as_ref())
                .map(|ports| ports.iter().map(|port| port.container_port).collect())
                .unwrap_or_default(),
            containers: statuses.map(|status| ContainerView::of(pod, status)).collect(),
        }
    }

    fn fits(&self, app: &Valid) -> bool {
        !self.deleting
            && self.image.as_deref() == Some(app.image.as_str())
            && self.ports.contains(&i32::from(app.port.get()))
    }
}

impl ContainerView {
    fn of(pod: &Pod, status: &ContainerStatus) -> Self {
        let spec = pod.spec.iter();
        let asked = spec
            .flat_map(|spec| spec.init_containers.iter().flatten().chain(&spec.containers))
            .find(|container| container.name == status.name)
            .and_then(|container| container.image.clone());
        let waiting = status.state.as_ref().and_then(|state| state.waiting.as_ref());
        Self {
            image: asked.unwrap_or_else(|| status.image.clone()),
            waiting: waiting.and_then(|waiting| waiting.reason.clone()),
            restarted: status.restart_count > 0 && !status.ready,
        }
    }
}

/// Why pods of the current template do not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodFailure {
    /// The reason in one word: `ImagePullBackOff`.
    pub reason: &'static str,
    /// Reason and image, without anything that differs from pod to pod.
    pub message: String,
}

/// Finds why pods of the current template do not start, if they do not. `previous` is what was
/// reported before.
///
/// Some reasons come and go while nothing changes for the better: a pull that is tried again says
/// `ErrImagePull` for a moment, and a container that crashes runs for a moment. What was reported
/// stays until there is something better to say.
#[must_use]
pub fn failure(pods: &[PodView], app: &Valid, previous: Option<&str>) -> Option<PodFailure> {
    // A template that differs in what is not ours (`kubectl rollout restart`) looks the same to us;
    // the newest pod tells which one is current.
    let newest = pods
        .iter()
        .filter(|pod| pod.fits(app))
        .max_by(|a, b| (a.created, &a.template).cmp(&(b.created, &b.template)))?;
    let current = pods.iter().filter(|pod| pod.fits(app) && pod.template == newest.template);
    let containers: Vec<&ContainerView> = current.flat_map(|pod| &pod.containers).collect();

    let was = |reason: &str, image: &str| previous == Some(text(reason, image).as_str());
    let mut found: Vec<(usize, &str)> = Vec::new();
    for container in containers {
        let image = container.image.as_str();
        let reason = match container.waiting.as_deref() {
            Some("ErrImagePull") if was("ImagePullBackOff", image) => Some("ImagePullBackOff"),
            None if container.restarted && was("CrashLoopBackOff", image) => {
                Some("CrashLoopBackOff")
            }
            reason => reason,
        };
        let rank = reason.and_then(|reason| FAILURES.iter().position(|entry| *entry == reason));
        found.extend(rank.map(|rank| (rank, image)));
    }
    let (rank, image) = found.into_iter().min()?;
    let reason = FAILURES.get(rank).copied()?;
    Some(PodFailure { reason, message: text(reason, image) })
}

fn text(reason: &str, image: &str) -> String {
    format!("{reason}: {image}")
}
