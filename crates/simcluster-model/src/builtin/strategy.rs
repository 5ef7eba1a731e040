//! The rules of the built-in kinds, read from the facts of each.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cells::View;
use super::kind::{Generation, Kind};
use super::{decode_typed, defaults, labels};
use crate::error::ApiError;
use crate::field::{FieldError, Verdict};
use crate::names;
use crate::object::{as_map, metadata_mut, put};
use crate::resource::{
    Convert, Decode, Decoded, FieldLabels, Lifecycle, Resource, Show, Strategy, Surroundings,
    Validate,
};

/// A built-in kind.
#[derive(Debug)]
struct BuiltIn(&'static Kind);

/// The rules of a built-in kind.
pub(super) fn of(kind: &'static Kind) -> Arc<dyn Strategy> {
    Arc::new(BuiltIn(kind))
}

impl Decode for BuiltIn {
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
        let (group, _) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
        let same_kind = group == resource.group && kind == resource.kind;
        if same_kind
            && api_version != resource.api_version()
            && super::definition_name(&api_version, &kind).is_some()
        {
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({})",
                resource.api_version()
            )));
        }
        if api_version != resource.api_version() || kind != resource.kind {
            return Err(refused(&mismatch(resource, &api_version, &kind)));
        }
        // An empty list is kept where it says something: managed fields are to be forgotten.
        let resets =
            body.pointer("/metadata/managedFields").filter(|list| **list == json!([])).cloned();
        let is_empty = |field: &&&str| body.get(**field) == Some(&json!({}));
        let freezes = body.get("immutable") == Some(&json!(true));
        let empty: Vec<&str> = self.0.frozen.iter().filter(is_empty).copied().collect();
        let mut decoded = decode_typed(body, &resource.schema, "").map_err(|why| refused(&why))?;
        for field in empty.into_iter().filter(|_| freezes) {
            put(&mut decoded.object, field, json!({}));
        }
        if let Some(empty) = resets {
            metadata_mut(&mut decoded.object).insert("managedFields".to_owned(), empty);
        }
        put(&mut decoded.object, "apiVersion", json!(api_version));
        put(&mut decoded.object, "kind", json!(kind));
        Ok(decoded)
    }

    fn default(&self, resource: &Resource, object: &mut Value) {
        defaults::fill(self.0, object, &resource.schema);
    }
}

impl Convert for BuiltIn {
    fn encode_stored(&self, resource: &Resource, object: Value) -> Value {
        (self.0.encode_stored)(resource, object)
    }

    fn decode_stored(&self, resource: &Resource, object: Value) -> Value {
        match self.0.decode_stored {
            Some(decode) => decode(resource, object),
            None => object,
        }
    }

    fn shows_what_is_stored(&self) -> bool {
        self.0.decode_stored.is_none()
    }

    fn registry_path(&self, resource: &Resource) -> String {
        self.0.registry_path.unwrap_or(&resource.plural).to_owned()
    }
}

impl Lifecycle for BuiltIn {
    fn prepare_for_create(
        &self,
        resource: &Resource,
        object: &mut Value,
        around: &mut Surroundings<'_>,
    ) -> Result<(), ApiError> {
        if self.0.status_subresource && !self.0.keeps_status_on_create {
            reset_status(resource, object);
        }
        (self.0.allocate_for_create)(resource, object, around)?;
        (self.0.prepare_for_create)(object);
        Ok(())
    }

    fn allocate_for_update(
        &self,
        resource: &Resource,
        subresource: &str,
        object: &mut Value,
        old: &Value,
        around: &mut Surroundings<'_>,
    ) -> Result<(), ApiError> {
        (self.0.allocate_for_update)(resource, subresource, object, old, around)
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
        } else if self.0.status_subresource && subresource != "approval" {
            // Approvers write a part of the status, which the kind knows.
            copy_field(object, old, "status");
        }
        (self.0.prepare_for_update)(resource, subresource, object, old);
    }

    fn generation_changes(&self, object: &Value, old: &Value) -> bool {
        self.0.generation.rises(object, old)
    }

    fn has_generation(&self) -> bool {
        !matches!(self.0.generation, Generation::None)
    }

    fn allow_unconditional_update(&self) -> bool {
        self.0.allow_unconditional_update
    }

    fn allow_create_on_update(&self) -> bool {
        self.0.allow_create_on_update
    }

    fn returns_deleted_object(&self) -> bool {
        self.0.returns_deleted_object
    }

    fn default_propagation_policy(&self) -> &'static str {
        if self.0.orphans_by_default { "Orphan" } else { "Background" }
    }

    fn grace_period_seconds(&self, object: &Value, asked: Option<i64>) -> Option<i64> {
        self.0.grace_period_seconds.map(|period| period(object, asked))
    }

    fn may_be_removed(&self, object: &Value) -> bool {
        (self.0.may_be_removed)(object)
    }
}

impl Validate for BuiltIn {
    fn create_faults(
        &self,
        _resource: &Resource,
        object: &Value,
        metadata: Vec<FieldError>,
    ) -> Vec<FieldError> {
        let mut faults = metadata;
        faults.extend((self.0.validate)(object));
        faults
    }

    fn update_verdict(
        &self,
        _resource: &Resource,
        subresource: &str,
        object: &Value,
        old: &Value,
        metadata: Vec<FieldError>,
    ) -> Verdict {
        let mut faults = metadata;
        faults.extend(match (subresource, self.0.validate_update) {
            ("status", _) => (self.0.validate_status)(object, old),
            // The server writes the node that it was told itself; no client's object is looked at.
            ("binding", _) => Vec::new(),
            (_, Some(validate)) => validate(object, old),
            (_, None) => (self.0.validate)(object),
        });
        faults.into()
    }

    fn warnings(
        &self,
        _resource: &Resource,
        subresource: &str,
        object: &Value,
        old: Option<&Value>,
    ) -> Vec<String> {
        match subresource {
            "" | "scale" => (self.0.warnings)(object, old),
            "status" => (self.0.status_warnings)(object),
            _ => Vec::new(),
        }
    }

    fn name_faults(&self, name: &str, prefix: bool) -> Vec<String> {
        (self.0.name_faults)(&names::masked(name, prefix))
    }

    fn invalid_group<'a>(&'a self, _resource: &'a Resource) -> &'a str {
        self.0.type_group
    }

    fn knows_finalizers(&self) -> bool {
        self.0.knows_finalizers
    }
}

impl FieldLabels for BuiltIn {
    fn field_label(&self, _resource: &Resource, object: &Value, label: &str) -> Option<String> {
        labels::value(self.0.field_labels, object, label)
    }

    fn has_field_labels(&self) -> bool {
        !self.0.field_labels.is_empty()
    }
}

impl Show for BuiltIn {
    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        (self.0.cells)(View { object, now })
    }

    fn row_conditions(&self, object: &Value) -> Vec<Value> {
        (self.0.row_conditions)(object)
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
    metadata_mut(object);
    let written = |field: &str| matches!(field, "metadata" | "status");
    let map = as_map(object);
    map.retain(|field, _| written(field) || old.get(field).is_some());
    for (field, value) in old.as_object().into_iter().flatten() {
        // Most often it is there already, and comparing costs less than copying.
        if !written(field) && map.get(field) != Some(value) {
            map.insert(field.clone(), value.clone());
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
