//! The annotations by which a Deployment keeps revisions and sizes on its ReplicaSets.

use crate::types::{Deployment, ReplicaSet};

use super::numbers::{max_surge, size, wanted};

const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAX: &str = "deployment.kubernetes.io/max-replicas";
/// Annotations of a Deployment that its ReplicaSets do not inherit.
const NOT_INHERITED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAX,
    "deprecated.deployment.rollback.to",
];
/// Longest list of earlier revisions, in characters.
const HISTORY_MAX: usize = 2000;

fn get<'a>(set: &'a ReplicaSet, key: &str) -> Option<&'a String> {
    set.metadata.annotations.as_ref().and_then(|all| all.get(key))
}

/// Writes an annotation; says whether that changed it.
fn put(set: &mut ReplicaSet, key: &str, value: String) -> bool {
    if get(set, key) == Some(&value) {
        return false;
    }
    set.metadata.annotations.get_or_insert_default().insert(key.to_owned(), value);
    true
}

/// A ReplicaSet's revision; 0 if it has none, or one that is no number.
pub(crate) fn revision(set: &ReplicaSet) -> i64 {
    get(set, REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// A ReplicaSet's revision as written.
pub(crate) fn revision_text(set: &ReplicaSet) -> String {
    get(set, REVISION).cloned().unwrap_or_default()
}

/// The Deployment's size when the ReplicaSet was last sized.
pub(crate) fn desired(set: &ReplicaSet) -> Option<i32> {
    count(set, DESIRED)
}

fn count(set: &ReplicaSet, key: &str) -> Option<i32> {
    get(set, key)?.parse().ok().filter(|count| *count >= 0)
}

/// Writes the revision of the current template on the Deployment; says whether that changed it.
pub(crate) fn set_revision(deployment: &mut Deployment, revision: &str) -> bool {
    let annotations = deployment.metadata.annotations.get_or_insert_default();
    let old = annotations.insert(REVISION.to_owned(), revision.to_owned());
    old.as_deref() != Some(revision)
}

/// Writes the Deployment's size, and that with surge, on a ReplicaSet; says whether that changed it.
pub(crate) fn set_sizes(deployment: &Deployment, set: &mut ReplicaSet) -> bool {
    let wanted = wanted(deployment);
    let desired = put(set, DESIRED, wanted.to_string());
    let max = put(set, MAX, wanted.saturating_add(max_surge(deployment)).to_string());
    desired || max
}

/// Copies the Deployment's annotations to the ReplicaSet of its template and raises its revision to
/// `revision` if it is lower, keeping the old one as history. Says whether that changed anything.
pub(crate) fn inherit(deployment: &Deployment, set: &mut ReplicaSet, revision: i64) -> bool {
    let mut changed = false;
    for (key, value) in deployment.metadata.annotations.iter().flatten() {
        if !NOT_INHERITED.contains(&key.as_str()) {
            changed |= put(set, key, value.clone());
        }
    }
    let old = get(set, REVISION).cloned();
    let old_number = match old.as_deref() {
        None | Some("") => 0,
        Some(text) => match text.parse::<i64>() {
            Ok(number) => number,
            Err(_) => return false,
        },
    };
    if old_number < revision {
        changed |= put(set, REVISION, revision.to_string());
        if let Some(old) = old {
            add_to_history(set, &old);
        }
    }
    changed
}

fn add_to_history(set: &mut ReplicaSet, revision: &str) {
    let history = get(set, HISTORY).cloned().unwrap_or_default();
    let mut entries: Vec<&str> = history.split(',').filter(|entry| !entry.is_empty()).collect();
    entries.push(revision);
    let mut from = 0;
    let length = |entries: &[&str]| entries.iter().map(|entry| entry.len() + 1).sum::<usize>();
    while length(entries.get(from..).unwrap_or_default()) > HISTORY_MAX + 1 {
        from += 1;
    }
    let history = entries.get(from..).unwrap_or_default().join(",");
    put(set, HISTORY, history);
}

/// How many of the `to_add` Pods (negative: to remove) an active ReplicaSet gets, when `added` are
/// given to others already: in proportion to its size.
pub(crate) fn share(deployment: &Deployment, set: &ReplicaSet, to_add: i32, added: i32) -> i32 {
    let size = size(set);
    if size == 0 || to_add == 0 || to_add == added {
        return 0;
    }
    let fraction = fraction(deployment, set, size);
    let left = to_add.saturating_sub(added);
    if to_add > 0 { fraction.min(left) } else { fraction.max(left) }
}

fn fraction(deployment: &Deployment, set: &ReplicaSet, size: i32) -> i32 {
    if wanted(deployment) == 0 {
        return -size;
    }
    let max_now = i128::from(wanted(deployment).saturating_add(max_surge(deployment)));
    let counted = deployment.status.as_ref().and_then(|status| status.replicas);
    let max_before = count(set, MAX).filter(|max| *max != 0).or(counted).unwrap_or(0);
    if max_before == 0 {
        return 0;
    }
    // size * max_now / max_before, rounded half away from zero; all are positive.
    let (product, before) = (i128::from(size) * max_now, i128::from(max_before));
    let rounded = (2 * product + before).div_euclid(2 * before);
    i32::try_from(rounded).unwrap_or(i32::MAX) - size
}
