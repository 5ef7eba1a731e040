//! One seed is one run, down to the last byte of the last answer; another seed is another run.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::TryStreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use simcluster::Request;
use simcluster::SimCluster;
use simcluster::User;
use simcluster::faults::{Effect, Failure, On, Rule};

use super::support::{deployment, seconds};

const APPS: usize = 20;

/// Runs on a runtime of its own, with nothing of the machine's entropy.
fn run<T: Send>(seed: u64, test: impl AsyncFnOnce(SimCluster) -> T + Send) -> T {
    detrand::with_seed(seed, || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let builder = SimCluster::builder().seed(seed).shuffled().record_bodies();
            test(builder.start().unwrap()).await
        })
    })
}

fn app(number: usize) -> Value {
    let mut app = deployment("nginx", 2);
    app["metadata"]["name"] = json!(format!("app-{number}"));
    app["spec"]["selector"]["matchLabels"]["app"] = json!(format!("app-{number}"));
    app["spec"]["template"]["metadata"]["labels"]["app"] = json!(format!("app-{number}"));
    app
}

/// A small controller: for each Deployment a ConfigMap that says how many of its Pods are ready.
async fn follow(client: Client) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let deployments = watcher(Api::<Deployment>::all(client), watcher::Config::default());
    let mut events = Box::pin(deployments);
    loop {
        match events.try_next().await {
            Ok(Some(watcher::Event::Apply(found) | watcher::Event::InitApply(found))) => {
                let name = found.name_any();
                let ready = found.status.and_then(|status| status.ready_replicas).unwrap_or(0);
                let config = json!({
                    "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name },
                    "data": { "ready": ready.to_string() },
                });
                let params = PatchParams::apply("follower").force();
                while maps.patch(&name, &params, &Patch::Apply(&config)).await.is_err() {
                    seconds(1).await;
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => return,
            Err(_) => seconds(1).await,
        }
    }
}

fn follower() -> User {
    User { name: "follower".to_owned(), ..User::admin() }
}

/// What goes wrong meanwhile: of everything a little.
fn add_faults(cluster: &SimCluster) {
    let on = |verb: &str, resource: &str| On::any().verb(verb).resource(resource);
    let fail = Effect::Fail;
    let late = Duration::from_millis(700);
    for rule in [
        Rule::request(on("create", "pods"), fail(Failure::Unavailable)).skip(4).times(6),
        Rule::request(on("create", "replicasets"), fail(Failure::Internal)).skip(7).times(2),
        Rule::reply(on("create", "replicasets"), fail(Failure::Timeout)).skip(3).times(3),
        Rule::reply(on("create", "pods"), Effect::Reset).skip(9).times(3),
        Rule::request(on("patch", "configmaps"), Effect::Delay(late)).skip(11).times(9),
        Rule::reply(on("patch", "configmaps"), fail(Failure::Conflict)).skip(23).times(3),
        Rule::event(on("watch", "pods"), Effect::Close).skip(60).times(2),
        Rule::event(on("watch", "deployments"), Effect::Delay(late)).skip(30).times(20),
        Rule::event(on("watch", "deployments"), Effect::Reset).skip(80),
        Rule::request(on("update", "deployments"), Effect::Compact).skip(5),
    ] {
        cluster.faults().add(rule);
    }
}

/// Twenty apps are created at once, changed and deleted, while much goes wrong.
async fn twenty_apps(cluster: SimCluster) -> Vec<Request> {
    add_faults(&cluster);
    tokio::spawn(follow(cluster.client_as(follower())));
    let client = cluster.client();
    let api: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..APPS {
        let api = api.clone();
        let object: Deployment = serde_json::from_value(app(number)).unwrap();
        tasks.spawn(async move { api.create(&PostParams::default(), &object).await.unwrap() });
    }
    while tasks.join_next().await.is_some() {}
    cluster.settle().await.unwrap();
    for number in 0..5 {
        let (api, name) = (api.clone(), format!("app-{number}"));
        tasks.spawn(async move {
            let size = json!({ "spec": { "replicas": 3 } });
            api.patch(&name, &PatchParams::default(), &Patch::Merge(size)).await.unwrap()
        });
    }
    while tasks.join_next().await.is_some() {}
    for number in 5..10 {
        api.delete(&format!("app-{number}"), &DeleteParams::background()).await.unwrap();
    }
    cluster.settle().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let ready = maps.get("app-0").await.unwrap().data.unwrap();
    assert_eq!(ready["ready"], "3", "the work gets done all the same");
    cluster.requests()
}

fn order(requests: &[Request]) -> Vec<String> {
    requests.iter().filter(|one| one.is_write()).map(Request::deed).collect()
}

#[test]
fn equal_seeds_give_equal_traces_and_others_another_order() {
    let first = run(1, twenty_apps);
    let again = run(1, twenty_apps);
    for (number, (one, other)) in first.iter().zip(&again).enumerate() {
        assert!(one == other, "request {number} differs:\n{one:#?}\n{other:#?}");
    }
    assert_eq!(first.len(), again.len());
    let injected = first.iter().filter(|request| request.code >= 500 || request.code == 0).count();
    assert!(injected >= 10, "faults were injected: {injected}");
    let other = run(2, twenty_apps);
    assert_ne!(order(&first), order(&other));
}

/// UIDs by name of all Pods and of what was made at the end.
async fn uids(cluster: &SimCluster) -> BTreeMap<String, String> {
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
    let last = serde_json::from_value(json!({ "metadata": { "name": "last" } })).unwrap();
    maps.create(&PostParams::default(), &last).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "default");
    let uids =
        |meta: &kube::api::ObjectMeta| (meta.name.clone().unwrap(), meta.uid.clone().unwrap());
    let pods = pods.list(&ListParams::default()).await.unwrap();
    let maps = maps.list(&ListParams::default()).await.unwrap();
    let pods = pods.iter().map(|pod| uids(&pod.metadata));
    pods.chain(maps.iter().map(|map| uids(&map.metadata))).collect()
}

#[test]
fn one_more_watch_changes_no_uid_and_no_name() {
    let with = |watches: usize| {
        run(3, async move |cluster: SimCluster| {
            let api: Api<Deployment> = Api::namespaced(cluster.client(), "default");
            for _ in 0..watches {
                let stream = api.watch(&WatchParams::default(), "0").await.unwrap();
                tokio::spawn(async move { Box::pin(stream).try_next().await.map(drop) });
            }
            let object: Deployment = serde_json::from_value(app(0)).unwrap();
            api.create(&PostParams::default(), &object).await.unwrap();
            cluster.settle().await.unwrap();
            uids(&cluster).await
        })
    };
    let expected = with(0);
    assert_eq!(expected.len(), 4, "{expected:?}");
    assert_eq!(with(1), expected);
    assert_eq!(with(3), expected);
}
