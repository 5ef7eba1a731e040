//! The table of the kinds' facts.

use serde_json::Value;

use crate::error::ApiError;
use crate::field::FieldError;
use crate::names;
use crate::resource::{Resource, Surroundings};

/// When `metadata.generation` rises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    /// The kind does not count it.
    None,
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
    pub(super) default: fn(&Resource, &mut Value),
    pub(super) prepare_for_create:
        fn(&Resource, &mut Value, &mut Surroundings<'_>) -> Result<(), ApiError>,
    pub(super) prepare_for_update: fn(&Resource, &str, &mut Value, &Value),
    pub(super) validate: fn(&Value) -> Vec<FieldError>,
    pub(super) validate_update: fn(&Value, &Value) -> Vec<FieldError>,
    pub(super) validate_status: fn(&Value, &Value) -> Vec<FieldError>,
    pub(super) allocate_for_update:
        fn(&Resource, &mut Value, &Value, &mut Surroundings<'_>) -> Result<(), ApiError>,
    pub(super) name_faults: fn(&str) -> Vec<String>,
    pub(super) may_be_removed: fn(&Value) -> bool,
    pub(super) grace_period_seconds: fn(&Value, Option<i64>) -> Option<i64>,
    pub(super) encode_stored: fn(&Resource, Value) -> Value,
    pub(super) decode_stored: fn(&Resource, Value) -> Value,
    pub(super) generation: Generation,
    /// Whether the status is written through its subresource only.
    pub(super) status_subresource: bool,
    pub(super) allow_unconditional_update: bool,
    pub(super) allow_create_on_update: bool,
    pub(super) returns_deleted_object: bool,
    pub(super) orphans_by_default: bool,
    /// Field labels beside name and namespace, and where their values stand.
    pub(super) field_labels: &'static [(&'static str, &'static str)],
}

impl Rules {
    /// What most kinds have in common.
    fn plain() -> Self {
        Self {
            default: |_, _| {},
            prepare_for_create: |_, _, _| Ok(()),
            prepare_for_update: |_, _, _, _| {},
            validate: |_| Vec::new(),
            validate_update: |_, _| Vec::new(),
            validate_status: |_, _| Vec::new(),
            allocate_for_update: |_, _, _, _| Ok(()),
            name_faults: names::dns1123_subdomain,
            may_be_removed: |_| true,
            grace_period_seconds: |_, _| None,
            encode_stored: |_, object| object,
            decode_stored: |_, object| object,
            generation: Generation::None,
            status_subresource: false,
            allow_unconditional_update: true,
            allow_create_on_update: false,
            returns_deleted_object: false,
            orphans_by_default: false,
            field_labels: &[],
        }
    }
}

/// The facts of a kind.
pub(super) fn of(group: &str, plural: &str) -> Rules {
    let plain = Rules::plain();
    let workload =
        || Rules { generation: Generation::Spec, status_subresource: true, ..Rules::plain() };
    match (group, plural) {
        ("apps", "deployments") => {
            Rules { generation: Generation::SpecOrAnnotations, status_subresource: true, ..plain }
        }
        ("", "pods") => Rules { returns_deleted_object: true, ..workload() },
        ("apps" | "policy" | "autoscaling", _)
        | ("batch", "jobs")
        | ("networking.k8s.io", "ingresses") => workload(),
        ("networking.k8s.io", _) => Rules { generation: Generation::Spec, ..plain },
        ("", "namespaces") => Rules {
            status_subresource: true,
            returns_deleted_object: true,
            name_faults: names::dns1123_label,
            ..plain
        },
        ("", "services") => Rules {
            status_subresource: true,
            returns_deleted_object: true,
            name_faults: names::dns1035_label,
            ..plain
        },
        ("", "resourcequotas") => {
            Rules { status_subresource: true, returns_deleted_object: true, ..plain }
        }
        ("rbac.authorization.k8s.io", _) => Rules { name_faults: names::path_segment, ..plain },
        ("", "nodes") => Rules { status_subresource: true, ..plain },
        ("", "serviceaccounts") => Rules { returns_deleted_object: true, ..plain },
        ("apiextensions.k8s.io", _) => Rules {
            generation: Generation::Spec,
            status_subresource: true,
            allow_unconditional_update: false,
            ..plain
        },
        ("coordination.k8s.io", _) => {
            Rules { allow_unconditional_update: false, allow_create_on_update: true, ..plain }
        }
        ("admissionregistration.k8s.io" | "discovery.k8s.io", _) => Rules {
            generation: Generation::AllButMetadata,
            allow_unconditional_update: false,
            ..plain
        },
        _ => plain,
    }
}
