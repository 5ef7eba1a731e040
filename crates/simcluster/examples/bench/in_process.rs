//! The cluster in this process, as a test has it.

use simcluster::SimCluster;

use crate::machine;
use crate::table::row;
use crate::workload::{self, Meter};

/// How often a cluster is started.
const STARTS: u32 = 20;

/// A cluster without controllers.
pub(crate) fn bare() -> anyhow::Result<SimCluster> {
    Ok(SimCluster::builder().controllers(false).real_time().start()?)
}

/// Measures all that this process can measure, and prints a row for each thing.
pub(crate) fn measure(objects: u32) -> anyhow::Result<()> {
    // Everything runs on this thread.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let begin = machine::cpu_of_thread()?;
        let cluster = bare()?;
        let started = machine::cpu_of_thread()?;
        row("start, the first in a process", started.saturating_sub(begin), 1)?;
        for _ in 0..STARTS {
            bare()?;
        }
        row("start", machine::cpu_of_thread()?.saturating_sub(started), STARTS)?;
        let meter = Meter { cpu: machine::cpu_of_thread, memory: machine::memory };
        workload::run(&cluster.client(), objects, &meter).await
    })
}
