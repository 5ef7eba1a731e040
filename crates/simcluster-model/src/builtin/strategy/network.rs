//! Validation of Ingresses and their classes, of network policies, and of endpoints in both forms.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::check::Faults;
use super::value::{at, int, items, text};
use super::workload::label_selector;
use crate::field::FieldError;
use crate::names;

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

pub(super) fn ingress_create(ingress: &Value) -> Vec<FieldError> {
    let mut faults = Faults(ingress_spec(ingress));
    let annotation = at(ingress, &["metadata", "annotations", CLASS_ANNOTATION]);
    let class = at(ingress, &["spec", "ingressClassName"]);
    if let (Some(annotation), Some(class)) = (annotation, class)
        && annotation != class
    {
        let field = format!("annotations.{CLASS_ANNOTATION}");
        faults.invalid(field, annotation, "must match `ingressClassName` when both are specified");
    }
    faults.0
}

pub(super) fn ingress_update(ingress: &Value, _old: &Value) -> Vec<FieldError> {
    ingress_spec(ingress)
}

fn ingress_spec(ingress: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let rules = items(ingress, &["spec", "rules"]);
    let default = at(ingress, &["spec", "defaultBackend"]);
    if rules.is_empty() && default.is_none() {
        let value = at(ingress, &["spec", "rules"]).unwrap_or(&Value::Null);
        faults.invalid("spec", value, "either `defaultBackend` or `rules` must be specified");
    }
    if let Some(default) = default {
        backend(default, "spec.defaultBackend", &mut faults);
    }
    for (index, rule) in rules.iter().enumerate() {
        let here = format!("spec.rules[{index}]");
        host(text(rule, &["host"]), &format!("{here}.host"), &mut faults);
        if at(rule, &["http"]).is_some() {
            let paths = items(rule, &["http", "paths"]);
            if paths.is_empty() {
                faults.required(format!("{here}.http.paths"), "");
            }
            for (position, one) in paths.iter().enumerate() {
                path(one, &format!("{here}.http.paths[{position}]"), &mut faults);
            }
        }
    }
    for (index, tls) in items(ingress, &["spec", "tls"]).iter().enumerate() {
        let here = format!("spec.tls[{index}]");
        for (position, name) in items(tls, &["hosts"]).iter().enumerate() {
            let name = name.as_str().unwrap_or_default();
            faults.texts(&format!("{here}.hosts[{position}]"), name, host_texts(name));
        }
        let secret = text(tls, &["secretName"]);
        if !secret.is_empty() {
            let field = format!("{here}.secretName");
            faults.texts(&field, secret, names::dns1123_subdomain(secret));
        }
    }
    if let Some(class) = at(ingress, &["spec", "ingressClassName"]).and_then(Value::as_str) {
        faults.texts("spec.ingressClassName", class, names::dns1123_subdomain(class));
    }
    faults.0
}

/// The points at which a load balancer listens, as its controller writes them.
pub(super) fn load_balancer_status(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let points = |one| items(one, &["status", "loadBalancer", "ingress"]);
    for (index, point) in points(object).iter().enumerate() {
        let here = format!("status.loadBalancer.ingress[{index}]");
        let ip = text(point, &["ip"]);
        let known = points(old).iter().any(|one| text(one, &["ip"]) == ip);
        if !ip.is_empty() && !known {
            faults.texts(&format!("{here}.ip"), ip, names::ip(ip));
        }
        let host = text(point, &["hostname"]);
        if !host.is_empty() {
            let field = format!("{here}.hostname");
            faults.texts(&field, host, names::dns1123_subdomain(host));
            if host.parse::<IpAddr>().is_ok() {
                faults.invalid(field, &json!(host), "must be a DNS name, not an IP address");
            }
        }
    }
    faults.0
}

fn host_texts(host: &str) -> Vec<String> {
    if host.contains('*') {
        names::wildcard_subdomain(host)
    } else {
        names::dns1123_subdomain(host)
    }
}

fn host(host: &str, field: &str, faults: &mut Faults) {
    if host.is_empty() {
        return;
    }
    if host.parse::<IpAddr>().is_ok() {
        faults.invalid(field, &json!(host), "must be a DNS name, not an IP address");
    }
    faults.texts(field, host, host_texts(host));
}

fn path(entry: &Value, here: &str, faults: &mut Faults) {
    let kinds = ["Exact", "ImplementationSpecific", "Prefix"];
    let Some(kind) = at(entry, &["pathType"]).and_then(Value::as_str) else {
        faults.required(format!("{here}.pathType"), "pathType must be specified");
        return;
    };
    let path = text(entry, &["path"]);
    let field = format!("{here}.path");
    let strict = matches!(kind, "Exact" | "Prefix");
    if !kinds.contains(&kind) {
        let supported: Vec<String> = kinds.iter().map(|one| (*one).to_owned()).collect();
        let field = format!("{here}.pathType");
        faults.add(FieldError::not_supported(field, &json!(kind), &supported));
    } else if !path.starts_with('/') && (strict || !path.is_empty()) {
        faults.invalid(field.as_str(), &json!(path), "must be an absolute path");
    }
    if strict && !path.is_empty() {
        for part in ["//", "/./", "/../", "%2f", "%2F"] {
            if path.contains(part) {
                faults.invalid(field.as_str(), &json!(path), &format!("must not contain '{part}'"));
            }
        }
        for end in ["/..", "/."] {
            if path.ends_with(end) {
                faults.invalid(field.as_str(), &json!(path), &format!("cannot end with '{end}'"));
            }
        }
    }
    let backend_field = format!("{here}.backend");
    backend(at(entry, &["backend"]).unwrap_or(&Value::Null), &backend_field, faults);
}

fn backend(backend: &Value, here: &str, faults: &mut Faults) {
    let nothing = json!("");
    let service = match (at(backend, &["service"]), at(backend, &["resource"])) {
        (Some(_), Some(_)) => {
            faults.invalid(here, &nothing, "cannot set both resource and service backends");
            return;
        }
        (None, Some(resource)) => {
            for field in ["kind", "name"] {
                if text(resource, &[field]).is_empty() {
                    faults.required(format!("{here}.resource.{field}"), "");
                }
            }
            return;
        }
        (None, None) => {
            faults.invalid(here, &nothing, "resource or service backend is required");
            return;
        }
        (Some(service), None) => service,
    };
    let name = text(service, &["name"]);
    let field = format!("{here}.service.name");
    if name.is_empty() {
        faults.required(field, "");
    } else {
        faults.texts(&field, name, names::dns1123_label(name));
    }
    let port_name = text(service, &["port", "name"]);
    match int(service, &["port", "number"]).unwrap_or_default() {
        0 if port_name.is_empty() => faults.required(here, "port name or number is required"),
        0 => {
            let field = format!("{here}.service.port.name");
            faults.texts(&field, port_name, names::port_name(port_name));
        }
        _ if !port_name.is_empty() => {
            faults.invalid(here, &nothing, "cannot set both port name & port number");
        }
        number => {
            for why in names::port_number(number) {
                faults.invalid(format!("{here}.service.port.number"), &json!(number), &why);
            }
        }
    }
}

pub(super) fn ingress_class(class: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let controller = text(class, &["spec", "controller"]);
    let field = "spec.controller";
    if controller.len() > 250 {
        faults.add(FieldError::too_long(field, 250));
    }
    match controller.split_once('/') {
        _ if controller.is_empty() => faults.required(field, ""),
        Some((host, path)) if !host.is_empty() && !path.is_empty() => {
            faults.texts(field, host, names::dns1123_subdomain(host));
        }
        _ => {
            let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            faults.invalid(field, &json!(controller), why);
        }
    }
    faults.0
}

pub(super) fn ingress_class_update(class: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let controller = |one| at(one, &["spec", "controller"]);
    faults.immutable("spec.controller", controller(class), controller(old));
    faults.extend(ingress_class(class));
    faults.0
}

pub(super) fn network_policy(policy: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    if let Some(selector) = at(policy, &["spec", "podSelector"]) {
        label_selector(selector, "spec.podSelector", &mut faults);
    }
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in items(policy, &["spec", direction]).iter().enumerate() {
            let here = format!("spec.{direction}[{index}]");
            for (position, port) in items(rule, &["ports"]).iter().enumerate() {
                policy_port(port, &format!("{here}.ports[{position}]"), &mut faults);
            }
            for (position, peer) in items(rule, &[peers]).iter().enumerate() {
                policy_peer(peer, &format!("{here}.{peers}[{position}]"), &mut faults);
            }
        }
    }
    for (index, kind) in items(policy, &["spec", "policyTypes"]).iter().enumerate() {
        let kind = kind.as_str().unwrap_or_default();
        faults.one_of(format!("spec.policyTypes[{index}]"), kind, &["Ingress", "Egress"]);
    }
    faults.0
}

fn policy_port(port: &Value, here: &str, faults: &mut Faults) {
    let protocol = text(port, &["protocol"]);
    faults.one_of(format!("{here}.protocol"), protocol, &["TCP", "UDP", "SCTP"]);
    let number = at(port, &["port"]);
    if number.is_some() {
        faults.port(&format!("{here}.port"), number);
    }
    let Some(end) = int(port, &["endPort"]) else { return };
    let field = format!("{here}.endPort");
    match number {
        None => {
            let why = "may not be specified when `port` is not specified";
            faults.invalid(field, &json!(end), why);
        }
        Some(Value::String(_)) => {
            faults.invalid(field, &json!(end), "may not be specified when `port` is non-numeric");
        }
        Some(number) => {
            if end < number.as_i64().unwrap_or_default() {
                faults.invalid(
                    field.as_str(),
                    &json!(end),
                    "must be greater than or equal to `port`",
                );
            }
            for why in names::port_number(end) {
                faults.invalid(field.as_str(), &json!(end), &why);
            }
        }
    }
}

fn policy_peer(peer: &Value, here: &str, faults: &mut Faults) {
    let mut count = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if let Some(selector) = at(peer, &[field]) {
            count += 1;
            label_selector(selector, &format!("{here}.{field}"), faults);
        }
    }
    let block = at(peer, &["ipBlock"]);
    if let Some(block) = block {
        let cidr = text(block, &["cidr"]);
        let field = format!("{here}.ipBlock.cidr");
        if cidr.is_empty() {
            faults.required(field, "");
        } else if !is_cidr(cidr) {
            let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            faults.invalid(field, &json!(cidr), why);
        }
    }
    if count == 0 && block.is_none() {
        faults.required(here, "must specify a peer");
    } else if count > 0 && block.is_some() {
        faults.forbidden(here, "may not specify both ipBlock and another peer");
    }
}

fn is_cidr(value: &str) -> bool {
    let Some((ip, length)) = value.split_once('/') else { return false };
    let longest = match ip.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    length.parse::<u8>().is_ok_and(|length| length <= longest)
}

pub(super) fn endpoint_slice(slice: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    // The server appends the faults that declarative rules find to those that code finds.
    let mut declared = Faults::default();
    let kind = text(slice, &["addressType"]);
    declared.one_of("addressType", kind, &["FQDN", "IPv4", "IPv6"]);
    let mut seen = std::collections::BTreeSet::new();
    for (index, port) in items(slice, &["ports"]).iter().enumerate() {
        let here = format!("ports[{index}]");
        let name = text(port, &["name"]);
        if !name.is_empty() {
            faults.texts(&format!("{here}.name"), name, names::dns1123_label(name));
        }
        if !seen.insert(name) {
            faults.duplicate(format!("{here}.name"), &json!(name));
        }
        let protocol = text(port, &["protocol"]);
        faults.one_of(format!("{here}.protocol"), protocol, &["SCTP", "TCP", "UDP"]);
    }
    for (index, endpoint) in items(slice, &["endpoints"]).iter().enumerate() {
        let here = format!("endpoints[{index}]");
        let addresses = items(endpoint, &["addresses"]);
        if addresses.is_empty() {
            declared.required(format!("{here}.addresses"), "");
        }
        for (position, address) in addresses.iter().enumerate() {
            if matches!(kind, "IPv4" | "IPv6") {
                let address = address.as_str().unwrap_or_default();
                endpoint_ip(address, &format!("{here}.addresses[{position}]"), &mut faults);
            }
        }
        let hostname = text(endpoint, &["hostname"]);
        if !hostname.is_empty() {
            faults.texts(&format!("{here}.hostname"), hostname, names::dns1123_label(hostname));
        }
    }
    faults.extend(declared.0);
    faults.0
}

pub(super) fn endpoint_slice_update(slice: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults(endpoint_slice(slice));
    let kind = |one| at(one, &["addressType"]);
    faults.immutable("addressType", kind(slice), kind(old));
    faults.0
}

pub(super) fn endpoint_ip(address: &str, field: &str, faults: &mut Faults) {
    let wrong = names::ip(address);
    if !wrong.is_empty() {
        faults.texts(field, address, wrong);
        return;
    }
    let Ok(ip) = address.parse::<IpAddr>() else { return };
    let why = if ip.is_unspecified() {
        format!("may not be unspecified ({address})")
    } else if ip.is_loopback() {
        "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()
    } else if matches!(ip, IpAddr::V4(ip) if ip.is_link_local()) {
        "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()
    } else {
        return;
    };
    faults.invalid(field, &json!(address), &why);
}

pub(super) fn endpoints(endpoints: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    for (index, subset) in items(endpoints, &["subsets"]).iter().enumerate() {
        let here = format!("subsets[{index}]");
        let (ready, not_ready) =
            (items(subset, &["addresses"]), items(subset, &["notReadyAddresses"]));
        if ready.is_empty() && not_ready.is_empty() {
            faults.required(here.as_str(), "must specify `addresses` or `notReadyAddresses`");
        }
        for (field, list) in [("addresses", ready), ("notReadyAddresses", not_ready)] {
            for (position, address) in list.iter().enumerate() {
                let field = format!("{here}.{field}[{position}].ip");
                let ip = text(address, &["ip"]);
                endpoint_ip(ip, &field, &mut faults);
                if !names::ip(ip).is_empty() {
                    faults.invalid(field, &json!(ip), "must be a valid IP address");
                }
            }
        }
        let ports = items(subset, &["ports"]);
        for (position, port) in ports.iter().enumerate() {
            let here = format!("{here}.ports[{position}]");
            let name = text(port, &["name"]);
            if name.is_empty() {
                if ports.len() > 1 {
                    faults.required(format!("{here}.name"), "");
                }
            } else {
                faults.texts(&format!("{here}.name"), name, names::dns1123_label(name));
            }
            let number = int(port, &["port"]).unwrap_or_default();
            for why in names::port_number(number) {
                faults.invalid(format!("{here}.port"), &json!(number), &why);
            }
        }
    }
    faults.0
}
