//! A Pod's status as the kubelet writes it, from the Pod's life.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use sha2::{Digest, Sha256};

use super::container::{Container, Ended, State};
use super::image;
use super::life::Life;
use crate::pods;
use crate::runtime::recorder::whole_seconds;
use simcluster_model::golang;

/// The status of a Pod on a node with the address `host`.
pub(crate) fn of(pod: &Pod, life: &Life, host: &str, now: Timestamp) -> PodStatus {
    let current = pod.status.clone().unwrap_or_default();
    let phase = life.phase();
    let waits = if life.is_initialized() { "ContainerCreating" } else { "PodInitializing" };
    let statuses = |containers: &[Container]| -> Option<Vec<ContainerStatus>> {
        let all: Vec<ContainerStatus> =
            containers.iter().map(|one| container_status(pod, one, waits, now)).collect();
        Some(all).filter(|all| !all.is_empty())
    };
    PodStatus {
        phase: Some(phase.to_owned()),
        observed_generation: pod.metadata.generation,
        conditions: Some(conditions(pod, life, phase, now)),
        container_statuses: statuses(&life.main),
        init_container_statuses: statuses(&life.init),
        host_ip: Some(host.to_owned()),
        host_ips: Some(vec![HostIP { ip: host.to_owned() }]),
        pod_ip: life.ip.clone(),
        pod_ips: life.ip.clone().map(|ip| vec![PodIP { ip }]),
        qos_class: current.qos_class.clone(),
        start_time: Some(Time(whole_seconds(life.started))),
        ..PodStatus::default()
    }
}

/// Whether the stored status says the same as the wanted one, in the parts that the kubelet owns.
pub(crate) fn is_same(pod: &Pod, wanted: &PodStatus) -> bool {
    let current = pod.status.clone().unwrap_or_default();
    let conditions_are_there = wanted.conditions.iter().flatten().all(|condition| {
        current.conditions.iter().flatten().any(|one| {
            one.type_ == condition.type_
                && one.status == condition.status
                && one.reason == condition.reason
                && one.message == condition.message
        })
    });
    conditions_are_there
        && current.phase == wanted.phase
        && current.container_statuses == wanted.container_statuses
        && current.init_container_statuses == wanted.init_container_statuses
        && current.host_ip == wanted.host_ip
        && current.pod_ip == wanted.pod_ip
        && current.start_time == wanted.start_time
        && current.observed_generation == wanted.observed_generation
}

fn conditions(pod: &Pod, life: &Life, phase: &str, now: Timestamp) -> Vec<PodCondition> {
    let ready = containers_ready(life, phase, now);
    let gates = pod.spec.as_ref().and_then(|spec| spec.readiness_gates.as_ref());
    let pod_ready = if ready.is_none() {
        let missing: Vec<String> = gates
            .into_iter()
            .flatten()
            .filter_map(|gate| gate_message(pod, &gate.condition_type))
            .collect();
        (!missing.is_empty()).then(|| ("ReadinessGatesNotReady", missing.join(", ")))
    } else {
        ready.clone()
    };
    let sandbox = (!life.has_sandbox() || matches!(phase, "Succeeded" | "Failed"))
        .then(|| ("", String::new()));
    vec![
        condition(pod, "PodReadyToStartContainers", sandbox, now),
        initialized(pod, life, phase, now),
        condition(pod, "Ready", pod_ready, now),
        condition(pod, "ContainersReady", ready, now),
        condition(pod, "PodScheduled", None, now),
    ]
}

/// Why the containers are not all ready: reason and message.
fn containers_ready(life: &Life, phase: &str, now: Timestamp) -> Option<(&'static str, String)> {
    match phase {
        "Succeeded" => return Some(("PodCompleted", String::new())),
        "Failed" => return Some(("PodFailed", String::new())),
        _ => {}
    }
    let unready: Vec<&str> = life
        .main
        .iter()
        .filter(|container| !container.is_ready(now))
        .map(|container| container.name.as_str())
        .collect();
    (!unready.is_empty()).then(|| {
        ("ContainersNotReady", format!("containers with unready status: [{}]", unready.join(" ")))
    })
}

fn gate_message(pod: &Pod, type_: &str) -> Option<String> {
    match pods::condition(pod, type_) {
        None => {
            Some(format!("corresponding condition of pod readiness gate {type_:?} does not exist."))
        }
        Some(condition) if condition.status != "True" => Some(format!(
            "the status of pod readiness gate {type_:?} is not \"True\", but {}",
            condition.status
        )),
        Some(_) => None,
    }
}

fn initialized(pod: &Pod, life: &Life, phase: &str, now: Timestamp) -> PodCondition {
    if phase == "Succeeded" {
        let mut completed = condition(pod, "Initialized", None, now);
        completed.reason = Some("PodCompleted".to_owned());
        return completed;
    }
    let waiting: Vec<&str> = life
        .init
        .iter()
        .filter(|one| one.result() != Some(0) && !(one.is_running() && life.is_initialized()))
        .map(|one| one.name.as_str())
        .collect();
    let problem = (!life.is_initialized()).then(|| {
        let message = format!("containers with incomplete status: [{}]", waiting.join(" "));
        ("ContainersNotInitialized", message)
    });
    condition(pod, "Initialized", problem, now)
}

/// A condition that is True unless there is a problem (reason and message). Its transition time is kept
/// while its status stays.
fn condition(
    pod: &Pod,
    type_: &str,
    problem: Option<(&str, String)>,
    now: Timestamp,
) -> PodCondition {
    let status = if problem.is_some() { "False" } else { "True" };
    let current = pods::condition(pod, type_).filter(|current| current.status == status);
    let since = current
        .and_then(|current| current.last_transition_time.clone())
        .unwrap_or(Time(whole_seconds(now)));
    let (reason, message) = problem.unwrap_or_default();
    PodCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()).filter(|text| !text.is_empty()),
        message: Some(message).filter(|text| !text.is_empty()),
        last_transition_time: Some(since),
        last_probe_time: None,
        observed_generation: pod.metadata.generation,
    }
}

fn container_status(
    pod: &Pod,
    container: &Container,
    waits: &str,
    now: Timestamp,
) -> ContainerStatus {
    let is_init = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.init_containers.as_ref())
        .is_some_and(|all| all.iter().any(|one| one.name == container.name));
    let has_run = container.starts > 0;
    let (state, last) = states(pod, container, waits);
    let is_done = is_init && container.result() == Some(0);
    ContainerStatus {
        name: container.name.clone(),
        image: if has_run { image::full_name(&container.image) } else { container.image.clone() },
        image_id: if has_run { image_id(&container.image) } else { String::new() },
        container_id: has_run.then(|| container_id(pod, container, container.starts)),
        ready: container.is_ready(now) || is_done,
        started: Some(container.is_running()),
        restart_count: i32::try_from(container.restarts()).unwrap_or(i32::MAX),
        state: Some(state),
        last_state: Some(last),
        ..ContainerStatus::default()
    }
}

/// State and last state.
fn states(pod: &Pod, container: &Container, waits: &str) -> (ContainerState, ContainerState) {
    let none = ContainerState::default();
    let last = container
        .last
        .map_or_else(ContainerState::default, |ended| terminated(pod, container, ended));
    match container.state {
        State::Queued | State::Pulling { .. } => (waiting(waits, None), last),
        // Between two runs without back-off the last one is what shows.
        State::Starting { .. } if container.last.is_some() => (last, none),
        State::Starting { .. } => (waiting(waits, None), none),
        State::Running { since, .. } => {
            let running = ContainerStateRunning { started_at: Some(Time(whole_seconds(since))) };
            (ContainerState { running: Some(running), ..none }, last)
        }
        State::PullFailed { .. } => {
            (waiting("ErrImagePull", Some(pull_error(&container.image))), last)
        }
        State::PullBackOff { .. } => {
            let message = back_off_pulling(&container.image);
            (waiting("ImagePullBackOff", Some(message)), last)
        }
        State::BadName => (waiting("InvalidImageName", Some(bad_name(&container.image))), last),
        State::CrashBackOff { wait, .. } => {
            let message = back_off_restarting(pod, &container.name, wait);
            (waiting("CrashLoopBackOff", Some(message)), last)
        }
        State::Over => (last, none),
    }
}

fn waiting(reason: &str, message: Option<String>) -> ContainerState {
    let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

fn terminated(pod: &Pod, container: &Container, ended: Ended) -> ContainerState {
    let reason = if ended.code == 0 { "Completed" } else { "Error" };
    let terminated = ContainerStateTerminated {
        exit_code: ended.code,
        reason: Some(reason.to_owned()),
        started_at: Some(Time(whole_seconds(ended.started))),
        finished_at: Some(Time(whole_seconds(ended.at))),
        container_id: Some(container_id(pod, container, ended.run)),
        ..ContainerStateTerminated::default()
    };
    ContainerState { terminated: Some(terminated), ..ContainerState::default() }
}

/// What the container runtime says of an image that the registry does not have.
pub(crate) fn pull_error(image: &str) -> String {
    let name = image::full_name(image);
    format!(
        "rpc error: code = NotFound desc = failed to pull and unpack image {name:?}: failed to \
         resolve reference {name:?}: {name}: not found"
    )
}

/// Why the next pull waits.
pub(crate) fn back_off_pulling(image: &str) -> String {
    format!("Back-off pulling image {image:?}: ErrImagePull: {}", pull_error(image))
}

/// What the kubelet says of a name that is no image reference.
pub(crate) fn bad_name(image: &str) -> String {
    format!(
        "Failed to apply default image tag {image:?}: couldn't parse image name {image:?}: invalid \
         reference format"
    )
}

/// Why the next start waits.
pub(crate) fn back_off_restarting(pod: &Pod, container: &str, wait: SignedDuration) -> String {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let meta = &pod.metadata;
    format!(
        "back-off {} restarting failed container={container} pod={}_{}({})",
        go_duration(wait),
        text(&meta.name),
        text(&meta.namespace),
        text(&meta.uid)
    )
}

/// A duration of whole seconds as Go prints it: `10s`, `1m20s`.
fn go_duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    let (minutes, seconds) = (seconds.div_euclid(60), seconds.rem_euclid(60));
    if minutes == 0 { format!("{seconds}s") } else { format!("{minutes}m{seconds}s") }
}

fn image_id(image: &str) -> String {
    let name = image::full_name(image);
    let end = if name.contains('@') { name.find('@') } else { name.rfind(':') };
    let repository = end.and_then(|end| name.get(..end)).unwrap_or(&name);
    format!("{repository}@sha256:{}", hex(&name))
}

fn container_id(pod: &Pod, container: &Container, run: u32) -> String {
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    format!("containerd://{}", hex(&format!("{uid}/{}/{run}", container.name)))
}

fn hex(text: &str) -> String {
    golang::hex(&Sha256::digest(text.as_bytes()))
}
