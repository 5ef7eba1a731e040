//! What has to be looked at, and when.
//!
//! Each key is in the queue at most once and never worked on twice at the same time. Order is by
//! due time, then by arrival: no key can starve another, and the same input gives the same order.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::key::Key;

/// Keys in order of due time.
#[derive(Debug, Default)]
pub struct Queue {
    order: BTreeMap<(Instant, u64), Key>,
    slots: BTreeMap<Key, (Instant, u64)>,
    /// Keys being worked on, and when they are wanted again if something happened meanwhile.
    running: BTreeMap<Key, Option<Instant>>,
    arrivals: u64,
}

impl Queue {
    /// Wants `key` to be looked at no later than `due`.
    pub fn add(&mut self, key: Key, due: Instant) {
        if let Some(again) = self.running.get_mut(&key) {
            *again = Some(again.map_or(due, |earlier| earlier.min(due)));
            return;
        }
        if let Some(slot) = self.slots.get(&key) {
            if slot.0 <= due {
                return;
            }
            self.order.remove(slot);
        }
        let slot = (due, self.arrivals);
        self.arrivals += 1;
        self.slots.insert(key.clone(), slot);
        self.order.insert(slot, key);
    }

    /// The key that has been due for longest. It counts as running until [`Queue::finished`].
    pub fn pop(&mut self, now: Instant) -> Option<Key> {
        let entry = self.order.first_entry()?;
        if entry.key().0 > now {
            return None;
        }
        let key = entry.remove();
        self.slots.remove(&key);
        self.running.insert(key.clone(), None);
        Some(key)
    }

    /// Ends the work on `key`, which is wanted again at `next`, or before if something happened
    /// while it was worked on.
    pub fn finished(&mut self, key: Key, next: Option<Instant>) {
        let again = self.running.remove(&key).flatten();
        if let Some(due) = [again, next].into_iter().flatten().min() {
            self.add(key, due);
        }
    }

    /// When the next key is due.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.order.first_key_value().map(|(slot, _)| slot.0)
    }

    /// Drops what is planned for a key that is gone.
    pub fn forget(&mut self, key: &Key) {
        if let Some(slot) = self.slots.remove(key) {
            self.order.remove(&slot);
        }
    }
}
