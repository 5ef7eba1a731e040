//! The simulated nodes: names, addresses and registration.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::PostParams;

use super::MANAGER;
use crate::runtime::recorder::whole_seconds;
use crate::runtime::{Api, Doing, Failure, status_of};

/// Version that nodes say they run.
const KUBELET_VERSION: &str = "v1.37.2";

/// Names and addresses of so many nodes: `sim-node-0` at 172.18.0.2, and so on.
pub(super) fn addresses(count: u8) -> BTreeMap<String, String> {
    (0..count).map(|number| (format!("sim-node-{number}"), format!("172.18.{number}.2"))).collect()
}

/// The address of the `count`th Pod of a node.
pub(super) fn pod_address(host: &str, count: u32) -> String {
    let number = host.split('.').nth(2).unwrap_or("0");
    let [_, high, middle, low] = count.to_be_bytes();
    // The node's number stands in the second byte; the others count its Pods.
    let network = 64_u32 + number.parse::<u32>().unwrap_or(0) + u32::from(high);
    format!("10.{}.{middle}.{low}", network % 256)
}

/// Creates the node, or makes it ready again if it is there.
pub(super) async fn register(
    api: &Api<Node>,
    name: &str,
    address: &str,
    now: Timestamp,
) -> Result<(), Failure> {
    let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    match api.create(&params, &node(name, address)).await {
        Err(error) if !status_of(&error).is_some_and(kube::core::Status::is_already_exists) => {
            return Err(error).doing("create a node");
        }
        Ok(_) | Err(_) => {}
    }
    let mut node = api.get(name).await.doing("get a node")?;
    // The API server marks new nodes as not ready, the node lifecycle controller would take that back.
    let spec = node.spec.get_or_insert_default();
    let taints = spec.taints.take().unwrap_or_default();
    let before = taints.len();
    let kept: Vec<_> =
        taints.into_iter().filter(|taint| taint.key != "node.kubernetes.io/not-ready").collect();
    let is_changed = kept.len() != before;
    spec.taints = Some(kept).filter(|taints| !taints.is_empty());
    if is_changed {
        let written = api.replace(name, &params, &node).await.doing("untaint a node")?;
        node.metadata.resource_version = written.metadata.resource_version;
    }
    let is_ready = node
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    if !is_ready {
        node.status = Some(status(name, address, now));
        api.replace_status(name, &params, &node).await.doing("write a node's status")?;
    }
    Ok(())
}

fn node(name: &str, address: &str) -> Node {
    let labels = [
        ("beta.kubernetes.io/arch", "amd64"),
        ("beta.kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/hostname", name),
        ("kubernetes.io/os", "linux"),
    ];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let network = pod_address(address, 0);
    Node {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(BTreeMap::from(labels)),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            pod_cidr: Some(format!("{network}/16")),
            pod_cidrs: Some(vec![format!("{network}/16")]),
            provider_id: Some(format!("sim://{name}")),
            ..NodeSpec::default()
        }),
        status: None,
    }
}

fn status(name: &str, address: &str, now: Timestamp) -> NodeStatus {
    let resources =
        [("cpu", "64"), ("ephemeral-storage", "1Ti"), ("memory", "256Gi"), ("pods", "65000")];
    let resources: BTreeMap<String, Quantity> = resources
        .into_iter()
        .map(|(key, value)| (key.to_owned(), Quantity(value.to_owned())))
        .collect();
    let time = Some(Time(whole_seconds(now)));
    let condition = |type_: &str, status: &str, reason: &str, message: &str| NodeCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_heartbeat_time: time.clone(),
        last_transition_time: time.clone(),
    };
    let address_of = |type_: &str, address: &str| NodeAddress {
        type_: type_.to_owned(),
        address: address.to_owned(),
    };
    NodeStatus {
        addresses: Some(vec![address_of("InternalIP", address), address_of("Hostname", name)]),
        allocatable: Some(resources.clone()),
        capacity: Some(resources),
        conditions: Some(vec![
            condition(
                "MemoryPressure",
                "False",
                "KubeletHasSufficientMemory",
                "kubelet has sufficient memory available",
            ),
            condition(
                "DiskPressure",
                "False",
                "KubeletHasNoDiskPressure",
                "kubelet has no disk pressure",
            ),
            condition(
                "PIDPressure",
                "False",
                "KubeletHasSufficientPID",
                "kubelet has sufficient PID available",
            ),
            condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
        ]),
        node_info: Some(NodeSystemInfo {
            architecture: "amd64".to_owned(),
            container_runtime_version: "sim://1".to_owned(),
            kernel_version: "sim".to_owned(),
            kubelet_version: KUBELET_VERSION.to_owned(),
            operating_system: "linux".to_owned(),
            os_image: "simcluster".to_owned(),
            ..NodeSystemInfo::default()
        }),
        ..NodeStatus::default()
    }
}
