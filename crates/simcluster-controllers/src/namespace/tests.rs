#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::conditions::{Round, after};

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

#[test]
fn all_conditions_are_there_from_the_first_round() {
    let conditions = after(&[], &Round::default(), now()).unwrap();
    assert_eq!(conditions.len(), 5);
    assert!(conditions.iter().all(|one| one.status == "False"));
    assert_eq!(after(&conditions, &Round::default(), now()), None);
}

#[test]
fn what_remains_is_named_and_times_move_with_the_status_only() {
    let remaining = |count| Round {
        remaining: BTreeMap::from([("pods.".to_owned(), 2), ("a.example.com".to_owned(), count)]),
        ..Round::default()
    };
    let first = after(&[], &remaining(1), now()).unwrap();
    assert_eq!(first[3].reason.as_deref(), Some("SomeResourcesRemain"));
    let later = now() + SignedDuration::from_secs(9);
    let second = after(&first, &remaining(3), later).unwrap();
    assert_eq!(
        second[3].message.as_deref(),
        Some(
            "Some resources are remaining: a.example.com has 3 resource instances, pods. has 2 \
             resource instances"
        )
    );
    assert_eq!(second[3].last_transition_time, first[3].last_transition_time);
    let third = after(&second, &Round::default(), later).unwrap();
    assert_ne!(third[3].last_transition_time, first[3].last_transition_time);
}

#[test]
fn failures_are_told_in_order() {
    let round = Round { failures: vec!["b".to_owned(), "a".to_owned()], ..Round::default() };
    let conditions = after(&[], &round, now()).unwrap();
    assert_eq!(
        conditions[2].message.as_deref(),
        Some("Failed to delete all resource types, 2 remaining: a, b")
    );
}
