//! The built-in kinds: their structure, how they are decoded, and their rules.
//!
//! Structure is data taken from a real server (`schema::facts`). `decode` turns JSON into what the real server's
//! Go structs would hold. `kinds` has a file for the rules of each kind: defaults, what a client may not
//! set, validation, field labels, cells of Tables.
//! This module knows nothing of storage, of the generic rules for metadata, or of HTTP.

mod addresses;
pub mod admission;
mod base64;
mod beside;
pub(crate) mod cells;
mod check;
mod decode;
mod defaults;
mod documentation;
mod kind;
mod kinds;
mod labels;
mod percent;
mod pod_template;
pub(crate) mod quantity;
mod selector;
mod strategy;
pub(crate) mod times;
mod value;
mod workload;

#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

use self::beside::not_registered;
pub use self::beside::{BINDING, Beside, EVICTION, SCALE, TOKEN_REQUEST, decode_delete_options};
pub use self::cells::{age, human_duration, since};
pub use self::decode::decode_typed;
pub use self::documentation::{Documentation, documentation};
use self::kind::Kind;
use crate::object::set_path;
use crate::resource::{Resource, ScalePaths, Strategy};
use crate::schema::facts::DATA;
use crate::schema::{Schema, definition};

/// All built-in resources in discovery order: the core group first, then the others as a real server
/// orders them. `others` has the rules of kinds that are not ruled here, by group and plural.
pub(crate) fn resources(
    others: impl Fn(&str, &str) -> Option<Arc<dyn Strategy>>,
) -> Vec<Arc<Resource>> {
    let core = std::iter::once((String::new(), vec!["v1".to_owned()]));
    let mut out = Vec::new();
    for (group, versions) in core.chain(DATA.groups.iter().cloned()) {
        for version in &versions {
            let api_version =
                if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
            let entries = discovery(&api_version).map(Vec::as_slice).unwrap_or_default();
            for entry in entries.iter().filter(|entry| !text(entry, "name").contains('/')) {
                let plural = text(entry, "name");
                let kind = kinds::of(&group, version, plural);
                let rules = others(&group, plural).or_else(|| Some(strategy::of(kind?)));
                let rules = rules.expect("a test looks at each");
                out.push(Arc::new(resource(&group, version, entry, entries, kind, rules)));
            }
        }
    }
    out
}

/// OpenAPI v3 schemas of the served kinds and of everything they refer to, by definition name, for
/// publishing: their texts are `documentation`, and `$ref` holds the bare name of a definition.
#[must_use]
pub fn openapi_definitions() -> &'static Map<String, Value> {
    &DATA.definitions
}

/// Name of the OpenAPI definition of a kind; `api_version` is `group/version`.
#[must_use]
pub fn definition_name(api_version: &str, kind: &str) -> Option<&'static str> {
    DATA.kinds.get(&format!("{api_version}/{kind}")).map(String::as_str)
}

/// The built-in API groups with their versions (most preferred first), in discovery order, without the
/// core group.
#[must_use]
pub fn groups() -> &'static [(String, Vec<String>)] {
    &DATA.groups
}

/// The `resources` of the `APIResourceList` of a group version, as a real server answers them.
#[must_use]
pub fn discovery(api_version: &str) -> Option<&'static Vec<Value>> {
    DATA.resources.get(api_version)?.as_array()
}

/// The columns of Tables of a built-in kind, data from a real server; those of kinds without columns of
/// their own, if the kind is not known.
#[must_use]
pub fn columns(group: &str, plural: &str) -> &'static [Value] {
    /// By `group/plural` (core: `plural`); the empty key has those of kinds without any of their own.
    static COLUMNS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
        serde_json::from_str(include_str!("columns.json"))
            .expect("the columns are part of this program and parse")
    });
    let key = if group.is_empty() { plural.to_owned() } else { format!("{group}/{plural}") };
    let columns = COLUMNS.get(&key).or_else(|| COLUMNS.get("")).and_then(Value::as_array);
    columns.map(Vec::as_slice).unwrap_or_default()
}

/// The version of Kubernetes that the facts are from, such as `v1.37.2`.
#[must_use]
pub fn kubernetes_version() -> &'static str {
    &DATA.version
}

/// An object of a kind of which nothing is known, as bookmarks show it: its names and, of a built-in
/// kind, what its Go types always print. Those of `apps` that can be scaled count their replicas by value
/// inside the server.
#[must_use]
pub fn empty_object(resource: &Resource) -> Value {
    let names = json!({ "kind": resource.kind, "apiVersion": resource.api_version() });
    if resource.custom {
        return names;
    }
    // Names alone have nothing that decoding could refuse.
    let decoded = decode_typed(names.clone(), &resource.schema, "");
    let mut object = decoded.map_or(names, |decoded| decoded.object);
    if resource.scale.is_some() && resource.group == "apps" {
        set_path(&mut object, "spec.replicas", json!(0));
    }
    object
}

fn resource(
    group: &str,
    version: &str,
    entry: &Value,
    entries: &[Value],
    rules: Option<&Kind>,
    strategy: Arc<dyn Strategy>,
) -> Resource {
    let (plural, kind) = (text(entry, "name"), text(entry, "kind"));
    let api_version =
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let prefix = format!("{plural}/");
    let subresources: Vec<String> = entries
        .iter()
        .filter_map(|one| text(one, "name").strip_prefix(&prefix))
        .map(str::to_owned)
        .collect();
    let scale = subresources.iter().any(|one| one == "scale").then(|| ScalePaths {
        spec_replicas: ".spec.replicas".to_owned(),
        status_replicas: ".status.replicas".to_owned(),
        label_selector: None,
    });
    let storage_group = rules.map_or(group, |kind| kind.type_group);
    let schema = definition_name(&api_version, kind).and_then(definition);
    let schema = schema.map_or_else(|| Arc::new(Schema::default()), |one| Arc::clone(one.get()));
    Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        singular: text(entry, "singularName").to_owned(),
        list_kind: format!("{kind}List"),
        short_names: texts(entry, "shortNames"),
        categories: texts(entry, "categories"),
        namespaced: entry.get("namespaced").and_then(Value::as_bool).unwrap_or_default(),
        verbs: texts(entry, "verbs"),
        subresources,
        scale,
        custom: false,
        deprecation_warning: rules.and_then(|kind| kind.deprecation_warning).map(str::to_owned),
        selectable_fields: Vec::new(),
        printer_columns: Vec::new(),
        storage_key: format!("{storage_group}/{plural}"),
        storage_version: rules.and_then(|kind| kind.storage_version).unwrap_or(version).to_owned(),
        schema,
        strategy,
    }
}

fn text<'a>(entry: &'a Value, key: &str) -> &'a str {
    entry.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn texts(entry: &Value, key: &str) -> Vec<String> {
    let list = entry.get(key).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}
