//! What differs knowingly, as `differs.yaml` lists it.

use std::collections::BTreeMap;

use serde::Deserialize;

/// `CASE` or `CASE step N` -> reason.
pub(crate) type Reasons = BTreeMap<String, String>;

/// What differs knowingly, and why.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Differs {
    /// What differs on the simulated server.
    pub(crate) sim: Reasons,
    /// What differs on a real one that a test has just started.
    pub(crate) real: Reasons,
    /// Where a real server lists faults in random order.
    pub(crate) unordered: Reasons,
    /// Cases in which names hold the hash of a Pod template.
    pub(crate) hashes: Vec<String>,
}

/// The list of this suite.
pub(crate) fn read() -> Differs {
    serde_saphyr::from_str(include_str!("differs.yaml")).expect("differs.yaml has the right form")
}
