//! The record of every request, as an audit log keeps it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
pub struct Trace(Arc<Mutex<Record>>);

#[derive(Debug, Default)]
struct Record {
    kept: VecDeque<Request>,
    /// How many older ones were dropped.
    dropped: usize,
}

impl Trace {
    /// Adds a request; the oldest goes when there are too many.
    pub fn add(&self, request: Request) {
        let mut record = self.lock();
        record.kept.push_back(request);
        if record.kept.len() > REQUESTS_MAX {
            record.kept.pop_front();
            record.dropped += 1;
        }
    }

    /// Requests so far; a position to look from later.
    #[must_use]
    pub fn position(&self) -> usize {
        let record = self.lock();
        record.dropped + record.kept.len()
    }

    /// The requests from a position on, as far as they are kept.
    #[must_use]
    pub fn since(&self, position: usize) -> Vec<Request> {
        let record = self.lock();
        let skip = position.saturating_sub(record.dropped);
        record.kept.iter().skip(skip).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
