//! The controller of `SimpleApp`. `validate`, `children`, `plan` and `status` are pure; `reconcile`,
//! `execute` and `controller` talk to the API server.

pub mod children;
pub mod controller;
mod execute;
pub mod observed;
pub mod plan;
pub mod pods;
pub mod reconcile;
pub mod status;
pub mod validate;
