//! What the machine tells of time and memory.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::Context as _;

/// Linux counts CPU time for programs in hundredths of a second, whatever the kernel does inside.
const TICK: Duration = Duration::from_millis(10);

/// Memory that this process uses, in MiB.
pub(crate) fn memory() -> anyhow::Result<u64> {
    let status = fs::read_to_string("/proc/self/status").context("this needs Linux")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1024)
}

/// CPU time that the processes under this one have used.
pub(crate) fn cpu_of_descendants() -> anyhow::Result<Duration> {
    let mut processes: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for entry in fs::read_dir("/proc").context("this needs Linux")? {
        let Ok(pid) = entry?.file_name().to_string_lossy().parse::<u32>() else { continue };
        // A process may end at any time.
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        // The second field is a name in parentheses that may hold anything.
        let Some((_, fields)) = stat.rsplit_once(')') else { continue };
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let number = |position: usize| fields.get(position)?.parse::<u32>().ok();
        if let (Some(parent), Some(user), Some(system)) = (number(1), number(11), number(12)) {
            processes.insert(pid, (parent, user + system));
        }
    }
    let own = std::process::id();
    let is_below = |mut pid: u32| {
        while let Some((parent, _)) = processes.get(&pid) {
            if *parent == own {
                return true;
            }
            pid = *parent;
        }
        false
    };
    let ticks = processes.iter().filter(|(pid, _)| is_below(**pid)).map(|(_, (_, ticks))| ticks);
    Ok(TICK * ticks.sum::<u32>())
}
