//! A Kubernetes cluster that fits in a test: the API server's semantics in memory, with virtual time.

mod admission;
pub mod auth;
pub mod builtin;
pub mod clock;
pub mod cluster;
pub mod controllers;
pub mod crd;
pub mod env;
pub mod error;
pub mod field;
pub mod fieldmanager;
pub mod golang;
pub mod http;
mod lifecycle;
mod metadata;
pub mod names;
pub mod object;
pub mod patch;
pub mod random;
pub mod resource;
pub mod schema;
pub mod serve;
pub mod server;
pub mod store;
pub mod trace;
pub mod verbs;
