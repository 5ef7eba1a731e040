//! The loop that turns triggers into reconciles, in virtual time.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{StreamExt, channel::mpsc};
use kube::runtime::utils::Backoff as _;
use simpleapp_operator::kernel::{
    backoff::{self, WatchBackoff},
    error::ErrorClass,
    key::Key,
    work::{Limits, Trigger, Verdict, drive},
};
use tokio::time::Instant;

const LIMITS: Limits = Limits { concurrency: 2, drain: Duration::from_secs(10) };

fn key(name: &str) -> Key {
    Key::new("shop", name)
}

fn look(name: &str) -> Trigger {
    Trigger::Look(key(name))
}

/// What was done, and after how many milliseconds.
type Log = Arc<Mutex<Vec<(u128, String)>>>;

/// Feeds `triggers` (milliseconds, trigger) to a loop whose reconciles take `takes` and end as
/// `verdict` says, for `lasts`. Returns what was done.
async fn run(
    limits: Limits,
    triggers: Vec<(u64, Trigger)>,
    takes: Duration,
    lasts: Duration,
    verdict: impl Fn(&Key, usize) -> Verdict + Send + Sync + 'static,
) -> Vec<(u128, String)> {
    let start = Instant::now();
    let log = Log::default();
    let (sender, receiver) = mpsc::unbounded();
    let feed = tokio::spawn(async move {
        for (at, trigger) in triggers {
            tokio::time::sleep_until(start + Duration::from_millis(at)).await;
            sender.unbounded_send(trigger).unwrap();
        }
        std::future::pending::<()>().await;
        drop(sender);
    });
    let verdict = Arc::new(verdict);
    let reconcile = |key: Key| {
        let (log, verdict) = (log.clone(), verdict.clone());
        async move {
            let number = {
                let mut log = log.lock().unwrap();
                log.push((start.elapsed().as_millis(), key.name.clone()));
                log.iter().filter(|(_, name)| *name == key.name).count()
            };
            tokio::time::sleep(takes).await;
            verdict(&key, number)
        }
    };
    drive(receiver.boxed(), reconcile, limits, tokio::time::sleep(lasts)).await;
    feed.abort();
    let log = log.lock().unwrap();
    log.clone()
}

fn times(log: &[(u128, String)]) -> Vec<u128> {
    log.iter().map(|(at, _)| *at).collect()
}

fn names(log: &[(u128, String)]) -> Vec<&str> {
    log.iter().map(|(_, name)| name.as_str()).collect()
}

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_hours(1);

#[tokio::test(start_paused = true)]
async fn nothing_happens_before_the_caches_are_complete() {
    let triggers = vec![(0, look("b")), (1, look("a")), (500, Trigger::Synced)];
    let log = run(LIMITS, triggers, Duration::ZERO, HOUR, |_, _| Verdict::Done(None)).await;
    assert_eq!(times(&log), [500, 500]);
    assert_eq!(names(&log), ["b", "a"], "in order of arrival");
}

#[tokio::test(start_paused = true)]
async fn many_triggers_are_one_reconcile() {
    let mut triggers: Vec<_> = (0..100).map(|_| (0, look("a"))).collect();
    triggers.push((0, Trigger::Synced));
    let log = run(LIMITS, triggers, Duration::ZERO, HOUR, |_, _| Verdict::Done(None)).await;
    assert_eq!(log.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn never_two_at_once_for_one_object_and_none_is_lost() {
    let triggers = vec![(0, Trigger::Synced), (0, look("a")), (100, look("a")), (200, look("a"))];
    let log = run(LIMITS, triggers, SECOND, HOUR, |_, _| Verdict::Done(None)).await;
    assert_eq!(times(&log), [0, 1000]);
}

#[tokio::test(start_paused = true)]
async fn no_more_at_once_than_allowed() {
    let names = ["a", "b", "c", "d", "e"];
    let mut triggers = vec![(0, Trigger::Synced)];
    triggers.extend(names.map(|name| (0, look(name))));
    let log = run(LIMITS, triggers, SECOND, HOUR, |_, _| Verdict::Done(None)).await;
    assert_eq!(times(&log), [0, 0, 1000, 1000, 2000]);
}

#[tokio::test(start_paused = true)]
async fn a_noisy_object_starves_nobody() {
    let mut triggers = vec![(0, Trigger::Synced)];
    triggers.extend((0..20).map(|n| (0, look(&format!("quiet-{n:02}")))));
    triggers.extend((0..1000).map(|n| (n, look("noisy"))));
    let limits = Limits { concurrency: 1, ..LIMITS };
    let takes = Duration::from_millis(10);
    let log = run(limits, triggers, takes, HOUR, |_, _| Verdict::Done(None)).await;
    let last_quiet = log.iter().rposition(|(_, name)| name.starts_with("quiet")).unwrap();
    assert!(log[last_quiet].0 <= 210, "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn looked_at_again_when_that_was_asked_for() {
    let triggers = vec![(0, Trigger::Synced), (0, look("a"))];
    let again = |_: &Key, _| Verdict::Done(Some(Duration::from_secs(10)));
    let log = run(LIMITS, triggers, Duration::ZERO, Duration::from_secs(25), again).await;
    assert_eq!(times(&log), [0, 10_000, 20_000]);
}

#[tokio::test(start_paused = true)]
async fn failures_are_repeated_ever_less_often_until_one_success() {
    let triggers = vec![(0, Trigger::Synced), (0, look("a"))];
    let verdict = |_: &Key, number| {
        if number == 5 {
            return Verdict::Done(Some(Duration::ZERO));
        }
        let class = ErrorClass::Transient;
        Verdict::Failed { class, retry_after: None, at_most: None }
    };
    let log = run(LIMITS, triggers, Duration::ZERO, Duration::from_secs(19), verdict).await;
    let waits: Vec<u128> = times(&log).windows(2).map(|pair| pair[1] - pair[0]).collect();
    // Up to a tenth more each; after the success from the start.
    let expected = [1000, 2000, 4000, 8000, 0, 1000, 2000];
    assert_eq!(waits.len(), expected.len(), "{waits:?}");
    for (wait, expected) in waits.into_iter().zip(expected) {
        assert!((expected..=expected * 11 / 10 + 1).contains(&wait), "{wait} for {expected}");
    }
}

#[test]
fn waits_are_bounded() {
    let wait =
        |class, failures, retry_after| backoff::wait(&key("a"), class, failures, retry_after);
    let most = Duration::from_mins(5);
    for class in [ErrorClass::Transient, ErrorClass::Conflict, ErrorClass::Refused, ErrorClass::Bug]
    {
        for failures in [0, 1, 2, 31, 32, 33, u32::MAX] {
            let wait = wait(class, failures, None);
            assert!(wait >= Duration::from_millis(100) && wait <= most + most / 10, "{wait:?}");
        }
    }
    let asked = Duration::from_mins(20);
    assert!(wait(ErrorClass::Transient, 1, Some(asked)) >= asked);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_shortens_a_wait() {
    let triggers = vec![(0, Trigger::Synced), (0, look("a"))];
    let verdict = |_: &Key, number| match number {
        1 => Verdict::Failed {
            class: ErrorClass::Refused,
            retry_after: None,
            at_most: Some(Duration::from_secs(3)),
        },
        _ => Verdict::Done(None),
    };
    let log = run(LIMITS, triggers, Duration::ZERO, HOUR, verdict).await;
    assert_eq!(times(&log), [0, 3000]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_gone_is_forgotten() {
    let triggers = vec![(0, Trigger::Synced), (0, look("a")), (500, Trigger::Gone(key("a")))];
    let class = ErrorClass::Transient;
    let fail = move |_: &Key, _| Verdict::Failed { class, retry_after: None, at_most: None };
    let log = run(LIMITS, triggers, Duration::ZERO, HOUR, fail).await;
    assert_eq!(log.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_panic_takes_nobody_down() {
    let triggers =
        vec![(0, Trigger::Synced), (0, look("bad")), (0, look("good")), (40_000, look("good"))];
    let verdict = |key: &Key, number| {
        assert!(key.name != "bad" || number > 1, "an object that we stumble over");
        Verdict::Done(None)
    };
    let log = run(LIMITS, triggers, Duration::ZERO, HOUR, verdict).await;
    assert_eq!(names(&log), ["bad", "good", "bad", "good"]);
}

#[tokio::test(start_paused = true)]
async fn at_the_end_nothing_new_begins_and_what_runs_may_finish() {
    let start = Instant::now();
    let mut triggers = vec![(0, Trigger::Synced)];
    triggers.extend(["a", "b", "c"].map(|name| (0, look(name))));
    let log = run(LIMITS, triggers, 5 * SECOND, SECOND, |_, _| Verdict::Done(None)).await;
    assert_eq!(names(&log), ["a", "b"]);
    assert_eq!(start.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn at_the_end_nobody_is_waited_for_for_ever() {
    let start = Instant::now();
    let triggers = vec![(0, Trigger::Synced), (0, look("a"))];
    run(LIMITS, triggers, HOUR, SECOND, |_, _| Verdict::Done(None)).await;
    assert_eq!(start.elapsed().as_secs(), 11);
}

/// kube's watcher sends an event before each attempt at a list.
#[test]
fn a_watch_that_never_lists_waits_ever_longer() {
    let mut waits = WatchBackoff::default();
    let mut failed = || {
        let wait = waits.next().unwrap();
        waits.reset();
        wait
    };
    let seconds: Vec<f64> = (0..7).map(|_| failed().as_secs_f64()).collect();
    assert_eq!(seconds, [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0]);
    // The attempt, and what it brought.
    waits.reset();
    assert_eq!(waits.next(), Some(Duration::from_millis(800)));
}
