//! What Linux tells of CPU time and memory.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

/// CPU time that this thread has used.
pub(crate) fn cpu_of_thread() -> anyhow::Result<Duration> {
    // The kernel brings the account up to date when a thread gives way.
    std::thread::yield_now();
    cpu_at(Path::new("/proc/thread-self"))
}

/// CPU time that the processes under this one have used.
pub(crate) fn cpu_of_descendants() -> anyhow::Result<Duration> {
    let mut sum = Duration::ZERO;
    for pid in descendants()? {
        let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        // A process or a thread may end at any time.
        sum += threads.flatten().flat_map(|thread| cpu_at(&thread.path())).sum::<Duration>();
    }
    Ok(sum)
}

/// Memory that this process uses, in KiB.
pub(crate) fn memory() -> anyhow::Result<u64> {
    memory_of(std::process::id())
}

/// Memory that the processes under this one use, in KiB.
pub(crate) fn memory_of_descendants() -> anyhow::Result<u64> {
    Ok(descendants()?.into_iter().flat_map(memory_of).sum())
}

fn cpu_at(dir: &Path) -> anyhow::Result<Duration> {
    let text = fs::read_to_string(dir.join("schedstat")).context("this needs Linux")?;
    let nanoseconds = text.split_whitespace().next().context("an empty schedstat")?;
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}

fn memory_of(pid: u32) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("this needs Linux")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}

fn descendants() -> anyhow::Result<Vec<u32>> {
    let mut parents: BTreeMap<u32, u32> = BTreeMap::new();
    for entry in fs::read_dir("/proc").context("this needs Linux")? {
        let Ok(pid) = entry?.file_name().to_string_lossy().parse::<u32>() else { continue };
        // A process may end at any time.
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        // The second field is a name in parentheses that may hold anything.
        let Some((_, fields)) = stat.rsplit_once(')') else { continue };
        if let Some(parent) = fields.split_whitespace().nth(1).and_then(|text| text.parse().ok()) {
            parents.insert(pid, parent);
        }
    }
    let own = std::process::id();
    let is_below = |pid: &u32| {
        std::iter::successors(parents.get(pid), |parent| parents.get(parent)).any(|pid| *pid == own)
    };
    Ok(parents.keys().copied().filter(is_below).collect())
}
