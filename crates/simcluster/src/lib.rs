//! A Kubernetes cluster that fits in a test: the API server's semantics in memory, with virtual time.

mod client;
pub mod cluster;
pub mod env;
pub mod faults;
mod retry;
#[cfg(feature = "serve")]
pub mod serve;
mod settle;
pub mod webhooks;

pub use simcluster_clock as clock;
pub use simcluster_controllers as controllers;
pub use simcluster_model::allocation::{InvalidNetwork, ServiceNetwork};
pub use simcluster_server::http::{Body, unauthorized};
pub use simcluster_server::{admission, auth, server, trace};
