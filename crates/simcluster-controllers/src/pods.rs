//! Questions about Pods that several controllers ask.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, PodCondition};

use super::owners::{controller_of, group_of, orphans_of};
use super::runtime::Store;
use super::runtime::selectors::Pairs;

/// The groups that Pods are found under: their controller's, and one for each label.
pub(crate) fn groups_of(pod: &Pod) -> Vec<String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let labels = pod.metadata.labels.iter().flatten();
    let labels = labels.map(|(key, value)| labelled(namespace, key, value));
    std::iter::once(group_of(pod)).chain(labels).collect()
}

fn labelled(namespace: &str, key: &str, value: &str) -> String {
    format!("{key}={value} in {namespace}")
}

/// Pods of a namespace among which are all with these labels. There must be one label at least.
pub(crate) fn with_labels(pods: &Store<Pod>, namespace: &str, labels: &Pairs) -> Vec<Arc<Pod>> {
    pods.smallest_group(labels.iter().map(|(key, value)| labelled(namespace, key, value)))
}

/// Pods of a namespace among which are all without controller that a selector with these labels may
/// match.
pub(crate) fn orphans(pods: &Store<Pod>, namespace: &str, labels: Option<&Pairs>) -> Vec<Arc<Pod>> {
    let labels = labels.into_iter().flatten();
    let labels = labels.map(|(key, value)| labelled(namespace, key, value));
    let mut found = pods.smallest_group(labels.chain([orphans_of(namespace)]));
    found.retain(|pod| controller_of(&pod.metadata).is_none());
    found
}

/// The phase; empty if unset.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// The node the Pod is bound to; empty if it is not.
pub(crate) fn node(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// Whether all containers ended for good.
pub(crate) fn is_finished(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether the Pod is being deleted.
pub(crate) fn is_deleting(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether the Pod is neither finished nor being deleted.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !is_finished(pod) && !is_deleting(pod)
}

/// The condition of a type.
pub(crate) fn condition<'a>(pod: &'a Pod, type_: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().find(|one| one.type_ == type_)
}

/// Whether the Pod is ready.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

/// Since when the Pod is ready; `None` if it is not, or if it does not say.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let ready = condition(pod, "Ready").filter(|ready| ready.status == "True")?;
    ready.last_transition_time.as_ref().map(|time| time.0)
}

/// Whether the Pod has been ready for long enough.
pub(crate) fn is_available(pod: &Pod, min_ready: SignedDuration, now: Timestamp) -> bool {
    is_ready(pod)
        && (min_ready.is_zero()
            || ready_since(pod).is_some_and(|since| now.duration_since(since) >= min_ready))
}
