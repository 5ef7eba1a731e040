//! Rules and their counting, without a server.

use std::time::Duration;

use tokio::time::Instant;

use super::pace::Pace;
use super::rule::Placed;
use super::*;

fn request(verb: &str, resource: &str, name: &str) -> Request {
    Request {
        user: "ann".to_owned(),
        verb: verb.to_owned(),
        resource: resource.to_owned(),
        name: name.to_owned(),
        ordinal: 7,
        client_ordinal: 3,
        ..Request::default()
    }
}

#[test]
fn what_is_not_said_does_not_matter() {
    let patch = request("patch", "deployments", "web");
    for (on, expected) in [
        (On::any(), true),
        (On::writes(), true),
        (On::reads(), false),
        (On::any().verb("get").verb("patch"), true),
        (On::any().user("ann").name("web"), true),
        (On::any().user("bob"), false),
        (On::any().group("apps"), false),
        (On::any().resource("deployments").subresource(""), true),
        (On::any().subresource("status"), false),
        (On::any().namespace("a"), false),
        (On::any().ordinal(7).client_ordinal(3), true),
        (On::any().ordinal(8), false),
        (On::any().client_ordinal(7), false),
    ] {
        assert_eq!(on.matches(&patch), expected, "{on:?}");
    }
}

#[test]
fn a_rule_acts_as_often_as_it_says() {
    let check = |rule: Rule, expected: [bool; 4]| {
        let mut placed = Placed::new(1, rule.clone());
        let get = request("get", "pods", "a");
        let acts: Vec<bool> = (0..4).map(|_| placed.act(Stage::Request, &get).is_some()).collect();
        assert_eq!(acts, expected, "{rule:?}");
        assert_eq!(placed.act(Stage::Reply, &get), None);
    };
    let rule = || Rule::request(On::reads(), Effect::Reset);
    check(rule(), [true, false, false, false]);
    check(rule().skip(1).times(2), [false, true, true, false]);
    check(rule().always(), [true; 4]);
    check(rule().skip(3).always(), [false, false, false, true]);
}

#[test]
fn a_view_is_older_only_where_that_is_good_enough() {
    let old = View(Some(5));
    assert_eq!(old.revision(9, None), 9);
    assert_eq!(old.revision(9, Some(0)), 5);
    assert_eq!(old.revision(9, Some(5)), 5);
    assert_eq!(old.revision(9, Some(6)), 9);
    assert_eq!(old.revision(3, Some(0)), 3);
    assert_eq!(View::HEAD.revision(9, Some(0)), 9);
}

#[tokio::test(start_paused = true)]
async fn a_moment_holds_so_many_equal_requests() {
    let mut pace = Pace::default();
    let patch = request("patch", "deployments", "web");
    let now = Instant::now();
    for _ in 0..2_000 {
        assert_eq!(pace.count(now, &patch), None);
    }
    let what = pace.count(now, &patch).unwrap();
    assert_eq!(what, "ann: patch deployments /web");
    assert_eq!(pace.count(now, &request("patch", "deployments", "other")), None);
    let later = now + Duration::from_secs(1);
    assert!(pace.count(later, &patch).is_some(), "who ran away once pays from then on");
}

#[tokio::test(start_paused = true)]
async fn time_that_moves_starts_the_count_anew() {
    let mut pace = Pace::default();
    let list = request("get", "pods", "a");
    let mut now = Instant::now();
    for _ in 0..10 {
        for _ in 0..2_000 {
            assert_eq!(pace.count(now, &list), None);
        }
        now += Duration::from_millis(1);
    }
}
