#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference};
use proptest::prelude::{Strategy, prop_assert_eq, proptest};
use serde_json::json;
use std::sync::Arc;

use super::queue::{Next, Queue, retry_delay};
use super::recorder::{Correlator, Note, Severity, Times};
use super::{Key, OwnWrites, Selectors, Store, Written};

fn map(name: &str, version: u64) -> ConfigMap {
    serde_json::from_value(json!({
        "metadata": { "name": name, "namespace": "n", "uid": name, "resourceVersion": version.to_string() },
    }))
    .unwrap()
}

#[tokio::test(start_paused = true)]
async fn keys_come_once_and_in_order() {
    let queue = Queue::new();
    for key in ["b", "a", "b"] {
        queue.add(key);
    }
    assert_eq!(queue.next().await, "b");
    queue.add("b");
    queue.done("b", Ok(Next::Done));
    assert_eq!(queue.next().await, "a");
    queue.done("a", Ok(Next::Done));
    assert_eq!(queue.next().await, "b", "it was asked for again while it ran");
}

#[tokio::test(start_paused = true)]
async fn a_later_pass_replaces_the_timer() {
    let queue = Queue::new();
    queue.add("a");
    let key = queue.next().await;
    queue.done(key, Ok(Next::After(Duration::from_mins(1))));
    queue.add("a");
    let key = queue.next().await;
    queue.done(key, Ok(Next::Done));
    assert_eq!(super::Load::work(&queue).next, None);
}

#[tokio::test(start_paused = true)]
async fn failures_back_off_and_success_forgets_them() {
    let queue = Queue::new();
    queue.add("a");
    let begin = tokio::time::Instant::now();
    for _ in 0..3 {
        let key = queue.next().await;
        queue.done(key, Err(()));
    }
    queue.next().await;
    assert_eq!(begin.elapsed(), Duration::from_millis(5 + 10 + 20));
    assert_eq!(retry_delay(60), Duration::from_secs(1000));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_waits_is_let_go_by_news_of_it() {
    let queue = Queue::new();
    queue.add("a");
    let key = queue.next().await;
    queue.let_go(&"a");
    queue.done(key, Ok(Next::Wait));
    let key = queue.next().await;
    queue.done(key, Ok(Next::Wait));
    queue.let_go(&"b");
    assert_eq!(super::Load::work(&queue).busy, 0);
    queue.let_go(&"a");
    let key = queue.next().await;
    queue.let_all_go();
    queue.done(key, Ok(Next::Wait));
    let key = queue.next().await;
    queue.done(key, Ok(Next::Wait));
    queue.let_all_go();
    assert_eq!(queue.next().await, "a");
}

fn written(version: u64) -> Written {
    serde_json::from_value(json!({ "metadata": { "resourceVersion": version.to_string() } }))
        .unwrap()
}

#[test]
fn own_writes_count_until_they_are_heard_of() {
    let store = Arc::new(Store::new(|_: &ConfigMap| Vec::new()));
    let (own, key) = (OwnWrites::default(), Key::new("n", "owner"));
    own.wrote(&key, &store, &written(7));
    assert!(!own.all_heard(&key));
    store.insert(Arc::new(map("other", 6)));
    assert!(!own.all_heard(&key));
    store.insert(Arc::new(map("other", 8)));
    assert!(own.all_heard(&key), "what came later shows that all before was heard");
    own.deleted(&key, &store, &map("other", 8));
    assert!(!own.all_heard(&key));
    store.remove(&map("other", 9));
    assert!(own.all_heard(&key));
}

#[test]
fn a_list_that_began_after_a_write_shows_it() {
    let store = Arc::new(Store::new(|_: &ConfigMap| Vec::new()));
    let (own, key) = (OwnWrites::default(), Key::new("n", "owner"));
    own.wrote(&key, &store, &written(7));
    store.begin_list();
    store.insert(Arc::new(map("b", 9)));
    assert!(!own.all_heard(&key), "a page is no proof");
    store.end_list(&[Key::new("n", "b")].into());
    assert!(own.all_heard(&key));
}

#[test]
fn events_are_counted_merged_and_limited() {
    let mut correlator = Correlator::new("test", Times::default());
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let note = |message: &str| Note {
        object: ObjectReference {
            name: Some("x".to_owned()),
            namespace: Some("n".to_owned()),
            ..ObjectReference::default()
        },
        severity: Severity::Normal,
        reason: "R".to_owned(),
        message: message.to_owned(),
    };
    let first = correlator.next(&note("m"), start).unwrap();
    assert_eq!((first.again, first.event.count), (false, Some(1)));
    let second = correlator.next(&note("m"), start).unwrap();
    assert_eq!((second.again, second.event.count), (true, Some(2)));
    assert_eq!(second.event.metadata.name, first.event.metadata.name);
    let name = first.event.metadata.name.unwrap();
    assert_eq!(name.len(), "x.".len() + 16, "{name}");
    let others: Vec<_> = (0..30)
        .filter_map(|number| correlator.next(&note(&format!("m{number}")), start))
        .map(|write| write.event.message.unwrap())
        .collect();
    assert_eq!(others.len(), 23, "25 in a burst");
    assert!(!others[7].starts_with("(combined"));
    assert!(others[8].starts_with("(combined from similar events): m8"), "{}", others[8]);
    let later = start + SignedDuration::from_mins(5);
    assert!(correlator.next(&note("late"), later).is_some());
    assert!(correlator.next(&note("late"), later).is_none());
}

/// Few keys and values, so that selectors and labels often meet.
fn pairs() -> impl Strategy<Value = BTreeMap<String, String>> {
    proptest::collection::btree_map("[abc]", "[xy]", 0..=3)
}

proptest! {
    #[test]
    fn selectors_find_what_asking_each_finds(
        changes in proptest::collection::vec((0..4_u8, "[mn]", proptest::option::of(pairs())), 0..40),
        labels in pairs(),
    ) {
        let index = Selectors::default();
        let mut all: BTreeMap<Key, BTreeMap<String, String>> = BTreeMap::new();
        for (name, namespace, selector) in changes {
            let key = Key::new(&namespace, &name.to_string());
            let old = match selector.clone() {
                Some(new) => all.insert(key.clone(), new),
                None => all.remove(&key),
            };
            index.replace(&key, old.as_ref(), selector.as_ref());
        }
        for namespace in ["m", "n", "o"] {
            let selects = |selector: &BTreeMap<String, String>| {
                selector.iter().all(|(key, value)| labels.get(key) == Some(value))
            };
            let asked = all.iter().filter(|(key, selector)| key.namespace == namespace && selects(selector));
            let asked: Vec<Key> = asked.map(|(key, _)| key.clone()).collect();
            prop_assert_eq!(index.matching(namespace, Some(&labels)), asked);
        }
    }

    #[test]
    fn groups_hold_what_the_index_says_of_each_object(
        changes in proptest::collection::vec((0..6_u8, proptest::option::of(pairs())), 0..40),
    ) {
        fn groups(map: &ConfigMap) -> Vec<String> {
            let labels = map.metadata.labels.iter().flatten();
            labels.map(|(key, value)| format!("{key}{value}")).collect()
        }
        let store = Store::new(groups);
        for (version, (name, labels)) in (1..).zip(changes) {
            let mut object = map(&name.to_string(), version);
            match labels {
                Some(labels) => {
                    object.metadata.labels = Some(labels);
                    store.insert(Arc::new(object));
                }
                None => drop(store.remove(&object)),
            }
        }
        for group in ["ax", "ay", "bx", "by", "cx", "cy"] {
            let mut scanned = store.all();
            scanned.retain(|map| groups(map).contains(&group.to_owned()));
            prop_assert_eq!(&store.group(group), &scanned);
            for other in ["ax", "by"] {
                let mut both = store.smallest_group([group.to_owned(), other.to_owned()]);
                both.retain(|map| groups(map).contains(&group.to_owned()));
                both.retain(|map| groups(map).contains(&other.to_owned()));
                let mut expected = scanned.clone();
                expected.retain(|map| groups(map).contains(&other.to_owned()));
                prop_assert_eq!(both, expected);
            }
        }
    }
}
