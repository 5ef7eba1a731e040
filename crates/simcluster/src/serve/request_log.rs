//! A line for each request, in the form of kube-apiserver's own log.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header::USER_AGENT;
use http::request::Parts;
use jiff::Timestamp;

/// Where the lines go. Clones write to the same place.
#[derive(Clone)]
pub struct RequestLog(Arc<Mutex<dyn Write + Send>>);

impl fmt::Debug for RequestLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestLog").finish_non_exhaustive()
    }
}

impl RequestLog {
    /// A log that goes to a writer.
    pub fn new(writer: impl Write + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(writer)))
    }

    /// Writes a line. That it cannot be written is said once for each line, and stops nothing.
    pub(super) fn add(&self, line: &Line<'_>) {
        let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let written: io::Result<()> = writeln!(writer, "{line}").and_then(|()| writer.flush());
        if let Err(error) = written {
            tracing::warn!(%error, "cannot write to the request log");
        }
    }
}

/// An answered request. Of a watch the line is written when it begins.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) time: Timestamp,
    pub(super) request: &'a Parts,
    /// Empty if the token was wrong.
    pub(super) user: &'a str,
    pub(super) took: Duration,
    pub(super) code: u16,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, request, user, took, code } = self;
        let agent = request.headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
        let (method, agent) = (&request.method, agent.unwrap_or_default());
        let (uri, millis) = (request.uri.to_string(), took.as_micros());
        write!(
            f,
            "{time:.6} verb={:?} URI={uri:?} latency=\"{}.{:03}ms\" userAgent={agent:?} user={user:?} \
             resp={code}",
            method.as_str(),
            millis / 1_000,
            millis % 1_000
        )
    }
}
