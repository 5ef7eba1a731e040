//! `config/` is what the code makes, and the code makes what can be installed.

use std::{collections::BTreeMap, fs, path::Path};

use simpleapp_operator::ops::{manifests, rbac::RULES};

fn read(directory: &Path, prefix: &str, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            read(&entry.path(), &format!("{name}/"), files);
        } else {
            files.insert(name, fs::read_to_string(entry.path()).unwrap());
        }
    }
}

#[test]
fn config_is_up_to_date() {
    let mut files = BTreeMap::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("config"), "", &mut files);
    let expected = manifests::files();
    let names = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
    let hint = "run `simpleapp-operator manifests --output-dir config`";
    assert_eq!(names(&files), names(&expected), "{hint}");
    for (name, content) in expected {
        assert_eq!(files[&name], content, "{name}: {hint}");
    }
}

#[test]
fn every_document_of_the_stream_is_an_object() {
    let stream = manifests::stream();
    let documents: Vec<&str> = stream.split("---\n").filter(|text| !text.is_empty()).collect();
    let kinds: Vec<String> = documents
        .iter()
        .map(|text| {
            let object: serde_json::Value = serde_saphyr::from_str(text).unwrap();
            object["kind"].as_str().unwrap().to_owned()
        })
        .collect();
    let expected = [
        "Namespace",
        "CustomResourceDefinition",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Deployment",
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn no_rule_is_wider_than_its_resource() {
    for rule in RULES {
        assert!(!rule.resource.contains('*') && !rule.verbs.contains(&"*"), "{rule:?}");
        assert!(!rule.reason.is_empty());
    }
}
