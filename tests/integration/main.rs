//! The operator on a cluster: the same tests on the simulated one (always) and on a real
//! kube-apiserver (`TEST_CLUSTER=control-plane`).
//!
//! The operator runs in this process, under a service account of its own that may do what the
//! generated RBAC allows and nothing else. What it asked of the cluster is counted by the cluster.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::needless_pass_by_value,
    reason = "tests"
)]

mod deletion;
mod drift;
mod faults;
mod lifecycle;
mod litmus;
mod properties;
mod rbac;
mod rest;
mod scene;
mod strangers;
