//! The cluster in this process, as a test has it.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::try_join_all;
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;
use simcluster::SimCluster;
use simcluster::User;

use crate::{machine, say};

/// Watchers of the fan-out.
const WATCHERS: u32 = 50;
/// Objects that the watchers are told of.
const FANNED_OUT: u32 = 2_000;
/// One of so many objects has the label that lists ask for.
const LABELLED: u32 = 100;

fn on_a_runtime<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// A ConfigMap of a number.
pub(crate) fn map(number: u32) -> ConfigMap {
    let label = if number.is_multiple_of(LABELLED) { "rare" } else { "common" };
    let metadata = ObjectMeta {
        name: Some(format!("c-{number}")),
        labels: Some(BTreeMap::from([("kind".to_owned(), label.to_owned())])),
        ..ObjectMeta::default()
    };
    let data = BTreeMap::from([("key".to_owned(), number.to_string())]);
    ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
}

fn bare() -> anyhow::Result<SimCluster> {
    Ok(SimCluster::builder().controllers(false).real_time().start()?)
}

/// Measures each thing once.
pub(crate) fn run(objects: u32) -> anyhow::Result<()> {
    on_a_runtime(async {
        let begin = Instant::now();
        let cluster = bare()?;
        report("start, the first in a process", 1, begin.elapsed())?;
        let begin = Instant::now();
        for _ in 0..10 {
            bare()?;
        }
        report("start", 10, begin.elapsed())?;
        let before = machine::memory()?;
        for (what, count, took) in verbs(&cluster.client(), objects).await? {
            report(what, count, took)?;
        }
        let used = machine::memory()?.saturating_sub(before);
        say(&format!("{:<32} {:>8} MiB", "memory of the objects", used))?;
        Ok(())
    })?;
    on_a_runtime(async {
        let cluster = bare()?;
        let took = fan_out(&cluster).await?;
        report("deliveries to 50 watchers", WATCHERS * FANNED_OUT, took)
    })
}

/// The verbs on so many objects: what, how often, how long.
async fn verbs(
    client: &Client,
    objects: u32,
) -> anyhow::Result<Vec<(&'static str, u32, Duration)>> {
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let mut rows = Vec::new();
    let begin = Instant::now();
    for number in 0..objects {
        api.create(&PostParams::default(), &map(number)).await?;
    }
    rows.push(("create", objects, begin.elapsed()));
    let begin = Instant::now();
    for number in 0..objects {
        api.get(&format!("c-{number}")).await?;
    }
    rows.push(("get", objects, begin.elapsed()));
    let some = objects.min(10_000);
    let begin = Instant::now();
    for number in 0..some {
        let patch = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": { "applied": number.to_string() },
        });
        let params = PatchParams::apply("bench");
        api.patch(&format!("c-{number}"), &params, &Patch::Apply(patch)).await?;
    }
    rows.push(("apply", some, begin.elapsed()));
    let begin = Instant::now();
    for number in 0..some {
        let mut changed = map(number);
        changed.data.get_or_insert_default().insert("updated".to_owned(), String::new());
        api.replace(&format!("c-{number}"), &PostParams::default(), &changed).await?;
    }
    rows.push(("update", some, begin.elapsed()));
    for what in ["list, the first time", "list again"] {
        let begin = Instant::now();
        let list = api.list(&ListParams::default()).await?;
        anyhow::ensure!(list.items.len() == usize::try_from(objects)?, "a list lost objects");
        rows.push((what, objects, begin.elapsed()));
    }
    let begin = Instant::now();
    let list = api.list(&ListParams::default().labels("kind=rare")).await?;
    let found = u32::try_from(list.items.len())?;
    anyhow::ensure!(found == objects.div_ceil(LABELLED), "a selector lost objects");
    rows.push(("list by label", objects, begin.elapsed()));
    let begin = Instant::now();
    let mut params = ListParams::default().limit(500);
    loop {
        let page = api.list(&params).await?;
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    rows.push(("list in pages of 500", objects, begin.elapsed()));
    Ok(rows)
}

/// How long it takes until all watchers have all lines, without what the client makes of them.
async fn fan_out(cluster: &SimCluster) -> anyhow::Result<Duration> {
    let path = "/api/v1/namespaces/default/configmaps?watch=1";
    let mut watches = Vec::new();
    for _ in 0..WATCHERS {
        let request = http::Request::get(path).body(Bytes::new())?;
        watches.push(cluster.handle(&User::admin(), request).await?.into_body());
    }
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    for number in 0..FANNED_OUT {
        api.create(&PostParams::default(), &map(number)).await?;
    }
    let begin = Instant::now();
    let readers = watches.into_iter().map(|mut body| async move {
        for _ in 0..FANNED_OUT {
            let frame = body.frame().await;
            anyhow::ensure!(frame.is_some_and(|frame| frame.is_ok()), "a watch ended");
        }
        Ok(())
    });
    try_join_all(readers).await?;
    Ok(begin.elapsed())
}

/// Measures the verbs on growing numbers of objects, side by side.
pub(crate) fn growth(sizes: &[u32]) -> anyhow::Result<()> {
    let mut columns = Vec::new();
    for size in sizes {
        let rows = on_a_runtime(async { verbs(&bare()?.client(), *size).await })?;
        columns.push(rows);
    }
    let head: Vec<String> = sizes.iter().map(|size| format!("{size:>10}")).collect();
    say(&format!("{:<32} {}", "", head.join(" ")))?;
    for (position, (what, _, _)) in columns.first().into_iter().flatten().enumerate() {
        let cells = columns.iter().filter_map(|rows| rows.get(position));
        let cells = cells.map(|(_, count, took)| format!("{:>10.2}", micros(*took, *count)));
        say(&format!("{what:<32} {}", cells.collect::<Vec<_>>().join(" ")))?;
    }
    Ok(())
}

/// Microseconds for one of so many.
pub(crate) fn micros(took: Duration, count: u32) -> f64 {
    took.as_secs_f64() * 1e6 / f64::from(count)
}

fn report(what: &str, count: u32, took: Duration) -> anyhow::Result<()> {
    let milliseconds = took.as_secs_f64() * 1e3;
    let rate = f64::from(count) / took.as_secs_f64();
    say(&format!("{what:<32} {count:>8}  {milliseconds:>10.2} ms  {rate:>10.0}/s"))
}
