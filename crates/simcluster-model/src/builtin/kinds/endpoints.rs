//! Endpoints and their slices.

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::builtin::addresses::{endpoint_ip, ip_warning};
use crate::builtin::cells::{View, few, or};
use crate::builtin::check::Faults;
use crate::builtin::defaults::{Fields, set};
use crate::builtin::kind::{Generation, Kind, nil_lists};
use crate::builtin::value::{at, int, items, objects_mut, text};
use crate::field::FieldError;
use crate::names;

/// `endpoints`.
pub(super) static KIND: Kind = Kind {
    allow_create_on_update: true,
    default: endpoints_defaults,
    validate: endpoints,
    warnings: endpoints_warnings,
    deprecation_warning: Some(
        "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ),
    registry_path: Some("services/endpoints"),
    cells: |view| view.named(vec![json!(endpoints_cell(view)), view.age()]),
    ..Kind::new("", "endpoints")
};

/// `endpointslices`.
pub(super) static SLICE: Kind = Kind {
    generation: Generation::AllButMetadata,
    default: slice_defaults,
    encode_stored: nil_lists,
    validate: endpoint_slice,
    warnings: slice_warnings,
    validate_update: Some(endpoint_slice_update),
    cells: slice_cells,
    ..Kind::new("discovery.k8s.io", "endpointslices")
};

fn endpoints_defaults(endpoints: &mut Fields) {
    for subset in objects_mut(endpoints.get_mut("subsets")) {
        for port in objects_mut(subset.get_mut("ports")) {
            set(port, "protocol", || json!("TCP"));
        }
    }
}

fn slice_defaults(slice: &mut Fields) {
    for port in objects_mut(slice.get_mut("ports")) {
        set(port, "name", || json!(""));
        set(port, "protocol", || json!("TCP"));
    }
}

fn endpoints(endpoints: &Value) -> Vec<FieldError> {
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
                if ip.parse::<IpAddr>().is_err() {
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

fn endpoint_slice(slice: &Value) -> Vec<FieldError> {
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
                canonical(address, &format!("{here}.addresses[{position}]"), &mut faults);
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

fn endpoint_slice_update(slice: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults(endpoint_slice(slice));
    let kind = |one| at(one, &["addressType"]);
    faults.immutable("addressType", kind(slice), kind(old));
    faults.0
}

/// Ports and addresses shown before the rest is only counted.
const SHOWN_MAX: usize = 3;

fn endpoints_cell(view: View<'_>) -> String {
    let subsets = view.list("/subsets");
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let addresses =
            || items(subset, &["addresses"]).iter().map(|address| text(address, &["ip"]));
        let ports = items(subset, &["ports"]);
        if ports.is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in ports {
            let port = port.get("port").and_then(Value::as_i64).unwrap_or_default();
            all.extend(addresses().map(|ip| host_port(ip, port)));
        }
    }
    few(&all, SHOWN_MAX, ",")
}

fn host_port(ip: &str, port: i64) -> String {
    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}

fn slice_cells(view: View<'_>) -> Vec<Value> {
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
        .flat_map(|endpoint| items(endpoint, &["addresses"]))
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    view.named(vec![
        view.text("/addressType"),
        json!(or(&few(&ports, SHOWN_MAX, ","), "<unset>")),
        json!(or(&few(&addresses, SHOWN_MAX, ","), "<unset>")),
        view.age(),
    ])
}

/// What the controllers write is known to be good.
fn is_managed_by(object: &Value, controllers: &[&str], label: &str) -> bool {
    controllers.contains(&text(object, &["metadata", "labels", label]))
}

fn endpoints_warnings(endpoints: &Value, _old: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    let label = "endpoints.kubernetes.io/managed-by";
    if is_managed_by(endpoints, &["endpoint-controller"], label) {
        return found;
    }
    for (index, subset) in items(endpoints, &["subsets"]).iter().enumerate() {
        for list in ["addresses", "notReadyAddresses"] {
            for (position, address) in items(subset, &[list]).iter().enumerate() {
                let field = format!("subsets[{index}].{list}[{position}].ip");
                found.extend(ip_warning(&field, text(address, &["ip"])));
            }
        }
    }
    found
}

fn slice_warnings(slice: &Value, old: Option<&Value>) -> Vec<String> {
    let fqdn = old.is_none() && text(slice, &["addressType"]) == "FQDN";
    let mut found: Vec<String> = Vec::new();
    found.extend(fqdn.then(|| "spec.addressType: FQDN endpoints are deprecated".to_owned()));
    let controllers =
        ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
    if is_managed_by(slice, &controllers, "endpointslice.kubernetes.io/managed-by") {
        return found;
    }
    for (index, endpoint) in items(slice, &["endpoints"]).iter().enumerate() {
        for (position, address) in items(endpoint, &["addresses"]).iter().enumerate() {
            let field = format!("endpoints[{index}].addresses[{position}]");
            found.extend(ip_warning(&field, address.as_str().unwrap_or_default()));
        }
    }
    found
}

/// An address that is good must be in its one form, too.
fn canonical(address: &str, field: &str, faults: &mut Faults) {
    let Ok(ip) = address.parse::<IpAddr>() else { return };
    let form = ip.to_string();
    if form != address && names::ip(address).is_empty() {
        faults.invalid(field, &json!(address), &format!("must be in canonical form ({form:?})"));
    }
}
