//! Conversations with an API server.
//!
//! A [`Case`] is a short conversation, and what a real server answered: a [`Player`] plays its steps
//! on a [`Target`], a simulated cluster in this process or a real one, and [`play`] compares the answers
//! with the recorded ones. A [`Pair`] plays the same steps on both at once and compares the answers as
//! they are made, so that nothing needs to be recorded before: [`random`] makes such conversations from
//! seeds, [`shrink`] makes one small that shows a difference, and a [`Signature`] tells differences apart.
//!
//! What differs from run to run (uids, resource versions, times) is compared by
//! [`Placeholders`]: equal values stay equal, and different ones different.

mod case;
mod compare;
mod differential;
mod error;
mod fixture;
mod hooks;
mod order;
mod pair;
mod placeholders;
mod play;
mod player;
pub mod random;
mod remote;
pub mod shrink;
mod signature;
mod stream;
mod target;
mod text;
mod websocket;

pub use self::case::{Called, Case, Records, Step};
pub use self::compare::{Place, differences};
pub use self::differential::Servers;
pub use self::error::Error;
pub use self::hooks::Rule;
pub use self::pair::{Answers, Pair};
pub use self::placeholders::Placeholders;
pub use self::play::{Difference, Liberties, play};
pub use self::player::Player;
pub use self::remote::Remote;
pub use self::signature::{Signature, request, verb};
pub use self::target::Target;
