//! What every controller here needs and none of them owns.

pub mod audit;
pub mod backoff;
pub mod cache;
pub mod clock;
pub mod error;
pub mod events;
pub mod finalizer;
pub mod key;
pub mod ownership;
pub mod queue;
pub mod requests;
pub mod watch;
pub mod work;
