//! Measures the simulated cluster, and beside it a real kube-apiserver with etcd.
//!
//! `just bench [OBJECTS]`, or `cargo run --profile bench -p simcluster --example bench [OBJECTS]`. With
//! `KUBEBUILDER_ASSETS` (`hack/kube-assets/build` prints it) the real one is measured in the same run.
//! Compare ratios, not seconds: those are the machine's.
//!
//! - in process: what a test pays. Requests go through kube's client, watches are counted as lines.
//! - growth: the same work on ten and a hundred times as many objects. Linear cost shows as equal times
//!   for one object.
//! - served: CPU time of the server's processes for one request over HTTPS.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the machine's clock")]

#[path = "bench/in_process.rs"]
mod in_process;
#[path = "bench/machine.rs"]
mod machine;
#[path = "bench/served.rs"]
mod served;

use std::io::Write as _;

use anyhow::Context as _;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [served::SERVE] => return served::serve(),
        [served::MEASURE, objects] => return served::measure(objects.parse()?),
        _ => {}
    }
    let objects: u32 = match arguments.first() {
        Some(text) => text.parse().context("OBJECTS must be a number")?,
        None => 10_000,
    };
    say("in process")?;
    in_process::run(objects)?;
    say("\ngrowth: microseconds for one object")?;
    in_process::growth(&[objects / 10, objects, objects.saturating_mul(10)])?;
    say("\nserved: microseconds of the server's CPU for one")?;
    served::compare(objects.min(4_000))
}

/// Prints a line.
fn say(text: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{text}").context("standard output is closed")
}
