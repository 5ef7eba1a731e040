//! The `EndpointSlices` of a Service, as data.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::types::EndpointSlice;
use k8s_openapi::api::core::v1::{ObjectReference, Pod, Service, ServicePort};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::owners::{controller_reference, is_controlled_by};
use crate::pods;

/// Label that names a slice's Service.
pub(crate) const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// Label that names who keeps a slice.
pub(crate) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// Who keeps these slices.
pub(crate) const MANAGER: &str = "endpointslice-controller.k8s.io";
/// Label of slices and Endpoints of a Service without an address of its own.
pub(crate) const HEADLESS: &str = "service.kubernetes.io/headless";
/// Annotation with the time of the change that led to the last write.
pub(crate) const TRIGGERED: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// So many endpoints at most stand in a slice.
const ENDPOINTS_MAX: usize = 100;

/// A step towards the wanted slices.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    Create(Box<EndpointSlice>),
    Update(Box<EndpointSlice>),
    Delete(Box<EndpointSlice>),
}

/// Whether a Service gets endpoints from Pods.
pub(crate) fn selects(service: &Service) -> Option<&BTreeMap<String, String>> {
    let spec = service.spec.as_ref()?;
    let is_external = spec.type_.as_deref() == Some("ExternalName");
    spec.selector.as_ref().filter(|selector| !is_external && !selector.is_empty())
}

/// Whether a Service has no address of its own.
pub(crate) fn is_headless(service: &Service) -> bool {
    let address = service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref());
    address == Some("None")
}

/// The time that is written as the trigger of a change: when the last Pod became ready, or the Service
/// came.
pub(crate) fn trigger(service: &Service, pods: &[Arc<Pod>]) -> Option<String> {
    let ready = pods.iter().filter_map(|pod| pods::ready_since(pod)).max();
    let created = service.metadata.creation_timestamp.as_ref().map(|time| time.0);
    ready.max(created).map(simcluster_model::time::format_seconds)
}

/// A port of a slice, in an order that makes port lists comparable: name, number, protocol, application
/// protocol.
type Port = (String, Option<i32>, Option<String>, Option<String>);

/// The ports of a Service as a Pod serves them. A named target port that the Pod lacks is left out.
pub(crate) fn ports_of(service: &Service, pod: &Pod) -> Vec<EndpointPort> {
    let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_ref());
    ports.into_iter().flatten().filter_map(|port| port_of(port, pod)).collect()
}

fn port_of(port: &ServicePort, pod: &Pod) -> Option<EndpointPort> {
    let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
    let number = match &port.target_port {
        None | Some(IntOrString::Int(0)) => port.port,
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(name)) => named_port(pod, name, &protocol)?,
    };
    Some(EndpointPort {
        name: Some(port.name.clone().unwrap_or_default()),
        port: Some(number),
        protocol: Some(protocol),
        app_protocol: port.app_protocol.clone(),
    })
}

fn named_port(pod: &Pod, name: &str, protocol: &str) -> Option<i32> {
    let spec = pod.spec.as_ref()?;
    let stays = |policy: &Option<String>| policy.as_deref() == Some("Always");
    let sidecars =
        spec.init_containers.iter().flatten().filter(|container| stays(&container.restart_policy));
    spec.containers
        .iter()
        .chain(sidecars)
        .flat_map(|container| container.ports.iter().flatten())
        .find(|port| {
            port.name.as_deref() == Some(name)
                && port.protocol.as_deref().unwrap_or("TCP") == protocol
        })
        .map(|port| port.container_port)
}

fn comparable(ports: &[EndpointPort]) -> BTreeSet<Port> {
    ports
        .iter()
        .map(|port| {
            let name = port.name.clone().unwrap_or_default();
            (name, port.port, port.protocol.clone(), port.app_protocol.clone())
        })
        .collect()
}

/// A Pod as an endpoint; `None` if it has no address or has ended.
fn endpoint(service: &Service, pod: &Pod) -> Option<Endpoint> {
    let address = pod.status.as_ref()?.pod_ip.clone().filter(|ip| !ip.is_empty())?;
    if pods::is_finished(pod) {
        return None;
    }
    let spec = service.spec.clone().unwrap_or_default();
    let serving = pods::is_ready(pod);
    let terminating = pods::is_deleting(pod);
    let ready = spec.publish_not_ready_addresses == Some(true) || (serving && !terminating);
    let pod_spec = pod.spec.clone().unwrap_or_default();
    let is_named = pod_spec.subdomain.is_some() && pod_spec.subdomain == service.metadata.name;
    Some(Endpoint {
        addresses: vec![address],
        conditions: Some(EndpointConditions {
            ready: Some(ready),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hostname: pod_spec.hostname.filter(|_| is_named),
        node_name: pod_spec.node_name,
        target_ref: Some(ObjectReference {
            kind: Some("Pod".to_owned()),
            namespace: pod.metadata.namespace.clone(),
            name: pod.metadata.name.clone(),
            uid: pod.metadata.uid.clone(),
            ..ObjectReference::default()
        }),
        ..Endpoint::default()
    })
}

/// The endpoints of a list of ports.
#[derive(Default)]
struct Group {
    ports: Vec<EndpointPort>,
    endpoints: Vec<Endpoint>,
}

/// What to do so that the slices show the Pods. Endpoints stay in the slice that they are in.
pub(crate) fn plan(
    service: &Service,
    pods: &[Arc<Pod>],
    existing: &[Arc<EndpointSlice>],
) -> Vec<Action> {
    let mut groups: BTreeMap<BTreeSet<Port>, Group> = BTreeMap::new();
    for pod in pods {
        if let Some(endpoint) = endpoint(service, pod) {
            let ports = ports_of(service, pod);
            let group = groups.entry(comparable(&ports)).or_default();
            group.ports = ports;
            group.endpoints.push(endpoint);
        }
    }
    let trigger = trigger(service, pods);
    let mut actions = Vec::new();
    let mut unused = Vec::new();
    let mut existing: Vec<EndpointSlice> = existing
        .iter()
        .filter(|slice| slice.metadata.deletion_timestamp.is_none())
        .filter(|slice| is_controlled_by(&slice.metadata, &service.metadata))
        .map(|slice| slice.as_ref().clone())
        .collect();
    if groups.is_empty() {
        // One empty slice says that there are no endpoints.
        groups.insert(BTreeSet::new(), Group::default());
    }
    for (ports, group) in groups {
        let (mine, others): (Vec<_>, Vec<_>) = existing
            .into_iter()
            .partition(|slice| comparable(slice.ports.as_deref().unwrap_or_default()) == ports);
        existing = others;
        unused.extend(fill(service, group, mine, trigger.as_ref(), &mut actions));
    }
    unused.extend(existing);
    reuse(&mut actions, &mut unused);
    actions.extend(unused.into_iter().map(|slice| Action::Delete(Box::new(slice))));
    actions
}

/// Makes updates of slices that would go of those that would be created, the last one first
/// (`k8s.io/endpointslice/reconciler.go`, `finalize`).
fn reuse(actions: &mut [Action], unused: &mut Vec<EndpointSlice>) {
    let creates = actions.iter_mut().rev().filter(|action| matches!(action, Action::Create(_)));
    for action in creates {
        let Action::Create(wanted) = action else { continue };
        let same_type = |old: &EndpointSlice| old.address_type == wanted.address_type;
        let Some(place) = unused.iter().position(same_type) else { continue };
        let old = unused.remove(place);
        let metadata = ObjectMeta {
            labels: wanted.metadata.labels.take(),
            annotations: wanted.metadata.annotations.take(),
            owner_references: wanted.metadata.owner_references.take(),
            ..old.metadata
        };
        let slice = EndpointSlice { metadata, ..EndpointSlice::clone(wanted) };
        *action = Action::Update(Box::new(slice));
    }
}

/// Puts the endpoints of a group into slices. Answers the slices that are not needed.
fn fill(
    service: &Service,
    group: Group,
    mine: Vec<EndpointSlice>,
    trigger: Option<&String>,
    actions: &mut Vec<Action>,
) -> Vec<EndpointSlice> {
    let uid = |endpoint: &Endpoint| endpoint.target_ref.as_ref().and_then(|pod| pod.uid.clone());
    let mut wanted: BTreeMap<Option<String>, Endpoint> =
        group.endpoints.into_iter().map(|endpoint| (uid(&endpoint), endpoint)).collect();
    let mut kept: Vec<(EndpointSlice, Vec<Endpoint>)> = Vec::new();
    for slice in mine {
        let endpoints = slice.endpoints.iter().flatten();
        let endpoints = endpoints.filter_map(|one| wanted.remove(&uid(one))).collect();
        kept.push((slice, endpoints));
    }
    let mut rest: Vec<Endpoint> = wanted.into_values().collect();
    rest.sort_by(|one, other| pod_name(one).cmp(&pod_name(other)));
    let mut rest = rest.into_iter();
    for (_, endpoints) in &mut kept {
        let room = ENDPOINTS_MAX.saturating_sub(endpoints.len());
        endpoints.extend(rest.by_ref().take(room));
    }
    let is_filled = |(_, endpoints): &(EndpointSlice, Vec<Endpoint>)| !endpoints.is_empty();
    let mut has_one = kept.iter().any(is_filled) || !rest.as_slice().is_empty();
    let mut unused = Vec::new();
    for (slice, endpoints) in kept {
        // An empty slice is needed only where there is no other.
        if endpoints.is_empty() && has_one {
            unused.push(slice);
            continue;
        }
        has_one = true;
        let metadata = metadata(service, trigger);
        let has_labels = slice.metadata.labels == metadata.labels;
        if has_labels && slice.endpoints.as_deref().unwrap_or_default() == endpoints {
            continue;
        }
        let mut changed = slice;
        changed.endpoints = Some(endpoints);
        changed.metadata.labels = metadata.labels;
        changed
            .metadata
            .annotations
            .get_or_insert_default()
            .extend(metadata.annotations.unwrap_or_default());
        actions.push(Action::Update(Box::new(changed)));
    }
    let rest: Vec<Endpoint> = rest.collect();
    let mut chunks: Vec<Vec<Endpoint>> = rest.chunks(ENDPOINTS_MAX).map(<[_]>::to_vec).collect();
    if chunks.is_empty() && !has_one {
        chunks.push(Vec::new());
    }
    for endpoints in chunks {
        actions.push(Action::Create(Box::new(EndpointSlice {
            metadata: metadata(service, trigger),
            address_type: "IPv4".to_owned(),
            endpoints: Some(endpoints),
            ports: Some(group.ports.clone()),
        })));
    }
    unused
}

fn pod_name(endpoint: &Endpoint) -> Option<&String> {
    endpoint.target_ref.as_ref().and_then(|pod| pod.name.as_ref())
}

fn metadata(service: &Service, trigger: Option<&String>) -> ObjectMeta {
    let name = service.metadata.name.as_deref().unwrap_or_default();
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.insert(SERVICE_NAME.to_owned(), name.to_owned());
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    labels.remove(HEADLESS);
    if is_headless(service) {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    ObjectMeta {
        generate_name: Some(format!("{name}-")),
        namespace: service.metadata.namespace.clone(),
        labels: Some(labels),
        annotations: trigger.map(|time| BTreeMap::from([(TRIGGERED.to_owned(), time.clone())])),
        owner_references: Some(vec![controller_reference(service)]),
        ..ObjectMeta::default()
    }
}
