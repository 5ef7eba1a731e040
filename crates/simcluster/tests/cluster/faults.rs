//! Faults that a test asks for, as a client sees them, in process and over HTTPS.

use std::time::Duration;

use futures::TryStreamExt as _;
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::VersionMatch::NotOlderThan;
use kube::api::{Api, ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;
use simcluster::SimCluster;
use simcluster::User;
use simcluster::faults::{ConnectionReset, Effect, Failure, Fault, On, Rule};
use tokio::time::{Instant, timeout};

fn bare() -> SimCluster {
    SimCluster::builder().controllers(false).start().unwrap()
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap()
}

/// `ConfigMaps` through a client that does not try again.
fn maps(cluster: &SimCluster) -> Api<ConfigMap> {
    Api::namespaced(cluster.client_without_retry(User::admin()), "default")
}

/// Rules by name: of requests, and of answers, when the work is done already.
fn rules() -> [(fn(On, Effect) -> Rule, bool); 2] {
    [(Rule::request, false), (Rule::reply, true)]
}

fn on_create(cluster: &SimCluster, rule: fn(On, Effect) -> Rule, effect: Effect) -> Fault {
    cluster.faults().add(rule(On::any().verb("create").resource("configmaps"), effect))
}

/// Creates one; code and message if it fails.
async fn create(api: &Api<ConfigMap>, name: &str) -> Result<(), (u16, String)> {
    match api.create(&PostParams::default(), &map(name)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err((status.code, status.message)),
        Err(other) => Err((0, other.to_string())),
    }
}

async fn exists(api: &Api<ConfigMap>, name: &str) -> bool {
    api.get_opt(name).await.unwrap().is_some()
}

#[tokio::test(start_paused = true)]
async fn errors_come_before_or_after_the_commit() {
    let cluster = bare();
    let api = maps(&cluster);
    for (failure, code, message) in [
        (Failure::Conflict, 409, "the object has been modified"),
        (Failure::AlreadyExists, 409, "already exists"),
        (Failure::TooManyRequests { retry_after_seconds: 3 }, 429, "storage is (re)initializing"),
        (Failure::Internal, 500, "etcdserver: leader changed"),
        (Failure::Unavailable, 503, "unable to handle the request"),
        (Failure::Timeout, 504, "allotted timeout"),
        (
            Failure::Status {
                code: 507,
                reason: "InsufficientStorage",
                message: "full".to_owned(),
            },
            507,
            "full",
        ),
    ] {
        let name = format!("a{code}{}", message.len());
        for (rule, done) in rules() {
            let name = format!("{name}-{done}");
            let fault = on_create(&cluster, rule, Effect::Fail(failure.clone()));
            let (seen, text) = create(&api, &name).await.unwrap_err();
            assert_eq!(seen, code);
            assert!(text.contains(message), "{text}");
            assert_eq!(exists(&api, &name).await, done, "{failure:?}");
            assert_eq!(fault.hits(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_a_header_that_clients_obey() {
    let cluster = bare();
    let api: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
    on_create(
        &cluster,
        Rule::request,
        Effect::Fail(Failure::TooManyRequests { retry_after_seconds: 7 }),
    );
    let start = Instant::now();
    create(&api, "a").await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn connections_break_before_or_after_the_commit() {
    let cluster = bare();
    let api = maps(&cluster);
    for (rule, done) in rules() {
        let name = format!("a-{done}");
        on_create(&cluster, rule, Effect::Reset);
        let (code, text) = create(&api, &name).await.unwrap_err();
        assert_eq!((code, text.contains("connection reset")), (0, true), "{text}");
        assert_eq!(exists(&api, &name).await, done);
        let recorded = cluster.requests().into_iter().find(|r| r.verb == "create" && r.code == 0);
        assert!(recorded.is_some(), "what was never answered is recorded, too");
    }
    let request = http::Request::get("/version").body(bytes::Bytes::new()).unwrap();
    cluster.faults().add(Rule::request(On::any(), Effect::Reset));
    let broken = cluster.handle(&User::admin(), request).await;
    assert_eq!(broken.map(|_| ()), Err(ConnectionReset));
}

#[tokio::test(start_paused = true)]
async fn half_an_answer_is_an_error() {
    let cluster = bare();
    let api = maps(&cluster);
    on_create(&cluster, Rule::reply, Effect::CutShort);
    assert_eq!(create(&api, "a").await.unwrap_err().0, 0);
    assert!(exists(&api, "a").await);
}

#[tokio::test(start_paused = true)]
async fn answers_are_lost_late_or_held() {
    let cluster = bare();
    let api = maps(&cluster);
    on_create(&cluster, Rule::reply, Effect::Silence);
    assert!(timeout(Duration::from_secs(30), create(&api, "lost")).await.is_err());
    assert!(exists(&api, "lost").await);

    let start = Instant::now();
    on_create(&cluster, Rule::request, Effect::Delay(Duration::from_secs(9)));
    create(&api, "late").await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(9));

    let held = on_create(&cluster, Rule::request, Effect::Hold);
    let other = api.clone();
    let task = tokio::spawn(async move { create(&other, "held").await });
    held.reached(1).await;
    assert!(!exists(&api, "held").await);
    held.remove();
    task.await.unwrap().unwrap();
    assert_eq!(held.hits(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_takes_a_minute_at_most_and_less_if_it_says_so() {
    let cluster = bare();
    let api = maps(&cluster);
    on_create(&cluster, Rule::reply, Effect::Silence);
    let start = Instant::now();
    let (code, text) = create(&api, "a").await.unwrap_err();
    assert_eq!((code, start.elapsed()), (504, Duration::from_mins(1)));
    assert_eq!(text, "Timeout: request did not complete within the allotted timeout");
    assert!(exists(&api, "a").await, "it was done all the same");

    cluster.faults().add(Rule::request(On::reads(), Effect::Silence));
    let uri = "/api/v1/configmaps?timeout=1500ms";
    let request = http::Request::get(uri).body(bytes::Bytes::new()).unwrap();
    let start = Instant::now();
    let answer = cluster.handle(&User::admin(), request).await.unwrap();
    assert_eq!((answer.status().as_u16(), start.elapsed().as_millis()), (504, 1500));
    assert_eq!(answer.headers()["content-type"], "text/plain; charset=utf-8");
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(
        body,
        "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"Timeout: request did not complete \
         within the allotted timeout\",\"reason\":\"Timeout\",\"details\":{},\"code\":504}\n"
    );
}

/// What a watch from the beginning shows within ten seconds, one word an event.
async fn seen(api: &Api<ConfigMap>) -> (String, bool) {
    let events = api.watch(&WatchParams::default().disable_bookmarks(), "0").await.unwrap();
    let mut events = Box::pin(events);
    let mut words = Vec::new();
    let ended = timeout(Duration::from_secs(10), async {
        loop {
            words.push(match events.try_next().await {
                Ok(None) => break,
                Ok(Some(WatchEvent::Added(map))) => map.name_any(),
                Ok(Some(WatchEvent::Error(status))) => status.code.to_string(),
                Ok(Some(other)) => format!("{other:?}"),
                Err(_) => "broken".to_owned(),
            });
            if words.last().is_some_and(|word| word == "broken") {
                break;
            }
        }
    });
    let ended = ended.await.is_ok();
    (words.join(" "), ended)
}

#[tokio::test(start_paused = true)]
async fn watches_end_break_or_fall_silent_at_an_event() {
    let cluster = bare();
    let api = maps(&cluster);
    for name in ["a", "b", "c"] {
        create(&api, name).await.unwrap();
    }
    assert_eq!(seen(&api).await, ("a b c".to_owned(), false));
    let on_b = || On::any().resource("configmaps").name("b");
    for (effect, expected, ends) in [
        (Effect::Close, "a", true),
        (Effect::Reset, "a broken", true),
        (Effect::CutShort, "a broken", true),
        (Effect::Fail(Failure::Expired), "a 410", true),
        (Effect::Silence, "a", false),
        (Effect::Delay(Duration::from_secs(5)), "a b c", false),
        (Effect::Delay(Duration::from_secs(15)), "a", false),
        (Effect::Hold, "a", false),
    ] {
        let fault = cluster.faults().add(Rule::event(on_b(), effect.clone()));
        assert_eq!(seen(&api).await, (expected.to_owned(), ends), "{effect:?}");
        fault.remove();
        assert_eq!(fault.hits(), 1);
    }
    assert_eq!(seen(&api).await, ("a b c".to_owned(), false));
}

#[tokio::test(start_paused = true)]
async fn reads_that_any_state_satisfies_can_be_stale() {
    let cluster = bare();
    let api = maps(&cluster);
    create(&api, "a").await.unwrap();
    let revision = cluster.revision();
    create(&api, "b").await.unwrap();
    cluster.faults().add(Rule::request(On::reads(), Effect::StaleReads { revision }).always());

    let names = async |params: ListParams| -> Vec<String> {
        api.list(&params).await.unwrap().iter().map(kube::ResourceExt::name_any).collect()
    };
    assert_eq!(names(ListParams::default()).await, ["a", "b"]);
    assert_eq!(names(ListParams::default().match_any()).await, ["a"]);
    let newest = cluster.revision().to_string();
    assert_eq!(names(ListParams::default().at(&newest).matching(NotOlderThan)).await, ["a", "b"]);
    assert!(exists(&api, "b").await, "a get asks for the newest state");
    let uri = "/api/v1/namespaces/default/configmaps/b?resourceVersion=0";
    let request = http::Request::get(uri).body(bytes::Bytes::new()).unwrap();
    assert_eq!(cluster.handle(&User::admin(), request).await.unwrap().status(), 404);
    // A watch from any state begins with an old one, and goes on to the new one.
    assert_eq!(seen(&api).await, ("a b".to_owned(), false));
}

#[tokio::test(start_paused = true)]
async fn history_is_forgotten_and_old_states_come_back() {
    let definition: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "widgets", "kind": "Widget" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    }))
    .unwrap();
    let cluster = bare();
    let api = maps(&cluster);
    create(&api, "a").await.unwrap();
    let early = cluster.revision();
    create(&api, "b").await.unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client());
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    let served = async || {
        let uri = "/apis/example.com/v1/widgets";
        let request = http::Request::get(uri).body(bytes::Bytes::new()).unwrap();
        cluster.handle(&User::admin(), request).await.unwrap().status() == 200
    };
    assert!(served().await);
    let late = cluster.revision();

    cluster.faults().restore(early).unwrap();
    assert!(!exists(&api, "b").await && exists(&api, "a").await);
    assert!(!served().await);
    assert!(cluster.revision() > late);
    let mut events = Box::pin(api.watch(&WatchParams::default(), &late.to_string()).await.unwrap());
    let Some(WatchEvent::Error(status)) = events.try_next().await.unwrap() else { panic!() };
    assert_eq!(status.code, 410);
    assert!(cluster.faults().restore(early).is_err(), "that state is forgotten now");

    cluster.faults().add(Rule::request(On::any().verb("list"), Effect::Compact));
    let before = cluster.revision();
    create(&api, "c").await.unwrap();
    api.list(&ListParams::default()).await.unwrap();
    let old = before.to_string();
    let mut events = Box::pin(api.watch(&WatchParams::default(), &old).await.unwrap());
    let Some(WatchEvent::Error(status)) = events.try_next().await.unwrap() else { panic!() };
    assert_eq!(status.code, 410);
}

#[tokio::test(start_paused = true)]
async fn the_nth_request_of_a_client_is_meant() {
    let cluster = bare();
    let api = maps(&cluster);
    let mine: Vec<u64> = cluster.requests().iter().map(|request| request.client_ordinal).collect();
    assert!(mine.is_empty());
    let second = On::any().user("admin").client_ordinal(2);
    let fault = cluster.faults().add(Rule::request(second, Effect::Fail(Failure::Internal)));
    create(&api, "a").await.unwrap();
    assert_eq!(create(&api, "b").await.unwrap_err().0, 500);
    create(&api, "b").await.unwrap();
    assert_eq!(fault.hits(), 1);
    let ordinals: Vec<(u64, u64)> =
        cluster.requests().iter().map(|one| (one.ordinal, one.client_ordinal)).collect();
    assert_eq!(ordinals, [(1, 1), (2, 2), (3, 3)]);
}

#[tokio::test]
async fn a_served_cluster_has_the_same_faults() {
    let cluster = bare();
    let served = cluster.serve("127.0.0.1:0").await.unwrap();
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&served.kubeconfig()).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    config.default_retry = false;
    let api: Api<ConfigMap> = Api::namespaced(Client::try_from(config).unwrap(), "default");

    on_create(&cluster, Rule::request, Effect::Fail(Failure::Conflict));
    assert_eq!(create(&api, "a").await.unwrap_err().0, 409);
    on_create(&cluster, Rule::reply, Effect::Reset);
    assert_eq!(create(&api, "a").await.unwrap_err().0, 0);
    assert!(exists(&api, "a").await);
    create(&api, "b").await.unwrap();
    let on_b = On::any().resource("configmaps").name("b");
    cluster.faults().add(Rule::event(on_b, Effect::CutShort));
    // kube takes a connection that is closed in the middle of a line for the end of the watch.
    assert_eq!(seen(&api).await, ("a".to_owned(), true));
    served.shutdown().await;
}
