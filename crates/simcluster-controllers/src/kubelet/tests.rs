#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::container::Steps;
use super::image::{self, Life as Fate};
use super::life::Life;
use super::status;

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn at(milliseconds: i64) -> Timestamp {
    start() + SignedDuration::from_millis(milliseconds)
}

fn steps(_: &str) -> Steps {
    Steps {
        pull: Duration::from_millis(200),
        start: Duration::from_millis(100),
        ready: Duration::from_millis(100),
        run: Duration::from_millis(500),
    }
}

fn pod(spec: &Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": { "name": "p", "namespace": "default", "uid": "u", "generation": 1 },
        "spec": spec,
    }))
    .unwrap()
}

fn one(image: &str) -> Pod {
    pod(&json!({ "containers": [{ "name": "c", "image": image }] }))
}

/// What the container shows over time: each state once, with the second when it was first seen.
fn history(pod: &Pod, seconds: i64) -> Vec<(i64, String)> {
    let mut life = Life::new(pod, start(), steps);
    let mut seen: Vec<(i64, String)> = Vec::new();
    for tick in 0..seconds * 20 {
        let now = at(tick * 50);
        life.advance(now);
        let status = status::of(pod, &life, "1.2.3.4", now);
        let container = status.container_statuses.unwrap()[0].clone();
        let state = container.state.unwrap();
        let text = if let Some(waiting) = state.waiting {
            waiting.reason.unwrap()
        } else if state.running.is_some() {
            format!("running {}", container.restart_count)
        } else {
            format!("ended {}", state.terminated.unwrap().exit_code)
        };
        if seen.last().is_none_or(|(_, last)| *last != text) {
            seen.push((tick / 20, text));
        }
    }
    seen
}

#[test]
fn images_choose_their_lives() {
    let runs = |seconds| Fate::Runs { ready_after: Duration::from_secs(seconds) };
    let cases = [
        ("nginx", runs(0)),
        ("nginx:1.27", runs(0)),
        ("nginx:not-exist", Fate::NotFound),
        ("registry.local:5000/team/app:not-exist", Fate::NotFound),
        ("sim/crash:3", Fate::Crashes { starts: 3 }),
        ("docker.io/sim/crash:5", Fate::Crashes { starts: 5 }),
        ("sim/slow:30s", runs(30)),
        ("sim/slow:2m", runs(120)),
        ("sim/unready", Fate::NeverReady),
        ("sim/exit:7", Fate::Exits { code: 7 }),
        ("", Fate::Invalid),
        ("Upper/case", Fate::Invalid),
        ("a b", Fate::Invalid),
        ("nginx:", Fate::Invalid),
        ("nginx:a/b:c", Fate::Invalid),
        ("localhost/x_y/z-1.0", runs(0)),
    ];
    for (image, fate) in cases {
        assert_eq!(image::life(image), fate, "{image}");
    }
}

#[test]
fn full_names_have_registry_and_tag() {
    let cases = [
        ("nginx", "docker.io/library/nginx:latest"),
        ("team/app:1", "docker.io/team/app:1"),
        ("localhost:5000/app", "localhost:5000/app:latest"),
    ];
    for (image, name) in cases {
        assert_eq!(image::full_name(image), name);
    }
}

#[test]
fn a_container_is_created_and_runs() {
    let seen = history(&one("nginx"), 3);
    assert_eq!(seen, [(0, "ContainerCreating".to_owned()), (0, "running 0".to_owned())]);
}

#[test]
fn back_off_doubles_up_to_five_minutes() {
    let seen = history(&one("sim/crash:3"), 2000);
    let starts: Vec<i64> = seen
        .iter()
        .filter(|(_, state)| state.starts_with("running"))
        .map(|(second, _)| *second)
        .collect();
    let waits: Vec<i64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(waits[..2].iter().all(|wait| *wait <= 1), "{waits:?}");
    for (wait, expected) in waits[2..].iter().zip([10, 20, 40, 80, 160, 300, 300]) {
        assert!((expected..expected + 2).contains(wait), "{waits:?}");
    }
}

#[test]
fn a_pull_that_fails_is_tried_again_ever_more_rarely() {
    let seen = history(&one("nginx:not-exist"), 100);
    let tries: Vec<i64> = seen
        .iter()
        .filter(|(_, state)| state == "ErrImagePull")
        .map(|(second, _)| *second)
        .collect();
    let waits: Vec<i64> = tries.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!((10..12).contains(&waits[0]) && (20..22).contains(&waits[1]), "{waits:?}");
}

#[test]
fn init_containers_come_first_and_sidecars_stay() {
    let pod = pod(&json!({
        "initContainers": [
            { "name": "side", "image": "nginx", "restartPolicy": "Always" },
            { "name": "first", "image": "sim/exit:0" },
        ],
        "containers": [{ "name": "c", "image": "nginx" }],
    }));
    let mut life = Life::new(&pod, start(), steps);
    life.advance(at(0));
    let waiting = status::of(&pod, &life, "1.2.3.4", at(0));
    let initialized = &waiting.conditions.as_ref().unwrap()[1];
    assert_eq!(initialized.reason.as_deref(), Some("ContainersNotInitialized"));
    assert_eq!(waiting.phase.as_deref(), Some("Pending"));
    for tick in 0..100 {
        life.advance(at(tick * 50));
    }
    let running = status::of(&pod, &life, "1.2.3.4", at(5000));
    assert_eq!(running.phase.as_deref(), Some("Running"));
    assert!(running.conditions.unwrap().iter().all(|one| one.status == "True"));
    let init = running.init_container_statuses.unwrap();
    assert!(init[0].state.as_ref().unwrap().running.is_some());
    assert_eq!(init[1].state.as_ref().unwrap().terminated.as_ref().unwrap().exit_code, 0);
}

#[test]
fn a_pod_that_may_not_restart_ends() {
    for (image, phase) in [("sim/exit:0", "Succeeded"), ("sim/exit:3", "Failed")] {
        let pod = pod(&json!({
            "restartPolicy": "Never", "containers": [{ "name": "c", "image": image }],
        }));
        let mut life = Life::new(&pod, start(), steps);
        for tick in 0..100 {
            life.advance(at(tick * 50));
        }
        let status = status::of(&pod, &life, "1.2.3.4", at(5000));
        assert_eq!(status.phase.as_deref(), Some(phase));
        assert_eq!(life.next_change(at(5000)), None);
    }
}

#[test]
fn a_life_is_taken_up_from_the_status() {
    let mut pod = one("nginx");
    let mut life = Life::new(&pod, start(), steps);
    for tick in 0..20 {
        life.advance(at(tick * 50));
    }
    life.ip = Some("10.64.0.2".to_owned());
    pod.status = Some(status::of(&pod, &life, "1.2.3.4", at(1000)));
    let mut resumed = Life::new(&pod, at(60_000), steps);
    assert!(resumed.advance(at(60_000)).is_empty());
    assert!(status::is_same(&pod, &status::of(&pod, &resumed, "1.2.3.4", at(60_000))));
}

#[test]
fn readiness_gates_hold_a_pod_back() {
    let pod = pod(&json!({
        "readinessGates": [{ "conditionType": "example.com/ok" }],
        "containers": [{ "name": "c", "image": "nginx" }],
    }));
    let mut life = Life::new(&pod, start(), steps);
    for tick in 0..20 {
        life.advance(at(tick * 50));
    }
    let conditions = status::of(&pod, &life, "1.2.3.4", at(1000)).conditions.unwrap();
    assert_eq!(conditions[2].reason.as_deref(), Some("ReadinessGatesNotReady"));
    assert_eq!(conditions[3].status, "True");
}
