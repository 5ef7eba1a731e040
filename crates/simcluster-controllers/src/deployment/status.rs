//! A Deployment's status and conditions, as data from its ReplicaSets.

use std::time::Duration;

use crate::types::{Deployment, ReplicaSet, Text};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{DeploymentCondition, DeploymentStatus, ReplicaSetCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::numbers::{available, counted, max_unavailable, total_size, wanted};
use crate::runtime::recorder::whole_seconds;

pub(crate) const AVAILABLE: &str = "Available";
pub(crate) const PROGRESSING: &str = "Progressing";
pub(crate) const REPLICA_FAILURE: &str = "ReplicaFailure";

/// The rollout is complete.
pub(crate) const COMPLETE: &str = "NewReplicaSetAvailable";
/// The rollout made no progress for too long.
pub(crate) const TIMED_OUT: &str = "ProgressDeadlineExceeded";
/// The Deployment is paused.
pub(crate) const PAUSED: &str = "DeploymentPaused";

/// A condition that begins now.
pub(crate) fn condition(
    type_: &str,
    status: &str,
    reason: &str,
    message: String,
    now: Timestamp,
) -> DeploymentCondition {
    let time = Some(Time(whole_seconds(now)));
    DeploymentCondition {
        type_: type_.to_owned().into(),
        status: status.to_owned().into(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_update_time: time.clone(),
        last_transition_time: time,
    }
}

/// The condition of a type.
pub(crate) fn find<'a>(
    status: &'a DeploymentStatus,
    type_: &str,
) -> Option<&'a DeploymentCondition> {
    status.conditions.iter().flatten().find(|one| one.type_.text() == type_)
}

fn reason(condition: Option<&DeploymentCondition>) -> Option<&str> {
    condition.and_then(|condition| condition.reason.as_deref())
}

/// Sets a condition. One of the same status and reason stays as it is; a replaced one moves to the end,
/// and keeps its transition time if only the reason changed.
pub(crate) fn set(status: &mut DeploymentStatus, mut condition: DeploymentCondition) {
    let type_ = condition.type_.text().to_owned();
    if let Some(current) = find(status, &type_)
        && current.status == condition.status
    {
        if current.reason == condition.reason {
            return;
        }
        condition.last_transition_time.clone_from(&current.last_transition_time);
    }
    remove(status, &type_);
    status.conditions.get_or_insert_default().push(condition);
}

/// Removes the condition of a type.
pub(crate) fn remove(status: &mut DeploymentStatus, type_: &str) {
    if let Some(conditions) = &mut status.conditions {
        conditions.retain(|one| one.type_.text() != type_);
        if conditions.is_empty() {
            status.conditions = None;
        }
    }
}

/// Whether two statuses say the same; a count of zero may be written or left out, except the one of
/// terminating Pods, which is only known once it is written.
pub(crate) fn same(one: &DeploymentStatus, other: &DeploymentStatus) -> bool {
    plain(one) == plain(other)
}

fn plain(status: &DeploymentStatus) -> DeploymentStatus {
    let nonzero = |count: Option<i32>| count.filter(|count| *count != 0);
    DeploymentStatus {
        available_replicas: nonzero(status.available_replicas),
        ready_replicas: nonzero(status.ready_replicas),
        replicas: nonzero(status.replicas),
        unavailable_replicas: nonzero(status.unavailable_replicas),
        updated_replicas: nonzero(status.updated_replicas),
        observed_generation: status.observed_generation.filter(|generation| *generation != 0),
        conditions: status.conditions.clone().filter(|conditions| !conditions.is_empty()),
        ..*status
    }
}

/// Whether lack of progress is to be reported (`i32::MAX` means never).
pub(crate) fn deadline(deployment: &Deployment) -> Option<SignedDuration> {
    deployment
        .spec
        .progress_deadline_seconds
        .filter(|seconds| *seconds != i32::MAX)
        .map(|seconds| SignedDuration::from_secs(i64::from(seconds)))
}

/// Counts, and the condition Available; the other conditions are the current ones.
pub(crate) fn counts(
    deployment: &Deployment,
    sets: &[ReplicaSet],
    new: Option<&ReplicaSet>,
    now: Timestamp,
) -> DeploymentStatus {
    let current = deployment.status.clone().unwrap_or_default();
    let sum = |count: fn(&ReplicaSet) -> i32| sets.iter().map(count).fold(0, i32::saturating_add);
    let available = sum(available);
    let mut status = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: Some(sum(counted)),
        updated_replicas: Some(new.map_or(0, counted)),
        ready_replicas: Some(sum(ready)),
        available_replicas: Some(available),
        unavailable_replicas: Some(total_size(sets).saturating_sub(available).max(0)),
        terminating_replicas: terminating(sets),
        collision_count: current.collision_count,
        conditions: current.conditions,
    };
    let enough = wanted(deployment).saturating_sub(max_unavailable(deployment));
    let (value, reason, message) = if available >= enough {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    set(&mut status, condition(AVAILABLE, value, reason, message.to_owned(), now));
    plain(&status)
}

fn ready(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0)
}

/// The terminating Pods, unless a ReplicaSet that was counted does not say how many it has.
fn terminating(sets: &[ReplicaSet]) -> Option<i32> {
    let mut sum: i32 = 0;
    for status in sets.iter().filter_map(|set| set.status.as_ref()) {
        match status.terminating_replicas {
            Some(count) => sum = sum.saturating_add(count),
            None if status.observed_generation.unwrap_or(0) == 0 => {}
            None => return None,
        }
    }
    Some(sum)
}

/// Whether all wanted Pods are updated and available and no old ones are left.
pub(crate) fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let wanted = wanted(deployment);
    status.updated_replicas.unwrap_or(0) == wanted
        && status.replicas.unwrap_or(0) == wanted
        && status.available_replicas.unwrap_or(0) == wanted
        && status.observed_generation.unwrap_or(0) >= deployment.metadata.generation.unwrap_or(0)
}

/// Whether the new status is a step forward from the current one.
fn has_progressed(current: &DeploymentStatus, new: &DeploymentStatus) -> bool {
    let updated = |status: &DeploymentStatus| status.updated_replicas.unwrap_or(0);
    let old = |status: &DeploymentStatus| status.replicas.unwrap_or(0).saturating_sub(updated(status));
    updated(new) > updated(current)
        || old(new) < old(current)
        || new.ready_replicas.unwrap_or(0) > current.ready_replicas.unwrap_or(0)
        || new.available_replicas.unwrap_or(0) > current.available_replicas.unwrap_or(0)
}

/// The status during a rollout: counts and all three conditions.
pub(crate) fn of_rollout(
    deployment: &Deployment,
    sets: &[ReplicaSet],
    new: Option<&ReplicaSet>,
    now: Timestamp,
) -> DeploymentStatus {
    let mut status = counts(deployment, sets, new, now);
    match deadline(deployment) {
        None => remove(&mut status, PROGRESSING),
        Some(deadline) => set_progress(deployment, new, &mut status, deadline, now),
    }
    match failure(sets, new) {
        Some(failure) => set(&mut status, failure),
        None => remove(&mut status, REPLICA_FAILURE),
    }
    status
}

fn set_progress(
    deployment: &Deployment,
    new: Option<&ReplicaSet>,
    status: &mut DeploymentStatus,
    deadline: SignedDuration,
    now: Timestamp,
) {
    let current = deployment.status.clone().unwrap_or_default();
    let progress = find(&current, PROGRESSING);
    if status.replicas == status.updated_replicas && reason(progress) == Some(COMPLETE) {
        return;
    }
    let who = new.and_then(|set| set.metadata.name.as_deref()).map_or_else(
        || format!("Deployment {:?}", deployment.metadata.name.as_deref().unwrap_or_default()),
        |name| format!("ReplicaSet {name:?}"),
    );
    if is_complete(deployment, status) {
        let message = format!("{who} has successfully progressed.");
        set(status, condition(PROGRESSING, "True", COMPLETE, message, now));
    } else if has_progressed(&current, status) {
        let message = format!("{who} is progressing.");
        let mut condition = condition(PROGRESSING, "True", "ReplicaSetUpdated", message, now);
        // Each step forward moves the update time, which the deadline counts from, even if status and
        // reason stay.
        if let Some(progress) = progress.filter(|one| one.status.text() == "True") {
            condition.last_transition_time.clone_from(&progress.last_transition_time);
        }
        remove(status, PROGRESSING);
        set(status, condition);
    } else if has_timed_out(progress, deadline, now) {
        let message = format!("{who} has timed out progressing.");
        set(status, condition(PROGRESSING, "False", TIMED_OUT, message, now));
    }
}

fn has_timed_out(
    progress: Option<&DeploymentCondition>,
    deadline: SignedDuration,
    now: Timestamp,
) -> bool {
    match reason(progress) {
        None | Some(COMPLETE) => false,
        Some(TIMED_OUT) => true,
        Some(_) => last_update(progress).is_some_and(|from| now.duration_since(from) > deadline),
    }
}

fn last_update(progress: Option<&DeploymentCondition>) -> Option<Timestamp> {
    progress.and_then(|progress| progress.last_update_time.as_ref()).map(|time| time.0)
}

/// The ReplicaFailure of the new ReplicaSet, else of any.
fn failure(sets: &[ReplicaSet], new: Option<&ReplicaSet>) -> Option<DeploymentCondition> {
    new.into_iter()
        .chain(sets)
        .filter_map(|set| set.status.as_ref())
        .flat_map(|status| status.conditions.iter().flatten())
        .find(|one| one.type_.text() == REPLICA_FAILURE)
        .map(failure_of)
}

fn failure_of(condition: &ReplicaSetCondition) -> DeploymentCondition {
    DeploymentCondition {
        type_: condition.type_.clone(),
        status: condition.status.clone(),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
        last_update_time: condition.last_transition_time.clone(),
        last_transition_time: condition.last_transition_time.clone(),
    }
}

/// When to look again whether the deadline has passed; `None` if nothing is under way.
pub(crate) fn recheck(
    deployment: &Deployment,
    status: &DeploymentStatus,
    now: Timestamp,
) -> Option<Duration> {
    let deadline = deadline(deployment)?;
    let current = deployment.status.as_ref()?;
    let progress = find(current, PROGRESSING)?;
    if is_complete(deployment, status) || progress.reason.as_deref() == Some(TIMED_OUT) {
        return None;
    }
    if progress.reason.as_deref() == Some(COMPLETE) {
        // The next step is the ReplicaSets', and no deadline runs after a completed rollout.
        return None;
    }
    let left = deadline.saturating_sub(now.duration_since(last_update(Some(progress))?));
    // Times in conditions have whole seconds: a second more is surely past the deadline.
    Some(Duration::try_from(left).unwrap_or(Duration::ZERO) + Duration::from_secs(1))
}
