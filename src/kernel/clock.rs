//! The one place where the operator reads the wall clock.
//!
//! Scheduling needs no wall clock: it uses tokio's, which a test can make virtual. What ends up in
//! an object (`lastUpdated`, the age of a deletion) comes from here.

use std::{fmt, sync::Arc};

use jiff::Timestamp;

/// Tells the time. Cheap to clone.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// A clock that shows what `now` returns.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The machine's clock.
    #[must_use]
    pub fn real() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place where the machine's time is read"
        )]
        Self::new(Timestamp::now)
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}
