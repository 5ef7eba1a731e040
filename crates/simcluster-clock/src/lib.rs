//! The one place where simcluster reads time.
//!
//! A cluster's time is a fixed start plus what tokio's clock says has passed. On a paused runtime
//! (tests) that is virtual time; on an ordinary one it is real time.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Whether the time of the runtime is paused: it moves only when all tasks wait for it.
///
/// Tokio does not say; but a clock that stands still while the machine's moves is paused.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place where the machine's time is read")]
pub fn is_paused() -> bool {
    let (before, real) = (Instant::now(), std::time::Instant::now());
    while real.elapsed().is_zero() {
        std::hint::spin_loop();
    }
    Instant::now() == before
}

/// The clock of one cluster.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Timestamp,
    origin: Instant,
}

impl Clock {
    /// A clock that shows `start` now.
    #[must_use]
    pub fn starting_at(start: Timestamp) -> Self {
        Self { start, origin: Instant::now() }
    }

    /// A clock that shows the machine's time.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place where the machine's time is read")]
    pub fn real() -> Self {
        Self::starting_at(Timestamp::now())
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.origin.elapsed()).unwrap_or(SignedDuration::MAX);
        self.start.checked_add(passed).unwrap_or(Timestamp::MAX)
    }
}
