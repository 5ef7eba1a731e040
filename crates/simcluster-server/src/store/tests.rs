use std::time::Duration;

use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::json;

use super::*;

const KIND: &str = "example.com/widgets";

fn widget(name: &str, size: u32) -> Value {
    json!({ "metadata": { "name": name, "namespace": "n" }, "spec": { "size": size } })
}

fn store() -> Store {
    let mut store =
        Store::new(Clock::starting_at(jiff::Timestamp::UNIX_EPOCH), ServiceAllocator::default());
    store.register(KIND);
    store
}

fn names(store: &Store, namespace: &str, revision: u64) -> Vec<String> {
    let objects = store.list_at(KIND, namespace, revision).unwrap();
    objects.into_iter().map(|(key, _)| key).collect()
}

#[test]
fn every_write_makes_a_revision_and_objects_carry_it() {
    let mut store = store();
    let a = store.put(KIND, "n/a", widget("a", 1));
    let b = store.put(KIND, "n/b", widget("b", 1));
    assert_eq!(object::resource_version(&a), "1");
    assert_eq!(object::resource_version(&b), "2");
    store.remove(KIND, "n/a");
    assert_eq!(store.revision(), 3);
    assert!(store.remove(KIND, "n/a").is_none());
    assert_eq!(store.revision(), 3, "removing what is not there is no write");
}

#[test]
fn namespaces_are_listed_in_the_order_of_bytes() {
    let mut store = store();
    for key in ["n/x", "n-2/x", "n0/x", "m/x"] {
        store.put(KIND, key, json!({ "metadata": {} }));
    }
    assert_eq!(names(&store, "", 9), ["m/x", "n-2/x", "n/x", "n0/x"]);
    assert_eq!(names(&store, "n", 9), ["n/x"]);
}

#[test]
fn compacted_history_is_refused() {
    let mut store = store();
    for size in 0..4 {
        store.put(KIND, "n/a", widget("a", size));
    }
    store.compact(2);
    assert_eq!(store.list_at(KIND, "", 1).unwrap_err(), Compacted { oldest: 2 });
    assert_eq!(store.changes_after(KIND, 1, 9).unwrap_err(), Compacted { oldest: 2 });
    assert_eq!(store.changes_after(KIND, 2, 9).unwrap().len(), 2);
    assert_eq!(store.list_at(KIND, "", 2).unwrap().len(), 1);
}

#[test]
fn a_kind_that_comes_later_has_no_older_history() {
    let mut store = store();
    store.put(KIND, "n/a", widget("a", 1));
    store.register("example.com/gadgets");
    assert_eq!(
        store.changes_after("example.com/gadgets", 0, 9).unwrap_err(),
        Compacted { oldest: 1 }
    );
}

proptest! {
    /// The state at any revision is what the first writes up to it leave.
    #[test]
    fn older_states_are_what_they_were(
        writes in prop::collection::vec((0..4_u8, prop::bool::ANY), 1..40),
    ) {
        let mut store = store();
        let mut history = vec![BTreeMap::new()];
        for (index, (name, put)) in writes.into_iter().enumerate() {
            let key = format!("n/{name}");
            if put {
                store.put(KIND, &key, widget(&key, u32::try_from(index).unwrap()));
            } else {
                store.remove(KIND, &key);
            }
            let revision = usize::try_from(store.revision()).unwrap();
            let now: BTreeMap<String, Arc<Value>> =
                store.list_at(KIND, "", store.revision()).unwrap().into_iter().collect();
            if history.len() <= revision {
                history.push(now);
            }
        }
        for (revision, expected) in history.iter().enumerate() {
            let revision = u64::try_from(revision).unwrap();
            let actual: BTreeMap<String, Arc<Value>> =
                store.list_at(KIND, "", revision).unwrap().into_iter().collect();
            prop_assert_eq!(&actual, expected);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn history_grows_old() {
    let mut store = store();
    store.put(KIND, "n/a", widget("a", 1));
    tokio::time::advance(Duration::from_mins(4)).await;
    store.put(KIND, "n/a", widget("a", 2));
    assert_eq!(store.changes_after(KIND, 0, 9).unwrap().len(), 2);
    tokio::time::advance(Duration::from_mins(2)).await;
    store.put(KIND, "n/a", widget("a", 3));
    assert_eq!(store.changes_after(KIND, 0, 9).unwrap_err(), Compacted { oldest: 1 });
    assert_eq!(store.changes_after(KIND, 1, 9).unwrap().len(), 2, "these are not old yet");
}

#[test]
fn history_takes_no_more_than_its_share_of_memory() {
    let mut store = store();
    let large = "x".repeat(1 << 20);
    for _ in 0..100 {
        let object = json!({ "metadata": { "name": "a", "namespace": "n" }, "data": large });
        store.put(KIND, "n/a", object);
    }
    let Compacted { oldest } = store.changes_after(KIND, 0, 9).unwrap_err();
    assert!((30..50).contains(&oldest), "64 of 100 MiB are kept, not {}", 100 - oldest);
}

#[tokio::test(start_paused = true)]
async fn objects_go_an_hour_after_their_last_write() {
    let mut store = store();
    store.let_expire(KIND, SignedDuration::from_hours(1));
    store.put(KIND, "n/a", widget("a", 1));
    store.put(KIND, "n/b", widget("b", 1));
    tokio::time::advance(Duration::from_mins(40)).await;
    store.put(KIND, "n/b", widget("b", 2));
    tokio::time::advance(Duration::from_mins(40)).await;
    store.expire(KIND);
    assert_eq!(names(&store, "", store.revision()), ["n/b"]);
    assert_eq!(store.revision(), 4, "an object that goes is a change");
    store.expire(KIND);
    assert_eq!(store.revision(), 4);
}

proptest! {
    /// What a page starts from does not change what follows.
    #[test]
    fn a_list_from_a_key_is_the_rest_of_the_list(
        writes in prop::collection::vec(("[mn]/[a-d]", prop::bool::ANY), 1..30),
        from in "[lmno]?(/[a-e])?",
        namespace in "[mn]?",
        back in 0..10_u64,
        limit in 0..6_usize,
    ) {
        let mut store = store();
        for (key, put) in writes {
            if put {
                store.put(KIND, &key, widget(&key, 1));
            } else {
                store.remove(KIND, &key);
            }
        }
        let revision = store.revision().saturating_sub(back);
        let mut expected = store.list_at(KIND, &namespace, revision).unwrap();
        expected.retain(|(key, _)| *key >= from);
        // What is beyond the limit is counted, and not one object more is copied.
        let beyond = expected.split_off(limit.min(expected.len())).len();
        let page = store.list_from(KIND, &namespace, &from, revision, limit).unwrap();
        prop_assert_eq!(page, (expected, beyond));
    }
}
