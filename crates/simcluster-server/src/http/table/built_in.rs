//! The cells of built-in kinds other than Pods.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::format::{self, label_selector, labels, or};
use super::network::{endpoint_slice, endpoints, ingress, ingress_class, service};
use super::view::{View, text};
use simcluster_model::object;

/// The cells of a kind, by `group/plural`; kinds without columns of their own show when they were made.
pub(super) fn cells(key: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    let view = View { object, now };
    if matches!(key, "events" | "events.k8s.io/events") {
        return event(view);
    }
    let own = match key {
        "configmaps" => vec![json!(view.size("/data") + view.size("/binaryData")), view.age()],
        "secrets" => vec![view.text("/type"), json!(view.size("/data")), view.age()],
        "serviceaccounts" => vec![view.age()],
        "namespaces" => vec![view.text("/status/phase"), view.age()],
        "nodes" => node(view),
        "services" => service(view),
        "endpoints" => vec![json!(endpoints(view)), view.age()],
        "resourcequotas" => resource_quota(view),
        "apps/deployments" => deployment(view),
        "apps/replicasets" => replica_set(view),
        "apps/statefulsets" => stateful_set(view),
        "apps/daemonsets" => daemon_set(view),
        "batch/jobs" => job(view),
        "networking.k8s.io/ingresses" => ingress(view),
        "networking.k8s.io/ingressclasses" => return ingress_class(view),
        "networking.k8s.io/networkpolicies" => {
            vec![json!(label_selector(object.pointer("/spec/podSelector"))), view.age()]
        }
        "autoscaling/horizontalpodautoscalers" => super::hpa::cells(object, &view.age()),
        "policy/poddisruptionbudgets" => disruption_budget(view),
        "rbac.authorization.k8s.io/rolebindings"
        | "rbac.authorization.k8s.io/clusterrolebindings" => role_binding(view),
        "admissionregistration.k8s.io/mutatingwebhookconfigurations"
        | "admissionregistration.k8s.io/validatingwebhookconfigurations" => {
            vec![json!(view.list("/webhooks").len()), view.age()]
        }
        "apiextensions.k8s.io/customresourcedefinitions" => definition(view),
        "scheduling.k8s.io/priorityclasses" => vec![
            json!(view.number("/value")),
            json!(view.flag("/globalDefault")),
            view.age(),
            view.text("/preemptionPolicy"),
        ],
        "coordination.k8s.io/leases" => vec![view.text("/spec/holderIdentity"), view.age()],
        "discovery.k8s.io/endpointslices" => endpoint_slice(view),
        _ => vec![view.text("/metadata/creationTimestamp")],
    };
    std::iter::once(json!(object::name(object))).chain(own).collect()
}

fn deployment(view: View<'_>) -> Vec<Value> {
    let ready = view.number("/status/readyReplicas");
    let wanted = view.number("/spec/replicas");
    let [names, images] = view.containers();
    vec![
        json!(format!("{ready}/{wanted}")),
        view.count("/status/updatedReplicas"),
        view.count("/status/availableReplicas"),
        view.age(),
        names,
        images,
        view.selector(),
    ]
}

fn replica_set(view: View<'_>) -> Vec<Value> {
    let [names, images] = view.containers();
    vec![
        view.count("/spec/replicas"),
        view.count("/status/replicas"),
        view.count("/status/readyReplicas"),
        view.age(),
        names,
        images,
        view.selector(),
    ]
}

fn stateful_set(view: View<'_>) -> Vec<Value> {
    let ready = view.number("/status/readyReplicas");
    let wanted = view.number("/spec/replicas");
    let [names, images] = view.containers();
    vec![json!(format!("{ready}/{wanted}")), view.age(), names, images]
}

fn daemon_set(view: View<'_>) -> Vec<Value> {
    let [names, images] = view.containers();
    vec![
        view.count("/status/desiredNumberScheduled"),
        view.count("/status/currentNumberScheduled"),
        view.count("/status/numberReady"),
        view.count("/status/updatedNumberScheduled"),
        view.count("/status/numberAvailable"),
        json!(labels(view.object.pointer("/spec/template/spec/nodeSelector"))),
        view.age(),
        names,
        images,
        view.selector(),
    ]
}

fn job(view: View<'_>) -> Vec<Value> {
    let [names, images] = view.containers();
    let deleting = object::is_deleting(view.object);
    let status = match () {
        () if view.has_condition("Complete") => "Complete",
        () if view.has_condition("Failed") => "Failed",
        () if deleting => "Terminating",
        () if view.has_condition("Suspended") => "Suspended",
        () if view.has_condition("FailureTarget") => "FailureTarget",
        () if view.has_condition("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    };
    vec![
        json!(status),
        json!(job_completions(view)),
        json!(job_duration(view)),
        view.age(),
        names,
        images,
        view.selector(),
    ]
}

fn job_completions(view: View<'_>) -> String {
    let succeeded = view.number("/status/succeeded");
    let parallelism = view.number("/spec/parallelism");
    match view.object.pointer("/spec/completions").and_then(Value::as_i64) {
        Some(completions) => format!("{succeeded}/{completions}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    }
}

fn job_duration(view: View<'_>) -> String {
    let Ok(start) = view.str("/status/startTime").parse::<Timestamp>() else {
        return String::new();
    };
    let end = view.str("/status/completionTime").parse::<Timestamp>().unwrap_or(view.now);
    format::between(start, end)
}

fn node(view: View<'_>) -> Vec<Value> {
    let conditions = view.list("/status/conditions");
    let ready = conditions.iter().rfind(|condition| text(condition, "/type") == "Ready");
    let mut status = match ready.map(|condition| text(condition, "/status")) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if view.flag("/spec/unschedulable") {
        status.push_str(",SchedulingDisabled");
    }
    let address = |kind: &str| {
        let found = view.list("/status/addresses").iter().find(|one| text(one, "/type") == kind);
        json!(found.map_or("<none>", |one| text(one, "/address")))
    };
    let info = |field: &str| view.str(&format!("/status/nodeInfo/{field}"));
    let architecture = info("architecture");
    let mut kernel = or(info("kernelVersion"), "<unknown>").to_owned();
    if !architecture.is_empty() {
        kernel = format!("{kernel} ({architecture})");
    }
    vec![
        json!(status),
        json!(node_roles(view)),
        view.age(),
        json!(info("kubeletVersion")),
        address("InternalIP"),
        address("ExternalIP"),
        json!(or(info("osImage"), "<unknown>")),
        json!(kernel),
        json!(or(info("containerRuntimeVersion"), "<unknown>")),
    ]
}

fn node_roles(view: View<'_>) -> String {
    let labels = object::metadata(view.object).get("labels").and_then(Value::as_object);
    let roles: BTreeSet<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    let roles: Vec<&str> = roles.into_iter().collect();
    or(&roles.join(","), "<none>").to_owned()
}

fn resource_quota(view: View<'_>) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    let hard = view.object.pointer("/status/hard").and_then(Value::as_object);
    for (name, hard) in hard.into_iter().flatten() {
        let used = view.object.pointer("/status/used").and_then(|used| used.get(name));
        let used = used.and_then(Value::as_str).unwrap_or("0");
        let text = format!("{name}: {used}/{}", hard.as_str().unwrap_or_default());
        if name.starts_with("limits.") { limits.push(text) } else { requests.push(text) }
    }
    vec![json!(requests.join(", ")), json!(limits.join(", ")), view.age()]
}

fn disruption_budget(view: View<'_>) -> Vec<Value> {
    let amount = |pointer: &str| match view.object.pointer(pointer) {
        Some(Value::String(text)) => json!(text),
        Some(Value::Number(number)) => json!(number.to_string()),
        _ => json!("N/A"),
    };
    vec![
        amount("/spec/minAvailable"),
        amount("/spec/maxUnavailable"),
        view.count("/status/disruptionsAllowed"),
        view.age(),
    ]
}

fn role_binding(view: View<'_>) -> Vec<Value> {
    let subjects = |kind: &str| {
        let names: Vec<String> = view
            .list("/subjects")
            .iter()
            .filter(|subject| text(subject, "/kind") == kind)
            .map(|subject| match (kind, text(subject, "/namespace")) {
                ("ServiceAccount", namespace) => format!("{namespace}/{}", text(subject, "/name")),
                _ => text(subject, "/name").to_owned(),
            })
            .collect();
        json!(names.join(", "))
    };
    vec![
        json!(format!("{}/{}", view.str("/roleRef/kind"), view.str("/roleRef/name"))),
        view.age(),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

fn definition(view: View<'_>) -> Vec<Value> {
    let is = |version: &Value, key: &str| version.get(key).and_then(Value::as_bool) == Some(true);
    let mut versions: Vec<String> = view
        .list("/spec/versions")
        .iter()
        .filter(|version| is(version, "served"))
        .map(|version| {
            let mark = if is(version, "storage") { "(storage)" } else { "" };
            format!("{}{mark}", text(version, "/name"))
        })
        .collect();
    versions.sort();
    let short_names: Vec<&str> =
        view.list("/spec/names/shortNames").iter().filter_map(Value::as_str).collect();
    vec![
        view.text("/spec/scope"),
        json!(versions.join(",")),
        view.text("/metadata/creationTimestamp"),
        view.text("/spec/group"),
        view.text("/spec/names/kind"),
        json!(short_names.join(",")),
        json!(view.has_condition("Established")),
    ]
}

/// Both groups of events: `events.k8s.io` has other names for some fields.
fn event(view: View<'_>) -> Vec<Value> {
    let either = |core: &str, new: &str| or(view.str(core), view.str(new)).to_owned();
    let first = match either("/firstTimestamp", "/deprecatedFirstTimestamp") {
        time if time.is_empty() => view.since("/eventTime"),
        time => format::since(Some(&time), view.now),
    };
    let series = view.object.get("series").filter(|series| series.is_object());
    let count = view.number("/count").max(view.number("/deprecatedCount"));
    let (last, count) = match series {
        Some(_) => (view.since("/series/lastObservedTime"), view.number("/series/count")),
        None => match either("/lastTimestamp", "/deprecatedLastTimestamp") {
            time if time.is_empty() => (first.clone(), count.max(1)),
            time => (format::since(Some(&time), view.now), count.max(1)),
        },
    };
    let about =
        |field: &str| either(&format!("/involvedObject/{field}"), &format!("/regarding/{field}"));
    let (kind, name) = (about("kind").to_lowercase(), about("name"));
    let target = if name.is_empty() { kind } else { format!("{kind}/{name}") };
    vec![
        json!(last),
        view.text("/type"),
        view.text("/reason"),
        json!(target),
        json!(about("fieldPath")),
        json!(event_source(view)),
        json!(either("/message", "/note").trim()),
        json!(first),
        json!(count),
        json!(object::name(view.object)),
    ]
}

fn event_source(view: View<'_>) -> String {
    let first_of = |pointers: [&str; 4]| {
        pointers.iter().map(|pointer| view.str(pointer)).find(|text| !text.is_empty()).unwrap_or("")
    };
    let component = first_of([
        "/source/component",
        "/deprecatedSource/component",
        "/reportingComponent",
        "/reportingController",
    ]);
    let host = first_of([
        "/source/host",
        "/deprecatedSource/host",
        "/reportingInstance",
        "/reportingInstance",
    ]);
    if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") }
}
