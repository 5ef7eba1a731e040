//! What a real server answered to new custom resources, as far as it depends on the body alone.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Resource, create, established, resources};

/// Cases whose creates are played.
const CASES: [&str; 13] = [
    "CD08", "CD10", "CD11", "CD13", "CD14", "CD15", "CD16", "CD17", "CD18", "CD19", "CD20", "CD21",
    "CD32",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/apiserver")
}

fn yaml(path: &Path) -> Value {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(&fs::read_to_string(path).unwrap(), options).unwrap()
}

/// The body of a step, with what the player adds to it.
fn body(step: &Value, resource: &Resource) -> Value {
    if let Some(text) = step["text"].as_str() {
        return serde_json::from_str(text).unwrap();
    }
    let mut body = step["body"].clone();
    let fields = body.as_object_mut().unwrap();
    fields.entry("apiVersion").or_insert_with(|| json!(resource.api_version()));
    fields.entry("kind").or_insert_with(|| json!(resource.kind));
    body
}

#[test]
fn creates_are_answered_as_recorded() {
    let mut served: Vec<Resource> = Vec::new();
    for name in ["widgets", "shapes"] {
        let crd = yaml(&root().join(format!("fixtures/{name}.yaml")));
        served.extend(resources(&established(crd)));
    }
    let mut played = 0;
    for name in CASES {
        let case = yaml(&root().join(format!("cases/{name}.yaml")));
        for step in case["steps"].as_array().unwrap() {
            let request = step["do"].as_str().unwrap();
            let Some(path) = request.strip_prefix("POST ") else { continue };
            if path.contains("fieldValidation") || path.contains("dryRun") {
                continue;
            }
            let plural = path.rsplit('/').next().unwrap().split('?').next().unwrap();
            let resource = served.iter().find(|one| one.plural == plural).unwrap();
            check(&format!("{name}: {}", step["body"]), resource, step);
            played += 1;
        }
    }
    assert!(played > 80, "only {played} creates were played");
}

fn check(title: &str, resource: &Resource, step: &Value) {
    let got = &step["got"];
    match create(resource, body(step, resource)) {
        Ok((object, unknown)) => {
            assert_eq!(got["status"], json!(201), "{title}");
            if got["body"].get("spec").is_some() {
                let spec = object.get("spec").unwrap_or(&Value::Null);
                assert_eq!(spec, &got["body"]["spec"], "{title}");
            }
            if let Some(headers) = got.get("headers") {
                let warnings: Vec<String> = unknown
                    .iter()
                    .map(|path| format!("299 - \"unknown field \\\"{path}\\\"\""))
                    .collect();
                let expected = headers["Warning"].as_str().unwrap_or_default();
                assert_eq!(warnings.join(", "), expected, "{title}");
            }
        }
        Err(error) => {
            assert_eq!(json!(error.code), got["status"], "{title}: {}", error.message);
            let status = error.to_status();
            for key in ["message", "reason", "details"] {
                let expected = got["body"].get(key).unwrap_or(&Value::Null);
                assert_eq!(status.get(key).unwrap_or(&Value::Null), expected, "{title}");
            }
        }
    }
}
