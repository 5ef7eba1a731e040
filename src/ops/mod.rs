//! Operating the program: what it needs to be installed, what it says, how it stops.

pub mod manifests;
pub mod rbac;
pub mod shutdown;
pub mod telemetry;
