//! The rules of `CustomResourceDefinition` itself (`apiextensions-apiserver`,
//! `pkg/registry/customresourcedefinition`).

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{definition_faults, definition_warnings, storage_version, text, texts};
use crate::builtin::cells::View;
use crate::builtin::decode_typed;
use crate::error::ApiError;
use crate::field::{FieldError, Verdict};
use crate::object::{self, as_map, at_path, child, put};
use crate::resource::{
    Convert, Decode, Decoded, FieldLabels, Lifecycle, Resource, Show, Surroundings, Validate,
};
use crate::schema::unsupported_function;

/// The strategy of definitions.
#[derive(Debug, Clone, Copy, Default)]
pub struct DefinitionStrategy;

impl Decode for DefinitionStrategy {
    fn decode(&self, resource: &Resource, body: Value) -> Result<Decoded, ApiError> {
        let given = |key: &str| text(&body, key);
        let (mut api_version, mut kind) = (given("apiVersion"), given("kind"));
        let expected = resource.api_version();
        if api_version.is_empty() && kind.is_empty() {
            (api_version, kind) = (expected.clone(), resource.kind.clone());
        }
        let refused = |why: &str| {
            let version = api_version.rsplit('/').next().unwrap_or_default();
            let wanted = &resource.kind;
            ApiError::bad_request(format!(
                "{kind} in version \"{version}\" cannot be handled as a {wanted}: {why}"
            ))
        };
        if api_version != expected || kind != resource.kind {
            let version = api_version.rsplit('/').next().unwrap_or_default();
            return Err(refused(&format!(
                "no kind \"{kind}\" is registered for version \"{version}\" in scheme \
                 \"pkg/apiserver/apiserver.go:52\""
            )));
        }
        let mut decoded = decode_typed(body, &resource.schema, "").map_err(|why| refused(&why))?;
        put(&mut decoded.object, "apiVersion", json!(expected));
        put(&mut decoded.object, "kind", json!(resource.kind));
        Ok(decoded)
    }

    fn default(&self, _resource: &Resource, object: &mut Value) {
        let storage = storage_version(object).map(str::to_owned);
        let spec = child(object, "spec");
        let names = child(spec, "names");
        let kind = text(names, "kind");
        if text(names, "singular").is_empty() && !kind.is_empty() {
            put(names, "singular", json!(kind.to_lowercase()));
        }
        if text(names, "listKind").is_empty() && !kind.is_empty() {
            put(names, "listKind", json!(format!("{kind}List")));
        }
        if spec.get("conversion").is_none_or(Value::is_null) {
            put(spec, "conversion", json!({ "strategy": "None" }));
        }
        let service = spec
            .get_mut("conversion")
            .and_then(|conversion| conversion.get_mut("webhook"))
            .and_then(|webhook| webhook.get_mut("clientConfig"))
            .and_then(|config| config.get_mut("service"));
        if let Some(service) = service.filter(|service| service.get("port").is_none()) {
            put(service, "port", json!(443));
        }
        let status = child(object, "status");
        if let Some(storage) = storage
            && texts(status, "storedVersions").is_empty()
        {
            put(status, "storedVersions", json!([storage]));
        }
        fill_status(status);
    }
}

impl Convert for DefinitionStrategy {}

impl Lifecycle for DefinitionStrategy {
    fn prepare_for_create(
        &self,
        _resource: &Resource,
        object: &mut Value,
        _around: &mut Surroundings<'_>,
    ) -> Result<(), ApiError> {
        let mut status = json!({});
        fill_status(&mut status);
        if let Some(storage) = storage_version(object) {
            put(&mut status, "storedVersions", json!([storage]));
        }
        put(object, "status", status);
        refuse_unsupported(object)
    }

    fn allocate_for_update(
        &self,
        _resource: &Resource,
        subresource: &str,
        object: &mut Value,
        _old: &Value,
        _around: &mut Surroundings<'_>,
    ) -> Result<(), ApiError> {
        if subresource.is_empty() { refuse_unsupported(object) } else { Ok(()) }
    }

    fn prepare_for_update(
        &self,
        _resource: &Resource,
        subresource: &str,
        object: &mut Value,
        old: &Value,
    ) {
        if subresource == "status" {
            let mut kept = old.clone();
            if let Some(status) = object.get("status") {
                put(&mut kept, "status", status.clone());
            }
            // A status write may change metadata: the server does not reset it.
            if let Some(metadata) = object.get("metadata") {
                put(&mut kept, "metadata", metadata.clone());
            }
            *object = kept;
            return;
        }
        if let Some(status) = old.get("status") {
            put(object, "status", status.clone());
        }
        let Some(storage) = storage_version(object).map(str::to_owned) else { return };
        let status = child(object, "status");
        let mut stored = texts(status, "storedVersions");
        if !stored.contains(&storage) {
            stored.push(storage);
            put(status, "storedVersions", json!(stored));
        }
    }

    fn generation_changes(&self, object: &Value, old: &Value) -> bool {
        object.get("spec") != old.get("spec")
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

impl Validate for DefinitionStrategy {
    fn create_faults(
        &self,
        _resource: &Resource,
        object: &Value,
        metadata: Vec<FieldError>,
    ) -> Vec<FieldError> {
        let mut faults = metadata;
        let names = at_path(object, "spec.names").unwrap_or(&Value::Null);
        let group = at_path(object, "spec.group").and_then(Value::as_str).unwrap_or_default();
        let name = object::name(object);
        if name != format!("{}.{group}", text(names, "plural")) {
            let why = "must be spec.names.plural+\".\"+spec.group";
            faults.push(FieldError::invalid("metadata.name", &json!(name), why));
        }
        faults.extend(definition_faults::all(object, None));
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
        if subresource == "status" {
            let names = at_path(object, "status.acceptedNames").unwrap_or(&Value::Null);
            faults.extend(definition_faults::names(names, "status.acceptedNames"));
        } else {
            faults.extend(definition_faults::all(object, Some(old)));
        }
        faults.into()
    }

    fn warnings(
        &self,
        _resource: &Resource,
        subresource: &str,
        object: &Value,
        old: Option<&Value>,
    ) -> Vec<String> {
        if subresource == "status" {
            return Vec::new();
        }
        let known = old.map(definition_warnings::all).unwrap_or_default();
        let mut warnings = definition_warnings::all(object);
        warnings.retain(|text| !known.contains(text));
        warnings
    }
}

impl FieldLabels for DefinitionStrategy {}

impl Show for DefinitionStrategy {
    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        cells(View { object, now })
    }
}

/// Refuses what the real server can do and this one cannot: rules with some functions.
fn refuse_unsupported(crd: &Value) -> Result<(), ApiError> {
    let versions = crd.get("spec").and_then(|spec| spec.get("versions")).and_then(Value::as_array);
    let mut schemas = versions
        .into_iter()
        .flatten()
        .filter_map(|version| at_path(version, "schema.openAPIV3Schema"));
    match schemas.find_map(unsupported_function) {
        Some(name) => Err(ApiError::unsupported(&format!("the CEL function {name} in rules"))),
        None => Ok(()),
    }
}

/// The fields of a status that are printed although nobody filled them.
fn fill_status(status: &mut Value) {
    let status = as_map(status);
    status.entry("conditions").or_insert(Value::Null);
    let names = status.entry("acceptedNames").or_insert_with(|| json!({}));
    for key in ["plural", "kind"] {
        as_map(names).entry(key).or_insert_with(|| json!(""));
    }
    status.entry("storedVersions").or_insert(Value::Null);
}

/// The cells of a definition's row.
fn cells(view: View<'_>) -> Vec<Value> {
    let is = |version: &Value, key: &str| version.get(key).and_then(Value::as_bool) == Some(true);
    let mut versions: Vec<String> = view
        .list("/spec/versions")
        .iter()
        .filter(|version| is(version, "served"))
        .map(|version| {
            let mark = if is(version, "storage") { "(storage)" } else { "" };
            format!("{}{mark}", text(version, "name"))
        })
        .collect();
    versions.sort();
    let short_names: Vec<&str> =
        view.list("/spec/names/shortNames").iter().filter_map(Value::as_str).collect();
    view.named(vec![
        view.text("/spec/scope"),
        json!(versions.join(",")),
        view.text("/metadata/creationTimestamp"),
        view.text("/spec/group"),
        view.text("/spec/names/kind"),
        json!(short_names.join(",")),
        json!(view.has_condition("Established")),
    ])
}
