//! Notices requests that never let virtual time move.
//!
//! On a paused runtime time moves when all tasks wait for it. A program that asks again as soon as it
//! was answered never waits, so that no timeout ever fires. A real server takes time for each request,
//! and this one does so, too, once there are too many at one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use crate::trace::Request;

/// Equal requests on one object that one moment may hold.
const EQUAL_MAX: u32 = 2_000;

/// Requests of a user and verb on any objects of a kind that one moment may hold.
const ALIKE_MAX: u32 = 100_000;

/// What each further request takes.
pub(super) const TOLL: Duration = Duration::from_secs(1);

/// Counts the requests of one moment.
#[derive(Debug, Default)]
pub(super) struct Pace {
    moment: Option<Instant>,
    counts: BTreeMap<String, u32>,
    /// Those who had too many once pay from then on.
    runaways: BTreeSet<String>,
}

impl Pace {
    /// Counts a request. If there were too many of its kind, what they do is returned.
    pub(super) fn count(&mut self, now: Instant, request: &Request) -> Option<String> {
        if self.moment != Some(now) {
            self.moment = Some(now);
            self.counts.clear();
        }
        let alike = format!("{}: {} {}", request.user, request.verb, request.resource);
        if self.exceeds(alike.clone(), ALIKE_MAX) {
            return Some(alike);
        }
        // Lists and creates have no name, and many of them can be meant.
        let deed = request.deed();
        (!request.name.is_empty() && self.exceeds(deed.clone(), EQUAL_MAX)).then_some(deed)
    }

    fn exceeds(&mut self, what: String, max: u32) -> bool {
        if self.runaways.contains(&what) {
            return true;
        }
        let count = self.counts.entry(what.clone()).or_default();
        *count += 1;
        *count > max && self.runaways.insert(what)
    }
}
