//! What was observed -> what to do. Pure, and the plan is data: it can be printed, compared and
//! reviewed.
//!
//! A plan either has operations, or it has a status. So a status is always about what has been
//! done: after its operations an app is planned anew, and a plan made of the outcome of a plan has
//! no operations.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;

use crate::{
    api::simpleapp::{Phase, SimpleAppStatus},
    kernel::{
        backoff::spread,
        events::Event,
        ownership::{Child, ForeignPort},
    },
};

use super::{
    children::{self, children, owned_part},
    observed::{ChildKind, Observed},
    status::{self, Change},
    validate::{Invalid, Valid, validate},
};

/// An app with nothing to wait for is looked at this often, plus up to a tenth, in case an event
/// was lost.
const RESYNC: Duration = Duration::from_mins(10);
/// A child that the server refused is tried again after this time: a quota may have been raised,
/// which nobody tells us.
const REFUSED_RETRY: Duration = Duration::from_mins(1);
/// An app that is not there yet is looked at again after as long as nothing has changed, within
/// these bounds: pods are not watched.
const LOOK_MIN: SignedDuration = SignedDuration::from_secs(2);
const LOOK_MAX: SignedDuration = SignedDuration::from_secs(60);

/// What a plan may be told from outside.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How long a clean-up may take before the app is let go without it.
    pub cleanup_timeout: Duration,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Operation {
    /// Make sure that we are asked before the app goes.
    AddFinalizer,
    /// Create the child, or give it the fields that we own.
    Apply {
        /// Kind of the child.
        kind: ChildKind,
        /// The object to change; `None`: there must not be one yet.
        uid: Option<String>,
        /// The child as it should be.
        child: Value,
    },
    /// Take the name of our port from a port of somebody else, which an apply cannot do.
    TakePort {
        /// Kind of the child.
        kind: ChildKind,
        /// The object to change.
        uid: String,
        /// Its version when that was decided.
        resource_version: String,
        /// Where the port stands, as a JSON pointer.
        path: String,
        /// What stands there instead; `None`: nothing, ours is in the list already.
        port: Option<Value>,
    },
    /// Delete a child that is no longer wanted.
    Delete {
        /// Kind of the child.
        kind: ChildKind,
        /// The object to delete.
        uid: String,
        /// Its version when that was decided.
        resource_version: String,
    },
    /// Look at the pods, to find out why they are not ready.
    ListPods,
    /// Do what has to be done before the app may go.
    CleanUp {
        /// When the app is let go even if that did not succeed.
        deadline: Timestamp,
    },
    /// Let the app go.
    RemoveFinalizer,
}

/// What to do now, and when to look again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// What to do, in this order.
    pub operations: Vec<Operation>,
    /// The status to write; `None`: none, or not before the operations are done.
    pub status: Option<SimpleAppStatus>,
    /// What to tell people.
    pub events: Vec<Event>,
    /// When to look again if nothing happens.
    pub requeue: Option<Duration>,
}

/// Decides what to do about an app.
#[must_use]
pub fn plan(observed: &Observed, settings: Settings, now: Timestamp) -> Plan {
    if let Some(deleted_at) = observed.app.deleted_at {
        return plan_deletion(observed, settings, deleted_at);
    }
    let valid = validate(&observed.app);
    let mut operations = Vec::new();
    if !observed.app.has_finalizer() {
        // Before any child: an app that goes between the two would leave no record.
        operations.push(Operation::AddFinalizer);
    }
    if let Ok(app) = &valid {
        operations.extend(child_operations(observed, app));
        if operations.is_empty() && wants_pods(observed, app, now) {
            operations.push(Operation::ListPods);
        }
    }
    if operations.is_empty() {
        return settle(observed, &valid, now);
    }
    Plan { operations, status: None, events: Vec::new(), requeue: None }
}

/// What is to be said of the app as it is, whatever is still to be done about it.
#[must_use]
pub fn settle(observed: &Observed, valid: &Result<Valid, Vec<Invalid>>, now: Timestamp) -> Plan {
    let assessment = status::assess(observed, valid);
    let change = status::change(&observed.app, &assessment, now);
    let age = match &change {
        Change::Write(_) => SignedDuration::ZERO,
        Change::Keep | Change::Wait(_) => age(&observed.app.status, now),
    };
    let look = look_again(observed, assessment.phase, age);
    let (status, requeue) = match change {
        Change::Keep => (None, look),
        Change::Wait(wait) => (None, look.min(wait)),
        Change::Write(status) => (Some(*status), look),
    };
    let event = status.as_ref().and_then(|new| status::event(&observed.app.status, new));
    Plan {
        operations: Vec::new(),
        status,
        events: event.into_iter().collect(),
        requeue: Some(requeue),
    }
}

/// The objects that stand in the way of children, in the order in which those are made.
#[must_use]
pub fn conflicts<'a>(observed: &'a Observed, app: &Valid) -> Vec<(ChildKind, &'a Child)> {
    let wanted = children(app);
    let stranger = |kind: &ChildKind| {
        let child = observed.children.get(kind)?;
        (!child.is_controlled_by(&observed.app.uid)).then_some((*kind, &**child))
    };
    wanted.keys().filter_map(stranger).collect()
}

fn plan_deletion(observed: &Observed, settings: Settings, deleted_at: Timestamp) -> Plan {
    let mut operations = Vec::new();
    if observed.app.has_finalizer() {
        let timeout =
            SignedDuration::try_from(settings.cleanup_timeout).unwrap_or(SignedDuration::MAX);
        let deadline = deleted_at.checked_add(timeout).unwrap_or(Timestamp::MAX);
        operations = vec![Operation::CleanUp { deadline }, Operation::RemoveFinalizer];
    }
    // The children go by garbage collection, and the status of an app that goes interests nobody.
    Plan { operations, status: None, events: Vec::new(), requeue: None }
}

/// Children are made in order, and only as long as no stranger stands in the way and the server
/// has nothing against them: a Service without our Deployment could lead to the pods of others,
/// and an Ingress without our Service to theirs.
fn child_operations(observed: &Observed, app: &Valid) -> Vec<Operation> {
    let mut wanted = children(app);
    let mut operations = Vec::new();
    for kind in ChildKind::ALL {
        let live = observed.children.get(&kind);
        let ours = observed.ours(kind);
        match (wanted.remove(&kind), live) {
            (Some(_), Some(_)) if ours.is_none() => break,
            (Some(_), _) if observed.refused.contains_key(&kind) => break,
            (Some(child), _) => operations.extend(apply(observed, kind, ours, child)),
            (None, _) => operations.extend(ours.and_then(|live| delete(kind, live))),
        }
    }
    operations
}

fn apply(
    observed: &Observed,
    kind: ChildKind,
    ours: Option<&Child>,
    child: Value,
) -> Vec<Operation> {
    let up_to_date = |live: &Child| {
        // One that is going is made anew when it is gone.
        live.deleting || live.owned.as_ref() == Some(&owned_part(&child))
    };
    if observed.applied.contains(&kind) || ours.is_some_and(up_to_date) {
        return Vec::new();
    }
    let take_port = ours.and_then(|live| take_port(kind, live, &child));
    let uid = ours.map(|live| live.uid.clone());
    take_port.into_iter().chain([Operation::Apply { kind, uid, child }]).collect()
}

/// Whether somebody else's port bears the name of ours and would make the server refuse it.
fn take_port(kind: ChildKind, live: &Child, child: &Value) -> Option<Operation> {
    let ours = children::port(child)?;
    let same = |field: &str, entry: &Value| entry.get(field) == ours.get(field);
    let same_number = |entry: &Value| {
        same("protocol", entry) && same("port", entry) && same("containerPort", entry)
    };
    let in_our_list = |port: &&ForeignPort| {
        port.container.as_deref().is_none_or(|container| container == children::CONTAINER)
    };
    let mut ports = live.foreign_ports.iter().filter(in_our_list);
    let is_there = ports.clone().any(|port| same_number(&port.entry));
    let taken = ports.find(|port| same("name", &port.entry) && !same_number(&port.entry))?;
    Some(Operation::TakePort {
        kind,
        uid: live.uid.clone(),
        resource_version: live.resource_version.clone(),
        path: taken.path.clone(),
        port: (!is_there).then(|| ours.clone()),
    })
}

fn delete(kind: ChildKind, live: &Child) -> Option<Operation> {
    let operation = Operation::Delete {
        kind,
        uid: live.uid.clone(),
        resource_version: live.resource_version.clone(),
    };
    (!live.deleting).then_some(operation)
}

/// Pods are asked why an app is not there, but not in the first moments after something changed:
/// every rollout has those. What failed is asked each time, or the failure would be forgotten.
fn wants_pods(observed: &Observed, app: &Valid, now: Timestamp) -> bool {
    let status = &observed.app.status;
    let is_time = status.phase == Some(Phase::Failed) || age(status, now) >= LOOK_MIN;
    let in_the_way = !conflicts(observed, app).is_empty() || !observed.refused.is_empty();
    let deployment = observed.ours(ChildKind::Deployment);
    observed.pods.is_none()
        && is_time
        && !in_the_way
        && deployment.is_some_and(|live| !status::is_complete(live, app) && status::has_pods(live))
}

fn look_again(observed: &Observed, phase: Phase, age: SignedDuration) -> Duration {
    if !observed.refused.is_empty() {
        return REFUSED_RETRY;
    }
    let is_waiting = match phase {
        Phase::Available => false,
        Phase::Pending | Phase::Progressing => true,
        // Pods tell of themselves only when asked; all other failures end with an event.
        Phase::Failed => observed.pods.is_some(),
    };
    if is_waiting {
        return age.clamp(LOOK_MIN, LOOK_MAX).unsigned_abs();
    }
    RESYNC + spread(&observed.app.uid, RESYNC / 10)
}

fn age(status: &SimpleAppStatus, now: Timestamp) -> SignedDuration {
    status.last_updated.as_ref().map_or(SignedDuration::ZERO, |time| now.duration_since(time.0))
}
