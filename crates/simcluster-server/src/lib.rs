//! A Kubernetes API server in memory, without transport: `http::handle` answers requests as the real
//! one does.

pub mod admission;
pub mod auth;
mod conversion;
pub mod gate;
pub mod http;
mod lifecycle;
pub mod resources;
pub mod server;
pub mod store;
pub mod trace;
pub mod verbs;
pub mod webhook;
