//! Remembers what a controller wrote until its caches have heard of it, so that a lagging watch never
//! makes it act twice.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kube::Resource;

use super::{Key, Store, Written};

type Check = Box<dyn Fn() -> bool + Send>;

/// The writes on behalf of each key that the caches may not show yet.
#[derive(Default)]
pub(crate) struct OwnWrites {
    open: Mutex<BTreeMap<Key, Vec<Check>>>,
}

impl OwnWrites {
    /// Remembers a create or update that was answered with `written`.
    pub(crate) fn wrote<K>(&self, on_behalf: &Key, store: &Arc<Store<K>>, written: &Written)
    where
        K: Resource + Send + Sync + 'static,
    {
        let (mark, store) = (store.mark(written), Arc::clone(store));
        self.push(on_behalf, Box::new(move || store.has_heard(mark)));
    }

    /// Remembers a delete: heard of once the object is marked, gone or another.
    pub(crate) fn deleted<K>(&self, on_behalf: &Key, store: &Arc<Store<K>>, object: &K)
    where
        K: Resource + Send + Sync + 'static,
    {
        let (key, uid, store) = (Key::of(object), object.meta().uid.clone(), Arc::clone(store));
        self.push(
            on_behalf,
            Box::new(move || {
                store.get(&key).is_none_or(|now| {
                    now.meta().uid != uid || now.meta().deletion_timestamp.is_some()
                })
            }),
        );
    }

    fn push(&self, on_behalf: &Key, check: Check) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.entry(on_behalf.clone()).or_default().push(check);
    }

    /// Whether the caches show all that was written on behalf of the key.
    pub(crate) fn all_heard(&self, on_behalf: &Key) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(checks) = open.get_mut(on_behalf) else { return true };
        checks.retain(|heard| !heard());
        let none_left = checks.is_empty();
        if none_left {
            open.remove(on_behalf);
        }
        none_left
    }

    /// Forgets a key whose object is gone.
    pub(crate) fn forget(&self, on_behalf: &Key) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(on_behalf);
    }
}
