//! The record of every request, as an audit log keeps it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use jiff::Timestamp;

/// One request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// When it was answered.
    pub time: Timestamp,
    /// Which request to the server it was, counted from 1 as they came in.
    pub ordinal: u64,
    /// Which request of its user it was, counted from 1 as they came in.
    pub client_ordinal: u64,
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
    /// HTTP status code; 0 if the client never got an answer.
    pub code: u16,
    /// The revision that it made, if it changed anything: an apply or an update that finds everything
    /// as it should be does not. Always `None` in the record of a real cluster, which does not say.
    pub changed: Option<u64>,
    /// The body as it was sent, if the record keeps bodies.
    pub body: Option<Bytes>,
    /// The body of the answer, if the record keeps bodies and the answer is not a stream.
    pub answer: Option<Bytes>,
}

impl Request {
    /// Whether it is a request that may change something.
    #[must_use]
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
    }

    /// Who does what to what, in a line: equal for requests that repeat each other.
    #[must_use]
    pub fn deed(&self) -> String {
        let Self { user, verb, resource, namespace, name, .. } = self;
        let slash = if self.subresource.is_empty() { "" } else { "/" };
        format!("{user}: {verb} {resource}{slash}{} {namespace}/{name}", self.subresource)
    }

    /// The memory that it takes, in bytes.
    fn size(&self) -> usize {
        let Self { user, verb, group, resource, subresource, namespace, name, line, .. } = self;
        let texts = [user, verb, group, resource, subresource, namespace, name, line];
        let texts: usize = texts.into_iter().map(String::capacity).sum();
        let bodies = [&self.body, &self.answer].into_iter().flatten().map(Bytes::len);
        size_of::<Self>() + texts + bodies.sum::<usize>()
    }
}

/// Memory that the record may take, in bytes; then the oldest requests go. It holds more than a hundred
/// thousand requests without bodies, and keeps a sandbox that runs for days bounded.
const BYTES_MAX: usize = 48 << 20;

/// A shared record; clones see the same requests.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    record: Arc<Mutex<Record>>,
    bodies: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct Record {
    kept: VecDeque<Request>,
    /// How many older ones were dropped.
    dropped: usize,
    /// The memory that the kept ones take, in bytes.
    size: usize,
    /// How many requests came in: to the server, and of each user.
    entered: u64,
    entered_of: BTreeMap<String, u64>,
}

impl Trace {
    /// Keeps the bodies of requests and answers from now on, or no more.
    pub fn keep_bodies(&self, keep: bool) {
        self.bodies.store(keep, Ordering::Relaxed);
    }

    /// A request comes in and gets its ordinals.
    pub(crate) fn enter(&self, mut request: Request, body: &Bytes) -> Recording {
        let keep_bodies = self.bodies.load(Ordering::Relaxed);
        request.body = keep_bodies.then(|| body.clone());
        let mut record = self.lock();
        record.entered += 1;
        request.ordinal = record.entered;
        let own = record.entered_of.entry(request.user.clone()).or_default();
        *own += 1;
        request.client_ordinal = *own;
        drop(record);
        let (trace, changed) = (self.clone(), Changed::default());
        Recording { trace, request, changed, keep_bodies, finished: false }
    }

    /// Adds a request; the oldest go when there are too many.
    fn add(&self, request: Request) {
        let mut record = self.lock();
        record.size += request.size();
        record.kept.push_back(request);
        while record.size > BYTES_MAX {
            let Some(oldest) = record.kept.pop_front() else { break };
            record.size -= oldest.size();
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
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The revision that a request made, 0 for none yet.
#[derive(Debug, Clone, Default)]
pub struct Changed(Arc<AtomicU64>);

impl Changed {
    /// Notes that the request changed something.
    pub(crate) fn at(&self, revision: u64) {
        self.0.store(revision, Ordering::Relaxed);
    }

    fn revision(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|revision| *revision > 0)
    }
}

/// A request that is on its way. Whatever becomes of it, it is recorded: one that is dropped has no code.
#[derive(Debug)]
pub(crate) struct Recording {
    trace: Trace,
    pub(crate) request: Request,
    pub(crate) changed: Changed,
    pub(crate) keep_bodies: bool,
    finished: bool,
}

impl Recording {
    /// The request was answered.
    pub(crate) fn finish(mut self, code: u16, time: Timestamp, answer: Option<Bytes>) {
        self.request.code = code;
        self.request.time = time;
        self.request.answer = answer;
        self.finished = true;
        self.add();
    }

    fn add(&mut self) {
        let mut request = std::mem::take(&mut self.request);
        request.changed = self.changed.revision();
        self.trace.add(request);
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if !self.finished {
            self.add();
        }
    }
}
