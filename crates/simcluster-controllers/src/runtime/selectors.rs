//! Finds the objects whose label selectors may match, without asking each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Key;

/// Labels, or the pairs that a selector wants.
pub(crate) type Pairs = BTreeMap<String, String>;

/// The selectors of the objects of a kind. Many objects share few sets of label keys, so for a set of
/// labels only those sets are tried, and under each the values lead straight to the objects.
#[derive(Debug, Default)]
pub(crate) struct Selectors(Mutex<BTreeMap<String, Shapes>>);

/// The selectors of one namespace: by their label keys, then by the values wanted of those.
type Shapes = BTreeMap<Vec<String>, BTreeMap<Vec<String>, BTreeSet<Key>>>;

impl Selectors {
    /// The object of `key` no longer selects by `old` (if it did), but by `new` (if it does).
    pub(crate) fn replace(&self, key: &Key, old: Option<&Pairs>, new: Option<&Pairs>) {
        if old == new {
            return;
        }
        let mut namespaces = self.lock();
        if let Some(old) = old {
            remove(&mut namespaces, key, old);
        }
        if let Some(new) = new {
            let shapes = namespaces.entry(key.namespace.clone()).or_default();
            let (names, values) = shape(new);
            shapes.entry(names).or_default().entry(values).or_default().insert(key.clone());
        }
    }

    /// The objects of a namespace whose selectors want nothing but what these labels are.
    pub(crate) fn matching(&self, namespace: &str, labels: Option<&Pairs>) -> Vec<Key> {
        let namespaces = self.lock();
        let mut found: BTreeSet<&Key> = BTreeSet::new();
        for (names, by_values) in namespaces.get(namespace).into_iter().flatten() {
            let values = names.iter().map(|name| labels.and_then(|all| all.get(name)).cloned());
            let values: Option<Vec<String>> = values.collect();
            found.extend(values.and_then(|values| by_values.get(&values)).into_iter().flatten());
        }
        found.into_iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Shapes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn shape(pairs: &Pairs) -> (Vec<String>, Vec<String>) {
    (pairs.keys().cloned().collect(), pairs.values().cloned().collect())
}

/// Takes an object out, and what is empty then.
fn remove(namespaces: &mut BTreeMap<String, Shapes>, key: &Key, pairs: &Pairs) {
    let (names, values) = shape(pairs);
    let Some(shapes) = namespaces.get_mut(&key.namespace) else { return };
    let Some(by_values) = shapes.get_mut(&names) else { return };
    let Some(keys) = by_values.get_mut(&values) else { return };
    keys.remove(key);
    if keys.is_empty() {
        by_values.remove(&values);
    }
    if by_values.is_empty() {
        shapes.remove(&names);
    }
    if shapes.is_empty() {
        namespaces.remove(&key.namespace);
    }
}
