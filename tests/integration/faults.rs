//! The operator while requests fail, answers get lost and watches break.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use serde_json::json;
use simcluster::env::{self, Backend, Cluster};
use simcluster::faults::{Effect, Failure, On, Rule};
use simcluster::{Request, SimCluster};
use simpleapp_operator::api::simpleapp::{Phase, SimpleApp};

use crate::scene::{Scene, needs, phase};

const APPS: usize = 20;

/// What goes wrong: of everything a little, and only for the operator.
fn add_faults(sim: &SimCluster, operator: &str) {
    let on = |verb: &str, resource: &str| On::any().user(operator).verb(verb).resource(resource);
    let fail = Effect::Fail;
    let late = Duration::from_millis(700);
    for rule in [
        Rule::request(on("patch", "deployments"), fail(Failure::Unavailable)).skip(3).times(5),
        Rule::reply(on("patch", "deployments"), fail(Failure::Timeout)).skip(11).times(3),
        Rule::reply(on("patch", "services"), Effect::Reset).skip(5).times(4),
        Rule::request(on("patch", "ingresses"), Effect::Delay(late)).skip(2).times(9),
        Rule::reply(on("patch", "simpleapps"), fail(Failure::Conflict)).skip(7).times(4),
        Rule::request(on("patch", "simpleapps"), fail(Failure::Internal)).skip(17).times(2),
        Rule::event(on("watch", "deployments"), Effect::Delay(late)).skip(20).times(20),
        Rule::event(on("watch", "deployments"), Effect::Reset).skip(70),
        Rule::event(on("watch", "simpleapps"), Effect::Close).skip(30).times(2),
    ] {
        sim.faults().add(rule);
    }
}

/// Twenty apps are created, changed and deleted, while much goes wrong. All requests of everybody are
/// returned.
async fn twenty_apps(cluster: Cluster) -> Vec<Request> {
    let mut scene = Scene::without_operator(cluster).await;
    let sim = scene.cluster.sim().unwrap();
    add_faults(sim, &scene.operator.name);
    let before = sim.position();
    scene.start().await;
    for number in 0..APPS {
        let host = format!("app-{number}.example.com");
        scene.app(&format!("app-{number}"), json!({ "image": "nginx:1.29", "host": host })).await;
    }
    scene.quiet().await;
    for number in 0..5 {
        let more = json!({ "spec": { "replicas": 3 } });
        scene.patch::<SimpleApp>(&format!("app-{number}"), more).await;
    }
    for number in 5..10 {
        scene.delete::<SimpleApp>(&format!("app-{number}")).await;
    }
    scene.quiet().await;

    for number in 0..APPS {
        let name = format!("app-{number}");
        if (5..10).contains(&number) {
            assert_eq!(scene.parts(&name).await, Vec::<&str>::new(), "{name} is gone");
            continue;
        }
        let app = scene.get::<SimpleApp>(&name).await;
        assert_eq!(phase(&app), Some(Phase::Available), "{name}: {:?}", app.status);
        let replicas = if number < 5 { 3 } else { 1 };
        assert_eq!(scene.get::<Deployment>(&name).await.spec.replicas, Some(replicas), "{name}");
    }
    assert_eq!(scene.records().await.len(), 5, "one record for each app that was deleted");
    let requests = scene.cluster.sim().unwrap().requests_since(before);
    scene.stop().await;
    requests
}

/// A run with nothing of the machine's entropy.
fn run(seed: u64) -> Vec<Request> {
    detrand::with_seed(seed, || {
        let mut requests = Vec::new();
        env::run_on(Backend::Sim, &needs().virtual_time(), async |cluster| {
            requests = twenty_apps(cluster).await;
        });
        requests
    })
}

#[test]
fn twenty_apps_under_fire_end_as_they_should_and_twice_the_same_way() {
    let first = run(1);
    let again = run(1);
    for (number, (one, other)) in first.iter().zip(&again).enumerate() {
        assert!(one == other, "request {number} differs:\n{one:#?}\n{other:#?}");
    }
    assert_eq!(first.len(), again.len());
    let failed = first.iter().filter(|request| request.code >= 500 || request.code == 0).count();
    assert!(failed >= 10, "faults were injected: {failed}");
}
