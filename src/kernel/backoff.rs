//! How long to wait before the next attempt.

use std::time::Duration;

use kube::runtime::utils::Backoff;

use super::{error::ErrorClass, key::Key};

/// First wait after the server was in trouble.
const TRANSIENT_MIN: Duration = Duration::from_secs(1);
/// First wait after a conflict: long enough for the watch to bring what we had not seen.
const CONFLICT_MIN: Duration = Duration::from_millis(100);
/// First wait after a refusal. Only a change elsewhere helps, and most of those we hear of.
const REFUSED_MIN: Duration = Duration::from_secs(30);
/// Longest wait: an object that failed for long is still looked at this often.
const WAIT_MAX: Duration = Duration::from_mins(5);
/// A watch that fails is opened again after this time at first, and at most after `WATCH_MAX`.
const WATCH_MIN: Duration = Duration::from_millis(800);
const WATCH_MAX: Duration = Duration::from_secs(30);

/// How long to wait before attempt `failures + 1` at `key`, and not less than the server asked for.
///
/// Objects that failed at the same moment are spread over a tenth of the wait.
#[must_use]
pub fn wait(
    key: &Key,
    class: ErrorClass,
    failures: u32,
    retry_after: Option<Duration>,
) -> Duration {
    let first = match class {
        ErrorClass::Transient => TRANSIENT_MIN,
        ErrorClass::Conflict => CONFLICT_MIN,
        ErrorClass::Refused | ErrorClass::Bug => REFUSED_MIN,
    };
    let doubled = first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)));
    let wait = doubled.min(WAIT_MAX).max(retry_after.unwrap_or_default());
    wait.saturating_add(spread(&key.to_string(), wait / 10))
}

/// A share of `range` that is always the same for `text`.
#[must_use]
pub fn spread(text: &str, range: Duration) -> Duration {
    let share = u32::try_from(fingerprint(text) % 1000).unwrap_or_default();
    range.saturating_mul(share) / 1000
}

/// A number that tells texts apart and never changes between versions (FNV-1a, 64 bits).
#[must_use]
pub fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The waits of a watch: doubling, without chance, so that a run can be repeated.
///
/// kube's watcher announces each attempt at a list by an event, before the server has answered, and its
/// back-off takes every event for a success. So the first one after a failure counts for nothing.
#[derive(Debug, Default)]
pub struct WatchBackoff {
    failures: u32,
    /// Nothing was heard since the last failure.
    trying: bool,
}

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let wait = WATCH_MIN.saturating_mul(2_u32.saturating_pow(self.failures)).min(WATCH_MAX);
        self.failures = self.failures.saturating_add(1);
        self.trying = true;
        Some(wait)
    }
}

impl Backoff for WatchBackoff {
    fn reset(&mut self) {
        if !std::mem::take(&mut self.trying) {
            self.failures = 0;
        }
    }
}
