//! Tests of what is read from bodies.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may fail by panicking"
)]

mod body;
mod protobuf;
