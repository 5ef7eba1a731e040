//! A control plane goes with the process that started it, however that ends.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use simcluster::env::{self, Backend, Needs};
use tokio::time::{Duration, sleep};

/// Set in the process that is killed.
const VICTIM: &str = "SIMCLUSTER_TEST_VICTIM";

/// Run by the test below in a process of its own: starts a control plane and waits to be killed.
#[test]
fn victim() {
    if std::env::var_os(VICTIM).is_none() {
        return;
    }
    env::run(&Needs::default(), async |cluster| {
        Api::<Namespace>::all(cluster.client()).get("default").await.unwrap();
        std::future::pending::<()>().await;
    });
}

#[test]
fn a_killed_test_leaves_nothing_behind() {
    if Backend::from_environment().unwrap() != Backend::ControlPlane {
        env::skipped("only a control plane of our own has something to leave behind");
        return;
    }
    let folder = std::env::temp_dir().join(format!("gone-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "gone::victim", "--nocapture"])
        .env(VICTIM, "1")
        .env("TMPDIR", &folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(victim.stdout.take().unwrap()).read_line(&mut line).unwrap();

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let state = wait("the state of a control plane", || {
            std::fs::read_dir(&folder).unwrap().next().map(|entry| entry.unwrap().path())
        })
        .await;
        let pids = wait("its programs", || {
            let pid = |name: &str| std::fs::read_to_string(state.join(name)).ok();
            Some([pid("etcd.pid")?, pid("kube-apiserver.pid")?])
        })
        .await;
        let alive = |pid: &str| Path::new("/proc").join(pid.trim()).exists();
        assert!(pids.iter().all(|pid| alive(pid)));
        victim.kill().unwrap();
        victim.wait().unwrap();
        wait("their end", || pids.iter().all(|pid| !alive(pid)).then_some(())).await;
        wait("the end of the state", || (!state.exists()).then_some(())).await;
    });
    std::fs::remove_dir(&folder).unwrap();
}

async fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(found) = look() {
            return found;
        }
        sleep(Duration::from_millis(50)).await;
    }
    panic!("{what}: not within 30 s");
}
