//! The conditions of a namespace that is being deleted, as data.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::NamespaceCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::runtime::recorder::whole_seconds;

/// What a round of deletion found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Round {
    /// Why discovery failed.
    pub(crate) discovery: Option<String>,
    /// Why content could not be deleted.
    pub(crate) failures: Vec<String>,
    /// Objects left, by `resource.group`.
    pub(crate) remaining: BTreeMap<String, usize>,
    /// Objects left with a finalizer, by finalizer.
    pub(crate) finalizers: BTreeMap<String, usize>,
    /// Only the Pods were looked at, because there are some left.
    pub(crate) is_waiting_for_pods: bool,
}

/// A condition's type, and the reason and message that it has while all is well.
const WELL: [(&str, &str, &str); 5] = [
    (
        "NamespaceDeletionDiscoveryFailure",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    (
        "NamespaceFinalizersRemaining",
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
];

/// The conditions after a round; `None` if they are what they were.
pub(crate) fn after(
    current: &[NamespaceCondition],
    round: &Round,
    now: Timestamp,
) -> Option<Vec<NamespaceCondition>> {
    let mut conditions = current.to_vec();
    let mut is_changed = false;
    for (type_, reason, message) in WELL {
        let (status, reason, message) = match problem(type_, round) {
            Some((reason, message)) => ("True", reason, message),
            None => ("False", reason, message.to_owned()),
        };
        let time = Some(Time(whole_seconds(now)));
        let mut wanted = NamespaceCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message),
            last_transition_time: time,
        };
        match conditions.iter_mut().find(|one| one.type_ == type_) {
            None => conditions.push(wanted),
            Some(found) => {
                if found.status == wanted.status {
                    wanted.last_transition_time.clone_from(&found.last_transition_time);
                }
                if *found == wanted {
                    continue;
                }
                *found = wanted;
            }
        }
        is_changed = true;
    }
    is_changed.then_some(conditions)
}

fn problem(type_: &str, round: &Round) -> Option<(&'static str, String)> {
    match type_ {
        "NamespaceDeletionDiscoveryFailure" => {
            round.discovery.clone().map(|why| ("DiscoveryFailed", why))
        }
        "NamespaceDeletionContentFailure" if !round.failures.is_empty() => {
            let mut failures = round.failures.clone();
            failures.sort();
            let message = format!(
                "Failed to delete all resource types, {} remaining: {}",
                failures.len(),
                failures.join(", ")
            );
            Some(("ContentDeletionFailed", message))
        }
        // While Pods are left, what remains is not told: nothing else was looked at.
        _ if round.is_waiting_for_pods => None,
        "NamespaceContentRemaining" if !round.remaining.is_empty() => {
            let list = list(&round.remaining, |name, count| {
                format!("{name} has {count} resource instances")
            });
            Some(("SomeResourcesRemain", format!("Some resources are remaining: {list}")))
        }
        "NamespaceFinalizersRemaining" if !round.finalizers.is_empty() => {
            let list = list(&round.finalizers, |name, count| {
                format!("{name} in {count} resource instances")
            });
            let message = format!("Some content in the namespace has finalizers remaining: {list}");
            Some(("SomeFinalizersRemain", message))
        }
        _ => None,
    }
}

fn list(counts: &BTreeMap<String, usize>, text: impl Fn(&str, usize) -> String) -> String {
    let mut texts: Vec<String> = counts.iter().map(|(name, count)| text(name, *count)).collect();
    texts.sort();
    texts.join(", ")
}
