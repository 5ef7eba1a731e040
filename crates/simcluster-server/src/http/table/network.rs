//! The cells of the kinds that lead traffic to Pods.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::format::{few, labels, or};
use super::view::{View, list, text};
use simcluster_model::object;

pub(super) fn service(view: View<'_>) -> Vec<Value> {
    let ports: Vec<String> = view.list("/spec/ports").iter().map(service_port).collect();
    let cluster_ip = view.list("/spec/clusterIPs").first().and_then(Value::as_str);
    vec![
        view.text("/spec/type"),
        json!(cluster_ip.unwrap_or("<none>")),
        json!(external_ip(view)),
        json!(or(&ports.join(","), "<none>")),
        view.age(),
        json!(labels(view.object.pointer("/spec/selector"))),
    ]
}

fn service_port(port: &Value) -> String {
    let number = |pointer: &str| port.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
    let (inner, outer) = (number("/port"), number("/nodePort"));
    let protocol = text(port, "/protocol");
    if outer > 0 { format!("{inner}:{outer}/{protocol}") } else { format!("{inner}/{protocol}") }
}

fn external_ip(view: View<'_>) -> String {
    let external: Vec<&str> =
        view.list("/spec/externalIPs").iter().filter_map(Value::as_str).collect();
    match view.str("/spec/type") {
        "ClusterIP" | "NodePort" => or(&external.join(","), "<none>").to_owned(),
        "LoadBalancer" => {
            let balancer = load_balancer(view);
            let all: Vec<&str> =
                balancer.iter().map(String::as_str).chain(external.iter().copied()).collect();
            or(&all.join(","), "<pending>").to_owned()
        }
        "ExternalName" => view.str("/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// Addresses of a load balancer, sorted.
fn load_balancer(view: View<'_>) -> BTreeSet<String> {
    view.list("/status/loadBalancer/ingress")
        .iter()
        .map(|one| or(text(one, "/ip"), text(one, "/hostname")).to_owned())
        .filter(|address| !address.is_empty())
        .collect()
}

pub(super) fn ingress(view: View<'_>) -> Vec<Value> {
    let rules = view.list("/spec/rules");
    let hosts: Vec<&str> = rules
        .iter()
        .map(|rule| text(rule, "/host"))
        .filter(|host| !host.is_empty())
        .take(HOSTS_MAX)
        .collect();
    let mut shown = or(&hosts.join(","), "*").to_owned();
    if hosts.len() == HOSTS_MAX && rules.len() > HOSTS_MAX {
        shown = format!("{shown} + {} more...", rules.len() - HOSTS_MAX);
    }
    let addresses: Vec<String> = load_balancer(view).into_iter().collect();
    let ports = if view.list("/spec/tls").is_empty() { "80" } else { "80, 443" };
    vec![
        json!(or(view.str("/spec/ingressClassName"), "<none>")),
        json!(shown),
        json!(addresses.join(",")),
        json!(ports),
        view.age(),
    ]
}

/// Hosts, ports and addresses shown before the rest is only counted.
const HOSTS_MAX: usize = 3;

pub(super) fn ingress_class(view: View<'_>) -> Vec<Value> {
    let default = object::metadata(view.object)
        .get("annotations")
        .and_then(|all| all.get("ingressclass.kubernetes.io/is-default-class"))
        .and_then(Value::as_str)
        == Some("true");
    let name = object::name(view.object);
    let name = if default { format!("{name} (default)") } else { name.to_owned() };
    let parameters = view.object.pointer("/spec/parameters").map_or_else(
        || "<none>".to_owned(),
        |parameters| {
            let kind = text(parameters, "/kind");
            let group = text(parameters, "/apiGroup");
            let dot = if group.is_empty() { "" } else { "." };
            format!("{kind}{dot}{group}/{}", text(parameters, "/name"))
        },
    );
    vec![json!(name), view.text("/spec/controller"), json!(parameters), view.age()]
}

pub(super) fn endpoints(view: View<'_>) -> String {
    let subsets = view.list("/subsets");
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let addresses = || list(subset, "/addresses").iter().map(|address| text(address, "/ip"));
        let ports = list(subset, "/ports");
        if ports.is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in ports {
            let port = port.get("port").and_then(Value::as_i64).unwrap_or_default();
            all.extend(addresses().map(|ip| host_port(ip, port)));
        }
    }
    few(&all, HOSTS_MAX, ",")
}

fn host_port(ip: &str, port: i64) -> String {
    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}

pub(super) fn endpoint_slice(view: View<'_>) -> Vec<Value> {
    let ports: Vec<String> = view
        .list("/ports")
        .iter()
        .map(|port| match port.get("port").and_then(Value::as_i64) {
            Some(number) => number.to_string(),
            None => port.get("name").and_then(Value::as_str).unwrap_or("*").to_owned(),
        })
        .collect();
    let addresses: Vec<String> = view
        .list("/endpoints")
        .iter()
        .flat_map(|endpoint| list(endpoint, "/addresses"))
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    vec![
        view.text("/addressType"),
        json!(or(&few(&ports, HOSTS_MAX, ","), "<unset>")),
        json!(or(&few(&addresses, HOSTS_MAX, ","), "<unset>")),
        view.age(),
    ]
}
