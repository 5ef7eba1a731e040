//! Rules of the gate as data: which requests and events they mean, and what happens to these.

use std::time::Duration;

use simcluster_model::error::{ApiError, Details, Names};

use crate::trace::Request;

/// The requests, or the watch events, that a rule means. What is not said does not matter.
///
/// ```
/// use simcluster::faults::On;
/// let meant = On::writes().user("operator").resource("deployments").name("web");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct On {
    user: Option<String>,
    verbs: Vec<String>,
    group: Option<String>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    ordinal: Option<u64>,
    client_ordinal: Option<u64>,
}

impl On {
    /// Every request.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// Requests that may change something.
    #[must_use]
    pub fn writes() -> Self {
        ["create", "update", "patch", "delete", "deletecollection"]
            .into_iter()
            .fold(Self::default(), Self::verb)
    }

    /// Gets, lists and watches.
    #[must_use]
    pub fn reads() -> Self {
        ["get", "list", "watch"].into_iter().fold(Self::default(), Self::verb)
    }

    /// Only of this verb, as RBAC names it; several are alternatives.
    #[must_use]
    pub fn verb(mut self, verb: &str) -> Self {
        self.verbs.push(verb.to_owned());
        self
    }

    /// Only of this user.
    #[must_use]
    pub fn user(mut self, name: &str) -> Self {
        self.user = Some(name.to_owned());
        self
    }

    /// Only on resources of this API group; empty for the core group.
    #[must_use]
    pub fn group(mut self, group: &str) -> Self {
        self.group = Some(group.to_owned());
        self
    }

    /// Only on this plural resource.
    #[must_use]
    pub fn resource(mut self, plural: &str) -> Self {
        self.resource = Some(plural.to_owned());
        self
    }

    /// Only on this subresource; empty for the main endpoint.
    #[must_use]
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.subresource = Some(subresource.to_owned());
        self
    }

    /// Only in this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Only on the object of this name: that of the path, and of the object that an event shows. A
    /// create has none on its way in.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Only the request with this [ordinal](Request::ordinal).
    #[must_use]
    pub fn ordinal(mut self, ordinal: u64) -> Self {
        self.ordinal = Some(ordinal);
        self
    }

    /// Only the request that is its user's so-and-so-many-th ([`Request::client_ordinal`]).
    #[must_use]
    pub fn client_ordinal(mut self, ordinal: u64) -> Self {
        self.client_ordinal = Some(ordinal);
        self
    }

    /// Whether a request is meant.
    #[must_use]
    pub fn matches(&self, request: &Request) -> bool {
        let text = |wanted: &Option<String>, is: &String| wanted.as_ref().is_none_or(|w| w == is);
        let number = |wanted: Option<u64>, is: u64| wanted.is_none_or(|w| w == is);
        (self.verbs.is_empty() || self.verbs.contains(&request.verb))
            && text(&self.user, &request.user)
            && text(&self.group, &request.group)
            && text(&self.resource, &request.resource)
            && text(&self.subresource, &request.subresource)
            && text(&self.namespace, &request.namespace)
            && text(&self.name, &request.name)
            && number(self.ordinal, request.ordinal)
            && number(self.client_ordinal, request.client_ordinal)
    }
}

/// Where a rule acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// On a request that came in: nothing has been done yet.
    Request,
    /// On the answer: what the request wrote is written.
    Reply,
    /// On an event of a watch, before the client gets it.
    Event,
}

/// What a rule does to what it matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// The client gets this error: instead of the answer, or as the last event of the watch.
    Fail(Failure),
    /// The connection breaks without an answer, or in the middle of a watch.
    Reset,
    /// Half of the answer, or of the event's line, arrives; then the connection breaks.
    CutShort,
    /// The watch ends cleanly, without this event. On a request the same as [`Self::Reset`].
    Close,
    /// Nothing ever comes: the request or its answer is lost, the watch falls silent. The client
    /// waits as long as it likes.
    Silence,
    /// It goes on after so much (virtual) time; the later events of a watch wait behind.
    Delay(Duration),
    /// It goes on when the rule is [removed](super::Fault::remove).
    Hold,
    /// Reads that any state satisfies (`resourceVersion=0`, and those of a version not newer than
    /// this) see the state of this revision, as from a server whose cache lags behind. Reads that must
    /// see the newest state do.
    StaleReads {
        /// The state that they see.
        revision: u64,
    },
    /// The history of all objects is forgotten at this moment: watches that are behind and pages of
    /// lists get a 410.
    Compact,
    /// All objects are at this moment set back to an older state, as from a backup of etcd.
    Restore {
        /// The state that comes back.
        revision: u64,
    },
}

/// An error that a real API server answers at times. The texts are its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// 409: somebody else was faster.
    Conflict,
    /// 409: the object is there already.
    AlreadyExists,
    /// 410: the version asked for is too old.
    Expired,
    /// 429 with a `Retry-After` of so many seconds.
    TooManyRequests {
        /// After how many seconds the client may try again.
        retry_after_seconds: u32,
    },
    /// 500: etcd changes its leader.
    Internal,
    /// 503.
    Unavailable,
    /// 504. Before the commit nothing was done; after it, all.
    Timeout,
    /// Any other.
    Status {
        /// The HTTP status code.
        code: u16,
        /// The machine-readable reason.
        reason: &'static str,
        /// The text.
        message: String,
    },
}

impl Failure {
    /// The error as the answer to a request.
    pub(super) fn error(&self, request: &Request) -> ApiError {
        // None of these texts names the kind.
        let names = Names { group: &request.group, plural: &request.resource, kind: "" };
        match self {
            Self::Conflict => {
                let why = "the object has been modified; please apply your changes to the latest \
                           version and try again";
                ApiError::conflict(names, &request.name, why)
            }
            Self::AlreadyExists => ApiError::already_exists(names, &request.name),
            Self::Expired => ApiError::new(410, "Expired", "The resourceVersion is too old."),
            Self::TooManyRequests { retry_after_seconds } => {
                let why = "storage is (re)initializing";
                ApiError::new(429, "TooManyRequests", why).with_details(Details {
                    retry_after_seconds: Some(*retry_after_seconds),
                    ..Details::default()
                })
            }
            Self::Internal => ApiError::raw("etcdserver: leader changed"),
            Self::Unavailable => {
                let why = "the server is currently unable to handle the request";
                ApiError::new(503, "ServiceUnavailable", why)
            }
            Self::Timeout => super::timed_out(),
            Self::Status { code, reason, message } => ApiError::new(*code, reason, message),
        }
    }
}

/// What happens to what: once, unless it says otherwise.
///
/// ```
/// use simcluster::faults::{Effect, Failure, On, Rule};
/// // The third and the fourth patch of a Deployment are refused.
/// let patches = On::any().verb("patch").resource("deployments");
/// let rule = Rule::request(patches, Effect::Fail(Failure::Conflict)).skip(2).times(2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    on: On,
    stage: Stage,
    effect: Effect,
    skip: u64,
    times: u64,
}

impl Rule {
    /// Acts on requests that come in, before they do anything.
    #[must_use]
    pub fn request(on: On, effect: Effect) -> Self {
        Self::new(on, Stage::Request, effect)
    }

    /// Acts on answers: what the request wrote stays.
    #[must_use]
    pub fn reply(on: On, effect: Effect) -> Self {
        Self::new(on, Stage::Reply, effect)
    }

    /// Acts on events of watches.
    #[must_use]
    pub fn event(on: On, effect: Effect) -> Self {
        Self::new(on, Stage::Event, effect)
    }

    fn new(on: On, stage: Stage, effect: Effect) -> Self {
        Self { on, stage, effect, skip: 0, times: 1 }
    }

    /// Leaves the first few alone.
    #[must_use]
    pub fn skip(mut self, count: u64) -> Self {
        self.skip = count;
        self
    }

    /// Acts so many times.
    #[must_use]
    pub fn times(mut self, count: u64) -> Self {
        self.times = count;
        self
    }

    /// Acts every time.
    #[must_use]
    pub fn always(self) -> Self {
        self.times(u64::MAX)
    }
}

/// A rule in force.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) id: u64,
    rule: Rule,
    seen: u64,
    pub(super) hits: u64,
}

impl Placed {
    pub(super) fn new(id: u64, rule: Rule) -> Self {
        Self { id, rule, seen: 0, hits: 0 }
    }

    /// What happens to a request at a stage, if the rule means it.
    pub(super) fn act(&mut self, stage: Stage, request: &Request) -> Option<Effect> {
        if self.rule.stage != stage || !self.rule.on.matches(request) {
            return None;
        }
        self.seen += 1;
        if self.seen <= self.rule.skip || self.hits >= self.rule.times {
            return None;
        }
        self.hits += 1;
        Some(self.rule.effect.clone())
    }
}
