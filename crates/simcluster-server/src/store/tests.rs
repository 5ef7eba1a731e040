use proptest::prelude::*;
use serde_json::json;

use super::*;

const KIND: &str = "example.com/widgets";

fn widget(name: &str, size: u32) -> Value {
    json!({ "metadata": { "name": name, "namespace": "n" }, "spec": { "size": size } })
}

fn store() -> Store {
    let mut store = Store::default();
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
