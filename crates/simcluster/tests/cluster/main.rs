//! The controllers on the simulated cluster, in virtual time.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod support;

mod garbage;
mod namespaces;
mod pods;
mod policies;
mod services;
mod webhooks;
mod workloads;
