//! Pods: what the strategy fills in, and how they end.

use serde_json::{Value, json};

use super::value::{at, int, items, text};
use crate::builtin::quantity::Quantity;
use crate::error::ApiError;
use crate::object;
use crate::resource::{Resource, Surroundings};
use crate::time::format_seconds;

#[expect(clippy::unnecessary_wraps, reason = "has the form of all kinds' rules")]
pub(super) fn allocate_for_create(
    _resource: &Resource,
    pod: &mut Value,
    around: &mut Surroundings<'_>,
) -> Result<(), ApiError> {
    let quality = quality_of_service(pod);
    object::put(pod, "status", json!({ "phase": "Pending", "qosClass": quality }));
    if !items(pod, &["spec", "schedulingGates"]).is_empty() {
        let condition = json!({
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null, "lastTransitionTime": format_seconds(around.now),
        });
        object::set_path(pod, "status.conditions", json!([condition]));
    }
    Ok(())
}

pub(super) fn prepare_for_update(
    _resource: &Resource,
    subresource: &str,
    pod: &mut Value,
    old: &Value,
) {
    if subresource == "status" {
        let metadata = object::metadata_mut(pod);
        match object::metadata(old).get("ownerReferences") {
            Some(owners) => {
                metadata.insert("ownerReferences".to_owned(), owners.clone());
            }
            None => {
                metadata.remove("ownerReferences");
            }
        }
        if text(pod, &["status", "qosClass"]).is_empty()
            && let Some(quality) = at(old, &["status", "qosClass"])
        {
            object::set_path(pod, "status.qosClass", quality.clone());
        }
        if int(pod, &["status", "observedGeneration"]).unwrap_or_default() == 0
            && let Some(generation) = at(old, &["status", "observedGeneration"])
        {
            object::set_path(pod, "status.observedGeneration", generation.clone());
        }
    }
}

/// The period of a DELETE: none for Pods that no kubelet runs (any more).
pub(super) fn grace_period_seconds(pod: &Value, asked: Option<i64>) -> i64 {
    let wanted = asked.or_else(|| int(pod, &["spec", "terminationGracePeriodSeconds"]));
    let ended = matches!(text(pod, &["status", "phase"]), "Failed" | "Succeeded");
    match wanted.unwrap_or_default() {
        _ if ended || text(pod, &["spec", "nodeName"]).is_empty() => 0,
        negative if negative < 0 => 1,
        period => period,
    }
}

/// `Guaranteed`, `Burstable` or `BestEffort`, from the cpu and memory that the containers (or the Pod
/// as a whole) ask for.
pub(super) fn quality_of_service(pod: &Value) -> &'static str {
    if let Some(resources) = at(pod, &["spec", "resources"]) {
        return quality_of(resources);
    }
    let containers =
        ["initContainers", "containers"].into_iter().flat_map(|list| items(pod, &["spec", list]));
    let nothing = json!({});
    let mut all =
        containers.map(|container| quality_of(at(container, &["resources"]).unwrap_or(&nothing)));
    let Some(first) = all.next() else { return "BestEffort" };
    if all.all(|one| one == first) { first } else { "Burstable" }
}

fn quality_of(resources: &Value) -> &'static str {
    let amount = |list: &str, name: &str| {
        let text = text(resources, &[list, name]);
        Quantity::parse(text).map(Quantity::nanos).unwrap_or_default()
    };
    let classes =
        ["cpu", "memory"].map(|name| match (amount("requests", name), amount("limits", name)) {
            (request, limit) if request != limit => "Burstable",
            (0, _) => "BestEffort",
            _ => "Guaranteed",
        });
    match classes {
        [cpu, memory] if cpu == memory => cpu,
        _ => "Burstable",
    }
}
