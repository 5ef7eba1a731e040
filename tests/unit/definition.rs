//! The custom resource definition.

use kube::{Api, CustomResourceExt, api::PostParams, core::DynamicObject};
use serde_json::{Value, json};
use simcluster::SimCluster;
use simpleapp_operator::{
    api::{crd, simpleapp::SimpleApp},
    simpleapp::observed::App,
};

use crate::support::{
    assert_snapshot,
    fixtures::{app, yaml},
};

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

/// What the (simulated) API server says to an app with this in this field.
async fn verdict(cluster: &SimCluster, field: &str, text: &str) -> Result<(), String> {
    let mut app = app("litmus-1-image-only");
    app["metadata"] = json!({"name": "web", "namespace": "default"});
    match field {
        "name" => app["metadata"]["name"] = json!(text),
        field => app["spec"][field] = json!(text),
    }
    let api: Api<DynamicObject> =
        Api::namespaced_with(cluster.client(), "default", &App::resource());
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let answer = api.create(&params, &serde_json::from_value(app).unwrap()).await;
    answer.map(|_| ()).map_err(|error| error.to_string())
}

/// `validate.rs` holds the operator's own check against the same table.
#[tokio::test(start_paused = true)]
async fn its_rules_and_our_own_check_agree() {
    let cluster = SimCluster::builder().crd(definition()).controllers(false).start().unwrap();
    let table = yaml("validation.yaml");
    for (field, texts) in table.as_object().unwrap() {
        for (which, texts) in texts.as_object().unwrap() {
            for text in texts.as_array().unwrap() {
                let text = text.as_str().unwrap();
                let verdict = verdict(&cluster, field, text).await;
                assert_eq!(verdict.is_ok(), which == "valid", "{field} {text:?}: {verdict:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn absent_null_and_zero_are_three_things() {
    let cluster = SimCluster::builder().crd(definition()).controllers(false).start().unwrap();
    let api: Api<DynamicObject> =
        Api::namespaced_with(cluster.client(), "default", &App::resource());
    let mut stored = Vec::new();
    for spec in [
        json!({"image": "nginx"}),
        json!({"image": "nginx", "replicas": null, "port": null, "host": null}),
        json!({"image": "nginx", "replicas": 0}),
        json!({"image": "nginx", "port": 0}),
        json!({"image": "nginx", "host": ""}),
    ] {
        let mut app = app("litmus-1-image-only");
        app["metadata"] = json!({"name": "web", "namespace": "default"});
        app["spec"] = spec;
        let params = PostParams { dry_run: true, ..PostParams::default() };
        let answer = api.create(&params, &serde_json::from_value(app).unwrap()).await;
        stored.push(answer.ok().map(|app| app.data["spec"].clone()));
    }
    let defaulted = json!({"image": "nginx", "replicas": 1, "port": 80});
    let switched_off = json!({"image": "nginx", "replicas": 0, "port": 80});
    let expected = [Some(defaulted.clone()), Some(defaulted), Some(switched_off), None, None];
    assert_eq!(stored, expected);
}
