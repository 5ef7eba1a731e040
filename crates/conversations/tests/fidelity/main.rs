//! Plays recorded conversations with a real API server against the simulated one.
//!
//! `fixtures/apiserver` holds the cases and what kube-apiserver answered. `CASE=SA04,SA05`
//! plays some of them. What may differ stands in `differs.yaml`, with the reason. `TEST_CLUSTER=control-plane` plays
//! them against a real server, to see that the player is true and the records are up to date.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod differs;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use conversations::{Case, Difference, Error, Liberties, Records, Target, play};
use simcluster::env::{self, Backend, Needs};

use crate::differs::{Differs, Reasons};

/// What came of one case.
enum Verdict {
    Equal,
    Differs(Vec<Difference>),
    Failed(String),
}

fn records() -> Records {
    Records::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/apiserver"))
}

#[test]
fn the_recorded_cases() {
    play_folders(&["cases", "webhooks"], std::env::var("CASE").ok().as_deref());
}

fn play_folders(folders: &[&str], only: Option<&str>) {
    let cases = records().cases(folders, only).unwrap();
    assert!(!cases.is_empty(), "no case is called {only:?}");
    let differs = differs::read();
    let simulated = Backend::from_environment().unwrap() == Backend::Sim;
    let allowed = if simulated { &differs.sim } else { &differs.real };
    let verdicts = play_all(&cases, &differs);

    let mut report = String::new();
    let mut wrong = 0;
    let mut groups: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (case, verdict) in cases.iter().zip(&verdicts) {
        let (equal, all) = groups.entry(group(&case.id)).or_default();
        *all += 1;
        *equal += usize::from(matches!(verdict, Verdict::Equal));
        let mut faults = judge(case, verdict, allowed);
        if simulated {
            faults.push_str(&stale(case, verdict, allowed));
        }
        if !faults.is_empty() {
            wrong += 1;
            writeln!(report, "{} ({})\n{faults}", case.id, case.title).unwrap();
        }
    }
    let counts: Vec<String> =
        groups.iter().map(|(group, (equal, all))| format!("{group} {equal}/{all}")).collect();
    let equal = verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Equal)).count();
    // Written past the test harness's capture, so that the figures are always seen.
    let summary = format!("{equal} of {} cases equal: {}\n", cases.len(), counts.join(", "));
    std::io::stderr().write_all(summary.as_bytes()).unwrap();
    assert!(wrong == 0, "{wrong} cases went wrong\n\n{report}{summary}");
}

/// The letters of a case's name.
fn group(id: &str) -> &str {
    id.split(|letter: char| letter.is_ascii_digit()).next().unwrap_or(id)
}

/// What differs and may not; empty if nothing does.
fn judge(case: &Case, verdict: &Verdict, allowed: &Reasons) -> String {
    let found = match verdict {
        Verdict::Equal => return String::new(),
        Verdict::Failed(text) => return format!("  failed: {text}\n"),
        Verdict::Differs(_) if allowed.contains_key(&case.id) => return String::new(),
        Verdict::Differs(found) => found,
    };
    let mut text = String::new();
    for Difference { step, line, places } in found {
        if !allowed.contains_key(&step_name(case, *step)) {
            let places: Vec<String> = places.iter().map(ToString::to_string).collect();
            let places = places.join("\n    ");
            writeln!(text, "  step {step}: {line}\n    {places}").unwrap();
        }
    }
    text
}

/// Entries of the list that no longer differ; empty if there are none.
fn stale(case: &Case, verdict: &Verdict, allowed: &Reasons) -> String {
    let found = match verdict {
        Verdict::Equal => &[],
        Verdict::Differs(found) => found.as_slice(),
        Verdict::Failed(_) => return String::new(),
    };
    let mut text = String::new();
    if found.is_empty() && allowed.contains_key(&case.id) {
        text.push_str("  is equal but listed in differs.yaml\n");
    }
    for step in 1..=case.steps.len() {
        let listed = allowed.contains_key(&step_name(case, step));
        if listed && found.iter().all(|difference| difference.step != step) {
            writeln!(text, "  step {step} is equal but listed in differs.yaml").unwrap();
        }
    }
    text
}

fn step_name(case: &Case, step: usize) -> String {
    format!("{} step {step}", case.id)
}

/// Plays the cases on all cores; a case is a cluster, a thread and a runtime of its own.
fn play_all(cases: &[Case], differs: &Differs) -> Vec<Verdict> {
    let next = AtomicUsize::new(0);
    let verdicts: Vec<Mutex<Option<Verdict>>> = cases.iter().map(|_| Mutex::new(None)).collect();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let verdict = play_case(case, differs);
                    let place = cases.iter().position(|other| std::ptr::eq(other, case)).unwrap();
                    *verdicts[place].lock().unwrap() = Some(verdict);
                }
            });
        }
    });
    verdicts.into_iter().map(|verdict| verdict.into_inner().unwrap().unwrap()).collect()
}

/// Plays a case on a cluster of its own, or in a namespace of its own on a real one.
fn play_case(case: &Case, differs: &Differs) -> Verdict {
    let unordered = |step: usize| {
        differs.unordered.contains_key(&case.id)
            || differs.unordered.contains_key(&step_name(case, step))
    };
    let hashes = differs.hashes.contains(&case.id);
    let brief = differs.sim.contains_key(&case.id);
    let liberties = Liberties { unordered: &unordered, hashes, brief };
    let found = Mutex::new(Ok(Vec::new()));
    let played = catch_unwind(AssertUnwindSafe(|| {
        let needs = Needs::default();
        let needs = if case.controllers { needs } else { needs.only([]) };
        env::run(&needs, async |cluster| {
            let namespace = cluster.namespace().await;
            if case.needs_real_time() && cluster.sim().is_some() {
                tokio::time::resume();
            }
            let target = Target::of(&cluster).await.unwrap();
            let differences = play(case, &records(), target, &namespace, &liberties).await;
            *found.lock().unwrap() = differences;
        });
    }));
    match played {
        Ok(()) => match found.into_inner().unwrap() {
            Ok(found) if found.is_empty() => Verdict::Equal,
            Ok(found) => Verdict::Differs(found),
            Err(error) => Verdict::Failed(chain(&error)),
        },
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Verdict::Failed(format!("panicked: {}", text.unwrap_or("with no text")))
        }
    }
}

/// An error and its causes.
fn chain(error: &Error) -> String {
    let first: &dyn std::error::Error = error;
    let causes = std::iter::successors(Some(first), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
