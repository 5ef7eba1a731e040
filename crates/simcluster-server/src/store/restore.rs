//! An older state comes back, as from a backup of etcd.

use std::collections::BTreeMap;

use super::{Compacted, SERVICES, Store};

/// How far the revision jumps, so that no client takes a new revision for one that it has seen
/// (`etcdutl snapshot restore --bump-revision --mark-compacted`).
const JUMP: u64 = 1_000;

impl Store {
    /// Sets all objects back to what they were at `revision`. What is newer is forgotten, and so is all
    /// history: whoever follows it must begin anew.
    pub fn restore(&mut self, revision: u64) -> Result<(), Compacted> {
        let mut states = BTreeMap::new();
        for (kind, store) in &self.kinds {
            let objects =
                if revision < store.born { Vec::new() } else { self.list_at(kind, "", revision)? };
            states.insert(kind.clone(), objects);
        }
        self.revision += JUMP;
        let head = self.revision;
        for (kind, objects) in states {
            if kind == SERVICES {
                for gone in self.all(&kind) {
                    self.services.follow(Some(&gone), None);
                }
                for (_, back) in &objects {
                    self.services.follow(None, Some(back));
                }
            }
            let kept = objects.into_iter().map(|(key, object)| (key, self.warm.keep(object)));
            let kept = kept.collect();
            let store = self.kind(&kind);
            store.objects = kept;
            store.log.clear();
            store.compacted = head;
            store.last = head;
            store.changed.notify_waiters();
        }
        Ok(())
    }
}
