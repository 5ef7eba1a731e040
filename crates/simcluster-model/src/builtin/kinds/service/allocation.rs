//! Addresses and node ports, which the cluster hands out.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{is_external, is_headless, needs_cluster_ip};
use crate::allocation::AllocationError;
use crate::builtin::value::{at, int, items, objects_mut, text};
use crate::error::ApiError;
use crate::field::FieldError;
use crate::object;
use crate::resource::{Resource, Surroundings};

pub(super) fn for_create(
    resource: &Resource,
    service: &mut Value,
    around: &mut Surroundings<'_>,
) -> Result<(), ApiError> {
    if !around.allocates {
        return Ok(());
    }
    if let Some(ip) = some_text(service, "clusterIP")
        && items(service, &["spec", "clusterIPs"]).is_empty()
    {
        object::set_path(service, "spec.clusterIPs", json!([ip]));
    }
    init_families(resource, service, None)?;
    if needs_cluster_ip(service) && !is_headless(service) {
        allocate_ips(resource, service, around)?;
    }
    allocate_node_ports(resource, service, None, around)
}

pub(super) fn for_update(
    resource: &Resource,
    subresource: &str,
    service: &mut Value,
    old: &Value,
    around: &mut Surroundings<'_>,
) -> Result<(), ApiError> {
    if !subresource.is_empty() {
        return Ok(());
    }
    keep_allocated(service, old);
    init_families(resource, service, Some(old))?;
    let named = text(old, &["spec", "type"]) == "ExternalName";
    if named && needs_cluster_ip(service) && !is_headless(service) {
        allocate_ips(resource, service, around)?;
    }
    allocate_node_ports(resource, service, Some(old), around)
}

pub(super) fn prepare_for_update(
    _resource: &Resource,
    subresource: &str,
    service: &mut Value,
    old: &Value,
) {
    if !subresource.is_empty() {
        return;
    }
    keep_allocated(service, old);
    drop_dependent_fields(service, old);
}

/// A client that leaves out what was allocated for it means to keep it.
fn keep_allocated(service: &mut Value, old: &Value) {
    if needs_cluster_ip(old) && needs_cluster_ip(service) {
        if some_text(service, "clusterIP").is_none()
            && let Some(ip) = some_text(old, "clusterIP")
        {
            object::set_path(service, "spec.clusterIP", json!(ip));
        }
        if items(service, &["spec", "clusterIPs"]).is_empty()
            && let Some(ips) = at(old, &["spec", "clusterIPs"])
        {
            object::set_path(service, "spec.clusterIPs", ips.clone());
        }
    }
    if needs_node_port(old) && needs_node_port(service) {
        keep_node_ports(service, old);
    }
    if needs_health_port(old) && needs_health_port(service) && health_port(service) == 0 {
        put_spec(service, "healthCheckNodePort", json!(health_port(old)));
    }
    // `clusterIP` is the first of `clusterIPs`; who changed only one of them meant both.
    let (ip, old_ip) = (some_text(service, "clusterIP"), some_text(old, "clusterIP"));
    if ip != old_ip && same(service, old, "clusterIPs") {
        match ip {
            Some(ip) => put_spec(service, "clusterIPs", json!([ip])),
            None => remove_spec(service, "clusterIPs"),
        }
    }
}

fn keep_node_ports(service: &mut Value, old: &Value) {
    let old_ports = items(old, &["spec", "ports"]);
    let used = node_ports(old).intersection(&node_ports(service)).copied().collect::<BTreeSet<_>>();
    for port in objects_mut(spec_mut(service).get_mut("ports")) {
        if port.get("nodePort").and_then(Value::as_i64).unwrap_or_default() != 0 {
            continue;
        }
        let name = port.get("name").and_then(Value::as_str).unwrap_or_default();
        let before = old_ports.iter().find(|one| text(one, &["name"]) == name);
        let number = before.and_then(|one| int(one, &["nodePort"])).filter(|one| *one != 0);
        if let Some(number) = number.filter(|number| !used.contains(number)) {
            port.insert("nodePort".to_owned(), json!(number));
        }
    }
}

/// What a Service of the new type cannot have is dropped, unless the client changed it, too (then
/// validation will complain).
fn drop_dependent_fields(service: &mut Value, old: &Value) {
    if needs_cluster_ip(old) && !needs_cluster_ip(service) {
        if same(service, old, "clusterIP") && same(service, old, "clusterIPs") {
            remove_spec(service, "clusterIP");
            remove_spec(service, "clusterIPs");
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if same(service, old, field) {
                remove_spec(service, field);
            }
        }
    }
    if needs_node_port(old) && !needs_node_port(service) && node_ports(old) == node_ports(service) {
        for port in objects_mut(spec_mut(service).get_mut("ports")) {
            port.remove("nodePort");
        }
    }
    let type_of = |one: &Value| text(one, &["spec", "type"]).to_owned();
    let was_balancer = type_of(old) == "LoadBalancer";
    let is_balancer = type_of(service) == "LoadBalancer";
    let rules = [
        ("healthCheckNodePort", needs_health_port(old), needs_health_port(service)),
        ("allocateLoadBalancerNodePorts", was_balancer, is_balancer),
        ("loadBalancerClass", was_balancer, is_balancer),
        ("externalTrafficPolicy", is_external(old), is_external(service)),
    ];
    for (field, before, after) in rules {
        if before && !after && same(service, old, field) {
            remove_spec(service, field);
        }
    }
    if !is_balancer {
        object::set_path(service, "status.loadBalancer", json!({}));
    }
}

/// Fills `ipFamilyPolicy` and `ipFamilies` of a cluster that has IPv4 only.
fn init_families(
    resource: &Resource,
    service: &mut Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    if !needs_cluster_ip(service) {
        return Ok(());
    }
    let selectorless = is_headless(service)
        && at(service, &["spec", "selector"]).and_then(Value::as_object).is_none_or(Map::is_empty);
    if some_text(service, "ipFamilyPolicy").is_none() {
        let before = old.and_then(|old| some_text(old, "ipFamilyPolicy"));
        let policy =
            before.unwrap_or(if selectorless { "RequireDualStack" } else { "SingleStack" });
        put_spec(service, "ipFamilyPolicy", json!(policy));
    }
    let faults = super::validation::cluster_ips(service, old);
    if !faults.is_empty() {
        return Err(ApiError::invalid(resource.names(), object::name(service), &faults));
    }
    let mut families: Vec<String> = items(service, &["spec", "ipFamilies"])
        .iter()
        .filter_map(|one| one.as_str().map(str::to_owned))
        .collect();
    let ips: Vec<String> = items(service, &["spec", "clusterIPs"])
        .iter()
        .filter_map(|one| one.as_str().map(str::to_owned))
        .collect();
    let policy = some_text(service, "ipFamilyPolicy").unwrap_or_default().to_owned();
    let mut faults = Vec::new();
    let field = "spec.ipFamilyPolicy";
    if policy == "SingleStack" {
        for (many, what) in [(ips.len() == 2, "cluster IPs"), (families.len() == 2, "IP families")]
        {
            if many {
                let why = format!(
                    "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
                );
                faults.push(FieldError::invalid(field, &json!(policy), &why));
            }
        }
    }
    for (index, ip) in ips.iter().enumerate().take_while(|(_, ip)| *ip != "None") {
        if index >= families.len() {
            if ip.contains(':') {
                let why = "IPv6 is not configured on this cluster";
                let field = format!("spec.clusterIPs[{index}]");
                faults.push(FieldError::invalid(field, &json!(ips), why));
            } else {
                families.push("IPv4".to_owned());
            }
        }
    }
    if faults.is_empty() && selectorless {
        if families.is_empty() {
            families.push("IPv4".to_owned());
        }
        if families.len() < 2 && policy != "SingleStack" {
            let other =
                if families.first().is_some_and(|one| one == "IPv4") { "IPv6" } else { "IPv4" };
            families.push(other.to_owned());
        }
        put_spec(service, "ipFamilies", json!(families));
        return Ok(());
    }
    if faults.is_empty() {
        if policy == "RequireDualStack" {
            let why = "this cluster is not configured for dual-stack services";
            faults.push(FieldError::invalid(field, &json!(policy), why));
        }
        for (index, family) in families.iter().enumerate().filter(|(_, one)| *one != "IPv4") {
            let field = format!("spec.ipFamilies[{index}]");
            faults.push(FieldError::invalid(
                field,
                &json!(family),
                "not configured on this cluster",
            ));
        }
    }
    if !faults.is_empty() {
        return Err(ApiError::invalid(resource.names(), object::name(service), &faults));
    }
    if families.is_empty() {
        families.push("IPv4".to_owned());
    }
    put_spec(service, "ipFamilies", json!(families));
    Ok(())
}

fn allocate_ips(
    resource: &Resource,
    service: &mut Value,
    around: &mut Surroundings<'_>,
) -> Result<(), ApiError> {
    let asked = items(service, &["spec", "clusterIPs"]).first().and_then(Value::as_str);
    let refused = |shown: &Value, why: &str| {
        let fault = FieldError::invalid("spec.clusterIPs", shown, why);
        ApiError::invalid(resource.names(), object::name(service), &[fault])
    };
    let ip = if let Some(ip) = asked.map(str::to_owned).filter(|ip| !ip.is_empty()) {
        let ips = at(service, &["spec", "clusterIPs"]).unwrap_or(&Value::Null);
        let refused = |why: &str| refused(ips, &format!("failed to allocate IP {ip}: {why}"));
        around.reservation.address(&ip).map_err(|why| refused(&why.to_string()))?;
        can_be_owned(&ip, service, around).map_err(|why| refused(&why))?;
        ip
    } else {
        let random = (around.random)();
        let given = around.reservation.any_address(random).map_err(|why| {
            let name = object::name(service);
            let text = format!("failed to allocate a serviceIP for Service {name:?}: {why}");
            ApiError::internal(&text)
        })?;
        let ip = given.to_string();
        can_be_owned(&ip, service, around)
            .map_err(|why| refused(&json!([""]), &format!("failed to allocate IP: {why}")))?;
        ip
    };
    put_spec(service, "clusterIP", json!(ip));
    put_spec(service, "clusterIPs", json!([ip]));
    Ok(())
}

/// The real server stores an `IPAddress` that names its Service, before it looks at the Service itself.
fn can_be_owned(ip: &str, service: &Value, around: &Surroundings<'_>) -> Result<(), String> {
    if object::name(service).is_empty() && !around.reservation.is_dry_run() {
        let missing = "spec.parentRef.name: Required value";
        return Err(format!("IPAddress.networking.k8s.io \"{ip}\" is invalid: {missing}"));
    }
    Ok(())
}

fn allocate_node_ports(
    resource: &Resource,
    service: &mut Value,
    old: Option<&Value>,
    around: &mut Surroundings<'_>,
) -> Result<(), ApiError> {
    if needs_node_port(service) {
        let own = old.map(node_ports).unwrap_or_default();
        let name = object::name(service).to_owned();
        let allocates = text(service, &["spec", "type"]) != "LoadBalancer"
            || at(service, &["spec", "allocateLoadBalancerNodePorts"]) != Some(&json!(false));
        let ports = objects_mut(spec_mut(service).get_mut("ports"));
        allocate_for_ports(ports, &own, allocates, around).map_err(|refused| match refused {
            Refused::Asked { index, port, why } => {
                let field = format!("spec.ports[{index}].nodePort");
                let fault = FieldError::invalid(field, &json!(port), &why.to_string());
                ApiError::invalid(resource.names(), &name, &[fault])
            }
            Refused::Any(why) => {
                ApiError::internal(&format!("failed to allocate a nodePort: {why}"))
            }
        })?;
    }
    if needs_health_port(service) && old.is_none_or(|old| !needs_health_port(old)) {
        allocate_health_port(service, around)?;
    }
    Ok(())
}

/// Why a port of a Service gets no node port.
enum Refused {
    /// The client asked for this one.
    Asked { index: usize, port: i64, why: AllocationError },
    /// Any would do.
    Any(AllocationError),
}

/// Gives ports their node ports; ports with the same number (of several protocols) share theirs.
fn allocate_for_ports<'a>(
    ports: impl Iterator<Item = &'a mut Map<String, Value>>,
    own: &BTreeSet<i64>,
    allocates: bool,
    around: &mut Surroundings<'_>,
) -> Result<(), Refused> {
    let mut by_port = BTreeMap::new();
    for (index, port) in ports.enumerate() {
        let number = |key: &str| port.get(key).and_then(Value::as_i64).unwrap_or_default();
        let (wanted, port_number) = (number("nodePort"), number("port"));
        if wanted == 0 && !allocates {
            continue;
        }
        let known = by_port.get(&port_number).copied();
        let node_port = match known {
            Some(known) if wanted == 0 || wanted == known => known,
            None if wanted == 0 => {
                let random = (around.random)();
                around.reservation.any_port(random).map(i64::from).map_err(Refused::Any)?
            }
            _ => {
                if !own.contains(&wanted) {
                    let refused = |why| Refused::Asked { index, port: wanted, why };
                    around.reservation.port(wanted).map_err(refused)?;
                }
                wanted
            }
        };
        by_port.entry(port_number).or_insert(node_port);
        port.insert("nodePort".to_owned(), json!(node_port));
    }
    Ok(())
}

fn allocate_health_port(
    service: &mut Value,
    around: &mut Surroundings<'_>,
) -> Result<(), ApiError> {
    let asked = health_port(service);
    if asked != 0 {
        return around.reservation.port(asked).map_err(|why| {
            let what = format!("failed to allocate requested HealthCheck NodePort {asked}: {why}");
            ApiError::internal(&what)
        });
    }
    let random = (around.random)();
    let port = around.reservation.any_port(random).map_err(|why| {
        ApiError::internal(&format!("failed to allocate a HealthCheck NodePort 0: {why}"))
    })?;
    put_spec(service, "healthCheckNodePort", json!(port));
    Ok(())
}

fn node_ports(service: &Value) -> BTreeSet<i64> {
    let ports = items(service, &["spec", "ports"]).iter();
    ports.filter_map(|port| int(port, &["nodePort"])).filter(|port| *port != 0).collect()
}

fn health_port(service: &Value) -> i64 {
    int(service, &["spec", "healthCheckNodePort"]).unwrap_or_default()
}

fn needs_node_port(service: &Value) -> bool {
    matches!(text(service, &["spec", "type"]), "NodePort" | "LoadBalancer")
}

fn needs_health_port(service: &Value) -> bool {
    text(service, &["spec", "type"]) == "LoadBalancer"
        && text(service, &["spec", "externalTrafficPolicy"]) == "Local"
}

fn some_text<'a>(service: &'a Value, field: &str) -> Option<&'a str> {
    Some(text(service, &["spec", field])).filter(|text| !text.is_empty())
}

fn same(service: &Value, old: &Value, field: &str) -> bool {
    at(service, &["spec", field]) == at(old, &["spec", field])
}

fn spec_mut(service: &mut Value) -> &mut Map<String, Value> {
    object::as_map(object::child(service, "spec"))
}

fn put_spec(service: &mut Value, field: &str, value: Value) {
    spec_mut(service).insert(field.to_owned(), value);
}

fn remove_spec(service: &mut Value, field: &str) {
    spec_mut(service).remove(field);
}
