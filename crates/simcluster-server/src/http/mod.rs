//! HTTP: from a request's path to what the server does, and from the outcome to the client's format.

pub mod accept;
mod discovery;
mod health;
mod list;
pub(crate) mod openapi;
mod pipeline;
pub mod present;
pub mod request;
pub mod response;
mod reviews;
mod route;
mod status;
pub mod table;
pub(crate) mod texts;
mod watch;

#[cfg(test)]
mod tests;

pub use self::pipeline::{handle, may, unauthorized};
pub use self::response::Body;
