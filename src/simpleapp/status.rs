//! What was observed -> phase, message and conditions.
//!
//! A status is written for people and for `kubectl wait`: it changes when something changed for
//! them, and its texts hold nothing that differs from event to event.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::apps::v1::{DeploymentCondition, DeploymentStatus},
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};

use crate::{
    api::simpleapp::{Phase, SimpleAppStatus},
    kernel::{
        events::{Event, Severity},
        ownership::Child,
    },
};

use super::{
    children::selector_text,
    observed::{App, ChildKind, Observed},
    plan::conflicts,
    pods,
    validate::{Invalid, Valid},
};

/// While nothing but numbers moves, the status is written no more often than this: as often as a
/// HorizontalPodAutoscaler looks at the scale subresource.
pub const COUNTS_INTERVAL: SignedDuration = SignedDuration::from_secs(15);

const AVAILABLE: &str = "Available";
const PROGRESSING: &str = "Progressing";
const DEGRADED: &str = "Degraded";
const NAME_CONFLICT: &str = "NameConflict";

/// What is to be said of an app, without times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assessment {
    /// State in one word.
    pub phase: Phase,
    /// Why, in one word.
    pub reason: String,
    /// Why, for a human.
    pub message: String,
    /// Whether the app serves, if only with pods of an older spec.
    pub serving: bool,
    /// Which objects have the names of children and are not ours.
    pub conflict: Option<String>,
    /// How many pods there are.
    pub replicas: i32,
    /// How many of them are ready.
    pub ready_replicas: i32,
    /// Where the app is reachable.
    pub url: Option<String>,
}

/// What to do about a status.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// It says what is so.
    Keep,
    /// Only numbers moved: it can wait this long.
    Wait(Duration),
    /// It has to become this.
    Write(Box<SimpleAppStatus>),
}

/// Sums up what was observed.
#[must_use]
pub fn assess(observed: &Observed, valid: &Result<Valid, Vec<Invalid>>) -> Assessment {
    let deployment = observed.ours(ChildKind::Deployment).map(Progress::of);
    let counts = deployment.as_ref().map(|progress| &progress.status);
    let conflict = conflict_text(observed, valid);
    let (phase, reason, message) = verdict(observed, valid, deployment.as_ref(), conflict.clone());
    Assessment {
        phase,
        reason,
        message,
        serving: phase == Phase::Available
            || deployment.as_ref().is_some_and(|progress| progress.has("Available", "True")),
        conflict,
        replicas: counts.and_then(|status| status.replicas).unwrap_or_default(),
        ready_replicas: counts.and_then(|status| status.ready_replicas).unwrap_or_default(),
        // Only our own Ingress leads to the app: a stranger's may be in its place.
        url: valid
            .as_ref()
            .ok()
            .filter(|_| observed.ours(ChildKind::Ingress).is_some())
            .and_then(|app| app.host.as_ref())
            .map(|host| format!("http://{host}")),
    }
}

/// Whether the Deployment has finished what `app` asks for, with no old pods left.
#[must_use]
pub fn is_complete(deployment: &Child, app: &Valid) -> bool {
    Progress::of(deployment).is_complete(app.replicas)
}

/// Whether the Deployment has pods that could tell why it is not complete.
#[must_use]
pub fn has_pods(deployment: &Child) -> bool {
    Progress::of(deployment).status.replicas.unwrap_or_default() > 0
}

/// A Deployment's status, and whether it is about the current spec.
struct Progress {
    status: DeploymentStatus,
    is_current: bool,
}

impl Progress {
    fn of(deployment: &Child) -> Self {
        // A status that cannot be read says nothing, like one that is not there yet.
        let status: DeploymentStatus =
            serde_json::from_value(deployment.status.clone()).unwrap_or_default();
        let is_current = status.observed_generation.unwrap_or_default() >= deployment.generation;
        Self { status, is_current }
    }

    fn condition(&self, kind: &str, status: &str) -> Option<&DeploymentCondition> {
        self.status.conditions.iter().flatten().find(|condition| {
            condition.type_.as_deref() == Some(kind) && condition.status.as_deref() == Some(status)
        })
    }

    fn has(&self, kind: &str, status: &str) -> bool {
        self.condition(kind, status).is_some()
    }

    fn is_complete(&self, desired: u32) -> bool {
        let is_desired =
            |count: Option<i32>| u32::try_from(count.unwrap_or_default()) == Ok(desired);
        self.is_current
            && is_desired(self.status.updated_replicas)
            && is_desired(self.status.ready_replicas)
            && is_desired(self.status.replicas)
    }
}

/// Phase, reason and message.
fn verdict(
    observed: &Observed,
    valid: &Result<Valid, Vec<Invalid>>,
    deployment: Option<&Progress>,
    conflict: Option<String>,
) -> (Phase, String, String) {
    let failed = |reason: &str, message: String| (Phase::Failed, reason.to_owned(), message);
    let app = match valid {
        Ok(app) => app,
        Err(problems) => {
            let texts: Vec<String> = problems.iter().map(Invalid::to_string).collect();
            return failed("InvalidSpec", texts.join("; "));
        }
    };
    if let Some(text) = conflict {
        return failed(NAME_CONFLICT, text);
    }
    if let Some((kind, refusal)) = observed.refused.first_key_value() {
        let reason = quota_or(&refusal.message, &refusal.reason);
        return failed(reason, format!("{kind:?}: {}", essence(&refusal.message)));
    }
    if let Some((kind, message)) = &observed.trouble {
        let phase = deployment.map_or(Phase::Pending, |_exists| Phase::Progressing);
        return (phase, "ServerTrouble".into(), format!("{kind:?}: {}", essence(message)));
    }
    let Some(deployment) = deployment else {
        return (Phase::Pending, "NoDeployment".into(), "The Deployment does not exist yet".into());
    };
    if deployment.is_complete(app.replicas) {
        // Only conditions about a finished rollout could contradict it, and there are none.
        return complete(app.replicas);
    }
    let pods = observed.pods.as_deref().unwrap_or_default();
    if let Some(failure) = pods::failure(pods, app, observed.app.status.message.as_deref()) {
        return failed(failure.reason, failure.message);
    }
    if let Some((reason, message)) = rollout_failure(deployment) {
        return failed(&reason, message);
    }
    let ready = deployment.status.ready_replicas.unwrap_or_default();
    let message = format!("{ready}/{} replicas ready", app.replicas);
    (Phase::Progressing, "RollingOut".into(), message)
}

fn complete(replicas: u32) -> (Phase, String, String) {
    let reason = if replicas == 0 { "ScaledToZero" } else { "AllReplicasReady" };
    (Phase::Available, reason.into(), format!("All {replicas}/{replicas} replicas ready"))
}

/// What the Deployment controller says of a rollout that does not get on. What it said of an older
/// spec does not count.
fn rollout_failure(deployment: &Progress) -> Option<(String, String)> {
    if !deployment.is_current {
        return None;
    }
    if let Some(condition) = deployment.condition("ReplicaFailure", "True") {
        let message = condition.message.as_deref().unwrap_or_default();
        return Some((quota_or(message, "ReplicaFailure").to_owned(), essence(message)));
    }
    let stuck = deployment.condition("Progressing", "False")?;
    let reason = "ProgressDeadlineExceeded";
    let message = "ProgressDeadlineExceeded: the rollout made no progress in time".to_owned();
    (stuck.reason.as_deref() == Some(reason)).then(|| (reason.to_owned(), message))
}

fn quota_or<'a>(message: &str, otherwise: &'a str) -> &'a str {
    if message.contains("exceeded quota") { "QuotaExceeded" } else { otherwise }
}

/// The part of the server's words that stays the same while nothing changes for the user: without
/// the generated name of a pod in front, and without how much of a quota is used at the moment.
fn essence(message: &str) -> String {
    let cut = message.split_once(" is forbidden: ").or_else(|| message.split_once(" is invalid: "));
    let text = cut.map_or(message, |(_object, rest)| rest);
    if let Some((before, rest)) = text.split_once(", used: ")
        && let Some((_used, limited)) = rest.split_once(", limited: ")
    {
        return format!("{before}, limited: {limited}");
    }
    text.to_owned()
}

fn conflict_text(observed: &Observed, valid: &Result<Valid, Vec<Invalid>>) -> Option<String> {
    let strangers = conflicts(observed, valid.as_ref().ok()?);
    let texts: Vec<String> = strangers
        .iter()
        .map(|(kind, stranger)| match &stranger.controller {
            Some(owner) => format!(
                "{kind:?} \"{}\" belongs to {} \"{}\", not to this SimpleApp",
                stranger.key.name, owner.kind, owner.name
            ),
            None => {
                format!(
                    "{kind:?} \"{}\" exists and does not belong to this SimpleApp",
                    stranger.key.name
                )
            }
        })
        .collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// What to do about the status of `app`, given what is to be said of it.
#[must_use]
pub fn change(app: &App, assessment: &Assessment, now: Timestamp) -> Change {
    let old = &app.status;
    let mut new = build(app, assessment, now);
    new.last_updated.clone_from(&old.last_updated);
    if new == *old {
        return Change::Keep;
    }
    let since = old.last_updated.as_ref().map(|time| now.duration_since(time.0));
    if let Some(since) = since
        && differs_in_counts_only(old, &new)
        && (SignedDuration::ZERO..COUNTS_INTERVAL).contains(&since)
    {
        return Change::Wait((COUNTS_INTERVAL - since).unsigned_abs());
    }
    new.last_updated = Some(time(now));
    Change::Write(Box::new(new))
}

/// The Event that goes with the change from `old` to `new`, if it is worth one.
#[must_use]
pub fn event(old: &SimpleAppStatus, new: &SimpleAppStatus) -> Option<Event> {
    let note = new.message.clone().unwrap_or_default();
    match (old.phase, new.phase) {
        (_, Some(Phase::Failed)) => {
            let reason = |status: &SimpleAppStatus| {
                let degraded =
                    status.conditions.iter().find(|condition| condition.type_ == DEGRADED);
                degraded.map(|condition| condition.reason.clone())
            };
            let again = old.phase == Some(Phase::Failed) && reason(old) == reason(new);
            let conflict = reason(new).as_deref() == Some(NAME_CONFLICT);
            let reason = if conflict { NAME_CONFLICT } else { "Failed" };
            (!again).then_some(Event {
                severity: Severity::Warning,
                reason,
                action: "Reconcile",
                note,
            })
        }
        (Some(Phase::Failed), Some(Phase::Available)) => Some(Event {
            severity: Severity::Normal,
            reason: "Recovered",
            action: "Reconcile",
            note,
        }),
        _ => None,
    }
}

/// Times are written in whole seconds, as the API server writes its own.
fn time(now: Timestamp) -> Time {
    let whole = Timestamp::from_second(now.as_second());
    Time(whole.expect("a whole second before a timestamp is a timestamp"))
}

fn build(app: &App, assessment: &Assessment, now: Timestamp) -> SimpleAppStatus {
    SimpleAppStatus {
        phase: Some(assessment.phase),
        message: Some(assessment.message.clone()),
        ready_replicas: assessment.ready_replicas,
        replicas: assessment.replicas,
        selector: Some(selector_text(&app.key.name)),
        url: assessment.url.clone(),
        observed_generation: Some(app.generation),
        last_updated: None,
        conditions: conditions(app, assessment, now),
    }
}

/// All conditions, in fixed order.
fn conditions(app: &App, assessment: &Assessment, now: Timestamp) -> Vec<Condition> {
    let Assessment { phase, reason, message, .. } = assessment;
    let is_failed = *phase == Phase::Failed;
    let is_moving = matches!(phase, Phase::Pending | Phase::Progressing);
    let make = |kind: &str, is_true: bool, reason: &str, message: &str| {
        let status = if is_true { "True" } else { "False" };
        let before = app.status.conditions.iter().find(|old| old.type_ == kind);
        let since =
            before.filter(|old| old.status == status).map(|old| old.last_transition_time.clone());
        Condition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            observed_generation: Some(app.generation),
            last_transition_time: since.unwrap_or_else(|| time(now)),
        }
    };
    let available_reason = match (assessment.serving, phase) {
        (true, Phase::Available) => reason,
        (true, Phase::Pending | Phase::Progressing | Phase::Failed) => "MinimumReplicasAvailable",
        (false, _) => "MinimumReplicasUnavailable",
    };
    let progressing_reason = if is_failed { "Failed" } else { reason };
    let degraded_reason = if is_failed { reason } else { "AsExpected" };
    let failure = if is_failed { message.as_str() } else { "" };
    let conflict = assessment.conflict.as_deref();
    let conflict_reason = if conflict.is_some() { "NotOurs" } else { "NoConflict" };
    vec![
        make(AVAILABLE, assessment.serving, available_reason, message),
        make(PROGRESSING, is_moving, progressing_reason, message),
        make(DEGRADED, is_failed, degraded_reason, failure),
        make(NAME_CONFLICT, conflict.is_some(), conflict_reason, conflict.unwrap_or_default()),
    ]
}

fn differs_in_counts_only(old: &SimpleAppStatus, new: &SimpleAppStatus) -> bool {
    let mut blank = new.clone();
    blank.message.clone_from(&old.message);
    blank.ready_replicas = old.ready_replicas;
    blank.replicas = old.replicas;
    for (condition, before) in blank.conditions.iter_mut().zip(&old.conditions) {
        condition.message.clone_from(&before.message);
    }
    blank == *old
}
