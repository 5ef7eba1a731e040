//! HTTP: from a request's path to what the server does, and from the outcome to the client's format.

pub mod accept;
pub mod body;
pub mod client;
mod discovery;
mod health;
pub mod json;
mod node;
mod openapi;
mod pipeline;
pub mod present;
mod protobuf;
pub mod request;
pub mod response;
mod reviews;
mod route;
pub mod table;
mod watch;
pub mod yaml;

#[cfg(test)]
mod tests;

pub use self::pipeline::{handle, unauthorized};
pub use self::response::Body;
