//! The table of the kinds' facts.

use serde_json::Value;

use super::labels::{self, Labels};
use super::{
    config, event, network, pod, pod_spec, policy, rbac, service, service_validation, small,
    webhook, workload,
};
use crate::error::ApiError;
use crate::field::FieldError;
use crate::names;
use crate::resource::{Resource, Surroundings};
use crate::schema::Schema;

/// When `metadata.generation` rises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    /// The kind does not count it.
    None,
    /// Always 1.
    Constant,
    /// With the spec.
    Spec,
    /// With the spec or the annotations.
    SpecOrAnnotations,
    /// With anything beside the metadata.
    AllButMetadata,
}

/// The facts of one kind. Functions that a kind does not need do nothing.
#[derive(Debug)]
pub(super) struct Rules {
    /// What a new object gets from the cluster, or why it cannot have it.
    pub(super) allocate_for_create:
        fn(&Resource, &mut Value, &mut Surroundings<'_>) -> Result<(), ApiError>,
    /// What else a new object gets, after that.
    pub(super) prepare_for_create: fn(&mut Value),
    pub(super) prepare_for_update: fn(&Resource, &str, &mut Value, &Value),
    pub(super) validate: fn(&Value) -> Vec<FieldError>,
    /// All faults of a changed object; those of a new one if there are no rules of change.
    pub(super) validate_update: Option<fn(&Value, &Value) -> Vec<FieldError>>,
    pub(super) validate_status: fn(&Value, &Value) -> Vec<FieldError>,
    pub(super) allocate_for_update:
        fn(&Resource, &mut Value, &Value, &mut Surroundings<'_>) -> Result<(), ApiError>,
    pub(super) name_faults: fn(&str) -> Vec<String>,
    pub(super) may_be_removed: fn(&Value) -> bool,
    /// The period of a DELETE, for kinds that end gracefully.
    pub(super) grace_period_seconds: Option<fn(&Value, Option<i64>) -> i64>,
    pub(super) encode_stored: fn(&Resource, Value) -> Value,
    pub(super) decode_stored: fn(&Resource, Value) -> Value,
    /// What is accepted but not good.
    pub(super) warnings: fn(&Value) -> Vec<String>,
    pub(super) generation: Generation,
    /// Whether the status is written through its subresource only.
    pub(super) status_subresource: bool,
    pub(super) allow_unconditional_update: bool,
    pub(super) allow_create_on_update: bool,
    pub(super) returns_deleted_object: bool,
    pub(super) orphans_by_default: bool,
    /// Whether a client may give the status when it creates an object.
    pub(super) keeps_status_on_create: bool,
    /// Whether finalizers without a domain must be the server's own.
    pub(super) knows_finalizers: bool,
    /// Field labels beside name and namespace.
    pub(super) field_labels: Labels,
}

impl Rules {
    /// What most kinds have in common.
    fn plain() -> Self {
        Self {
            allocate_for_create: |_, _, _| Ok(()),
            prepare_for_create: |_| {},
            prepare_for_update: |_, _, _, _| {},
            validate: |_| Vec::new(),
            validate_update: None,
            validate_status: |_, _| Vec::new(),
            allocate_for_update: |_, _, _, _| Ok(()),
            name_faults: names::dns1123_subdomain,
            may_be_removed: |_| true,
            grace_period_seconds: None,
            encode_stored: |_, object| object,
            decode_stored: |_, object| object,
            warnings: |_| Vec::new(),
            generation: Generation::None,
            status_subresource: false,
            allow_unconditional_update: true,
            allow_create_on_update: false,
            returns_deleted_object: false,
            orphans_by_default: false,
            keeps_status_on_create: false,
            knows_finalizers: true,
            field_labels: &[],
        }
    }
}

/// The facts of a kind.
pub(super) fn of(group: &str, plural: &str) -> Rules {
    match group {
        "" => core(plural),
        "apps" | "batch" => workload(plural),
        "networking.k8s.io" | "policy" | "autoscaling" => with_spec(plural),
        "rbac.authorization.k8s.io" => rbac(plural),
        "events.k8s.io" => Rules {
            field_labels: labels::NEW_EVENT,
            validate: event::newer,
            validate_update: Some(event::newer_update),
            ..event()
        },
        "apiextensions.k8s.io" => Rules {
            generation: Generation::Spec,
            status_subresource: true,
            allow_unconditional_update: false,
            ..Rules::plain()
        },
        "coordination.k8s.io" => Rules {
            allow_unconditional_update: false,
            allow_create_on_update: true,
            prepare_for_create: small::create_lease,
            prepare_for_update: small::update_lease,
            knows_finalizers: false,
            validate: policy::lease,
            ..Rules::plain()
        },
        "discovery.k8s.io" => Rules {
            generation: Generation::AllButMetadata,
            encode_stored: nil_lists,
            validate: network::endpoint_slice,
            validate_update: Some(network::endpoint_slice_update),
            ..Rules::plain()
        },
        "scheduling.k8s.io" => Rules {
            generation: Generation::Constant,
            validate: policy::priority_class,
            validate_update: Some(policy::priority_class_update),
            ..Rules::plain()
        },
        "admissionregistration.k8s.io" => Rules {
            generation: Generation::AllButMetadata,
            allow_unconditional_update: false,
            validate: webhook::configuration,
            ..Rules::plain()
        },
        _ => Rules::plain(),
    }
}

/// An empty list that Go prints always does not survive storage: it comes back as null.
fn nil_lists(resource: &Resource, mut object: Value) -> Value {
    drop_empty_lists(&mut object, &resource.schema);
    object
}

fn drop_empty_lists(value: &mut Value, schema: &Schema) {
    let Some(fields) = value.as_object_mut() else { return };
    for (name, field) in &schema.properties {
        match fields.get_mut(name) {
            Some(list) if list.as_array().is_some_and(Vec::is_empty) => *list = Value::Null,
            Some(inner) => drop_empty_lists(inner, field),
            None => {}
        }
    }
}

fn core(plural: &str) -> Rules {
    let plain = Rules::plain();
    match plural {
        "pods" => Rules {
            generation: Generation::Spec,
            status_subresource: true,
            returns_deleted_object: true,
            allocate_for_create: pod::allocate_for_create,
            prepare_for_update: pod::prepare_for_update,
            validate: pod_spec::create,
            validate_update: Some(pod_spec::update),
            grace_period_seconds: Some(pod::grace_period_seconds),
            field_labels: labels::POD,
            ..plain
        },
        "services" => Rules {
            status_subresource: true,
            returns_deleted_object: true,
            allow_create_on_update: true,
            // A name that starts with a digit is accepted, too, since 1.37.
            name_faults: names::dns1123_label,
            allocate_for_create: service::allocate_for_create,
            allocate_for_update: service::allocate_for_update,
            prepare_for_update: service::prepare_for_update,
            decode_stored: service::decode_stored,
            warnings: service::warnings,
            validate_status: service_validation::status,
            validate: service_validation::create,
            validate_update: Some(service_validation::update),
            field_labels: labels::SERVICE,
            ..plain
        },
        "namespaces" => Rules {
            status_subresource: true,
            returns_deleted_object: true,
            name_faults: names::dns1123_label,
            prepare_for_create: small::create_namespace,
            prepare_for_update: small::update_namespace,
            validate: policy::namespace_finalizers,
            may_be_removed: small::may_namespace_be_removed,
            field_labels: labels::NAMESPACE,
            ..plain
        },
        "serviceaccounts" => Rules {
            returns_deleted_object: true,
            prepare_for_create: small::create_service_account,
            prepare_for_update: small::update_service_account,
            ..plain
        },
        "nodes" => Rules {
            status_subresource: true,
            keeps_status_on_create: true,
            prepare_for_create: small::create_node,
            field_labels: labels::NODE,
            ..plain
        },
        "resourcequotas" => Rules {
            status_subresource: true,
            returns_deleted_object: true,
            validate: policy::quota,
            ..plain
        },
        "secrets" => Rules {
            validate: config::secret,
            validate_update: Some(config::secret_update),
            field_labels: labels::SECRET,
            ..plain
        },
        "configmaps" => Rules {
            validate: config::config_map,
            validate_update: Some(config::config_map_update),
            ..plain
        },
        "events" => event(),
        "endpoints" => {
            Rules { allow_create_on_update: true, validate: network::endpoints, ..plain }
        }
        "limitranges" => Rules { allow_create_on_update: true, encode_stored: nil_lists, ..plain },
        _ => plain,
    }
}

fn event() -> Rules {
    Rules {
        allow_create_on_update: true,
        validate: event::stored,
        validate_update: Some(event::stored_update),
        knows_finalizers: false,
        encode_stored: event::encode_stored,
        decode_stored: event::decode_stored,
        field_labels: labels::EVENT,
        ..Rules::plain()
    }
}

fn workload(plural: &str) -> Rules {
    let base = Rules { generation: Generation::Spec, status_subresource: true, ..Rules::plain() };
    match plural {
        "deployments" => Rules {
            // Annotations are copied to the ReplicaSets, so a change of them is work to do, too.
            generation: Generation::SpecOrAnnotations,
            prepare_for_update: small::update_deployment,
            validate: workload::deployment,
            validate_update: Some(workload::deployment_update),
            validate_status: workload::deployment_status,
            ..base
        },
        "replicasets" => Rules {
            validate: workload::replica_set,
            validate_update: Some(workload::replica_set_update),
            validate_status: workload::replica_set_status,
            ..base
        },
        "statefulsets" => Rules {
            // Pods are named after the set, and their names are labels.
            name_faults: names::dns1123_label,
            validate: workload::stateful_set,
            validate_update: Some(workload::stateful_set_update),
            validate_status: workload::stateful_set_status,
            ..base
        },
        "jobs" => Rules {
            orphans_by_default: true,
            prepare_for_create: small::create_job,
            validate: workload::job,
            validate_update: Some(workload::job_update),
            field_labels: labels::JOB,
            ..base
        },
        _ => base,
    }
}

/// Kinds with a spec and a generation, and mostly a status.
fn with_spec(plural: &str) -> Rules {
    let base = Rules { generation: Generation::Spec, status_subresource: true, ..Rules::plain() };
    match plural {
        "ingresses" => Rules {
            validate_status: network::load_balancer_status,
            validate: network::ingress_create,
            validate_update: Some(network::ingress_update),
            ..base
        },
        "ingressclasses" => Rules {
            status_subresource: false,
            validate: network::ingress_class,
            validate_update: Some(network::ingress_class_update),
            ..base
        },
        "networkpolicies" => {
            Rules { status_subresource: false, validate: network::network_policy, ..base }
        }
        "poddisruptionbudgets" => Rules {
            allow_unconditional_update: false,
            validate: policy::disruption_budget,
            knows_finalizers: false,
            ..base
        },
        "horizontalpodautoscalers" => Rules { validate: policy::autoscaler, ..base },
        _ => base,
    }
}

fn rbac(plural: &str) -> Rules {
    let base =
        Rules { name_faults: names::path_segment, allow_create_on_update: true, ..Rules::plain() };
    match plural {
        "roles" => Rules { validate: rbac::role, encode_stored: nil_lists, ..base },
        "clusterroles" => Rules { validate: rbac::cluster_role, encode_stored: nil_lists, ..base },
        "rolebindings" => Rules {
            validate: rbac::role_binding,
            validate_update: Some(rbac::role_binding_update),
            ..base
        },
        "clusterrolebindings" => Rules {
            validate: rbac::cluster_role_binding,
            validate_update: Some(rbac::cluster_role_binding_update),
            ..base
        },
        _ => base,
    }
}
