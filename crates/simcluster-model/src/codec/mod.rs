//! Request bodies: JSON, YAML and protobuf as the API server reads them.

pub mod body;
pub mod json;
pub(crate) mod nesting;
mod node;
pub(crate) mod protobuf;
pub mod yaml;

#[cfg(test)]
mod tests;
