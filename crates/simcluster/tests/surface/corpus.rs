//! Valid requests to begin with: all that were recorded from a real server.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

/// A request as it was recorded.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Recorded {
    /// Method and path.
    #[serde(rename = "do")]
    pub(crate) line: String,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) body: Option<Value>,
    pub(crate) text: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Case {
    steps: Vec<Recorded>,
}

/// All recorded requests, with the namespace `default` and without placeholders.
pub(crate) fn recorded() -> Vec<Recorded> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder("cases")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let cases = files.iter().map(read::<Case>);
    cases.flat_map(|case| case.steps).collect()
}

/// The CRDs that the recorded requests need.
pub(crate) fn definitions() -> Vec<Value> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder("fixtures")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let documents = files.iter().map(|file| {
        let text = fs::read_to_string(file).unwrap();
        serde_saphyr::from_multiple::<Value>(&text).unwrap()
    });
    documents.flatten().filter(Value::is_object).collect()
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/apiserver").join(name)
}

fn read<T: serde::de::DeserializeOwned>(file: &PathBuf) -> T {
    let placeholder = regex::Regex::new(r"\{[a-z][A-Za-z0-9_.]*\}").unwrap();
    let text = fs::read_to_string(file).unwrap().replace("{ns}", "default");
    serde_saphyr::from_str(&placeholder.replace_all(&text, "x")).unwrap()
}
