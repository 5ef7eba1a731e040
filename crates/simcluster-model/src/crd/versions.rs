//! The order of API versions.

use std::cmp::Ordering;

/// How stable a version is: `v2` before `v2beta1` before `v2alpha1` before names of another form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stability {
    Other,
    Alpha,
    Beta,
    Stable,
}

/// Compares versions as Kubernetes does: the greater one is the better one. Names that are no versions
/// come last, in alphabetical order.
#[must_use]
pub fn compare_kube_aware(left: &str, right: &str) -> Ordering {
    let (left_rank, right_rank) = (rank(left), rank(right));
    left_rank.cmp(&right_rank).then_with(|| right.cmp(left))
}

fn rank(version: &str) -> (Stability, u64, u64) {
    parse(version).unwrap_or((Stability::Other, 0, 0))
}

fn parse(version: &str) -> Option<(Stability, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
    let (major, suffix) = rest.split_at(digits);
    let major = number(major)?;
    if suffix.is_empty() {
        return Some((Stability::Stable, major, 0));
    }
    let (stability, minor) = match (suffix.strip_prefix("beta"), suffix.strip_prefix("alpha")) {
        (Some(minor), _) => (Stability::Beta, minor),
        (None, Some(minor)) => (Stability::Alpha, minor),
        (None, None) => return None,
    };
    Some((stability, major, number(minor)?))
}

/// A number without leading zeros.
fn number(digits: &str) -> Option<u64> {
    if digits.starts_with('0') { None } else { digits.parse().ok() }
}
