//! What `settle` takes for rest, and what it says when there is none.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use simcluster::User;
use simcluster::env::{self, Backend, Needs};
use simcluster::faults::On;
use simcluster::{NotSettled, Settle, SimCluster, StartError};

use super::support::{api, create, seconds};

fn bare() -> SimCluster {
    SimCluster::builder().controllers(false).start().unwrap()
}

/// Writes something new as soon as the last write is answered, for ever: the classic bug of a
/// reconcile that its own write triggers.
async fn busy(api: Api<ConfigMap>) {
    for n in 0_u64.. {
        let data = json!({ "data": { "n": n.to_string() } });
        api.patch("beat", &PatchParams::default(), &Patch::Merge(data)).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_operator_is_named_although_virtual_time_stands_still() {
    let cluster = bare();
    create::<ConfigMap>(&cluster, json!({ "metadata": { "name": "beat" } })).await;
    tokio::spawn(busy(api(&cluster)));
    let error = cluster.settle().await.unwrap_err();
    assert_eq!(error, NotSettled::Runaway("admin: patch configmaps default/beat".to_owned()));
    assert!(error.to_string().contains("virtual time stands still"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_busy_operator_stops_no_timeout() {
    let cluster = bare();
    create::<ConfigMap>(&cluster, json!({ "metadata": { "name": "beat" } })).await;
    tokio::spawn(busy(api(&cluster)));
    let never = std::future::pending::<()>();
    assert!(tokio::time::timeout(Duration::from_secs(100), never).await.is_err());
}

#[test]
#[should_panic(expected = "admin: patch configmaps test-1/beat")]
fn a_test_with_a_busy_operator_ends() {
    env::run_on(Backend::Sim, &Needs::default().only([]), async |cluster| {
        let namespace = cluster.namespace().await;
        let api: Api<ConfigMap> = Api::namespaced(cluster.client(), &namespace);
        let beat = serde_json::from_value(json!({ "metadata": { "name": "beat" } })).unwrap();
        api.create(&PostParams::default(), &beat).await.unwrap();
        tokio::spawn(busy(api));
        std::future::pending::<()>().await;
    });
}

#[tokio::test(start_paused = true)]
async fn one_that_writes_now_and_then_is_named_too() {
    let cluster = bare();
    create::<ConfigMap>(&cluster, json!({ "metadata": { "name": "beat" } })).await;
    let beat: Api<ConfigMap> = api(&cluster);
    tokio::spawn(async move {
        for n in 0_u64.. {
            let data = json!({ "data": { "n": n.to_string() } });
            beat.patch("beat", &PatchParams::default(), &Patch::Merge(data)).await.unwrap();
            seconds(20).await;
        }
    });
    let error = cluster.settle().await.unwrap_err();
    let NotSettled::Busy { within, busiest } = error else { panic!("{error}") };
    assert_eq!(within, Duration::from_hours(1));
    assert_eq!(busiest, [("admin: patch configmaps default/beat".to_owned(), 3)]);
}

#[tokio::test(start_paused = true)]
async fn applies_that_change_nothing_are_rest() {
    let cluster = bare();
    let maps: Api<ConfigMap> = api(&cluster);
    let position = cluster.position();
    let apply = async || {
        let config = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "a" }, "data": { "a": "b" },
        });
        let params = PatchParams::apply("me");
        maps.patch("a", &params, &Patch::Apply(config)).await.unwrap();
    };
    apply().await;
    apply().await;
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let other = serde_json::from_value(json!({ "metadata": { "name": "b" } })).unwrap();
    maps.create(&dry, &other).await.unwrap();
    maps.delete("a", &kube::api::DeleteParams::default()).await.unwrap();
    let changed: Vec<bool> =
        cluster.requests_since(position).iter().map(|one| one.changed.is_some()).collect();
    assert_eq!(changed, [true, false, false, true]);
    apply().await;
    cluster.settle().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn periodic_writers_can_be_left_out() {
    let cluster = bare();
    create::<Lease>(&cluster, json!({ "metadata": { "name": "leader" }, "spec": {} })).await;
    let leases: Api<Lease> = api(&cluster);
    tokio::spawn(async move {
        for n in 0_u64.. {
            let spec = json!({ "spec": { "leaseTransitions": n } });
            leases.patch("leader", &PatchParams::default(), &Patch::Merge(spec)).await.unwrap();
            seconds(10).await;
        }
    });
    let error = cluster.settle().await.unwrap_err();
    assert!(error.to_string().contains("6 times admin: patch leases default/leader"), "{error}");
    let rest = Settle::default().except(On::writes().resource("leases"));
    cluster.settle_with(&rest).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_is_refused_for_ever_is_not_at_rest() {
    let cluster = bare();
    let user = User::service_account("default", "nobody");
    let pods: Api<ConfigMap> = Api::namespaced(cluster.client_as(user), "default");
    // A single refusal is an answer like others.
    pods.list(&ListParams::default()).await.unwrap_err();
    cluster.settle().await.unwrap();
    tokio::spawn(async move {
        loop {
            pods.list(&ListParams::default()).await.unwrap_err();
            seconds(25).await;
        }
    });
    let error = cluster.settle().await.unwrap_err();
    let what = "system:serviceaccount:default:nobody: list configmaps default/";
    assert_eq!(error, NotSettled::Refused(vec![(what.to_owned(), 3)]));
    cluster.settle_with(&Settle::default().with_refusals()).await.unwrap();
}

#[tokio::test]
async fn real_time_is_refused_with_the_remedy() {
    let cluster = bare();
    let error = cluster.settle().await.unwrap_err();
    assert_eq!(error, NotSettled::RealTime);
    assert!(error.to_string().contains("start_paused = true"), "{error}");
}

#[test]
fn a_cluster_needs_a_runtime() {
    let error = SimCluster::builder().start().unwrap_err();
    assert!(matches!(error, StartError::NoRuntime));
    assert!(error.to_string().contains("start_paused"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn bodies_are_recorded_if_asked_for() {
    let cluster = SimCluster::builder().controllers(false).record_bodies().start().unwrap();
    let position = cluster.position();
    create::<ConfigMap>(&cluster, json!({ "metadata": { "name": "a" } })).await;
    let requests = cluster.requests_since(position);
    let [created] = requests.as_slice() else { panic!("{requests:?}") };
    let text =
        |body: &Option<bytes::Bytes>| String::from_utf8_lossy(body.as_ref().unwrap()).into_owned();
    assert!(text(&created.body).contains(r#""name":"a""#));
    assert!(text(&created.answer).contains(r#""resourceVersion""#));
    assert_eq!((created.client_ordinal, created.code), (1, 201));
}
