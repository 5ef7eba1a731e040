//! Validation of Services.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{is_external, is_headless, needs_cluster_ip};
use crate::builtin::addresses;
use crate::builtin::check::Faults;
use crate::builtin::value::{at, int, items, text};
use crate::field::FieldError;
use crate::names;

const CLUSTER_IPS: &str = "spec.clusterIPs";

pub(super) fn create(service: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    whole(service, None, &mut faults);
    faults.0
}

pub(super) fn update(service: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    if needs_cluster_ip(service) && needs_cluster_ip(old) {
        unchanged_ips(service, old, &mut faults);
        unchanged_families(service, old, &mut faults);
    }
    let class = |one| at(one, &["spec", "loadBalancerClass"]);
    if is_balancer(old) && is_balancer(service) && class(service) != class(old) {
        let value = class(service).unwrap_or(&Value::Null);
        faults.invalid("spec.loadBalancerClass", value, "may not change once set");
    }
    balancer_class(service, &mut faults);
    let checked =
        |one| is_balancer(one) && text(one, &["spec", "externalTrafficPolicy"]) == "Local";
    let port = |one| int(one, &["spec", "healthCheckNodePort"]).unwrap_or_default();
    if checked(old) && checked(service) && port(old) != port(service) {
        faults.forbidden("spec.healthCheckNodePort", "field is immutable");
    }
    whole(service, Some(old), &mut faults);
    faults.0
}

pub(super) fn status(service: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let points = items(service, &["status", "loadBalancer", "ingress"]);
    if !is_balancer(service) && !points.is_empty() {
        let why = "may only be used when `spec.type` is 'LoadBalancer'";
        faults.forbidden("status.loadBalancer.ingress", why);
        return faults.0;
    }
    faults.extend(addresses::validate_balancer(service, old));
    faults.0
}

fn is_balancer(service: &Value) -> bool {
    text(service, &["spec", "type"]) == "LoadBalancer"
}

fn strings<'a>(service: &'a Value, field: &str) -> Vec<&'a str> {
    items(service, &["spec", field]).iter().map(|one| one.as_str().unwrap_or_default()).collect()
}

fn unchanged_ips(service: &Value, old: &Value, faults: &mut Faults) {
    let (new, before) = (strings(service, "clusterIPs"), strings(old, "clusterIPs"));
    if is_headless(service) && is_headless(old) {
        return;
    }
    let shown = json!(new);
    if new.len() == before.len() {
        for (index, _) in new.iter().zip(&before).enumerate().filter(|(_, (new, old))| new != old) {
            faults.invalid(format!("{CLUSTER_IPS}[{index}]"), &shown, "may not change once set");
        }
        return;
    }
    let first = format!("{CLUSTER_IPS}[0]");
    if new.is_empty() {
        faults.invalid(first.as_str(), &Value::Null, "primary clusterIP can not be unset");
    } else if !before.is_empty() && new.first() != before.first() {
        faults.invalid(first, &shown, "may not change once set");
    }
    if before.len() > new.len() && new.len() == 1 {
        single_stack(service, "clusterIP", faults);
    }
}

fn unchanged_families(service: &Value, old: &Value, faults: &mut Faults) {
    if is_headless(service) || is_headless(old) {
        return;
    }
    let (new, before) = (strings(service, "ipFamilies"), strings(old, "ipFamilies"));
    let first = "spec.ipFamilies[0]";
    if new.len() == before.len() {
        for _ in new.iter().zip(&before).filter(|(new, old)| new != old) {
            faults.invalid(first, &json!(new), "may not change once set");
        }
        return;
    }
    if !new.is_empty() && !before.is_empty() && new.first() != before.first() {
        faults.invalid(first, &json!(strings(service, "clusterIPs")), "may not change once set");
    }
    if before.len() > new.len() && new.len() == 1 {
        single_stack(service, "ipFamily", faults);
    }
}

fn single_stack(service: &Value, what: &str, faults: &mut Faults) {
    let policy = at(service, &["spec", "ipFamilyPolicy"]);
    if policy != Some(&json!("SingleStack")) {
        let why = format!("must be set to 'SingleStack' when releasing the secondary {what}");
        faults.invalid("spec.ipFamilyPolicy", policy.unwrap_or(&Value::Null), &why);
    }
}

fn whole(service: &Value, old: Option<&Value>, faults: &mut Faults) {
    let ports = items(service, &["spec", "ports"]);
    let kind = text(service, &["spec", "type"]);
    if ports.is_empty() && !is_headless(service) && kind != "ExternalName" {
        faults.required("spec.ports", "");
    }
    match kind {
        "LoadBalancer" | "NodePort" if is_headless(service) => {
            let why = format!("may not be set to 'None' for {kind} services");
            faults.invalid(format!("{CLUSTER_IPS}[0]"), &json!("None"), &why);
        }
        "ExternalName" => external_name(service, faults),
        _ => {}
    }
    each_port(ports, faults);
    faults.labels("spec.selector", at(service, &["spec", "selector"]));
    affinity(service, faults);
    faults.extend(cluster_ips(service, old));
    for (index, ip) in strings(service, "externalIPs").iter().enumerate() {
        addresses::endpoint_ip(ip, &format!("spec.externalIPs[{index}]"), faults);
    }
    let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    faults.one_of("spec.type", kind, &kinds);
    repeated_ports(ports, kind, faults);
    balancer_fields(service, old, faults);
    traffic(service, faults);
}

fn external_name(service: &Value, faults: &mut Faults) {
    for field in ["clusterIPs", "ipFamilies"] {
        if !items(service, &["spec", field]).is_empty() {
            faults.forbidden(format!("spec.{field}"), "may not be set for ExternalName services");
        }
    }
    if at(service, &["spec", "ipFamilyPolicy"]).is_some() {
        faults.forbidden("spec.ipFamilyPolicy", "may not be set for ExternalName services");
    }
    let name = text(service, &["spec", "externalName"]);
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.is_empty() {
        faults.required("spec.externalName", "");
    } else {
        faults.texts("spec.externalName", name, names::dns1123_subdomain(name));
    }
}

fn each_port(ports: &[Value], faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let here = format!("spec.ports[{index}]");
        let name = text(port, &["name"]);
        let field = format!("{here}.name");
        if name.is_empty() {
            if ports.len() > 1 {
                faults.required(field, "");
            }
        } else {
            faults.texts(&field, name, names::dns1123_label(name));
            if !seen.insert(name) {
                faults.duplicate(field, &json!(name));
            }
        }
        let number = int(port, &["port"]).unwrap_or_default();
        for why in names::port_number(number) {
            faults.invalid(format!("{here}.port"), &json!(number), &why);
        }
        let protocol = text(port, &["protocol"]);
        faults.one_of(format!("{here}.protocol"), protocol, &["SCTP", "TCP", "UDP"]);
        faults.port(&format!("{here}.targetPort"), at(port, &["targetPort"]));
        let application = text(port, &["appProtocol"]);
        if !application.is_empty() {
            let field = format!("{here}.appProtocol");
            faults.texts(&field, application, names::qualified_name(application));
        }
    }
}

fn affinity(service: &Value, faults: &mut Faults) {
    let affinity = text(service, &["spec", "sessionAffinity"]);
    faults.one_of("spec.sessionAffinity", affinity, &["ClientIP", "None"]);
    let config = at(service, &["spec", "sessionAffinityConfig"]);
    if affinity == "ClientIP" {
        let seconds =
            int(service, &["spec", "sessionAffinityConfig", "clientIP", "timeoutSeconds"]);
        if let Some(seconds) = seconds.filter(|seconds| !(1..=86400).contains(seconds)) {
            let field = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
            faults.invalid(field, &json!(seconds), "must be greater than 0 and less than 86400");
        }
    } else if affinity == "None" && config.is_some() {
        let why = "must not be set when session affinity is None";
        faults.forbidden("spec.sessionAffinityConfig", why);
    }
}

fn repeated_ports(ports: &[Value], kind: &str, faults: &mut Faults) {
    let node_port = |port: &Value| int(port, &["nodePort"]).filter(|number| *number != 0);
    if kind == "ClusterIP" {
        for (index, _) in ports.iter().enumerate().filter(|(_, port)| node_port(port).is_some()) {
            let why = "may not be used when `type` is 'ClusterIP'";
            faults.forbidden(format!("spec.ports[{index}].nodePort"), why);
        }
    }
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        if let Some(number) = node_port(port)
            && !seen.insert((text(port, &["protocol"]), number))
        {
            faults.duplicate(format!("spec.ports[{index}].nodePort"), &json!(number));
        }
    }
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let (protocol, number) =
            (text(port, &["protocol"]), int(port, &["port"]).unwrap_or_default());
        if !seen.insert((protocol, number)) {
            // The server prints its internal type, whose fields have no JSON names.
            let value = format!(
                r#"Duplicate value: {{"Name":"","Protocol":"{protocol}","AppProtocol":null,"Port":{number},"TargetPort":0,"NodePort":0}}"#
            );
            let mut fault = FieldError::duplicate(format!("spec.ports[{index}]"), &Value::Null);
            fault.body = value;
            faults.add(fault);
        }
    }
}

const BALANCERS_ONLY: &str = "may only be used when `type` is 'LoadBalancer'";

fn balancer_fields(service: &Value, old: Option<&Value>, faults: &mut Faults) {
    source_ranges(service, old, faults);
    let is_balancer = is_balancer(service);
    if at(service, &["spec", "allocateLoadBalancerNodePorts"]).is_some() && !is_balancer {
        faults.forbidden("spec.allocateLoadBalancerNodePorts", BALANCERS_ONLY);
    }
    balancer_class(service, faults);
}

/// Who may reach a load balancer: a field, or the annotation that came before it. Spaces around a range do
/// no harm, and what an old object had it may keep.
fn source_ranges(service: &Value, old: Option<&Value>, faults: &mut Faults) {
    const ANNOTATION: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
    let ranges = strings(service, "loadBalancerSourceRanges");
    let annotation =
        |one| at(one, &["metadata", "annotations", ANNOTATION]).and_then(Value::as_str);
    if !ranges.is_empty() {
        let field = "spec.LoadBalancerSourceRanges";
        if !is_balancer(service) {
            faults.forbidden(field, BALANCERS_ONLY);
        }
        let before = old.map(|old| strings(old, "loadBalancerSourceRanges")).unwrap_or_default();
        for (index, range) in ranges.iter().map(|range| range.trim()).enumerate() {
            if before.iter().all(|before| before.trim() != range) {
                faults.texts(&format!("{field}[{index}]"), range, names::cidr(range));
            }
        }
    } else if let Some(ranges) = annotation(service) {
        let field = format!("metadata.annotations[{ANNOTATION}]");
        if !is_balancer(service) {
            faults.forbidden(field.as_str(), BALANCERS_ONLY);
        }
        if old.and_then(annotation) != Some(ranges) && !ranges.trim().is_empty() {
            for range in ranges.trim().split(',').map(str::trim) {
                faults.texts(&field, range, names::cidr(range));
            }
        }
    }
}

fn balancer_class(service: &Value, faults: &mut Faults) {
    let Some(class) = at(service, &["spec", "loadBalancerClass"]) else { return };
    if is_balancer(service) {
        let name = class.as_str().unwrap_or_default();
        faults.texts("spec.loadBalancerClass", name, names::qualified_name(name));
    } else {
        faults.forbidden("spec.loadBalancerClass", BALANCERS_ONLY);
    }
}

fn traffic(service: &Value, faults: &mut Faults) {
    let policy = text(service, &["spec", "externalTrafficPolicy"]);
    let field = "spec.externalTrafficPolicy";
    if is_external(service) {
        faults.one_of(field, policy, &["Cluster", "Local"]);
    } else if !policy.is_empty() {
        faults.invalid(field, &json!(policy), "may only be set for externally-accessible services");
    }
    let checked = is_balancer(service) && policy == "Local";
    let port = int(service, &["spec", "healthCheckNodePort"]).unwrap_or_default();
    if !checked && port != 0 {
        let why =
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        faults.invalid("spec.healthCheckNodePort", &json!(port), why);
    }
    let policy = text(service, &["spec", "internalTrafficPolicy"]);
    if !policy.is_empty() {
        faults.one_of("spec.internalTrafficPolicy", policy, &["Cluster", "Local"]);
    }
    let distribution = text(service, &["spec", "trafficDistribution"]);
    if !distribution.is_empty() {
        let supported = ["PreferClose", "PreferSameZone", "PreferSameNode"];
        faults.one_of("spec.trafficDistribution", distribution, &supported);
    }
}

/// Faults of the fields that speak of addresses.
pub(super) fn cluster_ips(service: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut faults = Faults::default();
    if !needs_cluster_ip(service) {
        return faults.0;
    }
    let (ip, ips) = (text(service, &["spec", "clusterIP"]), strings(service, "clusterIPs"));
    let shown = json!(ips);
    match ips.first() {
        None if !ip.is_empty() => faults.required(CLUSTER_IPS, ""),
        Some(_) if ip.is_empty() => {
            faults.invalid(CLUSTER_IPS, &shown, "must be empty when `clusterIP` is not specified");
        }
        Some(first) if *first != ip => {
            faults.invalid(CLUSTER_IPS, &shown, "first value must match `clusterIP`");
        }
        _ => {}
    }
    let families = strings(service, "ipFamilies");
    let mut seen = BTreeSet::new();
    for (index, family) in families.iter().enumerate() {
        let field = format!("spec.ipFamilies[{index}]");
        faults.one_of(field.as_str(), family, &["IPv4", "IPv6"]);
        if !seen.insert(*family) {
            faults.duplicate(field, &json!(family));
        }
    }
    let policy = text(service, &["spec", "ipFamilyPolicy"]);
    if !policy.is_empty() {
        let supported = ["PreferDualStack", "RequireDualStack", "SingleStack"];
        faults.one_of("spec.ipFamilyPolicy", policy, &supported);
    }
    let existing = old.map(|old| strings(old, "clusterIPs")).unwrap_or_default();
    let mut bad = false;
    for (index, ip) in ips.iter().enumerate() {
        if index == 0 && *ip == "None" {
            if ips.len() > 1 {
                bad = true;
                faults.invalid(CLUSTER_IPS, &shown, "'None' must be the first and only value");
            }
            continue;
        }
        let wrong = if existing.contains(ip) { Vec::new() } else { names::ip(ip) };
        bad |= !wrong.is_empty();
        faults.texts(&format!("{CLUSTER_IPS}[{index}]"), ip, wrong);
    }
    if ips.len() > 2 {
        faults.invalid(CLUSTER_IPS, &shown, "may only hold up to 2 values");
    }
    if bad || is_headless(service) {
        return faults.0;
    }
    let is_new = |ip: &&str| ip.contains(':');
    if ips.len() > 1 && ips.iter().filter(|ip| is_new(ip)).count() != 1 {
        let why = "may specify no more than one IP for each IP family";
        faults.invalid(CLUSTER_IPS, &shown, why);
    }
    for (index, (ip, family)) in ips.iter().zip(&families).enumerate() {
        let actual = if is_new(ip) { "IPv6" } else { "IPv4" };
        if actual != *family && matches!(*family, "IPv4" | "IPv6") {
            let why = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            faults.invalid(format!("{CLUSTER_IPS}[{index}]"), &json!(ip), &why);
        }
    }
    faults.0
}
