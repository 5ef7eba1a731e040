//! Kinds whose types in k8s-openapi change with the version of Kubernetes that its user chooses: what is
//! optional in one is not in another. Here they stand in one form; what they are made of is
//! k8s-openapi's.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{
    DeploymentSpec, DeploymentStatus, ReplicaSetSpec, ReplicaSetStatus,
};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointPort};
use k8s_openapi::api::policy::v1::PodDisruptionBudgetSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use k8s_openapi::{Metadata, NamespaceResourceScope, Resource};
use serde::{Deserialize, Serialize};

/// A Deployment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Deployment {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: DeploymentSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<DeploymentStatus>,
}

/// A ReplicaSet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ReplicaSet {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: ReplicaSetSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<ReplicaSetStatus>,
}

/// An EndpointSlice.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct EndpointSlice {
    pub(crate) address_type: String,
    pub(crate) endpoints: Option<Vec<Endpoint>>,
    pub(crate) metadata: ObjectMeta,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ports: Option<Vec<EndpointPort>>,
}

/// A `PodDisruptionBudget`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PodDisruptionBudget {
    pub(crate) metadata: ObjectMeta,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) spec: Option<PodDisruptionBudgetSpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<PodDisruptionBudgetStatus>,
}

/// How many of a budget's Pods are healthy, and how many may go.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PodDisruptionBudgetStatus {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditions: Vec<Condition>,
    pub(crate) current_healthy: i32,
    pub(crate) desired_healthy: i32,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) disrupted_pods: BTreeMap<String, Time>,
    pub(crate) disruptions_allowed: i32,
    pub(crate) expected_pods: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) observed_generation: Option<i64>,
}

/// Names a kind to kube.
macro_rules! kind {
    ($name:ident, $group:literal, $plural:literal) => {
        impl Resource for $name {
            const API_VERSION: &'static str = concat!($group, "/v1");
            const GROUP: &'static str = $group;
            const KIND: &'static str = stringify!($name);
            const VERSION: &'static str = "v1";
            const URL_PATH_SEGMENT: &'static str = $plural;
            type Scope = NamespaceResourceScope;
        }

        impl Metadata for $name {
            type Ty = ObjectMeta;

            fn metadata(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

kind!(Deployment, "apps", "deployments");
kind!(ReplicaSet, "apps", "replicasets");
kind!(EndpointSlice, "discovery.k8s.io", "endpointslices");
kind!(PodDisruptionBudget, "policy", "poddisruptionbudgets");

/// A text that is there or not, as a version of the types has it; empty if it is not.
pub(crate) trait Text {
    fn text(&self) -> &str;
}

impl Text for String {
    fn text(&self) -> &str {
        self
    }
}

impl Text for Option<String> {
    fn text(&self) -> &str {
        self.as_deref().unwrap_or_default()
    }
}

/// A list of texts that is there or not, as a version of the types has it; empty if it is not.
pub(crate) trait Texts {
    fn texts(&self) -> &[String];
}

impl Texts for Vec<String> {
    fn texts(&self) -> &[String] {
        self
    }
}

impl Texts for Option<Vec<String>> {
    fn texts(&self) -> &[String] {
        self.as_deref().unwrap_or_default()
    }
}
