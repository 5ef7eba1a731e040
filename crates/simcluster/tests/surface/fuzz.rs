//! Harmed requests find no panic, no abort, no failure that a real server has not, and nothing slow.
//!
//! `SEED=n` runs one stream of requests, which is printed as it runs with `--nocapture`.

use std::fmt::Write as _;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _};
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use simcluster::SimCluster;
use simcluster::User;

use crate::corpus;
use crate::mutate::Dice;
use crate::requests;

/// Requests to one cluster, before another one gets more.
const REQUESTS_PER_SEED: usize = 320;

/// CPU time of one answer; the debug build of a test takes ten times that of the program.
const CPU_MAX: Duration = Duration::from_secs(8);

/// Texts of failures with a code from 500 on: what is not supported (501), and what a real server, too,
/// answers in this way.
const FAILURES: [&str; 10] = [
    "simcluster does not support ",
    "strconv.ParseUint: parsing ",
    "resourceVersion should not be set on objects to be created",
    "failed to create typed patch object ",
    "Timeout: Too large resource version",
    "requested groups or a UID without impersonating a user",
    "content is not a list",
    "to proper version: ",
    "failed calling webhook ",
    "target.kind: Unsupported value: ",
];

/// Where something panicked, in whatever task.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[test]
fn harmed_requests_do_no_harm() {
    std::panic::set_hook(Box::new(|panic| {
        PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(panic.to_string());
    }));
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    // 10,240 requests in CI, which sets 256 cases; 1,280 by hand.
    let seeds = match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PROPTEST_CASES").unwrap_or(32).div_ceil(8),
    };
    let mut faults = String::new();
    for seed in seeds {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(stream(seed, &mut faults));
    }
    drop(std::panic::take_hook());
    assert!(faults.is_empty(), "{faults}");
}

async fn stream(seed: u64, faults: &mut String) {
    let mut dice = Dice::new(seed, "surface");
    let corpus = corpus::recorded();
    let cluster = SimCluster::builder().seed(seed).controllers(seed % 2 == 1).start().unwrap();
    for definition in corpus::definitions() {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let request = Request::post(path).body(Bytes::from(definition.to_string())).unwrap();
        assert_eq!(answer(&cluster, request).await.0, StatusCode::CREATED);
    }
    for index in 0..REQUESTS_PER_SEED {
        let Some(request) = requests::next(&mut dice, &corpus) else { continue };
        let shown = show(&request);
        eprintln!("SEED={seed} {index}: {shown}");
        let before = cpu_time();
        let (status, text) = answer(&cluster, request).await;
        let took = cpu_time().saturating_sub(before);
        let mut fault =
            |what: &str| writeln!(faults, "SEED={seed} {index}: {shown}\n  {what}").unwrap();
        for panic in PANICS.lock().unwrap().drain(..) {
            fault(&panic);
        }
        // Of a HEAD there is no text to tell by.
        let told = status.is_server_error() && !text.is_empty();
        if told && !FAILURES.iter().any(|known| text.contains(known)) {
            fault(&format!("{status} {text}"));
        }
        if took > CPU_MAX {
            fault(&format!("took {took:?} of CPU"));
        }
        if index % 16 == 0 {
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
    }
}

/// The answer, of a watch its beginning.
async fn answer(cluster: &SimCluster, request: Request<Bytes>) -> (StatusCode, String) {
    let admin = User::admin();
    let answering = AssertUnwindSafe(cluster.handle(&admin, request)).catch_unwind();
    let Ok(Ok(answer)) = answering.await else { return (StatusCode::OK, String::new()) };
    let status = answer.status();
    let mut frames = answer.into_body().into_data_stream().take(20);
    let mut body = Vec::new();
    while let Ok(Some(Ok(frame))) =
        tokio::time::timeout(Duration::from_millis(10), frames.next()).await
    {
        body.extend_from_slice(&frame);
    }
    (status, String::from_utf8_lossy(&body).into_owned())
}

fn show(request: &Request<Bytes>) -> String {
    let body: String = String::from_utf8_lossy(request.body()).chars().take(600).collect();
    format!("{} {} {:?} {body:?}", request.method(), request.uri(), request.headers())
}

/// CPU time of this thread, which does all the work.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or_default())
}
