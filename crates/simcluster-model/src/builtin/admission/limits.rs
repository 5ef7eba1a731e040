//! What `LimitRanges` do to new Pods.

use serde_json::{Value, json};

use crate::builtin::pod_template::resources::{Amounts, amounts, of_pod};
use crate::builtin::quantity::Quantity;
use crate::builtin::value::{at, items, objects_mut, text};
use crate::object;

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Fills the defaults of a `LimitRange` into the containers of a Pod, and notes that it did.
pub fn fill(range: &Value, pod: &mut Value) {
    let limits = items(range, &["spec", "limits"]);
    let containers = || limits.iter().filter(|one| text(one, &["type"]) == "Container");
    let all = |field: &str| -> Vec<(String, Value)> {
        let lists = containers().filter_map(|one| at(one, &[field])?.as_object());
        lists.flatten().map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let (requests, limits) = (all("defaultRequest"), all("default"));
    let mut notes: Vec<String> = Vec::new();
    let spec = object::as_map(object::child(pod, "spec"));
    for (list, called) in [("containers", "container"), ("initContainers", "init container")] {
        for container in objects_mut(spec.get_mut(list)) {
            let name = container.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let resources = container.entry("resources").or_insert_with(|| json!({}));
            let mut set = |field: &str, defaults: &[(String, Value)], what: &str| {
                let added = add_missing(resources, field, defaults);
                if !added.is_empty() {
                    notes.push(format!("{} {what} for {called} {name}", added.join(", ")));
                }
            };
            set("requests", &requests, "request");
            set("limits", &limits, "limit");
        }
    }
    if !notes.is_empty() {
        let note = format!("LimitRanger plugin set: {}", notes.join("; "));
        let annotations = object::metadata_mut(pod).entry("annotations").or_insert(Value::Null);
        object::put(annotations, ANNOTATION, json!(note));
    }
}

/// Adds what a resource list lacks; answers the names, sorted.
fn add_missing(resources: &mut Value, field: &str, defaults: &[(String, Value)]) -> Vec<String> {
    let mut added = Vec::new();
    if defaults.is_empty() {
        return added;
    }
    let list = object::as_map(object::child(resources, field));
    for (name, value) in defaults {
        if !list.contains_key(name) {
            list.insert(name.clone(), value.clone());
            added.push(name.clone());
        }
    }
    added.sort();
    added
}

/// What of a Pod is out of the bounds of a `LimitRange`.
#[must_use]
pub fn faults(range: &Value, pod: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for limit in items(range, &["spec", "limits"]) {
        match text(limit, &["type"]) {
            "Container" => {
                for list in ["containers", "initContainers"] {
                    for container in items(pod, &["spec", list]) {
                        let of = |list: &str| amounts(at(container, &["resources", list]));
                        bounds(limit, "Container", &of("requests"), &of("limits"), &mut faults);
                    }
                }
            }
            "Pod" => {
                let (requests, limits) = (of_pod(pod, "requests"), of_pod(pod, "limits"));
                bounds(limit, "Pod", &requests, &limits, &mut faults);
            }
            _ => {}
        }
    }
    faults
}

fn bounds(limit: &Value, of: &str, requests: &Amounts, limits: &Amounts, faults: &mut Vec<String>) {
    for (name, bound) in amounts(at(limit, &["min"])) {
        let text = format!("minimum {name} usage per {of} is {}", bound.canonical());
        let below = |amount: &&Quantity| amount.nanos() < bound.nanos();
        match requests.get(&name) {
            None => faults.push(format!("{text}.  No request is specified")),
            Some(request) if below(&request) => {
                faults.push(format!("{text}, but request is {}", request.canonical()));
            }
            Some(_) => faults.extend(
                limits
                    .get(&name)
                    .filter(below)
                    .map(|limit| format!("{text}, but limit is {}", limit.canonical())),
            ),
        }
    }
    for (name, bound) in amounts(at(limit, &["max"])) {
        let text = format!("maximum {name} usage per {of} is {}", bound.canonical());
        let above = |amount: &&Quantity| amount.nanos() > bound.nanos();
        match limits.get(&name) {
            None => faults.push(format!("{text}.  No limit is specified")),
            Some(limit) if above(&limit) => {
                faults.push(format!("{text}, but limit is {}", limit.canonical()));
            }
            Some(_) => faults.extend(
                requests
                    .get(&name)
                    .filter(above)
                    .map(|request| format!("{text}, but request is {}", request.canonical())),
            ),
        }
    }
    for (name, bound) in amounts(at(limit, &["maxLimitRequestRatio"])) {
        let text = format!("{name} max limit to request ratio per {of} is {}", bound.canonical());
        let given = |list: &Amounts| list.get(&name).map(|one| one.nanos()).filter(|one| *one != 0);
        match (given(requests), given(limits)) {
            (None, _) => {
                faults.push(format!("{text}, but no request is specified or request is 0"));
            }
            (_, None) => faults.push(format!("{text}, but no limit is specified or limit is 0")),
            (Some(request), Some(limit)) if limit * NANOS > request * bound.nanos() => {
                let ratio = decimal(limit, request);
                faults.push(format!("{text}, but provided ratio is {ratio}"));
            }
            (Some(_), Some(_)) => {}
        }
    }
}

/// Billionths in a whole.
const NANOS: i128 = 1_000_000_000;

/// A ratio with six digits after the point.
fn decimal(above: i128, below: i128) -> String {
    let millionths = (above * 2_000_000 + below) / (below * 2);
    format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000)
}
