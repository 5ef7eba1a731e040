//! Custom resources: what a `CustomResourceDefinition` turns into, the rules of its objects, and the
//! rules of the definition itself.

mod approval;
pub(crate) mod bundle;
mod conditions;
mod conversion;
mod custom;
mod default_faults;
mod definition;
mod definition_faults;
mod definition_warnings;
mod embedded;
mod go_form;
mod metadata;
mod schema_faults;
mod selectable;
mod structural;
#[cfg(test)]
mod tests;
mod versions;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::object::at_path;
use crate::resource::{Resource, ScalePaths};
use crate::schema::Schema;

pub use conditions::{
    FINALIZER, Termination, approval, established, is_established, is_terminating,
    naming_conditions, terminating,
};
pub use conversion::{ConversionWebhook, conversion_failed, conversion_webhook};
pub use custom::CustomStrategy;
pub use definition::DefinitionStrategy;
pub use versions::compare_kube_aware;

/// Main verbs of a custom resource, in discovery order.
const VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// Main verbs of a custom resource whose definition is being deleted.
const TERMINATING_VERBS: [&str; 5] = ["delete", "deletecollection", "get", "list", "watch"];

/// One resource for each served version of an established definition, in the definition's order;
/// nothing for a definition that is not established.
#[must_use]
pub fn resources(crd: &Value) -> Vec<Resource> {
    if !is_established(crd) {
        return Vec::new();
    }
    let is_served = |version: &&Value| version.get("served").and_then(Value::as_bool) == Some(true);
    let common = Common::of(crd);
    versions(crd).filter(is_served).map(|version| resource(crd, version, &common)).collect()
}

/// The resource of one version, be it served or not.
#[must_use]
pub fn version(crd: &Value, name: &str) -> Option<Resource> {
    let version = versions(crd).find(|version| text(version, "name") == name)?;
    Some(resource(crd, version, &Common::of(crd)))
}

/// What all versions of a definition share.
struct Common {
    schemas: Arc<BTreeMap<String, Arc<Schema>>>,
    storage: String,
}

impl Common {
    fn of(crd: &Value) -> Self {
        let schemas = versions(crd).map(|version| (text(version, "name"), schema(version)));
        let storage = storage_version(crd).unwrap_or_default().to_owned();
        Self { schemas: Arc::new(schemas.collect()), storage }
    }
}

fn resource(crd: &Value, version: &Value, common: &Common) -> Resource {
    let Common { schemas, storage } = common;
    let spec = crd.get("spec").unwrap_or(&Value::Null);
    let names = at_path(crd, "status.acceptedNames").unwrap_or(&Value::Null);
    let name = text(version, "name");
    let plural = text(names, "plural");
    let group = text(spec, "group");
    let subresources = version.get("subresources").unwrap_or(&Value::Null);
    let status = subresources.get("status").is_some();
    let scale = subresources.get("scale").map(scale_paths);
    let schema = schemas.get(&name).cloned().unwrap_or_else(|| Schema::parse(&Value::Null));
    let mut verbs_below = Vec::new();
    if status {
        verbs_below.push("status".to_owned());
    }
    if scale.is_some() {
        verbs_below.push("scale".to_owned());
    }
    let selectable_fields: Vec<String> = list(version, "selectableFields")
        .filter_map(|field| field.get("jsonPath").and_then(Value::as_str))
        .map(|path| path.strip_prefix('.').unwrap_or(path).to_owned())
        .collect();
    Resource {
        storage_key: format!("{group}/{plural}"),
        kind: text(names, "kind"),
        singular: text(names, "singular"),
        list_kind: text(names, "listKind"),
        short_names: texts(names, "shortNames"),
        categories: texts(names, "categories"),
        namespaced: spec.get("scope").and_then(Value::as_str) == Some("Namespaced"),
        verbs: verbs(crd),
        subresources: verbs_below,
        custom: true,
        deprecation_warning: deprecation_warning(spec, version),
        printer_columns: list(version, "additionalPrinterColumns").cloned().collect(),
        storage_version: storage.clone(),
        strategy: Arc::new(CustomStrategy::new(status, schemas.clone())),
        selectable_fields,
        group,
        version: name,
        plural,
        scale,
        schema,
    }
}

fn verbs(crd: &Value) -> Vec<String> {
    let verbs = if is_terminating(crd) { TERMINATING_VERBS.as_slice() } else { VERBS.as_slice() };
    verbs.iter().map(|verb| (*verb).to_owned()).collect()
}

/// The version in which objects are stored.
#[must_use]
pub fn storage_version(crd: &Value) -> Option<&str> {
    let is_storage =
        |version: &&Value| version.get("storage").and_then(Value::as_bool) == Some(true);
    versions(crd).find(is_storage)?.get("name")?.as_str()
}

fn versions(crd: &Value) -> impl Iterator<Item = &Value> {
    list(crd.get("spec").unwrap_or(&Value::Null), "versions")
}

fn schema(version: &Value) -> Arc<Schema> {
    Schema::parse(at_path(version, "schema.openAPIV3Schema").unwrap_or(&Value::Null))
}

fn scale_paths(scale: &Value) -> ScalePaths {
    ScalePaths {
        spec_replicas: text(scale, "specReplicasPath"),
        status_replicas: text(scale, "statusReplicasPath"),
        label_selector: Some(text(scale, "labelSelectorPath")).filter(|path| !path.is_empty()),
    }
}

/// The text that clients of a deprecated version get; it names the best version that is not
/// deprecated, if there is a better one.
fn deprecation_warning(spec: &Value, version: &Value) -> Option<String> {
    let flag = |version: &Value, key: &str| version.get(key).and_then(Value::as_bool) == Some(true);
    if !flag(version, "deprecated") {
        return None;
    }
    if let Some(own) = version.get("deprecationWarning").and_then(Value::as_str) {
        return Some(own.to_owned());
    }
    let kind = text(spec.get("names").unwrap_or(&Value::Null), "kind");
    let (group, name) = (text(spec, "group"), text(version, "name"));
    let better = list(spec, "versions")
        .filter(|other| flag(other, "served") && !flag(other, "deprecated"))
        .filter_map(|other| other.get("name").and_then(Value::as_str))
        .filter(|other| compare_kube_aware(&name, other).is_lt())
        .max_by(|left, right| compare_kube_aware(left, right));
    let instead = better.map(|other| format!("; use {group}/{other} {kind}")).unwrap_or_default();
    Some(format!("{group}/{name} {kind} is deprecated{instead}"))
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn texts(value: &Value, key: &str) -> Vec<String> {
    list(value, key).filter_map(Value::as_str).map(str::to_owned).collect()
}
