#![doc = include_str!("../README.md")]

mod client;
mod cluster;
mod definitions;
pub mod env;
pub mod faults;
mod retry;
#[cfg(feature = "serve")]
pub mod serve;
mod settle;
pub mod webhooks;

pub use cluster::{Builder, SimCluster, StartError};
pub use definitions::InvalidDefinition;
pub use settle::{NotSettled, Settle};
pub use simcluster_clock::Clock;
pub use simcluster_model::allocation::{InvalidNetwork, ServiceNetwork};
pub use simcluster_server::auth::User;
pub use simcluster_server::http::Body;
pub use simcluster_server::trace::Request;

/// The controllers of the cluster, and the pace at which its Pods live.
pub mod controllers {
    pub use simcluster_controllers::{Delays, Kind};
}

/// Rules of the test's own about what is written, as the API server's admission plugins are.
///
/// A webhook that is part of what is tested is better told to [`SimCluster::webhooks`](crate::SimCluster::webhooks).
pub mod admission {
    pub use simcluster_model::error::ApiError;
    pub use simcluster_server::admission::{Attributes, ObjectKind, Operation, Plugin};
    pub use simcluster_server::server::ApiServer;
}
