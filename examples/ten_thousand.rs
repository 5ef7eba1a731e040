//! Measures what many apps cost: `APPS` of one replica are created in the sandbox's cluster (its API
//! server, its controllers, the operator under its own service account), and all have to come to rest.
//!
//! `cargo run --profile bench --example ten_thousand [APPS]`. Time is virtual, so nothing is waited for
//! and what it takes is work. Several numbers of apps run one after the other, each in a process of
//! its own memory: `ten_thousand 1000 10000`.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the machine's clock")]

use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, Resource};
use mimalloc::MiMalloc;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use simcluster::SimCluster;
use simcluster::User;
use simpleapp_operator::api::simpleapp::{self, Phase, SimpleApp};
use simpleapp_operator::kernel::clock::Clock;
use simpleapp_operator::kernel::ownership::FIELD_MANAGER;
use simpleapp_operator::ops::manifests;
use simpleapp_operator::run;

/// That of the program.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Apps of one namespace.
const PER_NAMESPACE: usize = 1000;

fn main() -> anyhow::Result<()> {
    let numbers: Vec<usize> = std::env::args()
        .skip(1)
        .map(|text| text.parse().with_context(|| format!("{text:?} is no number of apps")))
        .collect::<Result<_, _>>()?;
    match numbers.as_slice() {
        [] => measure(10_000),
        [one] => measure(*one),
        many => {
            let program = std::env::current_exe()?;
            for number in many {
                let status =
                    std::process::Command::new(&program).arg(number.to_string()).status()?;
                anyhow::ensure!(status.success(), "{number} apps: {status}");
            }
            Ok(())
        }
    }
}

fn measure(apps: usize) -> anyhow::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    let begin = Instant::now();
    let requests = runtime.block_on(settle(apps))?;
    let (wall, (cpu, peak)) = (begin.elapsed(), usage()?);
    let of_one = |amount: f64| Ok::<_, anyhow::Error>(amount / f64::from(u32::try_from(apps)?));
    writeln!(
        std::io::stdout(),
        "{apps:>7} apps  {:>7.2} s CPU  {:>6.2} ms/app  {:>5.1} requests/app  {:>7.2} s wall  {:>6} MiB peak",
        cpu.as_secs_f64(),
        of_one(cpu.as_secs_f64() * 1e3)?,
        of_one(f64::from(u32::try_from(requests)?))?,
        wall.as_secs_f64(),
        peak / 1024
    )?;
    Ok(())
}

/// Brings so many apps to rest; how many requests that takes is returned.
async fn settle(apps: usize) -> anyhow::Result<usize> {
    let definition = serde_json::to_value(simpleapp::definition())?;
    let cluster = SimCluster::builder().crd(definition).start().context("start a cluster")?;
    install(&cluster.client()).await?;
    let user = User::service_account(manifests::NAMESPACE, FIELD_MANAGER);
    let clock = cluster.clock();
    let config = run::Config {
        clock: Clock::new(move || clock.now()),
        watch_namespaces: Vec::new(),
        operator_namespace: Some(manifests::NAMESPACE.to_owned()),
        instance: FIELD_MANAGER.to_owned(),
        cleanup_timeout: Duration::from_mins(5),
        concurrency: 16,
        shutdown_timeout: Duration::from_secs(5),
        dry_run: false,
    };
    let operator = run::run(cluster.client_without_retry(user), config, std::future::pending());
    let operator = tokio::spawn(operator);
    let client = cluster.client();
    for number in 0..apps {
        let namespace = format!("team-{}", number / PER_NAMESPACE);
        if number.is_multiple_of(PER_NAMESPACE) {
            let object = json!({ "metadata": { "name": namespace } });
            create::<Namespace>(Api::all(client.clone()), serde_json::from_value(object)?).await?;
        }
        let app = json!({
            "apiVersion": format!("{}/{}", simpleapp::GROUP, simpleapp::VERSION), "kind": simpleapp::KIND,
            "metadata": { "name": format!("app-{number}") },
            "spec": { "image": "nginx:1.27", "replicas": 1, "port": 8080 },
        });
        let api = Api::namespaced(client.clone(), &namespace);
        create::<SimpleApp>(api, serde_json::from_value(app)?).await?;
    }
    cluster.settle().await?;
    let all = Api::<SimpleApp>::all(client).list(&ListParams::default()).await?;
    let available = all.items.iter().filter(|app| {
        app.status.as_ref().is_some_and(|status| status.phase == Some(Phase::Available))
    });
    anyhow::ensure!(available.count() == apps, "not all apps became available");
    operator.abort();
    Ok(cluster.position())
}

/// Installs what the operator needs beside the CRD.
async fn install(client: &Client) -> anyhow::Result<()> {
    let files = manifests::files();
    let file = |path: &str| files.get(path).map(String::as_str).unwrap_or_default();
    let read = |path: &str| file(path);
    let namespace: Namespace = serde_saphyr::from_str(read("manager/namespace.yaml"))?;
    create(Api::all(client.clone()), namespace).await?;
    let account: ServiceAccount = serde_saphyr::from_str(read("rbac/service_account.yaml"))?;
    create(Api::namespaced(client.clone(), manifests::NAMESPACE), account).await?;
    let role: ClusterRole = serde_saphyr::from_str(read("rbac/cluster_role.yaml"))?;
    create(Api::all(client.clone()), role).await?;
    let binding: ClusterRoleBinding =
        serde_saphyr::from_str(read("rbac/cluster_role_binding.yaml"))?;
    create(Api::all(client.clone()), binding).await
}

async fn create<K>(api: Api<K>, object: K) -> anyhow::Result<()>
where
    K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    api.create(&PostParams::default(), &object).await?;
    Ok(())
}

/// CPU time and peak memory (KiB) of this process, as Linux tells.
fn usage() -> anyhow::Result<(Duration, u64)> {
    /// Linux counts CPU time for programs in hundredths of a second, whatever the kernel does inside.
    const TICKS_PER_SECOND: u64 = 100;
    let stat = std::fs::read_to_string("/proc/self/stat").context("this needs Linux")?;
    // The second field is a name in parentheses that may hold anything.
    let (_, fields) = stat.rsplit_once(')').context("/proc/self/stat has another form")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
    let ticks: u64 = ticks.sum::<Result<u64, _>>()?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|text| text.trim().strip_suffix("kB")).context("no VmHWM")?;
    Ok((Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND), peak.trim().parse()?))
}
