//! How much of the past is kept: as much as etcd keeps in time, and not more than fits into memory.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{Entry, Store};

/// Changes are remembered for so long, if there is room: kube-apiserver has etcd forget what is older
/// every five minutes.
const KEPT_FOR: SignedDuration = SignedDuration::from_mins(5);

/// Memory that old states of objects may take, in bytes. Bounds the memory of a long-lived sandbox, and
/// of a test that changes thousands of objects at one moment of virtual time.
const BYTES_MAX: usize = 64 << 20;

/// What a change takes beside the old state of its object, in bytes.
const CHANGE_BYTES: usize = 256;

/// All changes of all kinds in order, as far as they are remembered.
#[derive(Debug, Default)]
pub(super) struct History {
    changes: VecDeque<Past>,
    bytes: usize,
}

/// Where a change stands, when it happened, and what remembering it costs.
#[derive(Debug)]
struct Past {
    kind: Arc<str>,
    revision: u64,
    at: Timestamp,
    bytes: usize,
}

impl Store {
    /// Adds a change to the history, and forgets what is too old or too much.
    pub(super) fn record(&mut self, kind: &str, change: Entry) {
        let revision = change.revision;
        let bytes = CHANGE_BYTES + change.before.as_ref().map_or(0, |before| before.bytes);
        let at = self.clock.now();
        let store = self.kind(kind);
        store.log.push_back(change);
        store.last = revision;
        store.changed.notify_waiters();
        let kind = Arc::clone(&store.name);
        self.history.bytes += bytes;
        self.history.changes.push_back(Past { kind, revision, at, bytes });
        let oldest = at.checked_sub(KEPT_FOR).unwrap_or(Timestamp::MIN);
        self.forget_while(|history, past| past.at < oldest || history.bytes > BYTES_MAX);
    }

    /// Forgets all history up to `revision`.
    pub fn compact(&mut self, revision: u64) {
        let revision = revision.min(self.revision);
        self.forget_while(|_, past| past.revision <= revision);
        for store in self.kinds.values_mut() {
            store.compacted = store.compacted.max(revision);
        }
    }

    fn forget_while(&mut self, is_due: impl Fn(&History, &Past) -> bool) {
        while self.history.changes.front().is_some_and(|past| is_due(&self.history, past)) {
            let Some(past) = self.history.changes.pop_front() else { return };
            self.history.bytes -= past.bytes;
            let Some(store) = self.kinds.get_mut(&*past.kind) else { continue };
            // The log of a kind may have been cleared meanwhile.
            while store.log.front().is_some_and(|change| change.revision <= past.revision) {
                store.log.pop_front();
                store.compacted = store.compacted.max(past.revision);
            }
        }
    }
}
