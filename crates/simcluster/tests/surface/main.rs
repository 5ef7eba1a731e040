//! What a server bears: hostile requests, deep values, many clients at once.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    clippy::print_stdout,
    reason = "tests"
)]

mod corpus;
mod fuzz;
mod mutate;
mod nesting;
mod races;
mod requests;
mod services;
