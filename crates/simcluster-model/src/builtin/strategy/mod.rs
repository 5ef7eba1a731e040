//! The rules of the built-in kinds: one `Strategy` that reads a table of each kind's facts.

pub mod admission;
mod check;
mod config;
mod container;
mod defaults;
mod event;
mod labels;
pub mod limits;
mod network;
mod pod;
pub mod pod_security;
mod pod_spec;
mod policy;
pub mod quota;
mod rbac;
mod resources;
mod rules;
mod scheduling;
mod service;
mod service_validation;
mod small;
mod value;
mod webhook;
mod workload;

use std::sync::Arc;

use serde_json::{Value, json};

use self::rules::{Generation, Rules};
use super::decode_typed;
use crate::error::ApiError;
use crate::field::FieldError;
use crate::names;
use crate::object::{as_map, at_path, metadata_mut, put};
use crate::resource::{Decoded, Resource, Strategy, Surroundings};

/// The rules of a built-in kind.
pub(super) fn of(group: &str, plural: &str) -> Arc<dyn Strategy> {
    Arc::new(BuiltIn { rules: rules::of(group, plural) })
}

/// Text of the warning that every request on a deprecated resource gets.
pub(super) fn deprecation_warning(group: &str, plural: &str) -> Option<String> {
    (group.is_empty() && plural == "endpoints").then(|| {
        "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".to_owned()
    })
}

#[derive(Debug)]
struct BuiltIn {
    rules: Rules,
}

impl Strategy for BuiltIn {
    fn decode(&self, resource: &Resource, body: Value) -> Result<Decoded, ApiError> {
        let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (mut api_version, mut kind) = (text("apiVersion"), text("kind"));
        if api_version.is_empty() {
            api_version = resource.api_version();
        }
        if kind.is_empty() {
            kind.clone_from(&resource.kind);
        }
        let version = api_version.rsplit('/').next().unwrap_or_default();
        let refused = |why: &str| {
            let wanted = &resource.kind;
            ApiError::bad_request(format!(
                "{kind} in version \"{version}\" cannot be handled as a {wanted}: {why}"
            ))
        };
        if api_version != resource.api_version() || kind != resource.kind {
            return Err(refused(&mismatch(resource, &api_version, &kind)));
        }
        // An empty list is kept where it says something: managed fields are to be forgotten.
        let resets =
            body.pointer("/metadata/managedFields").filter(|list| **list == json!([])).cloned();
        let mut decoded = decode_typed(body, &resource.schema, "").map_err(|why| refused(&why))?;
        if let Some(empty) = resets {
            metadata_mut(&mut decoded.object).insert("managedFields".to_owned(), empty);
        }
        put(&mut decoded.object, "apiVersion", json!(api_version));
        put(&mut decoded.object, "kind", json!(kind));
        Ok(decoded)
    }

    fn default(&self, resource: &Resource, object: &mut Value) {
        defaults::fill(resource, object);
    }

    fn prepare_for_create(
        &self,
        resource: &Resource,
        object: &mut Value,
        around: &mut Surroundings<'_>,
    ) -> Result<(), ApiError> {
        if self.rules.status_subresource && !self.rules.keeps_status_on_create {
            reset_status(resource, object);
        }
        (self.rules.allocate_for_create)(resource, object, around)?;
        (self.rules.prepare_for_create)(object);
        Ok(())
    }

    fn validate_create(&self, _resource: &Resource, object: &Value) -> Vec<FieldError> {
        (self.rules.validate)(object)
    }

    fn prepare_for_update(
        &self,
        resource: &Resource,
        subresource: &str,
        object: &mut Value,
        old: &Value,
    ) {
        if subresource == "status" {
            keep_all_but_status(object, old);
        } else if subresource == "binding" {
            // The real server writes the node and the condition past these rules.
            return;
        } else if self.rules.status_subresource {
            copy_field(object, old, "status");
        }
        (self.rules.prepare_for_update)(resource, subresource, object, old);
    }

    fn validate_update(
        &self,
        _resource: &Resource,
        subresource: &str,
        object: &Value,
        old: &Value,
    ) -> Vec<FieldError> {
        match subresource {
            "status" => return (self.rules.validate_status)(object, old),
            // A binding changes what an update of the Pod may not.
            "binding" => return Vec::new(),
            _ => {}
        }
        if subresource == "binding" {
            // The server writes the node that it was told itself; no client's object is looked at.
            return Vec::new();
        }
        match self.rules.validate_update {
            Some(validate) => validate(object, old),
            None => (self.rules.validate)(object),
        }
    }

    fn warnings(&self, _resource: &Resource, object: &Value, _old: Option<&Value>) -> Vec<String> {
        (self.rules.warnings)(object)
    }

    fn generation_changes(&self, object: &Value, old: &Value) -> bool {
        let differs = |path: &str| at_path(object, path) != at_path(old, path);
        match self.rules.generation {
            Generation::None | Generation::Constant => false,
            Generation::Spec => differs("spec"),
            Generation::SpecOrAnnotations => differs("spec") || differs("metadata.annotations"),
            Generation::AllButMetadata => {
                let rest = |value: &Value| {
                    let mut rest = value.clone();
                    as_map(&mut rest).remove("metadata");
                    rest
                };
                rest(object) != rest(old)
            }
        }
    }

    fn has_generation(&self) -> bool {
        self.rules.generation != Generation::None
    }

    fn allow_unconditional_update(&self) -> bool {
        self.rules.allow_unconditional_update
    }

    fn allow_create_on_update(&self) -> bool {
        self.rules.allow_create_on_update
    }

    fn returns_deleted_object(&self) -> bool {
        self.rules.returns_deleted_object
    }

    fn default_propagation_policy(&self) -> &'static str {
        if self.rules.orphans_by_default { "Orphan" } else { "Background" }
    }

    fn grace_period_seconds(&self, object: &Value, asked: Option<i64>) -> Option<i64> {
        self.rules.grace_period_seconds.map(|period| period(object, asked))
    }

    fn has_field_labels(&self) -> bool {
        !self.rules.field_labels.is_empty()
    }

    fn name_faults(&self, name: &str, prefix: bool) -> Vec<String> {
        let masked = if prefix { names::mask_trailing_dash(name) } else { name.to_owned() };
        (self.rules.name_faults)(&masked)
    }

    fn invalid_group<'a>(&self, resource: &'a Resource) -> &'a str {
        // Events of both groups are of one type.
        if resource.plural == "events" { "" } else { &resource.group }
    }

    fn knows_finalizers(&self) -> bool {
        self.rules.knows_finalizers
    }

    fn may_be_removed(&self, object: &Value) -> bool {
        (self.rules.may_be_removed)(object)
    }

    fn allocate_for_update(
        &self,
        resource: &Resource,
        object: &mut Value,
        old: &Value,
        around: &mut Surroundings<'_>,
    ) -> Result<(), ApiError> {
        (self.rules.allocate_for_update)(resource, object, old, around)
    }

    fn encode_stored(&self, resource: &Resource, object: Value) -> Value {
        (self.rules.encode_stored)(resource, object)
    }

    fn decode_stored(&self, resource: &Resource, object: Value) -> Value {
        (self.rules.decode_stored)(resource, object)
    }

    fn field_label(&self, _resource: &Resource, object: &Value, label: &str) -> Option<String> {
        labels::value(self.rules.field_labels, object, label)
    }
}

/// Why a body of this version and kind cannot become the resource's kind.
fn mismatch(resource: &Resource, api_version: &str, kind: &str) -> String {
    if super::definition_name(api_version, kind).is_none() {
        return super::not_registered(api_version, kind);
    }
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let package = internal_package(&resource.group);
    let wanted = &resource.kind;
    format!("converting ({version}.{kind}) to ({package}.{wanted}): unknown conversion")
}

/// Name of the Go package that holds a group's internal types.
fn internal_package(group: &str) -> &str {
    match group {
        "" | "events.k8s.io" => "core",
        _ => group.split('.').next().map_or(group, |first| match first {
            "rbac" => "rbac",
            other => other,
        }),
    }
}

/// The status that an object has whose client could not set it.
fn reset_status(resource: &Resource, object: &mut Value) {
    let map = as_map(object);
    map.remove("status");
    let zero = json!({ "status": {} });
    if let Ok(decoded) = decode_typed(zero, &resource.schema, "")
        && let Some(status) = decoded.object.get("status")
    {
        as_map(object).insert("status".to_owned(), status.clone());
    }
}

/// What a write to `/status` may change: the status, and of the metadata what the generic rules let
/// through.
fn keep_all_but_status(object: &mut Value, old: &Value) {
    let status = object.get("status").cloned();
    let mut kept = old.clone();
    let metadata = std::mem::take(metadata_mut(object));
    *metadata_mut(&mut kept) = metadata;
    *object = kept;
    match status {
        Some(status) => put(object, "status", status),
        None => {
            as_map(object).remove("status");
        }
    }
}

fn copy_field(object: &mut Value, old: &Value, field: &str) {
    match old.get(field) {
        Some(value) => put(object, field, value.clone()),
        None => {
            as_map(object).remove(field);
        }
    }
}
