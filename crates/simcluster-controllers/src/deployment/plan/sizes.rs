//! How the replicas of a Deployment are shared among its ReplicaSets: after a change of their number,
//! and step by step from the old template to the new one.

use crate::types::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;

use super::super::annotations;
use super::super::numbers::{
    Strategy, available, counted, max_surge, max_unavailable, next_size_of_new, size, strategy,
    total_size, wanted,
};
use super::{Action, Pass};
use crate::owners::controller_of;

impl Pass {
    /// Whether `spec.replicas` changed since the ReplicaSets were last sized.
    pub(super) fn was_scaled(&self) -> bool {
        self.sets
            .iter()
            .filter(|set| size(set) > 0)
            .filter_map(annotations::desired)
            .any(|desired| desired != wanted(&self.deployment))
    }

    /// Changes a ReplicaSet's size. With `always`, its annotations are brought up to date even if the
    /// size stays.
    fn scale(&mut self, place: usize, to: i32, always: bool) -> bool {
        let Some(set) = self.sets.get_mut(place) else { return false };
        let from = size(set);
        if from == to && !always {
            return false;
        }
        let changed = annotations::set_sizes(&self.deployment, set);
        if from == to && !changed {
            return false;
        }
        set.spec.replicas = Some(to);
        let name = set.metadata.name.clone().unwrap_or_default();
        self.plan.actions.push(Action::Update(Box::new(set.clone())));
        if from != to {
            self.plan.actions.push(Action::Scaled { name, from, to });
        }
        from != to
    }

    /// After a change of `spec.replicas` and while paused: sizes change, templates do not roll.
    pub(super) fn sync_size(&mut self) {
        self.share_size();
        if self.deployment.spec.paused == Some(true) {
            self.drop_old_revisions();
        }
        self.write_counts();
    }

    fn share_size(&mut self) {
        let wanted = wanted(&self.deployment);
        let active = self.active((0..self.sets.len()).collect());
        if active.len() <= 1 {
            // The only active one, else the new one, else the newest.
            let newest = self.sets.len().checked_sub(1);
            if let Some(place) = active.first().copied().or(self.new_set()).or(newest) {
                self.scale(place, wanted, false);
            }
            return;
        }
        if self.new_set_ref().is_some_and(|set| self.is_saturated(set)) {
            for place in self.active(self.old_sets()) {
                self.scale(place, 0, false);
            }
            return;
        }
        if strategy(&self.deployment) == Strategy::RollingUpdate {
            self.share_in_proportion(active);
        }
    }

    fn is_saturated(&self, set: &ReplicaSet) -> bool {
        let wanted = wanted(&self.deployment);
        size(set) == wanted && annotations::desired(set) == Some(wanted) && available(set) == wanted
    }

    /// Gives all active ReplicaSets their share of the change, the largest first, so that a rollout
    /// that has trouble is not pushed forward by scaling.
    fn share_in_proportion(&mut self, mut active: Vec<usize>) {
        let wanted = wanted(&self.deployment);
        let surge = max_surge(&self.deployment);
        let allowed = if wanted > 0 { wanted.saturating_add(surge) } else { 0 };
        let total = active.iter().map(|place| self.size_at(*place)).fold(0, i32::saturating_add);
        let to_add = allowed.saturating_sub(total);
        // Of equal size, the newer ones grow first and the older ones shrink first. Places are by age.
        active.sort_by_key(|place| {
            let place_key = if to_add > 0 { self.sets.len() - place } else { *place };
            (std::cmp::Reverse(self.size_at(*place)), place_key)
        });
        let mut added = 0_i32;
        let mut sizes = Vec::new();
        for place in &active {
            let share = self
                .sets
                .get(*place)
                .map_or(0, |set| annotations::share(&self.deployment, set, to_add, added));
            added = added.saturating_add(share);
            sizes.push((*place, self.size_at(*place).saturating_add(share)));
        }
        if let Some((_, largest)) = sizes.first_mut() {
            *largest = largest.saturating_add(to_add.saturating_sub(added)).max(0);
        }
        for (place, to) in sizes {
            self.scale(place, to, true);
        }
    }

    /// RollingUpdate: grow the new, else shrink the old, one step a pass.
    pub(super) fn roll(&mut self) {
        self.create_new_set();
        if self.over {
            return;
        }
        let scaled = self.grow_new() || self.shrink_old();
        if !scaled {
            self.drop_old_revisions_if_complete();
        }
        self.write_rollout_status();
    }

    fn grow_new(&mut self) -> bool {
        let Some(place) = self.new_set() else { return false };
        let (current, wanted) = (self.size_at(place), wanted(&self.deployment));
        let to = if current < wanted {
            next_size_of_new(&self.deployment, &self.sets, current)
        } else {
            wanted
        };
        self.scale(place, to, false)
    }

    fn shrink_old(&mut self) -> bool {
        let old = self.active(self.old_sets());
        let Some(new) = self.new_set_ref().filter(|_| !old.is_empty()) else { return false };
        let min_available =
            wanted(&self.deployment).saturating_sub(max_unavailable(&self.deployment));
        let new_unavailable = size(new).saturating_sub(available(new));
        let most =
            total_size(&self.sets).saturating_sub(min_available).saturating_sub(new_unavailable);
        if most <= 0 {
            return false;
        }
        let unhealthy = self.shrink_unhealthy(&old, most);
        let healthy = self.shrink_available(&old, min_available);
        unhealthy || healthy
    }

    /// Old Pods that are not available do not serve anyway: they go first.
    fn shrink_unhealthy(&mut self, old: &[usize], most: i32) -> bool {
        let mut left = most;
        for place in old {
            let unavailable = self.sets.get(*place).map_or(0, |set| size(set).saturating_sub(available(set)));
            let step = unavailable.min(left);
            if step > 0 {
                let to = self.size_at(*place) - step;
                self.scale(*place, to, false);
                left -= step;
            }
        }
        left < most
    }

    fn shrink_available(&mut self, old: &[usize], min_available: i32) -> bool {
        let all_available = self.sets.iter().map(available).fold(0, i32::saturating_add);
        let most = all_available.saturating_sub(min_available);
        let mut left = most;
        for place in old {
            let step = self.size_at(*place).min(left);
            if step > 0 {
                let to = self.size_at(*place) - step;
                self.scale(*place, to, false);
                left -= step;
            }
        }
        left < most
    }

    /// Recreate: all old Pods go, and only then the new ones come.
    pub(super) fn recreate(&mut self, pods: &[Pod]) {
        let old = self.active(self.old_sets());
        let mut scaled = false;
        for place in old {
            scaled |= self.scale(place, 0, false);
        }
        if scaled || self.old_pods_left(pods) {
            return self.write_rollout_status();
        }
        self.create_new_set();
        if self.over {
            return;
        }
        if let Some(place) = self.new_set() {
            self.scale(place, wanted(&self.deployment), false);
        }
        self.drop_old_revisions_if_complete();
        self.write_rollout_status();
    }

    fn old_pods_left(&self, pods: &[Pod]) -> bool {
        let new_uid = self.new_set_ref().and_then(|set| set.metadata.uid.as_ref());
        let counted_left = self
            .old_sets()
            .into_iter()
            .filter_map(|place| self.sets.get(place))
            .any(|set| counted(set) > 0);
        counted_left
            || pods.iter().any(|pod| {
                let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
                controller_of(&pod.metadata).map(|owner| &owner.uid) != new_uid
                    && !matches!(phase, Some("Failed" | "Succeeded"))
            })
    }
}
