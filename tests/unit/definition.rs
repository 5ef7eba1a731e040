//! The custom resource definition.

use kube::CustomResourceExt;
use serde_json::Value;
use simpleapp_operator::api::{crd, simpleapp::SimpleApp};

use crate::support::assert_snapshot;

fn definition() -> Value {
    crd::to_json(&SimpleApp::crd())
}

#[test]
fn as_it_is_installed() {
    assert_snapshot!("crd", serde_saphyr::to_string(&definition()).unwrap());
}

#[test]
fn six_columns_in_this_order() {
    let columns = definition()["spec"]["versions"][0]["additionalPrinterColumns"].clone();
    let names: Vec<&str> =
        columns.as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Image", "Replicas", "Ready", "Phase", "URL", "Age"]);
}

#[test]
fn nothing_is_nullable_and_whole_numbers_are_integers() {
    let text = serde_json::to_string(&definition()).unwrap();
    assert!(!text.contains("nullable"));
    assert!(!text.contains(".0,") && !text.contains(".0}"));
}

#[test]
fn the_typed_definition_is_the_same() {
    let typed = simpleapp_operator::api::simpleapp::definition();
    assert_eq!(crd::to_json(&typed), definition());
}
