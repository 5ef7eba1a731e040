//! A Kubernetes operator for application teams: a few lines of YAML become a running, reachable,
//! self-repairing app.
//!
//! Decisions are pure functions of data (`simpleapp::{validate, children, plan, status}`); input
//! and output are at the edge (`simpleapp::{reconcile, controller}`, `kernel`, `run`).

pub mod api;
pub mod cli;
pub mod kernel;
pub mod ops;
pub mod run;
#[cfg(feature = "sandbox")]
pub mod sandbox;
pub mod simpleapp;
