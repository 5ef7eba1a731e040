//! Objects that do not stay: Events go an hour after they were last written (`--event-ttl`), by leases
//! of etcd.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

use super::Store;
use simcluster_model::object;

/// When the objects of a kind end.
#[derive(Debug)]
pub(super) struct Expiry {
    lifetime: SignedDuration,
    /// End, key and revision of each write, in order: all live equally long.
    ends: VecDeque<(Timestamp, String, u64)>,
}

impl Expiry {
    /// A write of an object makes its life begin anew.
    pub(super) fn begin(&mut self, key: &str, revision: u64, now: Timestamp) {
        let end = now.checked_add(self.lifetime).unwrap_or(Timestamp::MAX);
        self.ends.push_back((end, key.to_owned(), revision));
    }

    fn next(&mut self, now: Timestamp) -> Option<(String, u64)> {
        self.ends.front().filter(|(end, _, _)| *end <= now)?;
        self.ends.pop_front().map(|(_, key, revision)| (key, revision))
    }
}

impl Store {
    /// From now on the objects of a kind go so long after they were last written.
    pub fn let_expire(&mut self, kind: &str, lifetime: SignedDuration) {
        self.kind(kind).expiry = Some(Expiry { lifetime, ends: VecDeque::new() });
    }

    /// Removes the objects of a kind whose time is over. It is called before anybody looks at the kind, so
    /// that no timer needs to run, which would keep virtual time busy.
    pub fn expire(&mut self, kind: &str) {
        let now = self.clock.now();
        while let Some(store) = self.kinds.get_mut(kind)
            && let Some((key, revision)) = store.expiry.as_mut().and_then(|one| one.next(now))
        {
            let is_last_write = store.objects.get(&key).is_some_and(|last| {
                object::resource_version(&last.value()) == revision.to_string()
            });
            if is_last_write {
                self.remove(kind, &key);
            }
        }
    }
}
