//! Measures the simulated cluster, and beside it a real kube-apiserver with etcd.
//!
//! `just bench [OBJECTS]`, or `cargo run --profile bench -p simcluster --example bench [OBJECTS]`. With
//! `KUBEBUILDER_ASSETS` (`hack/kube-assets/build` prints it) the real one is measured in the same run.
//! All figures are CPU time, so that a busy machine changes them little; compare ratios all the same.
//!
//! - in process: what a test pays, kube's client included, for a tenth, all and ten times the objects.
//!   Linear cost shows as equal times for one object.
//! - served: what the server's processes pay for the same requests over HTTPS.
//!
//! Each column is measured by a process of its own, which prints its rows for the one that started it.

#[path = "bench/in_process.rs"]
mod in_process;
#[path = "bench/machine.rs"]
mod machine;
#[path = "bench/served.rs"]
mod served;
#[path = "bench/table.rs"]
mod table;
#[path = "bench/workload.rs"]
mod workload;

use anyhow::Context as _;

use crate::table::Table;

/// That of the sandbox.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Argument of the process that measures a cluster of its own.
const IN_PROCESS: &str = "--in-process";
/// Argument of the process that serves a simulated cluster.
const SERVE: &str = "--serve";
/// Argument of the process that measures the cluster that `TEST_CLUSTER` names.
const SERVED: &str = "--served";

/// More objects than this would take minutes.
const OBJECTS_MAX: u32 = 10_000;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [SERVE] => served::serve(),
        [IN_PROCESS, objects] => in_process::measure(objects.parse()?),
        [SERVED, objects] => served::measure(objects.parse()?),
        [] => compare(OBJECTS_MAX),
        [objects] => compare(objects.parse().context("OBJECTS must be a number")?),
        _ => anyhow::bail!("one argument at most: the number of objects"),
    }
}

/// Measures everything and prints it.
fn compare(objects: u32) -> anyhow::Result<()> {
    anyhow::ensure!((10..=OBJECTS_MAX).contains(&objects), "OBJECTS: 10 to {OBJECTS_MAX}");
    let mut grown = Table::new("in process");
    for size in [objects / 10, objects, objects * 10] {
        grown.measure(&format!("{size} objects"), &[IN_PROCESS, &size.to_string()], "sim")?;
    }
    grown.print()?;
    let mut both = Table::new("served over HTTPS");
    both.measure("simulated", &[SERVED, &objects.to_string()], "sim")?;
    if std::env::var_os("KUBEBUILDER_ASSETS").is_some() {
        both.measure("real", &[SERVED, &objects.to_string()], "control-plane")?;
    }
    both.print()?;
    if both.columns() == 1 {
        table::say("KUBEBUILDER_ASSETS is not set: no real server was measured.")?;
    }
    Ok(())
}
