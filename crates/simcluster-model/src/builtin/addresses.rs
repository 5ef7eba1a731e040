//! Addresses: those of load balancers and those of endpoints.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

use serde_json::{Value, json};

use crate::builtin::cells::{View, or};
use crate::builtin::check::Faults;
use crate::builtin::value::{items, text};
use crate::field::FieldError;
use crate::names;

/// The points at which a load balancer listens, as its controller writes them.
pub(super) fn validate_balancer(object: &Value, old: &Value) -> Vec<FieldError> {
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

/// Addresses of a load balancer, sorted.
pub(super) fn of_balancer(view: View<'_>) -> BTreeSet<String> {
    view.list("/status/loadBalancer/ingress")
        .iter()
        .map(|one| or(text(one, &["ip"]), text(one, &["hostname"])).to_owned())
        .filter(|address| !address.is_empty())
        .collect()
}

/// An address at which Pods can be reached.
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

/// A warning about an address of IPv6 that is not written in its one form (RFC 5952).
pub(super) fn ip_warning(field: &str, value: &str) -> Option<String> {
    let canonical = value.parse::<Ipv6Addr>().ok()?.to_string();
    (canonical != value).then(|| {
        format!(
            "{field}: IPv6 address {value:?} should be in RFC 5952 canonical format ({canonical:?})"
        )
    })
}

/// The same about a range of addresses.
pub(super) fn cidr_warning(field: &str, value: &str) -> Option<String> {
    let (ip, length) = value.split_once('/')?;
    let canonical = format!("{}/{length}", ip.parse::<Ipv6Addr>().ok()?);
    (canonical != value).then(|| {
        format!(
            "{field}: IPv6 CIDR value {value:?} should be in RFC 5952 canonical format ({canonical:?})"
        )
    })
}

/// Warnings about the addresses at which a load balancer listens.
pub(super) fn balancer_warnings(object: &Value) -> Vec<String> {
    let points = items(object, &["status", "loadBalancer", "ingress"]).iter().enumerate();
    points
        .filter_map(|(index, point)| {
            ip_warning(&format!("status.loadBalancer.ingress[{index}]"), text(point, &["ip"]))
        })
        .collect()
}
