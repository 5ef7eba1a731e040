//! The simulated and the real server over HTTPS, each in processes of its own.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;
use simcluster::SimCluster;
use simcluster::env::{self, Needs};

use crate::in_process::{map, micros};
use crate::{machine, say};

/// Argument of the process that serves a simulated cluster.
pub(crate) const SERVE: &str = "--serve";
/// Argument of the process that measures the cluster that `TEST_CLUSTER` names.
pub(crate) const MEASURE: &str = "--measure";

/// What measures need so that hundredths of a second of CPU time are fine enough.
const LISTS: u32 = 20;

/// Serves a bare cluster until standard input ends; its kubeconfig goes to standard output.
pub(crate) fn serve() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let cluster = SimCluster::builder().controllers(false).real_time().start()?;
        let served = cluster.serve("127.0.0.1:0").await?;
        let config = served.kubeconfig();
        writeln!(std::io::stdout(), "{config}\0")?;
        tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
        Ok(())
    })
}

/// Measures both servers and prints them side by side.
pub(crate) fn compare(objects: u32) -> anyhow::Result<()> {
    let simulated = measured("sim", objects)?;
    let real = match std::env::var_os("KUBEBUILDER_ASSETS") {
        Some(_) => measured("control-plane", objects)?,
        None => BTreeMap::new(),
    };
    say(&format!("{:<32} {:>10} {:>10} {:>8}", "", "simulated", "real", "ratio"))?;
    for (what, ours) in &simulated {
        match real.get(what) {
            Some(theirs) => {
                let ratio = theirs / ours.max(0.01);
                say(&format!("{what:<32} {ours:>10.1} {theirs:>10.1} {ratio:>7.1}x"))?;
            }
            None => say(&format!("{what:<32} {ours:>10.1} {:>10}", "-"))?,
        }
    }
    if real.is_empty() {
        say("KUBEBUILDER_ASSETS is not set: no real server was measured.")?;
    }
    Ok(())
}

/// Runs the measures of a cluster in a process of their own.
fn measured(backend: &str, objects: u32) -> anyhow::Result<BTreeMap<String, f64>> {
    let output = Command::new(std::env::current_exe()?)
        .args([MEASURE, &objects.to_string()])
        .env("TEST_CLUSTER", backend)
        .stderr(Stdio::inherit())
        .output()?;
    anyhow::ensure!(output.status.success(), "measuring {backend}: {}", output.status);
    let text = String::from_utf8(output.stdout)?;
    let row = |line: &str| {
        let (what, number) = line.split_once('\t')?;
        Some((what.to_owned(), number.parse().ok()?))
    };
    Ok(text.lines().filter_map(row).collect())
}

/// Measures the cluster that `TEST_CLUSTER` names, and prints a line for each measure.
pub(crate) fn measure(objects: u32) -> anyhow::Result<()> {
    if std::env::var("TEST_CLUSTER").is_ok_and(|name| name == "sim") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        return runtime.block_on(measure_simulated(objects));
    }
    let mut outcome = Ok(());
    env::run(&Needs::default(), async |cluster| {
        outcome = requests(cluster.client(), objects).await;
    });
    outcome
}

async fn measure_simulated(objects: u32) -> anyhow::Result<()> {
    let begin = Instant::now();
    let mut server = Command::new(std::env::current_exe()?)
        .arg(SERVE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut output = server.stdout.take().context("standard output was asked for")?;
    let mut text = Vec::new();
    let mut byte = [0];
    while output.read(&mut byte)? == 1 && byte != [0] {
        text.extend(byte);
    }
    let kubeconfig = Kubeconfig::from_yaml(&String::from_utf8(text)?)?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    let client = Client::try_from(config)?;
    row("start, until it answers (wall)", begin.elapsed(), 1)?;
    requests(client, objects).await?;
    drop(server.stdin.take());
    server.wait()?;
    Ok(())
}

fn row(what: &str, took: Duration, count: u32) -> anyhow::Result<()> {
    say(&format!("{what}\t{}", micros(took, count)))
}

/// CPU time of the servers since an earlier look.
struct Meter(Duration);

impl Meter {
    fn start() -> anyhow::Result<Self> {
        machine::cpu_of_descendants().map(Self)
    }

    fn row(self, what: &str, count: u32) -> anyhow::Result<()> {
        row(what, machine::cpu_of_descendants()?.saturating_sub(self.0), count)
    }
}

async fn requests(client: Client, objects: u32) -> anyhow::Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace: Namespace = serde_json::from_value(json!({ "metadata": { "name": "bench" } }))?;
    namespaces.create(&PostParams::default(), &namespace).await?;
    let api: Api<ConfigMap> = Api::namespaced(client, "bench");
    // What happens once is not counted.
    api.list(&ListParams::default()).await?;
    let meter = Meter::start()?;
    for number in 0..objects {
        api.create(&PostParams::default(), &map(number)).await?;
    }
    meter.row("create", objects)?;
    let meter = Meter::start()?;
    for number in 0..objects {
        api.get(&format!("c-{number}")).await?;
    }
    meter.row("get", objects)?;
    let meter = Meter::start()?;
    for number in 0..objects {
        let patch = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": { "applied": number.to_string() },
        });
        let params = PatchParams::apply("bench");
        api.patch(&format!("c-{number}"), &params, &Patch::Apply(patch)).await?;
    }
    meter.row("apply", objects)?;
    let meter = Meter::start()?;
    for number in 0..objects {
        let mut changed = map(number);
        changed.data.get_or_insert_default().insert("updated".to_owned(), String::new());
        api.replace(&format!("c-{number}"), &PostParams::default(), &changed).await?;
    }
    meter.row("update", objects)?;
    let meter = Meter::start()?;
    api.list(&ListParams::default()).await?;
    meter.row("list, the first time, an object", objects)?;
    let meter = Meter::start()?;
    for _ in 0..LISTS {
        let list = api.list(&ListParams::default()).await?;
        anyhow::ensure!(list.items.len() >= usize::try_from(objects)?, "a list lost objects");
    }
    meter.row("list again, an object", LISTS * objects)?;
    let meter = Meter::start()?;
    for _ in 0..LISTS {
        api.list(&ListParams::default().labels("kind=rare")).await?;
    }
    meter.row("list by label, an object", LISTS * objects)
}
