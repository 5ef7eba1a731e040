//! What random requests are made of.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

/// A resource and values for its fields.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Resource {
    pub(super) plural: String,
    pub(super) kind: String,
    /// Empty for the core group.
    #[serde(default)]
    pub(super) group: String,
    /// Whether its objects have no namespace.
    #[serde(default)]
    pub(super) cluster: bool,
    /// How often it is chosen.
    pub(super) weight: usize,
    #[serde(default)]
    pub(super) subresources: Vec<String>,
    /// A further version.
    pub(super) old: Option<String>,
    /// What every body has, besides kind, version and name.
    #[serde(default)]
    pub(super) base: Map<String, Value>,
    /// Values by dotted path.
    pub(super) fields: BTreeMap<String, Vec<Value>>,
}

impl Resource {
    pub(super) fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() { version.to_owned() } else { format!("{}/{version}", self.group) }
    }
}

/// All resources.
pub(super) fn all() -> &'static [Resource] {
    static ALL: LazyLock<Vec<Resource>> = LazyLock::new(|| {
        serde_saphyr::from_str(include_str!("resources.yaml")).expect("the file has the right form")
    });
    &ALL
}
