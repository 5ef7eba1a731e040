//! The simulated and the real server over HTTPS, in processes of their own.
#![expect(
    clippy::disallowed_methods,
    reason = "how long a start takes is told by the machine's clock"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::Context as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use simcluster::env::{self, Needs};

use crate::in_process::bare;
use crate::machine;
use crate::table::{memory_row, row};
use crate::workload::{self, Meter};

const METER: Meter =
    Meter { cpu: machine::cpu_of_descendants, memory: machine::memory_of_descendants };

/// Serves a bare cluster until standard input ends; its kubeconfig goes to standard output, up to a zero.
pub(crate) fn serve() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let cluster = bare()?;
        let served = cluster.serve("127.0.0.1:0").await?;
        let config = served.kubeconfig();
        write!(std::io::stdout(), "{config}\0")?;
        std::io::stdout().flush()?;
        tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
        Ok(())
    })
}

/// Measures the cluster that `TEST_CLUSTER` names, and prints a row for each thing.
pub(crate) fn measure(objects: u32) -> anyhow::Result<()> {
    let begin = Instant::now();
    if std::env::var("TEST_CLUSTER").is_ok_and(|name| name == "sim") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        return runtime.block_on(simulated(begin, objects));
    }
    let mut outcome = Ok(());
    // A server alone, as the simulated one is.
    env::run(&Needs::default().only([]), async |cluster| {
        outcome = rows(&cluster.client(), begin, objects).await;
    });
    outcome
}

async fn simulated(begin: Instant, objects: u32) -> anyhow::Result<()> {
    let mut server = Command::new(std::env::current_exe()?)
        .arg(crate::SERVE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let output = server.stdout.take().context("standard output was asked for")?;
    let mut text = Vec::new();
    BufReader::new(output).read_until(0, &mut text)?;
    text.pop();
    let kubeconfig = Kubeconfig::from_yaml(&String::from_utf8(text)?)?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    rows(&Client::try_from(config)?, begin, objects).await?;
    drop(server.stdin.take());
    server.wait()?;
    Ok(())
}

async fn rows(client: &Client, begin: Instant, objects: u32) -> anyhow::Result<()> {
    client.apiserver_version().await?;
    row("start, by the clock", begin.elapsed(), 1)?;
    row("start", (METER.cpu)()?, 1)?;
    memory_row("memory at rest", (METER.memory)()?, 1)?;
    workload::run(client, objects, &METER).await
}
