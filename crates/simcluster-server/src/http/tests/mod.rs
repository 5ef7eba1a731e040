//! Tests of the HTTP layer.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may fail by panicking"
)]

mod accept;
mod discovery;
mod request;
mod response;
mod route;
mod table;
