//! Pods.

mod cells;

use serde_json::{Map, Value, json};

use crate::builtin::addresses::ip_warning;
use crate::builtin::check::Faults;
use crate::builtin::defaults::{Fields, field_text, inner, set};
use crate::builtin::kind::{Generation, Kind};
use crate::builtin::pod_template;
use crate::builtin::quantity::Quantity;
use crate::builtin::value::{at, int, items, objects_mut, text};
use crate::builtin::workload::name_warning;
use crate::error::ApiError;
use crate::field::FieldError;
use crate::object;
use crate::resource::{Resource, Surroundings};
use crate::time::format_seconds;

/// `pods`.
pub(super) static KIND: Kind = Kind {
    generation: Generation::Spec,
    status_subresource: true,
    returns_deleted_object: true,
    default,
    allocate_for_create,
    prepare_for_update,
    validate,
    validate_update: Some(validate_update),
    warnings,
    status_warnings,
    grace_period_seconds: Some(grace_period_seconds),
    cells: cells::cells,
    row_conditions: cells::row_conditions,
    field_labels: &[
        ("spec.nodeName", &["spec.nodeName"]),
        ("spec.host", &["spec.nodeName"]),
        ("spec.restartPolicy", &["spec.restartPolicy"]),
        ("spec.schedulerName", &["spec.schedulerName"]),
        ("spec.serviceAccountName", &["spec.serviceAccountName"]),
        ("spec.hostNetwork", &["spec.hostNetwork"]),
        ("status.phase", &["status.phase"]),
        ("status.podIP", &["status.podIP"]),
        ("status.podIPs", &["status.podIP"]),
        ("status.nominatedNodeName", &["status.nominatedNodeName"]),
    ],
    ..Kind::new("", "pods")
};

fn default(fields: &mut Fields) {
    let spec = inner(fields, "spec");
    if let Some(period) = spec.get_mut("terminationGracePeriodSeconds")
        && period.as_i64().is_some_and(|seconds| seconds < 0)
    {
        *period = json!(1);
    }
    for list in ["containers", "initContainers"] {
        for container in objects_mut(spec.get_mut(list)) {
            default_requests(container);
        }
    }
    set(spec, "enableServiceLinks", || json!(true));
    if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        for list in ["containers", "initContainers"] {
            objects_mut(spec.get_mut(list)).for_each(sync_host_ports);
        }
    }
    if let Some(Value::Object(status)) = fields.get_mut("status") {
        default_addresses(status);
    }
}

/// In Pods, but not in templates, what is limited is requested, too.
fn default_requests(container: &mut Fields) {
    let Some(Value::Object(resources)) = container.get_mut("resources") else { return };
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else { return };
    let requests = inner(resources, "requests");
    for (name, amount) in limits {
        requests.entry(name).or_insert(amount);
    }
}

/// Containers on the host's network publish their ports there.
fn sync_host_ports(container: &mut Map<String, Value>) {
    for port in objects_mut(container.get_mut("ports")) {
        if port.get("hostPort").and_then(Value::as_i64).unwrap_or_default() == 0 {
            let number = port.get("containerPort").cloned().unwrap_or_else(|| json!(0));
            port.insert("hostPort".to_owned(), number);
        }
    }
}

/// `podIP` and the first of `podIPs` are one; the older field wins.
fn default_addresses(status: &mut Fields) {
    let ip = field_text(status, "podIP").to_owned();
    let first = status.get("podIPs").and_then(|list| list.get(0)?.get("ip")?.as_str());
    match first.map(str::to_owned) {
        Some(first) if ip.is_empty() => {
            status.insert("podIP".to_owned(), json!(first));
        }
        first if !ip.is_empty() && first.as_ref() != Some(&ip) => {
            status.insert("podIPs".to_owned(), json!([{ "ip": ip }]));
        }
        _ => {}
    }
}

#[expect(clippy::unnecessary_wraps, reason = "has the form of all kinds' rules")]
fn allocate_for_create(
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

fn prepare_for_update(_resource: &Resource, subresource: &str, pod: &mut Value, old: &Value) {
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
fn grace_period_seconds(pod: &Value, asked: Option<i64>) -> i64 {
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
pub(in crate::builtin) fn quality_of_service(pod: &Value) -> &'static str {
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

/// A new Pod.
fn validate(pod: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    pod_itself(pod, &mut faults);
    if !items(pod, &["spec", "ephemeralContainers"]).is_empty() {
        faults.forbidden("spec.ephemeralContainers", "cannot be set on create");
    }
    if !text(pod, &["spec", "nodeName"]).is_empty()
        && !items(pod, &["spec", "schedulingGates"]).is_empty()
    {
        let why = "cannot be set until all schedulingGates have been cleared";
        faults.forbidden("spec.nodeName", why);
    }
    faults.0
}

fn pod_itself(pod: &Value, faults: &mut Faults) {
    pod_template::spec(at(pod, &["spec"]).unwrap_or(&Value::Null), "spec", faults);
    let period = int(pod, &["spec", "terminationGracePeriodSeconds"]);
    faults.not_negative("spec.terminationGracePeriodSeconds", period);
    for list in ["containers", "initContainers"] {
        for (index, container) in items(pod, &["spec", list]).iter().enumerate() {
            let image = text(container, &["image"]);
            if image.trim() != image {
                let field = format!("spec.{list}[{index}].image");
                faults.invalid(
                    field,
                    &json!(image),
                    "must not have leading or trailing whitespace",
                );
            }
        }
    }
}

/// A changed Pod: little of it may change.
fn validate_update(pod: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    pod_itself(pod, &mut faults);
    for list in ["containers", "initContainers"] {
        let (new_count, old_count) =
            (items(pod, &["spec", list]).len(), items(old, &["spec", list]).len());
        if new_count != old_count {
            faults
                .forbidden(format!("spec.{list}"), "pod updates may not add or remove containers");
            return faults.0;
        }
    }
    if let Some(why) = deadline_fault(pod, old) {
        let seconds = at(pod, &["spec", "activeDeadlineSeconds"]).unwrap_or(&Value::Null);
        faults.invalid("spec.activeDeadlineSeconds", seconds, why);
    }
    let (new_list, old_list) =
        (items(pod, &["spec", "tolerations"]), items(old, &["spec", "tolerations"]));
    if !old_list.iter().all(|one| new_list.contains(one)) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        faults.forbidden("spec.tolerations", why);
    }
    let mut compared = at(pod, &["spec"]).cloned().unwrap_or_default();
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        let before = at(old, &["spec", field]).cloned();
        let map = object::as_map(&mut compared);
        match before {
            Some(value) => map.insert(field.to_owned(), value),
            None => map.remove(field),
        };
    }
    for list in ["containers", "initContainers"] {
        let before = items(old, &["spec", list]);
        let now = objects_mut(object::as_map(&mut compared).get_mut(list));
        for (container, before) in now.zip(before) {
            container.insert("image".to_owned(), json!(text(before, &["image"])));
        }
    }
    if Some(&compared) != at(old, &["spec"]) {
        faults.forbidden(
            "spec",
            "pod updates may not change fields other than `spec.containers[*].image`,\
             `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only \
             additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be \
             set to 1 if it was previously negative)",
        );
    }
    faults.0
}

fn deadline_fault(pod: &Value, old: &Value) -> Option<&'static str> {
    let seconds = |one: &Value| int(one, &["spec", "activeDeadlineSeconds"]);
    match (seconds(pod), seconds(old)) {
        (Some(now), Some(before)) if now > before => {
            Some("must be less than or equal to previous value")
        }
        (None, Some(_)) => Some("must not update from a positive integer to nil value"),
        _ => None,
    }
}

/// Of a changed Pod nothing is said: people seldom write one.
fn warnings(pod: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_some() {
        return Vec::new();
    }
    let mut found: Vec<String> = name_warning(pod, old, "the Pod's hostname").into_iter().collect();
    found.extend(pod_template::warnings(pod, ""));
    found
}

fn status_warnings(pod: &Value) -> Vec<String> {
    let lists = ["podIPs", "hostIPs"].into_iter();
    lists
        .flat_map(|list| {
            items(pod, &["status", list]).iter().enumerate().map(move |one| (list, one))
        })
        .filter_map(|(list, (index, one))| {
            ip_warning(&format!("status.{list}[{index}].ip"), text(one, &["ip"]))
        })
        .collect()
}
