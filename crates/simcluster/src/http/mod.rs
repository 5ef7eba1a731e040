//! HTTP: from a request's path to what the server does, and from the outcome to the client's format.

pub mod body;
pub mod json;
pub mod yaml;

#[cfg(test)]
mod tests;
