//! What can go wrong between us and the API server, and what follows from it.

use std::time::Duration;

use kube::core::Status;
use thiserror::Error;

/// Cause that the API server names when it refuses to create something in a namespace that is
/// being deleted.
const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// What a failure means for the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// The server or the way to it is in trouble: the same request may succeed later.
    Transient,
    /// We acted on what is no longer so: look again, then decide anew.
    Conflict,
    /// The server understood and said no: only a change of the object or of the cluster helps.
    Refused,
    /// We did something that should be impossible.
    Bug,
}

/// A request that did not succeed. Names the request; `source` says why.
#[derive(Debug, Error)]
pub enum RequestError {
    /// The server answered with a failure.
    #[error("{request}: {} ({} {})", status.message, status.code, status.reason)]
    Answered {
        /// What we asked for, such as `apply Deployment shop/web`.
        request: String,
        /// The server's answer.
        status: Box<Status>,
    },
    /// No answer within the time limit. The request may have been carried out.
    #[error("{request}: no answer within {} s", limit.as_secs())]
    TimedOut {
        /// What we asked for.
        request: String,
        /// How long we waited.
        limit: Duration,
    },
    /// The request did not reach the server, or its answer did not reach us.
    #[error("{request}: {message}")]
    Failed {
        /// What we asked for.
        request: String,
        /// The client's own words, which hold those of its sources.
        message: String,
    },
}

impl RequestError {
    /// Sorts what the client says into what we can act on.
    #[must_use]
    pub fn new(request: String, error: kube::Error) -> Self {
        if let kube::Error::Api(status) = error {
            return Self::Answered { request, status };
        }
        Self::Failed { request, message: error.to_string() }
    }

    /// What the failure means for the next attempt.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        let Self::Answered { status, .. } = self else {
            return ErrorClass::Transient;
        };
        match status.code {
            422 if self.is_about_another_object() => ErrorClass::Conflict,
            404 | 409 | 410 => ErrorClass::Conflict,
            400 | 403 | 405 | 406 | 413 | 415 | 422 => ErrorClass::Refused,
            _ => ErrorClass::Transient,
        }
    }

    /// Whether the server took the request for invalid because the object is not the one that we
    /// saw. A failed `test` of a JSON patch is worded like any patch that cannot be carried out,
    /// without naming a field; an apply to an object that was made anew says that its UID cannot be
    /// changed.
    fn is_about_another_object(&self) -> bool {
        let details = self.status().and_then(|status| status.details.as_ref());
        details.is_none_or(|details| {
            details.causes.is_empty()
                || details.causes.iter().any(|cause| cause.field == "metadata.uid")
        })
    }

    /// The server's answer, if there was one.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Answered { status, .. } => Some(status),
            Self::TimedOut { .. } | Self::Failed { .. } => None,
        }
    }

    /// What went wrong, without what we had asked for.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Answered { status, .. } => status.message.clone(),
            Self::TimedOut { limit, .. } => format!("no answer within {} s", limit.as_secs()),
            Self::Failed { message, .. } => message.clone(),
        }
    }

    /// How long the server asked us to wait, if it did.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.status()?.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(u64::from(seconds)))
    }

    /// Whether the object is not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.status().is_some_and(Status::is_not_found)
    }

    /// Whether an object of that name is there already.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.status().is_some_and(Status::is_already_exists)
    }

    /// Whether the server refused because the namespace is being deleted.
    #[must_use]
    pub fn is_namespace_terminating(&self) -> bool {
        self.status().and_then(|status| status.details.as_ref()).is_some_and(|details| {
            details.causes.iter().any(|cause| cause.reason == NAMESPACE_TERMINATING)
        })
    }
}
