//! The requests that are measured: the same ones in process, served, and on a real server.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::try_join_all;
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Client;
use kube::api::{Api, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::table::{memory_row, row};

/// Objects that single requests are sent for.
const SINGLE_MAX: u32 = 2_000;
/// How often the objects are listed, so that one list is measured well.
const LISTS: u32 = 5;
/// One of so many objects has the label that lists ask for.
const LABELLED: u32 = 100;
/// Objects on a page.
const PAGE: u32 = 500;
/// Watchers of the fan-out.
const WATCHERS: u32 = 50;
/// Objects that each of the watchers is told of.
const TOLD: u32 = 1_000;

/// Where the account of the measured server is.
pub(crate) struct Meter {
    /// CPU time used so far.
    pub(crate) cpu: fn() -> anyhow::Result<Duration>,
    /// Memory in use, in KiB.
    pub(crate) memory: fn() -> anyhow::Result<u64>,
}

impl Meter {
    /// What `work` costs.
    async fn cost(
        &self,
        work: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<Duration> {
        let before = (self.cpu)()?;
        work.await?;
        Ok((self.cpu)()?.saturating_sub(before))
    }
}

/// Measures the requests on so many objects and prints a row for each kind.
pub(crate) async fn run(client: &Client, objects: u32, meter: &Meter) -> anyhow::Result<()> {
    let api = in_namespace(client, "bench").await?;
    // What happens once is not counted.
    api.list(&ListParams::default()).await?;
    api.create(&PostParams::default(), &map("warm", 1)).await?;
    api.delete("warm-1", &kube::api::DeleteParams::default()).await?;
    let before = (meter.memory)()?;
    let took = meter.cost(create(&api, "c", objects)).await?;
    row("create", took, objects)?;
    let used = (meter.memory)()?.saturating_sub(before);
    single(&api, objects.min(SINGLE_MAX), meter).await?;
    lists(&api, objects, meter).await?;
    fan_out(client, meter).await?;
    memory_row("memory, an object", used, objects)
}

async fn in_namespace(client: &Client, name: &str) -> anyhow::Result<Api<ConfigMap>> {
    let namespace: Namespace = serde_json::from_value(json!({ "metadata": { "name": name } }))?;
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await?;
    Ok(Api::namespaced(client.clone(), name))
}

/// A ConfigMap of a number.
fn map(prefix: &str, number: u32) -> ConfigMap {
    let label = if number.is_multiple_of(LABELLED) { "rare" } else { "common" };
    let metadata = ObjectMeta {
        name: Some(format!("{prefix}-{number}")),
        labels: Some(BTreeMap::from([("kind".to_owned(), label.to_owned())])),
        ..ObjectMeta::default()
    };
    let data = BTreeMap::from([("key".to_owned(), number.to_string())]);
    ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
}

async fn create(api: &Api<ConfigMap>, prefix: &str, objects: u32) -> anyhow::Result<()> {
    for number in 0..objects {
        api.create(&PostParams::default(), &map(prefix, number)).await?;
    }
    Ok(())
}

/// Requests for one object each.
async fn single(api: &Api<ConfigMap>, objects: u32, meter: &Meter) -> anyhow::Result<()> {
    let get = async {
        for number in 0..objects {
            api.get(&format!("c-{number}")).await?;
        }
        Ok(())
    };
    row("get", meter.cost(get).await?, objects)?;
    let apply = async {
        for number in 0..objects {
            let patch = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "data": { "applied": number.to_string() },
            });
            let params = PatchParams::apply("bench");
            api.patch(&format!("c-{number}"), &params, &Patch::Apply(patch)).await?;
        }
        Ok(())
    };
    row("apply", meter.cost(apply).await?, objects)?;
    let update = async {
        for number in 0..objects {
            let mut changed = map("c", number);
            changed.data.get_or_insert_default().insert("updated".to_owned(), String::new());
            api.replace(&format!("c-{number}"), &PostParams::default(), &changed).await?;
        }
        Ok(())
    };
    row("update", meter.cost(update).await?, objects)
}

/// Lists of all objects; costs are those of one object that is there.
async fn lists(api: &Api<ConfigMap>, objects: u32, meter: &Meter) -> anyhow::Result<()> {
    let list = async |params: ListParams, expected: u32| {
        let list = api.list(&params).await?;
        anyhow::ensure!(list.items.len() == usize::try_from(expected)?, "a list lost objects");
        Ok(())
    };
    let first = meter.cost(list(ListParams::default(), objects)).await?;
    row("list for the first time, an object", first, objects)?;
    let again = async {
        for _ in 0..LISTS {
            list(ListParams::default(), objects).await?;
        }
        Ok(())
    };
    row("list again, an object", meter.cost(again).await?, LISTS * objects)?;
    let by_label = async {
        for _ in 0..LISTS {
            let params = ListParams::default().labels("kind=rare");
            list(params, objects.div_ceil(LABELLED)).await?;
        }
        Ok(())
    };
    row("list by label, an object", meter.cost(by_label).await?, LISTS * objects)?;
    let pages = async {
        let mut params = ListParams::default().limit(PAGE);
        loop {
            let page = api.list(&params).await?;
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(()),
            }
        }
    };
    row(&format!("list in pages of {PAGE}, an object"), meter.cost(pages).await?, objects)
}

/// What it costs to tell watchers of objects: the difference to the same creates that nobody watches.
async fn fan_out(client: &Client, meter: &Meter) -> anyhow::Result<()> {
    let api = in_namespace(client, "alone").await?;
    let alone = meter.cost(create(&api, "w", TOLD)).await?;
    let api = in_namespace(client, "watched").await?;
    let mut watches = Vec::new();
    for _ in 0..WATCHERS {
        let path = "/api/v1/namespaces/watched/configmaps?watch=1";
        let request = http::Request::get(path).body(kube::client::Body::empty())?;
        watches.push(client.send(request).await?.into_body());
    }
    let watched = async {
        create(&api, "w", TOLD).await?;
        let readers = watches.into_iter().map(|mut body| async move {
            let mut told = 0;
            while told < usize::try_from(TOLD)? {
                let frame =
                    body.frame().await.ok_or_else(|| anyhow::anyhow!("a watch ended"))??;
                let lines = frame.data_ref().into_iter().flatten();
                told += lines.filter(|byte| **byte == b'\n').count();
            }
            anyhow::Ok(())
        });
        try_join_all(readers).await?;
        Ok(())
    };
    let watched = meter.cost(watched).await?;
    let what = format!("delivery to one of {WATCHERS} watchers");
    row(&what, watched.saturating_sub(alone), WATCHERS * TOLD)
}
