//! The record of every request, as an audit log keeps it.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

/// One request that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// When it was answered.
    pub time: Timestamp,
    /// Who asked.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`; the
    /// lower-case HTTP method for what is no resource.
    pub verb: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Plural resource; empty for what is no resource.
    pub resource: String,
    /// Subresource; empty for the main endpoint.
    pub subresource: String,
    /// Namespace; empty for none.
    pub namespace: String,
    /// Name of the object, of the answer where the path has none (create); empty for collections.
    pub name: String,
    /// Method and path with query, for people.
    pub line: String,
    /// HTTP status code.
    pub code: u16,
}

impl Request {
    /// Whether it is a request that may change something.
    #[must_use]
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
    }
}

/// Requests kept at most: the record of a sandbox that runs for days stays bounded.
const REQUESTS_MAX: usize = 1_000_000;

/// A shared record; clones see the same requests.
#[derive(Debug, Clone, Default)]
pub struct Trace(Arc<Mutex<Vec<Request>>>);

impl Trace {
    /// Adds a request.
    pub fn add(&self, request: Request) {
        let mut list = self.lock();
        if list.len() < REQUESTS_MAX {
            list.push(request);
        }
    }

    /// Requests so far; a position to look from later.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether nothing was asked yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The requests from a position on.
    #[must_use]
    pub fn since(&self, position: usize) -> Vec<Request> {
        self.lock().get(position..).map(<[Request]>::to_vec).unwrap_or_default()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Request>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
