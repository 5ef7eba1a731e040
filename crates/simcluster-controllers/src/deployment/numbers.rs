//! How many Pods a Deployment wants, may have and may lack.

use crate::types::{Deployment, ReplicaSet};
use k8s_openapi::api::apps::v1::RollingUpdateDeployment;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// How old Pods give way to new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strategy {
    RollingUpdate,
    Recreate,
}

/// The Deployment's strategy (RollingUpdate unless it says Recreate).
pub(crate) fn strategy(deployment: &Deployment) -> Strategy {
    let name = deployment.spec.strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
    if name == Some("Recreate") { Strategy::Recreate } else { Strategy::RollingUpdate }
}

/// `spec.replicas`; 1 if unset.
pub(crate) fn wanted(deployment: &Deployment) -> i32 {
    deployment.spec.replicas.unwrap_or(1)
}

/// `spec.replicas` of a ReplicaSet; 1 if unset.
pub(crate) fn size(set: &ReplicaSet) -> i32 {
    set.spec.replicas.unwrap_or(1)
}

/// Pods beyond the wanted ones that a rolling update may have.
pub(crate) fn max_surge(deployment: &Deployment) -> i32 {
    fence_posts(deployment).map_or(0, |(surge, _)| surge)
}

/// Pods of the wanted ones that a rolling update may lack.
pub(crate) fn max_unavailable(deployment: &Deployment) -> i32 {
    if wanted(deployment) == 0 {
        return 0;
    }
    fence_posts(deployment).map_or(0, |(_, unavailable)| unavailable.min(wanted(deployment)))
}

/// Surge as the new ReplicaSet's size is computed from it: without the rule that one of both counts
/// must not be zero.
pub(crate) fn plain_surge(deployment: &Deployment) -> i32 {
    let rolling = rolling(deployment);
    scaled(rolling.and_then(|rolling| rolling.max_surge.as_ref()), wanted(deployment), Round::Up)
}

fn rolling(deployment: &Deployment) -> Option<&RollingUpdateDeployment> {
    deployment.spec.strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref())
}

/// Surge (rounded up) and unavailable (rounded down); both zero would mean no way forward, so then one
/// may be unavailable. `None` if the strategy is another.
fn fence_posts(deployment: &Deployment) -> Option<(i32, i32)> {
    if strategy(deployment) != Strategy::RollingUpdate {
        return None;
    }
    let rolling = rolling(deployment);
    let unavailable = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
    let unavailable = scaled(unavailable, wanted(deployment), Round::Down);
    let surge = plain_surge(deployment);
    Some((surge, if surge == 0 && unavailable == 0 { 1 } else { unavailable }))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Round {
    Up,
    Down,
}

/// A number, or a percentage of `total`; 0 if unset or no number.
fn scaled(value: Option<&IntOrString>, total: i32, round: Round) -> i32 {
    match value {
        None => 0,
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(text)) => {
            let percent: i64 =
                text.strip_suffix('%').and_then(|number| number.parse().ok()).unwrap_or(0);
            let hundredths = percent.saturating_mul(i64::from(total));
            let whole = match round {
                Round::Up => hundredths.saturating_add(99).div_euclid(100),
                Round::Down => hundredths.div_euclid(100),
            };
            i32::try_from(whole).unwrap_or(i32::MAX)
        }
    }
}

/// The wanted Pods of all ReplicaSets.
pub(crate) fn total_size<'a>(sets: impl IntoIterator<Item = &'a ReplicaSet>) -> i32 {
    sets.into_iter().map(size).fold(0, i32::saturating_add)
}

/// The available Pods of a ReplicaSet.
pub(crate) fn available(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0)
}

/// The counted Pods of a ReplicaSet.
pub(crate) fn counted(set: &ReplicaSet) -> i32 {
    set.status.as_ref().map_or(0, |status| status.replicas)
}

/// The size that the new ReplicaSet shall have next, when it is too small: what the surge leaves room
/// for, and never more than wanted.
pub(crate) fn next_size_of_new(deployment: &Deployment, all: &[ReplicaSet], new_size: i32) -> i32 {
    match strategy(deployment) {
        Strategy::Recreate => wanted(deployment),
        Strategy::RollingUpdate => {
            let most = wanted(deployment).saturating_add(plain_surge(deployment));
            let room = most.saturating_sub(total_size(all));
            if room <= 0 {
                return new_size;
            }
            new_size.saturating_add(room.min(wanted(deployment).saturating_sub(new_size)))
        }
    }
}
