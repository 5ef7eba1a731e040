//! The row of a Pod.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::builtin::cells::{View, between, or};
use crate::builtin::value::{flag, int, items, text};
use crate::object;

/// What the containers say, while they are looked through.
#[derive(Debug, Default)]
struct Summary {
    reason: String,
    ready: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
    /// Restarts of the sidecars among the init containers.
    sidecar_restarts: i64,
    last_sidecar_restart: Option<Timestamp>,
    initializing: bool,
}

/// The cells.
pub(super) fn cells(view: View<'_>) -> Vec<Value> {
    let (pod, now) = (view.object, view.now);
    let summary = summarize(pod);
    let restarts = match summary.last_restart {
        Some(time) if summary.restarts != 0 => {
            format!("{} ({} ago)", summary.restarts, between(time, now))
        }
        _ => summary.restarts.to_string(),
    };
    let sidecars =
        items(pod, &["spec", "initContainers"]).iter().filter(|one| is_sidecar(one)).count();
    let total = items(pod, &["spec", "containers"]).len() + sidecars;
    let first_ip = items(pod, &["status", "podIPs"]).first().map_or("", |ip| text(ip, &["ip"]));
    view.named(vec![
        json!(format!("{}/{total}", summary.ready)),
        json!(summary.reason),
        json!(restarts),
        view.age(),
        json!(or(first_ip, "<none>")),
        json!(or(text(pod, &["spec", "nodeName"]), "<none>")),
        json!(or(text(pod, &["status", "nominatedNodeName"]), "<none>")),
        json!(readiness_gates(pod)),
    ])
}

/// The condition that marks ended Pods.
pub(super) fn row_conditions(pod: &Value) -> Vec<Value> {
    let (reason, message) = match text(pod, &["status", "phase"]) {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return Vec::new(),
    };
    vec![json!({ "type": "Completed", "status": "True", "reason": reason, "message": message })]
}

fn summarize(pod: &Value) -> Summary {
    let phase = text(pod, &["status", "phase"]);
    let mut summary = Summary {
        reason: or(text(pod, &["status", "reason"]), phase).to_owned(),
        ..Summary::default()
    };
    let gated = items(pod, &["status", "conditions"]).iter().any(|condition| {
        text(condition, &["type"]) == "PodScheduled"
            && text(condition, &["reason"]) == "SchedulingGated"
    });
    if gated {
        "SchedulingGated".clone_into(&mut summary.reason);
    }
    init_containers(pod, &mut summary);
    if !summary.initializing || condition_is_true(pod, "Initialized") {
        summary.restarts = summary.sidecar_restarts;
        summary.last_restart = summary.last_sidecar_restart;
        containers(pod, &mut summary);
    }
    if object::is_deleting(pod) {
        if text(pod, &["status", "reason"]) == "NodeLost" {
            "Unknown".clone_into(&mut summary.reason);
        } else if !matches!(phase, "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut summary.reason);
        }
    }
    summary
}

/// Looks at init containers up to the first that is not through.
fn init_containers(pod: &Value, summary: &mut Summary) {
    let specs = items(pod, &["spec", "initContainers"]);
    for (index, status) in items(pod, &["status", "initContainerStatuses"]).iter().enumerate() {
        let restarts = int(status, &["restartCount"]).unwrap_or_default();
        let terminated_at = last_termination(status);
        summary.restarts += restarts;
        summary.last_restart = summary.last_restart.max(terminated_at);
        let sidecar = specs
            .iter()
            .any(|spec| text(spec, &["name"]) == text(status, &["name"]) && is_sidecar(spec));
        if sidecar {
            summary.sidecar_restarts += restarts;
            summary.last_sidecar_restart = summary.last_sidecar_restart.max(terminated_at);
        }
        let terminated = status.pointer("/state/terminated");
        if terminated.is_some_and(|state| int(state, &["exitCode"]).unwrap_or_default() == 0) {
            continue;
        }
        if sidecar && flag(status, &["started"]) {
            summary.ready += usize::from(flag(status, &["ready"]));
            continue;
        }
        let waiting = text(status, &["state", "waiting", "reason"]);
        summary.reason = match terminated {
            Some(state) => format!("Init:{}", termination(state)),
            None if !waiting.is_empty() && waiting != "PodInitializing" => {
                format!("Init:{waiting}")
            }
            None => format!("Init:{index}/{}", specs.len()),
        };
        summary.initializing = true;
        break;
    }
}

/// Looks at containers from the last to the first: the first one's word counts.
fn containers(pod: &Value, summary: &mut Summary) {
    let mut running = false;
    let mut error = String::new();
    for status in items(pod, &["status", "containerStatuses"]).iter().rev() {
        summary.restarts += int(status, &["restartCount"]).unwrap_or_default();
        summary.last_restart = summary.last_restart.max(last_termination(status));
        let waiting = text(status, &["state", "waiting", "reason"]);
        if !waiting.is_empty() {
            waiting.clone_into(&mut summary.reason);
        } else if let Some(state) = status.pointer("/state/terminated") {
            summary.reason = termination(state);
            if int(state, &["exitCode"]).unwrap_or_default() != 0 {
                error.clone_from(&summary.reason);
            }
        } else if flag(status, &["ready"]) && status.pointer("/state/running").is_some() {
            running = true;
            summary.ready += 1;
        }
    }
    if summary.reason == "Completed" {
        if running && condition_is_true(pod, "Ready") {
            "Running".clone_into(&mut summary.reason);
        } else if !error.is_empty() {
            summary.reason = error;
        } else if running {
            "NotReady".clone_into(&mut summary.reason);
        }
    }
}

fn termination(state: &Value) -> String {
    let reason = text(state, &["reason"]);
    let signal = int(state, &["signal"]).unwrap_or_default();
    match () {
        () if !reason.is_empty() => reason.to_owned(),
        () if signal != 0 => format!("Signal:{signal}"),
        () => format!("ExitCode:{}", int(state, &["exitCode"]).unwrap_or_default()),
    }
}

fn readiness_gates(pod: &Value) -> String {
    let gates = items(pod, &["spec", "readinessGates"]);
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let passed =
        gates.iter().filter(|gate| condition_is_true(pod, text(gate, &["conditionType"]))).count();
    format!("{passed}/{}", gates.len())
}

fn last_termination(status: &Value) -> Option<Timestamp> {
    text(status, &["lastState", "terminated", "finishedAt"]).parse().ok()
}

fn condition_is_true(pod: &Value, kind: &str) -> bool {
    let conditions = items(pod, &["status", "conditions"]);
    let found = conditions.iter().find(|condition| text(condition, &["type"]) == kind);
    found.is_some_and(|condition| text(condition, &["status"]) == "True")
}

fn is_sidecar(container: &Value) -> bool {
    text(container, &["restartPolicy"]) == "Always"
}
