//! Tests of the HTTP layer.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may fail by panicking"
)]

mod accept;
mod body;
mod discovery;
mod protobuf;
mod request;
mod route;
mod table;
