//! What the server does with objects: create, get, list, watch, update, patch, delete,
//! deletecollection. Knows nothing of HTTP beyond the parsed request.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::stream::BoxStream;
use serde_json::Value;

use crate::auth::User;
use crate::resource::Resource;

/// One request on a resource, parsed and authorised.
#[derive(Debug)]
pub struct Call {
    /// Who asks.
    pub user: User,
    /// The `User-Agent` header, empty if there was none: names the field manager if nothing else does.
    pub user_agent: String,
    /// The resource, in the version asked for.
    pub resource: Arc<Resource>,
    /// Namespace of the path; empty for cluster-scoped resources and lists over all namespaces.
    pub namespace: String,
    /// Name of the path; empty for collections.
    pub name: String,
    /// Subresource of the path; empty for the main endpoint.
    pub subresource: String,
    /// Query parameters, decoded, in order.
    pub query: Vec<(String, String)>,
    /// Media type of the body without parameters; empty if the header is missing.
    pub content_type: String,
    /// The body as sent.
    pub body: Bytes,
    /// Texts for `Warning` headers; verbs add to it.
    pub warnings: Warnings,
}

impl Call {
    /// The first value of a query parameter.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All values of a query parameter.
    #[must_use]
    pub fn params(&self, name: &str) -> Vec<&str> {
        self.query.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
    }
}

/// Warnings collected during a request.
#[derive(Debug, Clone, Default)]
pub struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    /// Adds a text; equal texts are kept once.
    pub fn add(&self, text: impl Into<String>) {
        let text = text.into();
        let mut list = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !list.contains(&text) {
            list.push(text);
        }
    }

    /// The texts so far.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

/// What a verb answers; the HTTP layer turns it into the form that the client accepts.
pub enum Outcome {
    /// One object (or a `Status`, or a `Scale`), with the HTTP status code.
    Object(u16, Value),
    /// A list with `kind`, `apiVersion`, `metadata`, `items`.
    List(Value),
    /// A stream of events; it ends when the watch ends.
    Watch(BoxStream<'static, WatchEvent>),
}

/// One event of a watch.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchEvent {
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
    pub kind: &'static str,
    /// The object (a `Status` for `ERROR`).
    pub object: Value,
}
