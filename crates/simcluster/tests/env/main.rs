//! The test environments themselves: a real control plane comes, serves and goes.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod both;
mod gone;
