//! What a ReplicaSet needs next, as data: how many Pods to create or which to delete, and its status.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::types::{ReplicaSet, Text};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use crate::owners::controller_reference;
use crate::pods;
use crate::runtime::recorder::whole_seconds;

/// So many Pods at most are created or deleted in one pass.
const BURST: usize = 500;
/// Condition of a ReplicaSet that cannot create or delete Pods.
const FAILURE: &str = "ReplicaFailure";

/// What to do about the number of Pods.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sizing {
    /// The number is right.
    Enough,
    /// Create so many Pods.
    Create(usize),
    /// Delete these Pods.
    Delete(Vec<Arc<Pod>>),
}

/// Decides about the number of Pods. `active` are the ReplicaSet's Pods that are neither finished nor
/// being deleted; `related` those of all ReplicaSets of the same owner.
pub(crate) fn size(
    set: &ReplicaSet,
    active: &[Arc<Pod>],
    related: &[Arc<Pod>],
    now: Timestamp,
) -> Sizing {
    let wanted = usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or(0);
    if active.len() < wanted {
        return Sizing::Create((wanted - active.len()).min(BURST));
    }
    let surplus = (active.len() - wanted).min(BURST);
    if surplus == 0 {
        return Sizing::Enough;
    }
    let mut pods = active.to_vec();
    if surplus < pods.len() {
        sort_for_deletion(&mut pods, related, now);
    }
    pods.truncate(surplus);
    Sizing::Delete(pods)
}

/// Puts the Pods first that serve least.
fn sort_for_deletion(pods: &mut [Arc<Pod>], related: &[Arc<Pod>], now: Timestamp) {
    let mut on_node: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in related.iter().filter(|pod| pods::is_active(pod)) {
        *on_node.entry(pods::node(pod)).or_default() += 1;
    }
    pods.sort_by_cached_key(|pod| {
        (
            !pods::node(pod).is_empty(),
            phase_rank(pod),
            pods::is_ready(pod),
            deletion_cost(pod),
            Reverse(on_node.get(pods::node(pod)).copied().unwrap_or(0)),
            // Times count by order of magnitude; within one, the UID decides, which is as good as chance.
            pods::ready_since(pod).map(|since| magnitude(since, now)),
            Reverse(restarts(pod)),
            pod.metadata.creation_timestamp.as_ref().map(|time| magnitude(time.0, now)),
            pod.metadata.uid.clone(),
        )
    });
}

fn phase_rank(pod: &Pod) -> u8 {
    match pods::phase(pod) {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    }
}

fn deletion_cost(pod: &Pod) -> i32 {
    let annotations = pod.metadata.annotations.as_ref();
    annotations
        .and_then(|all| all.get("controller.kubernetes.io/pod-deletion-cost"))
        .and_then(|cost| cost.parse().ok())
        .unwrap_or(0)
}

fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    statuses.into_iter().flatten().map(|one| one.restart_count).max().unwrap_or(0)
}

/// The age as a power of two of nanoseconds; younger is smaller.
fn magnitude(since: Timestamp, now: Timestamp) -> Option<u32> {
    u128::try_from(now.duration_since(since).as_nanos()).ok().and_then(u128::checked_ilog2)
}

/// A new Pod of the ReplicaSet's template.
pub(crate) fn new_pod(set: &ReplicaSet) -> Pod {
    let template = set.spec.template.clone().unwrap_or_default();
    let metadata = template.metadata.unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(generate_name(set.metadata.name.as_deref().unwrap_or_default())),
            namespace: set.metadata.namespace.clone(),
            labels: metadata.labels,
            annotations: metadata.annotations,
            finalizers: metadata.finalizers,
            owner_references: Some(vec![controller_reference(set)]),
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    }
}

/// `<name>-`, unless no Pod name could come of that; then the name alone.
fn generate_name(set: &str) -> String {
    let with_dash = format!("{set}-");
    if with_dash.len() <= 253 { with_dash } else { set.to_owned() }
}

/// What went wrong when Pods were created or deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trouble<'a> {
    /// `FailedCreate` or `FailedDelete`.
    pub(crate) reason: &'a str,
    /// The server's message.
    pub(crate) message: &'a str,
}

/// The status of a ReplicaSet from its active and terminating Pods.
pub(crate) fn status(
    set: &ReplicaSet,
    active: &[Arc<Pod>],
    terminating: usize,
    trouble: Option<Trouble<'_>>,
    now: Timestamp,
) -> ReplicaSetStatus {
    let current = set.status.clone().unwrap_or_default();
    let min_ready = min_ready(set);
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let count = |wanted: &dyn Fn(&Pod) -> bool| {
        let counted = active.iter().filter(|pod| wanted(pod)).count();
        Some(number(counted)).filter(|count| *count != 0)
    };
    let template = set.spec.template.as_ref();
    let labels = template.and_then(|one| one.metadata.as_ref()).and_then(|one| one.labels.as_ref());
    let has_labels = |pod: &Pod| {
        labels.into_iter().flatten().all(|(key, value)| {
            pod.metadata.labels.as_ref().and_then(|all| all.get(key)) == Some(value)
        })
    };
    ReplicaSetStatus {
        replicas: number(active.len()),
        fully_labeled_replicas: count(&has_labels),
        ready_replicas: count(&pods::is_ready),
        available_replicas: count(&|pod| pods::is_available(pod, min_ready, now)),
        terminating_replicas: Some(number(terminating)),
        observed_generation: set.metadata.generation,
        conditions: conditions(current.conditions.unwrap_or_default(), trouble, now),
    }
}

fn conditions(
    mut current: Vec<ReplicaSetCondition>,
    trouble: Option<Trouble<'_>>,
    now: Timestamp,
) -> Option<Vec<ReplicaSetCondition>> {
    let is_failure = |one: &ReplicaSetCondition| one.type_.text() == FAILURE;
    match trouble {
        None => current.retain(|one| !is_failure(one)),
        Some(trouble) if !current.iter().any(is_failure) => current.push(ReplicaSetCondition {
            type_: FAILURE.to_owned().into(),
            status: "True".to_owned().into(),
            reason: Some(trouble.reason.to_owned()),
            message: Some(trouble.message.to_owned()),
            last_transition_time: Some(Time(whole_seconds(now))),
        }),
        Some(_) => {}
    }
    Some(current).filter(|conditions| !conditions.is_empty())
}

/// Whether a status says something else than the current one.
pub(crate) fn differs(set: &ReplicaSet, status: &ReplicaSetStatus) -> bool {
    let nonzero = |count: Option<i32>| count.filter(|count| *count != 0);
    let plain = |status: &ReplicaSetStatus| ReplicaSetStatus {
        fully_labeled_replicas: nonzero(status.fully_labeled_replicas),
        ready_replicas: nonzero(status.ready_replicas),
        available_replicas: nonzero(status.available_replicas),
        conditions: status.conditions.clone().filter(|conditions| !conditions.is_empty()),
        ..*status
    };
    plain(&set.status.clone().unwrap_or_default()) != plain(status)
}

fn min_ready(set: &ReplicaSet) -> SignedDuration {
    SignedDuration::from_secs(i64::from(set.spec.min_ready_seconds.unwrap_or(0)))
}

/// When the next Pod that is ready becomes available, if any will.
pub(crate) fn next_available(
    set: &ReplicaSet,
    active: &[Arc<Pod>],
    now: Timestamp,
) -> Option<Duration> {
    let min_ready = min_ready(set);
    active
        .iter()
        .filter(|pod| !pods::is_available(pod, min_ready, now))
        .filter_map(|pod| pods::ready_since(pod))
        .filter_map(|since| Duration::try_from(min_ready - now.duration_since(since)).ok())
        .min()
}
