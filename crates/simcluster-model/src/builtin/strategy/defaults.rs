//! Defaults. A real server has one function for each Go type that needs one and calls it wherever the
//! type occurs; so does this module, walking the schema.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::value::{is_unset, objects_mut, sync_host_ports};
use crate::builtin::quantity::Quantity;
use crate::resource::Resource;
use crate::schema::{Presence, Schema};

type Fields = Map<String, Value>;

/// Fills the defaults of an object and of everything in it.
pub(super) fn fill(resource: &Resource, object: &mut Value) {
    walk(object, &resource.schema);
    if resource.plural == "endpointslices" {
        // Named like a type of the core group, which has other defaults.
        for port in objects_mut(object.get_mut("ports")) {
            set(port, "name", || json!(""));
            set(port, "protocol", || json!("TCP"));
        }
    }
}

/// From the outside in, as the server does: an outer default may depend on what the client left out.
fn walk(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(map) => {
            if let Some(values) = &schema.additional_properties {
                map.values_mut().for_each(|one| walk(one, values));
                return;
            }
            let type_name = schema.go.as_deref().map_or("", |go| go.type_name.as_str());
            default_type(type_name, map);
            for (name, field) in &schema.properties {
                match map.get_mut(name) {
                    Some(Value::Null) | None => {
                        // An empty text that Go does not print is what it has anyway.
                        let go = field.go.as_deref();
                        let unseen = go.is_some_and(|go| go.presence == Presence::NonEmpty);
                        let says = |one: &&Value| {
                            let empty = unseen && one.as_str() == Some("");
                            !(one.is_object() || empty)
                        };
                        let declared = field.default.as_ref().filter(says);
                        if let Some(default) = declared {
                            map.insert(name.clone(), default.clone());
                        }
                    }
                    Some(child) => walk(child, field),
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = &schema.items {
                for one in list {
                    walk(one, items);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Sets a field that is absent, null or an empty string.
fn set(fields: &mut Fields, name: &str, value: impl FnOnce() -> Value) {
    if is_unset(fields.get(name)) {
        fields.insert(name.to_owned(), value());
    }
}

fn text<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A field as a map to write to; made if it is not there.
fn inner<'a>(fields: &'a mut Fields, name: &str) -> &'a mut Fields {
    crate::object::as_map(fields.entry(name).or_insert(Value::Null))
}

fn default_type(type_name: &str, fields: &mut Fields) {
    match type_name {
        "v1.Pod" => pod(fields),
        "v1.PodSpec" => pod_spec(fields),
        "v1.PodStatus" => pod_status(fields),
        "v1.Container" | "v1.EphemeralContainer" => container(fields),
        "v1.Volume" => volume(fields),
        "v1.Probe" => probe(fields),
        "v1.HTTPGetAction" => {
            set(fields, "path", || json!("/"));
            set(fields, "scheme", || json!("HTTP"));
        }
        "v1.SecretVolumeSource"
        | "v1.ConfigMapVolumeSource"
        | "v1.DownwardAPIVolumeSource"
        | "v1.ProjectedVolumeSource" => set(fields, "defaultMode", || json!(0o644)),
        "v1.ServiceAccountTokenProjection" => set(fields, "expirationSeconds", || json!(3600)),
        "v1.HostPathVolumeSource" => {
            fields.entry("type").or_insert_with(|| json!(""));
        }
        "v1.ObjectFieldSelector" => set(fields, "apiVersion", || json!("v1")),
        "v1.PersistentVolumeClaim" => set(inner(fields, "status"), "phase", || json!("Pending")),
        "v1.PersistentVolumeClaimSpec" => set(fields, "volumeMode", || json!("Filesystem")),
        "v1.Secret" => secret(fields),
        "v1.Service" => service(fields),
        "v1.Namespace" => namespace(fields),
        "v1.NodeStatus" => {
            if let Some(capacity) = fields.get("capacity").cloned() {
                set(fields, "allocatable", || capacity);
            }
        }
        "v1.LimitRangeItem" if text(fields, "type") == "Container" => limit_range_item(fields),
        "v1.EndpointPort" | "v1.NetworkPolicyPort" => set(fields, "protocol", || json!("TCP")),
        "v1.Deployment" => deployment(inner(fields, "spec")),
        "v1.ReplicaSet" => set(inner(fields, "spec"), "replicas", || json!(1)),
        "v1.StatefulSet" => stateful_set(inner(fields, "spec")),
        "v1.Job" => job(fields),
        "v1.NetworkPolicy" => network_policy(inner(fields, "spec")),
        "v1.IngressClass" => {
            let spec = inner(fields, "spec");
            if let Some(Value::Object(parameters)) = spec.get_mut("parameters") {
                set(parameters, "scope", || json!("Cluster"));
            }
        }
        "v2.HorizontalPodAutoscaler" => autoscaler(inner(fields, "spec")),
        "v1.ClusterRoleBinding" | "v1.RoleBinding" => {
            set(inner(fields, "roleRef"), "apiGroup", || json!("rbac.authorization.k8s.io"));
        }
        "v1.Subject" if matches!(text(fields, "kind"), "User" | "Group") => {
            set(fields, "apiGroup", || json!("rbac.authorization.k8s.io"));
        }
        "v1.PriorityClass" => set(fields, "preemptionPolicy", || json!("PreemptLowerPriority")),
        "v1.ValidatingWebhook" | "v1.MutatingWebhook" => {
            set(fields, "failurePolicy", || json!("Fail"));
            set(fields, "matchPolicy", || json!("Equivalent"));
            set(fields, "namespaceSelector", || json!({}));
            set(fields, "objectSelector", || json!({}));
            set(fields, "timeoutSeconds", || json!(10));
            if type_name == "v1.MutatingWebhook" {
                set(fields, "reinvocationPolicy", || json!("Never"));
            }
        }
        "v1.RuleWithOperations" => set(fields, "scope", || json!("*")),
        "v1.ServiceReference" => set(fields, "port", || json!(443)),
        _ => {}
    }
}

fn pod(fields: &mut Fields) {
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

fn pod_spec(spec: &mut Fields) {
    let legacy = text(spec, "serviceAccount").to_owned();
    if !legacy.is_empty() {
        set(spec, "serviceAccountName", || json!(legacy));
    }
    match text(spec, "serviceAccountName").to_owned() {
        name if name.is_empty() => {
            spec.remove("serviceAccount");
        }
        name => {
            spec.insert("serviceAccount".to_owned(), json!(name));
        }
    }
    set(spec, "dnsPolicy", || json!("ClusterFirst"));
    set(spec, "restartPolicy", || json!("Always"));
    set(spec, "securityContext", || json!({}));
    set(spec, "terminationGracePeriodSeconds", || json!(30));
    set(spec, "schedulerName", || json!("default-scheduler"));
}

/// `podIP` and the first of `podIPs` are one; the older field wins.
fn pod_status(status: &mut Fields) {
    let ip = text(status, "podIP").to_owned();
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

fn container(fields: &mut Fields) {
    let policy =
        if image_tag(text(fields, "image")) == "latest" { "Always" } else { "IfNotPresent" };
    set(fields, "imagePullPolicy", || json!(policy));
    set(fields, "terminationMessagePath", || json!("/dev/termination-log"));
    set(fields, "terminationMessagePolicy", || json!("File"));
    if let Some(Value::Object(resources)) = fields.get_mut("resources") {
        for list in ["limits", "requests"] {
            if let Some(Value::Object(amounts)) = resources.get_mut(list) {
                amounts.values_mut().for_each(round_up_to_milli);
            }
        }
    }
}

/// Amounts of resources finer than a thousandth are rounded up.
fn round_up_to_milli(amount: &mut Value) {
    if let Some(Ok(parsed)) = amount.as_str().map(Quantity::parse) {
        *amount = json!(parsed.rounded_up_to_milli().canonical());
    }
}

/// The tag of an image: `latest` if there is neither tag nor digest; empty if the reference is not one.
fn image_tag(image: &str) -> &str {
    let (name, digest) =
        image.split_once('@').map_or((image, None), |(name, one)| (name, Some(one)));
    let (path, last) = name.rsplit_once('/').map_or(("", name), |(path, last)| (path, last));
    let (last, tag) = last.split_once(':').map_or((last, None), |(last, tag)| (last, Some(tag)));
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    let spaced = |c: char| c.is_whitespace();
    if last.is_empty() || !last.chars().all(allowed) || path.contains(spaced) {
        return "";
    }
    match tag {
        Some(tag) => tag,
        None if digest.is_some() => "",
        None => "latest",
    }
}

fn volume(fields: &mut Fields) {
    if fields.keys().all(|key| key == "name") {
        fields.insert("emptyDir".to_owned(), json!({}));
    }
    if let Some(Value::Object(image)) = fields.get_mut("image") {
        let latest = image_tag(text(image, "reference")) == "latest";
        set(image, "pullPolicy", || json!(if latest { "Always" } else { "IfNotPresent" }));
    }
}

fn probe(fields: &mut Fields) {
    let values = [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ];
    for (name, value) in values {
        if fields.get(name).and_then(Value::as_i64).unwrap_or_default() == 0 {
            fields.insert(name.to_owned(), json!(value));
        }
    }
}

/// `stringData` is for writing only: it goes into `data`, also when a patch brings it.
fn secret(fields: &mut Fields) {
    set(fields, "type", || json!("Opaque"));
    if let Some(Value::Object(plain)) = fields.remove("stringData") {
        let data = inner(fields, "data");
        for (key, value) in plain {
            let bytes = value.as_str().unwrap_or_default();
            data.insert(key, json!(STANDARD.encode(bytes)));
        }
    }
}

fn service(fields: &mut Fields) {
    let spec = inner(fields, "spec");
    set(spec, "sessionAffinity", || json!("None"));
    match text(spec, "sessionAffinity") {
        "None" => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            let config = inner(spec, "sessionAffinityConfig");
            set(inner(config, "clientIP"), "timeoutSeconds", || json!(10800));
        }
        _ => {}
    }
    set(spec, "type", || json!("ClusterIP"));
    for port in objects_mut(spec.get_mut("ports")) {
        set(port, "protocol", || json!("TCP"));
        let number = port.get("port").cloned().unwrap_or_default();
        let target = port.get("targetPort");
        if is_unset(target) || target == Some(&json!(0)) {
            port.insert("targetPort".to_owned(), number);
        }
    }
    let kind = text(spec, "type").to_owned();
    let external =
        spec.get("externalIPs").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") || kind == "ClusterIP" && external {
        set(spec, "externalTrafficPolicy", || json!("Cluster"));
    }
    if matches!(kind.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
        set(spec, "internalTrafficPolicy", || json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        set(spec, "allocateLoadBalancerNodePorts", || json!(true));
        let balancer = inner(inner(fields, "status"), "loadBalancer");
        for ingress in objects_mut(balancer.get_mut("ingress")) {
            if !text(ingress, "ip").is_empty() {
                set(ingress, "ipMode", || json!("VIP"));
            }
        }
    }
}

fn namespace(fields: &mut Fields) {
    let metadata = inner(fields, "metadata");
    let name = text(metadata, "name").to_owned();
    if !name.is_empty() {
        inner(metadata, "labels").insert("kubernetes.io/metadata.name".to_owned(), json!(name));
    }
    set(inner(fields, "status"), "phase", || json!("Active"));
}

fn limit_range_item(item: &mut Fields) {
    let list = |item: &Fields, name: &str| match item.get(name) {
        Some(Value::Object(map)) => map.clone(),
        _ => Map::new(),
    };
    let (max, min) = (list(item, "max"), list(item, "min"));
    let mut default = list(item, "default");
    for (name, amount) in max {
        default.entry(name).or_insert(amount);
    }
    let mut request = list(item, "defaultRequest");
    for (name, amount) in default.clone().into_iter().chain(min) {
        request.entry(name).or_insert(amount);
    }
    for (name, amounts) in [("default", default), ("defaultRequest", request)] {
        if !amounts.is_empty() {
            item.insert(name.to_owned(), Value::Object(amounts));
        }
    }
}

fn deployment(spec: &mut Fields) {
    set(spec, "replicas", || json!(1));
    let strategy = inner(spec, "strategy");
    set(strategy, "type", || json!("RollingUpdate"));
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = inner(strategy, "rollingUpdate");
        rolling.entry("maxUnavailable").or_insert_with(|| json!("25%"));
        rolling.entry("maxSurge").or_insert_with(|| json!("25%"));
    }
    set(spec, "revisionHistoryLimit", || json!(10));
    set(spec, "progressDeadlineSeconds", || json!(600));
}

fn stateful_set(spec: &mut Fields) {
    set(spec, "podManagementPolicy", || json!("OrderedReady"));
    let strategy = inner(spec, "updateStrategy");
    if text(strategy, "type").is_empty() {
        strategy.insert("type".to_owned(), json!("RollingUpdate"));
        set(strategy, "rollingUpdate", || json!({}));
    }
    if text(strategy, "type") == "RollingUpdate"
        && let Some(Value::Object(rolling)) = strategy.get_mut("rollingUpdate")
    {
        set(rolling, "partition", || json!(0));
        set(rolling, "maxUnavailable", || json!(1));
    }
    let retention = inner(spec, "persistentVolumeClaimRetentionPolicy");
    set(retention, "whenDeleted", || json!("Retain"));
    set(retention, "whenScaled", || json!("Retain"));
    set(spec, "replicas", || json!(1));
    set(spec, "revisionHistoryLimit", || json!(10));
    for claim in objects_mut(spec.get_mut("volumeClaimTemplates")) {
        claim.insert("apiVersion".to_owned(), json!("v1"));
        claim.insert("kind".to_owned(), json!("PersistentVolumeClaim"));
    }
}

fn job(fields: &mut Fields) {
    let spec = inner(fields, "spec");
    if is_unset(spec.get("completions")) && is_unset(spec.get("parallelism")) {
        spec.insert("completions".to_owned(), json!(1));
    }
    set(spec, "parallelism", || json!(1));
    let per_index = !is_unset(spec.get("backoffLimitPerIndex"));
    set(spec, "backoffLimit", || if per_index { json!(i32::MAX) } else { json!(6) });
    set(spec, "completionMode", || json!("NonIndexed"));
    set(spec, "suspend", || json!(false));
    let policy = !is_unset(spec.get("podFailurePolicy"));
    let replacement = if policy { "Failed" } else { "TerminatingOrFailed" };
    set(spec, "podReplacementPolicy", || json!(replacement));
    set(spec, "manualSelector", || json!(false));
    let labels = spec.get("template").and_then(|one| one.get("metadata")?.get("labels")).cloned();
    if let Some(labels) = labels {
        set(inner(fields, "metadata"), "labels", || labels);
    }
}

fn network_policy(spec: &mut Fields) {
    let filled =
        |list: Option<&Value>| list.and_then(Value::as_array).is_some_and(|one| !one.is_empty());
    if !filled(spec.get("policyTypes")) {
        let egress = filled(spec.get("egress"));
        let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        spec.insert("policyTypes".to_owned(), types);
    }
}

fn autoscaler(spec: &mut Fields) {
    set(spec, "minReplicas", || json!(1));
    if spec.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        let target = json!({ "type": "Utilization", "averageUtilization": 80 });
        let metric = json!({ "type": "Resource", "resource": { "name": "cpu", "target": target } });
        spec.insert("metrics".to_owned(), json!([metric]));
    }
    if let Some(Value::Object(behavior)) = spec.get_mut("behavior") {
        let up = inner(behavior, "scaleUp");
        set(up, "stabilizationWindowSeconds", || json!(0));
        set(up, "selectPolicy", || json!("Max"));
        set(up, "policies", || {
            json!([
                { "type": "Pods", "value": 4, "periodSeconds": 15 },
                { "type": "Percent", "value": 100, "periodSeconds": 15 },
            ])
        });
        let down = inner(behavior, "scaleDown");
        set(down, "selectPolicy", || json!("Max"));
        set(down, "policies", || json!([{ "type": "Percent", "value": 100, "periodSeconds": 15 }]));
    }
}
