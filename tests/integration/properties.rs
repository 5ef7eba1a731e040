//! What holds for every spec and every way to get there, on the simulated cluster.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::{Api, ListParams};
use kube::{Client, Resource};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use simcluster::controllers::Kind;
use simcluster::env::{self, Needs};
use simpleapp_operator::api::simpleapp::{Phase, SimpleApp};

use crate::scene::{APPS, Scene, app_of, needs, phase, shown, with_operator_on};

/// Cases of each property, few enough to wait for; CI asks for 256 by `PROPTEST_CASES`.
const CASES: u32 = 32;

fn runner() -> TestRunner {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/proptest-regressions/integration.txt");
    TestRunner::new(Config {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(CASES),
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(file))),
        max_shrink_iters: 64,
        ..Config::default()
    })
}

fn valid_spec() -> impl Strategy<Value = Value> {
    (
        "[a-z0-9]{3,8}(/[a-z]{1,5}){0,2}(:[a-z0-9]{1,5})?",
        // Few replicas mostly: Pods are what a case costs.
        prop::option::of(prop_oneof![4 => 0..2_i32, 1 => 2..4_i32]),
        prop::option::of(1..=65535_i32),
        prop::option::of(r"(\*\.)?[a-z]([-a-z0-9]{0,10}[a-z0-9])?(\.[a-z]{1,5}){1,3}"),
    )
        .prop_map(|(image, replicas, port, host)| {
            let mut spec = json!({ "image": image });
            for (field, value) in [
                ("replicas", replicas.map(Value::from)),
                ("port", port.map(Value::from)),
                ("host", host.map(Value::from)),
            ] {
                if let Some(value) = value {
                    spec[field] = value;
                }
            }
            spec
        })
}

/// Specs as nobody should write them: each field a value of any kind and size.
fn hostile_spec() -> impl Strategy<Value = Value> {
    let value = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop_oneof![Just(0), Just(-1), Just(65536), Just(i64::MAX)].prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[a-z.*-]{0,300}".prop_map(Value::from),
        prop_oneof!["nginx", "10.0.0.1", "a.example.com.", "https://a.b", "bücher.example"]
            .prop_map(Value::from),
        prop::collection::vec(any::<u8>().prop_map(Value::from), 0..3).prop_map(Value::from),
    ];
    let field = prop_oneof![
        4 => prop_oneof!["image", "replicas", "port", "host"],
        1 => "[a-z]{1,8}",
    ];
    prop::collection::btree_map(field, value, 0..6)
        .prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

/// A cluster that has what deletes the children of an app, and no more: for properties that do not speak
/// of Pods, which are most of what a case costs.
fn without_workloads() -> Needs {
    needs().virtual_time().only([Kind::Garbage, Kind::ServiceAccount])
}

/// Runs a property, each case with a fresh app name in one cluster.
fn check<T: std::fmt::Debug>(
    needs: &Needs,
    cases: impl Strategy<Value = T>,
    property: impl AsyncFn(&Scene, &str, T) -> Result<(), String>,
) {
    with_operator_on(needs, async |scene| {
        let scene: &Scene = scene;
        let number = std::cell::Cell::new(0);
        let mut runner = runner();
        let mut failure = None;
        // The runner is synchronous and the property is not: cases are drawn first, then played one
        // by one, and a failing one is shrunk by hand as far as its tree goes.
        for _ in 0..runner.config().cases {
            let mut tree = cases.new_tree(&mut runner).unwrap();
            let play = async |case: T| {
                number.set(number.get() + 1);
                property(scene, &format!("app-{}", number.get()), case).await
            };
            let Err(mut why) = play(tree.current()).await else { continue };
            let mut smallest = format!("{:?}", tree.current());
            let mut steps = 0;
            while steps < runner.config().max_shrink_iters && tree.simplify() {
                steps += 1;
                loop {
                    match play(tree.current()).await {
                        Err(again) => {
                            why = again;
                            smallest = format!("{:?}", tree.current());
                            break;
                        }
                        Ok(()) if tree.complicate() => {}
                        Ok(()) => break,
                    }
                }
            }
            failure = Some(format!("{why}\nsmallest case: {smallest}"));
            break;
        }
        if let Some(failure) = failure {
            panic!("{failure}");
        }
    });
}

async fn put_spec(
    client: &Client,
    namespace: &str,
    name: &str,
    spec: &Value,
) -> Result<bool, String> {
    let path = format!("{APPS}/{namespace}/simpleapps/{name}?fieldManager=user&force=true");
    let request = http::Request::patch(path)
        .header("content-type", "application/apply-patch+yaml")
        .body(app_of(name, spec).to_string().into_bytes())
        .unwrap();
    match client.request::<Value>(request).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code < 500 => Ok(false),
        // A field that the schema does not know is a 500 of the real server, too.
        Err(kube::Error::Api(status)) if status.message.contains("typed patch object") => Ok(false),
        Err(error) => Err(format!("the server failed: {error}")),
    }
}

/// Deletes an app and what stays of it; returns how many audit records there were.
async fn remove(scene: &Scene, name: &str) -> usize {
    if scene.find::<SimpleApp>(name).await.is_some() {
        scene.delete::<SimpleApp>(name).await;
    }
    scene.gone(name).await;
    let records = scene.records().await;
    for record in &records {
        scene.delete::<ConfigMap>(record.metadata.name.as_deref().unwrap()).await;
    }
    records.len()
}

/// What is left of an object when everything is taken off that differs from run to run.
fn bare(mut object: Value, name: &str) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    for field in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "generation",
        "managedFields",
        "annotations",
    ] {
        metadata.remove(field);
    }
    for owner in metadata.get_mut("ownerReferences").and_then(Value::as_array_mut).unwrap() {
        owner["uid"] = json!("");
    }
    let spec = object["spec"].as_object_mut().unwrap();
    for field in ["clusterIP", "clusterIPs"] {
        spec.remove(field);
    }
    object.as_object_mut().unwrap().remove("status");
    serde_json::from_str(&object.to_string().replace(name, "NAME")).unwrap()
}

async fn children(scene: &Scene, name: &str) -> BTreeMap<&'static str, Value> {
    async fn one<K>(scene: &Scene, name: &str) -> Option<Value>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
        K: Clone + DeserializeOwned + serde::Serialize + std::fmt::Debug,
    {
        let object = scene.find::<K>(name).await?;
        Some(bare(serde_json::to_value(object).unwrap(), name))
    }
    let all = [
        ("Deployment", one::<Deployment>(scene, name).await),
        ("Service", one::<Service>(scene, name).await),
        ("Ingress", one::<Ingress>(scene, name).await),
    ];
    all.into_iter().filter_map(|(kind, object)| Some((kind, object?))).collect()
}

#[test]
fn the_children_of_any_valid_spec_are_valid_and_a_second_pass_writes_nothing() {
    check(&needs().virtual_time(), valid_spec(), async |scene, name, spec| {
        let client = scene.cluster.client();
        let accepted = put_spec(&client, &scene.namespace, name, &spec).await?;
        if !accepted {
            return Err(format!("refused: {spec}"));
        }
        scene.quiet().await;
        let app = scene.get::<SimpleApp>(name).await;
        if phase(&app) != Some(Phase::Available) {
            return Err(format!("not available: {:?}", app.status));
        }
        // A label that nobody reads makes the operator look again.
        let nudge = json!({ "metadata": { "labels": { "nudge": name } } });
        let writes = scene
            .writes_of(async {
                scene.patch::<Service>(name, nudge).await;
            })
            .await;
        remove(scene, name).await;
        let writes: Vec<_> = writes.into_iter().filter(|w| w.name == name).collect();
        if writes.is_empty() { Ok(()) } else { Err(format!("{:#?}", shown(&writes))) }
    });
}

#[test]
fn any_chain_of_edits_ends_as_a_fresh_create_of_the_last_spec() {
    let edits = prop::collection::vec(valid_spec(), 1..5);
    check(&without_workloads(), edits, async |scene, name, specs| {
        let client = scene.cluster.client();
        for spec in &specs {
            if !put_spec(&client, &scene.namespace, name, spec).await? {
                return Err(format!("refused: {spec}"));
            }
        }
        scene.quiet().await;
        let edited = children(scene, name).await;
        let fresh_name = format!("{name}-fresh");
        let last = specs.last().cloned().unwrap_or_default();
        put_spec(&client, &scene.namespace, &fresh_name, &last).await?;
        scene.quiet().await;
        let fresh = children(scene, &fresh_name).await;
        remove(scene, name).await;
        remove(scene, &fresh_name).await;
        if edited == fresh { Ok(()) } else { Err(format!("edited {edited:#?}\nfresh {fresh:#?}")) }
    });
}

#[test]
fn hostile_specs_are_refused_or_run_and_leave_nothing_but_one_record() {
    check(&needs().virtual_time(), hostile_spec(), async |scene, name, spec| {
        let client = scene.cluster.client();
        let accepted = put_spec(&client, &scene.namespace, name, &spec).await?;
        scene.quiet().await;
        if !accepted {
            let left = scene.parts(name).await;
            return if left.is_empty() { Ok(()) } else { Err(format!("refused, but {left:?}")) };
        }
        let app = scene.get::<SimpleApp>(name).await;
        if phase(&app) != Some(Phase::Available) {
            return Err(format!("accepted, but {:?}", app.status));
        }
        let records = remove(scene, name).await;
        let pods: Api<k8s_openapi::api::core::v1::Pod> = scene.api();
        scene.quiet().await;
        let pods = pods.list(&ListParams::default()).await.unwrap().items.len();
        if records == 1 && pods == 0 {
            Ok(())
        } else {
            Err(format!("{records} records and {pods} Pods"))
        }
    });
}

#[test]
fn names_are_refused_by_the_server_or_work() {
    let names = prop_oneof![
        "[a-z]([-a-z0-9]{0,61}[a-z0-9])?",
        "[-A-Za-z0-9.]{1,70}",
        "[a-z]{63,66}",
        any::<String>(),
    ];
    env::run(&needs().virtual_time(), async |cluster| {
        let mut scene = Scene::without_operator(cluster).await;
        scene.start().await;
        let mut runner = runner();
        for _ in 0..runner.config().cases {
            let name = names.new_tree(&mut runner).unwrap().current();
            if scene.post_app(&name, &json!({ "image": "nginx", "replicas": 0 })).await.is_ok() {
                scene.available(&name).await;
                remove(&scene, &name).await;
            }
        }
        scene.stop().await;
    });
}
