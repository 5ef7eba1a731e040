//! Measures a simulated cluster in this process: start, creates, reads, watch deliveries.
//!
//! `cargo run --profile bench -p simcluster --example bench [OBJECTS]`. Run it twice and compare ratios, not
//! seconds: those are the machine's.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the machine's clock")]

use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, ObjectMeta, PostParams, WatchParams};
use simcluster::cluster::SimCluster;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let objects: u32 = match std::env::args().nth(1) {
        Some(text) => text.parse().context("OBJECTS must be a number")?,
        None => 10_000,
    };
    let begin = Instant::now();
    let cluster = SimCluster::builder().controllers(false).real_time().start()?;
    report("start of a bare cluster", 1, begin.elapsed())?;

    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let begin = Instant::now();
    for number in 0..objects {
        let metadata = ObjectMeta { name: Some(format!("c-{number}")), ..ObjectMeta::default() };
        let object = ConfigMap { metadata, ..ConfigMap::default() };
        api.create(&PostParams::default(), &object).await?;
    }
    report("creates", objects, begin.elapsed())?;

    let begin = Instant::now();
    for number in 0..objects {
        api.get(&format!("c-{number}")).await?;
    }
    report("gets", objects, begin.elapsed())?;

    let begin = Instant::now();
    let list = api.list(&ListParams::default()).await?;
    anyhow::ensure!(list.items.len() == usize::try_from(objects)?, "a list lost objects");
    report("list of all of them", 1, begin.elapsed())?;

    let begin = Instant::now();
    let events = api.watch(&WatchParams::default(), "0").await?.boxed();
    let events: Vec<_> = events.take(usize::try_from(objects)?).try_collect().await?;
    anyhow::ensure!(events.len() == usize::try_from(objects)?, "a watch lost events");
    report("watch deliveries", objects, begin.elapsed())
}

fn report(what: &str, count: u32, time: Duration) -> anyhow::Result<()> {
    let milliseconds = time.as_secs_f64() * 1e3;
    let rate = f64::from(count) / time.as_secs_f64();
    writeln!(std::io::stdout(), "{what:<28} {count:>8}  {milliseconds:>10.2} ms  {rate:>10.0}/s")?;
    Ok(())
}
