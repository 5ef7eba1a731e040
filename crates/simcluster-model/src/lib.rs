//! What the Kubernetes API server knows of objects, as pure functions of data: schemas and the rules of
//! kinds, definitions of custom resources, patches, field management, and how bodies are read.
//!
//! Nothing here waits, sends, stores, or reads a clock; time and chance are arguments.

pub mod allocation;
pub mod builtin;
pub mod certificates;
pub mod codec;
pub mod crd;
pub mod error;
pub mod field;
pub mod fieldmanager;
pub mod golang;
pub mod metadata;
pub mod names;
pub mod object;
pub mod patch;
pub mod random;
pub mod registry;
pub mod resource;
pub mod schema;
mod stack;
pub mod time;
