//! The older `Endpoints` of a Service, as data: one object, ready and other addresses apart.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    EndpointAddress, EndpointPort, EndpointSubset, Endpoints, ObjectReference, Pod, Service,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::slices::{HEADLESS, TRIGGERED, is_headless, ports_of, trigger};
use crate::pods;

/// Label that names who keeps the object.
pub(crate) const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
/// Who keeps these objects.
pub(crate) const MANAGER: &str = "endpoint-controller";

/// A port, comparable: name, number, protocol, application protocol.
type Port = (Option<String>, i32, Option<String>, Option<String>);

/// Endpoints as they should be; `None` if they are so already.
pub(crate) fn wanted(
    service: &Service,
    pods: &[Arc<Pod>],
    current: Option<&Endpoints>,
) -> Option<Endpoints> {
    let subsets = subsets(service, pods);
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    labels.remove(HEADLESS);
    if is_headless(service) {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    let is_same = current.is_some_and(|current| {
        current.subsets.as_deref().unwrap_or_default() == subsets
            && current.metadata.labels.as_ref() == Some(&labels)
    });
    if is_same {
        return None;
    }
    let mut metadata = current.map_or_else(
        || ObjectMeta {
            name: service.metadata.name.clone(),
            namespace: service.metadata.namespace.clone(),
            ..ObjectMeta::default()
        },
        |current| current.metadata.clone(),
    );
    metadata.labels = Some(labels);
    if let Some(time) = trigger(service, pods) {
        metadata.annotations.get_or_insert_default().insert(TRIGGERED.to_owned(), time);
    }
    Some(Endpoints { metadata, subsets: Some(subsets) })
}

fn subsets(service: &Service, pods: &[Arc<Pod>]) -> Vec<EndpointSubset> {
    let publishes_all =
        service.spec.as_ref().and_then(|spec| spec.publish_not_ready_addresses) == Some(true);
    let mut groups: BTreeMap<Vec<Port>, (Vec<EndpointAddress>, Vec<EndpointAddress>)> =
        BTreeMap::new();
    for pod in pods {
        let has_ended = pods::is_finished(pod) || (pods::is_deleting(pod) && !publishes_all);
        let Some(address) = address(pod).filter(|_| !has_ended) else { continue };
        let ports = ports_of(service, pod).into_iter().filter_map(|port| {
            let name = port.name.filter(|name| !name.is_empty());
            Some((name, port.port?, port.protocol, port.app_protocol))
        });
        let ports: Vec<Port> = ports.collect();
        if ports.is_empty() && !is_headless(service) {
            continue;
        }
        let group = groups.entry(ports).or_default();
        let is_shown = publishes_all || pods::is_ready(pod);
        if is_shown { group.0.push(address) } else { group.1.push(address) }
    }
    groups.into_iter().map(|(ports, (ready, other))| subset(ports, ready, other)).collect()
}

fn subset(
    ports: Vec<Port>,
    mut ready: Vec<EndpointAddress>,
    mut other: Vec<EndpointAddress>,
) -> EndpointSubset {
    ready.sort_by(|one, other| one.ip.cmp(&other.ip));
    other.sort_by(|one, other| one.ip.cmp(&other.ip));
    let ports: Vec<EndpointPort> = ports
        .into_iter()
        .map(|(name, port, protocol, app_protocol)| EndpointPort {
            name,
            port,
            protocol,
            app_protocol,
        })
        .collect();
    EndpointSubset {
        addresses: Some(ready).filter(|all| !all.is_empty()),
        not_ready_addresses: Some(other).filter(|all| !all.is_empty()),
        ports: Some(ports).filter(|all| !all.is_empty()),
    }
}

fn address(pod: &Pod) -> Option<EndpointAddress> {
    let ip = pod.status.as_ref()?.pod_ip.clone().filter(|ip| !ip.is_empty())?;
    Some(EndpointAddress {
        ip,
        hostname: None,
        node_name: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
        target_ref: Some(ObjectReference {
            kind: Some("Pod".to_owned()),
            namespace: pod.metadata.namespace.clone(),
            name: pod.metadata.name.clone(),
            uid: pod.metadata.uid.clone(),
            ..ObjectReference::default()
        }),
    })
}
