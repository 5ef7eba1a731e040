//! The controllers on the simulated cluster, in virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "tests"
)]

mod support;

mod certificates;
mod conversions;
mod determinism;
mod faults;
mod garbage;
mod namespaces;
mod pods;
mod policies;
mod rest;
mod services;
mod tokens;
mod watches;
mod webhooks;
mod workloads;
