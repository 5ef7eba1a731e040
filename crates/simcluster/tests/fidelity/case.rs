//! The cases as they stand in `fixtures/apiserver`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

/// A conversation with an API server.
#[derive(Debug, Deserialize)]
pub(crate) struct Case {
    /// The file's name, such as `CR01`; the letters name its group.
    pub(crate) id: String,
    /// What it shows, in a line.
    pub(crate) title: String,
    /// Fixtures that are applied first.
    #[serde(default = "widgets")]
    pub(crate) needs: Vec<String>,
    /// Requests and what was answered.
    pub(crate) steps: Vec<Step>,
}

/// One request and what a real server answered.
#[derive(Debug, Deserialize)]
pub(crate) struct Step {
    /// Method and path.
    #[serde(rename = "do")]
    pub(crate) line: String,
    /// Request headers.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// A JSON body.
    #[serde(default, deserialize_with = "present")]
    pub(crate) body: Option<Value>,
    /// A body that is sent as it is.
    pub(crate) text: Option<String>,
    /// Names for values of the answer, by dotted path.
    #[serde(default)]
    pub(crate) save: BTreeMap<String, String>,
    /// The request is repeated until the answer has these values.
    #[serde(default)]
    pub(crate) until: BTreeMap<String, Value>,
    /// A watch: read so many events.
    pub(crate) events: Option<usize>,
    /// How long the next event may take.
    #[serde(default = "two")]
    pub(crate) seconds: f64,
    /// The parts of the body that count; all if there are none.
    #[serde(default)]
    pub(crate) pick: Vec<String>,
    /// Response headers that count.
    #[serde(default)]
    pub(crate) keep: Vec<String>,
    /// What was answered.
    pub(crate) got: Value,
}

fn widgets() -> Vec<String> {
    vec!["widgets".to_owned()]
}

fn two() -> f64 {
    2.0
}

/// A body of `null` is a body; a missing one is none.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// `CASE` or `CASE step N` -> reason.
pub(crate) type Reasons = BTreeMap<String, String>;

/// What differs knowingly, and why (`differs.yaml`).
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

/// The cases were written by a YAML library to which `y`, `n` and `0123456789` are texts.
fn yaml() -> serde_saphyr::Options {
    serde_saphyr::options! { strict_booleans: true, leading_zero_numbers_as_strings: true }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/apiserver")
}

/// All cases in order of their names, or the one called `only`.
pub(crate) fn load(only: Option<&str>) -> Vec<Case> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder().join("cases"))
        .expect("the cases are part of the repository")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| only.is_none_or(|id| path.file_stem().is_some_and(|stem| stem == id)))
        .collect();
    files.sort();
    files
        .iter()
        .map(|path| {
            let text = fs::read_to_string(path).expect("a readable case");
            let case: Value = serde_saphyr::from_str_with_options(&text, yaml())
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            serde_json::from_value(case)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        })
        .collect()
}

/// The objects of one fixture, each with `x-path`, the collection it belongs to.
pub(crate) fn fixture(name: &str) -> Vec<Value> {
    let path = folder().join("fixtures").join(format!("{name}.yaml"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_saphyr::from_multiple_with_options(&text, yaml())
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What differs knowingly.
pub(crate) fn differs() -> Differs {
    serde_saphyr::from_str(include_str!("differs.yaml")).expect("differs.yaml has the right form")
}
