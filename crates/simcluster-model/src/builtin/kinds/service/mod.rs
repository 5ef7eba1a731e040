//! Services.

mod allocation;
mod validation;

use serde_json::{Value, json};

use crate::builtin::addresses::{self, cidr_warning, ip_warning};
use crate::builtin::cells::{View, labels_text, or};
use crate::builtin::defaults::{Fields, field_text, inner, set};
use crate::builtin::kind::Kind;
use crate::builtin::value::{is_unset, items, objects_mut, text};
use crate::names;
use crate::object;
use crate::resource::Resource;

/// `services`.
pub(super) static KIND: Kind = Kind {
    status_subresource: true,
    returns_deleted_object: true,
    allow_create_on_update: true,
    // A name that starts with a digit is accepted, too, since 1.37.
    name_faults: names::dns1123_label,
    default,
    allocate_for_create: allocation::for_create,
    allocate_for_update: allocation::for_update,
    prepare_for_update: allocation::prepare_for_update,
    decode_stored: Some(decode_stored),
    validate: validation::create,
    validate_update: Some(validation::update),
    validate_status: validation::status,
    warnings,
    status_warnings: addresses::balancer_warnings,
    // Where Services have been kept since before they had their name.
    registry_path: Some("services/specs"),
    cells,
    field_labels: &[("spec.clusterIP", &["spec.clusterIP"]), ("spec.type", &["spec.type"])],
    ..Kind::new("", "services")
};

fn default(fields: &mut Fields) {
    let spec = inner(fields, "spec");
    set(spec, "sessionAffinity", || json!("None"));
    match field_text(spec, "sessionAffinity") {
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
    let kind = field_text(spec, "type").to_owned();
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
            if !field_text(ingress, "ip").is_empty() {
                set(ingress, "ipMode", || json!("VIP"));
            }
        }
    }
}

/// A Service as it is read: one that is only a name for others has no traffic of its own.
fn decode_stored(_resource: &Resource, mut service: Value) -> Value {
    if is_only_a_name(&service)
        && let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.remove("internalTrafficPolicy");
    }
    service
}

fn is_only_a_name(service: &Value) -> bool {
    text(service, &["spec", "type"]) == "ExternalName"
}

/// What is accepted but without effect, or going to be (`pkg/api/service/warnings.go`).
fn warnings(service: &Value, _old: Option<&Value>) -> Vec<String> {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    let mut found = Vec::new();
    let mut say = |holds: bool, what: &str| found.extend(holds.then(|| what.to_owned()));
    let spec = |field: &str| text(service, &["spec", field]);
    let (headless, external) =
        (spec("type") == "ClusterIP" && spec("clusterIP") == "None", is_only_a_name(service));
    let external_ips = items(service, &["spec", "externalIPs"]);
    let has_external_ips = !external_ips.is_empty();
    let hints = object::metadata(service).get("annotations").and_then(|all| all.get(HINTS));
    say(
        hints.is_some(),
        "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use \
         service.kubernetes.io/topology-mode instead",
    );
    let ignored = headless && !spec("loadBalancerIP").is_empty();
    say(ignored, "spec.loadBalancerIP is ignored for headless services");
    say(headless && has_external_ips, "spec.externalIPs is ignored for headless services");
    let ignored = headless && spec("sessionAffinity") != "None";
    say(ignored, "spec.SessionAffinity is ignored for headless services");
    for (index, ip) in external_ips.iter().enumerate() {
        let field = format!("spec.externalIPs[{index}]");
        say_of(ip_warning(&field, ip.as_str().unwrap_or_default()), &mut say);
    }
    say(
        has_external_ips && !headless && !external,
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
    );
    say_of(ip_warning("spec.loadBalancerIP", spec("loadBalancerIP")), &mut say);
    for (index, range) in items(service, &["spec", "loadBalancerSourceRanges"]).iter().enumerate() {
        let field = format!("spec.loadBalancerSourceRanges[{index}]");
        say_of(cidr_warning(&field, range.as_str().unwrap_or_default()), &mut say);
    }
    let ignored = external && has_external_ips;
    say(ignored, "spec.externalIPs is ignored when spec.type is \"ExternalName\"");
    let ignored = !external && !spec("externalName").is_empty();
    say(ignored, "spec.externalName is ignored when spec.type is not \"ExternalName\"");
    say(
        spec("trafficDistribution") == "PreferClose",
        "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
    );
    found
}

fn say_of(warning: Option<String>, say: &mut impl FnMut(bool, &str)) {
    if let Some(warning) = warning {
        say(true, &warning);
    }
}

fn cells(view: View<'_>) -> Vec<Value> {
    let ports: Vec<String> = view.list("/spec/ports").iter().map(service_port).collect();
    let cluster_ip = view.list("/spec/clusterIPs").first().and_then(Value::as_str);
    view.named(vec![
        view.text("/spec/type"),
        json!(cluster_ip.unwrap_or("<none>")),
        json!(external_ip(view)),
        json!(or(&ports.join(","), "<none>")),
        view.age(),
        json!(labels_text(view.object.pointer("/spec/selector"))),
    ])
}

fn service_port(port: &Value) -> String {
    let number = |pointer: &str| port.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
    let (inner, outer) = (number("/port"), number("/nodePort"));
    let protocol = text(port, &["protocol"]);
    if outer > 0 { format!("{inner}:{outer}/{protocol}") } else { format!("{inner}/{protocol}") }
}

fn external_ip(view: View<'_>) -> String {
    let external: Vec<&str> =
        view.list("/spec/externalIPs").iter().filter_map(Value::as_str).collect();
    match view.str("/spec/type") {
        "ClusterIP" | "NodePort" => or(&external.join(","), "<none>").to_owned(),
        "LoadBalancer" => {
            let balancer = addresses::of_balancer(view);
            let all: Vec<&str> =
                balancer.iter().map(String::as_str).chain(external.iter().copied()).collect();
            or(&all.join(","), "<pending>").to_owned()
        }
        "ExternalName" => view.str("/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn needs_cluster_ip(service: &Value) -> bool {
    text(service, &["spec", "type"]) != "ExternalName"
}

fn is_headless(service: &Value) -> bool {
    text(service, &["spec", "clusterIP"]) == "None"
        || items(service, &["spec", "clusterIPs"]).first() == Some(&json!("None"))
}

/// Whether the Service can be reached from outside the cluster.
fn is_external(service: &Value) -> bool {
    match text(service, &["spec", "type"]) {
        "NodePort" | "LoadBalancer" => true,
        "ClusterIP" => !items(service, &["spec", "externalIPs"]).is_empty(),
        _ => false,
    }
}
