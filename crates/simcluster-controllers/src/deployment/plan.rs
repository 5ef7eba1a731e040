//! What a Deployment needs next, as data. No client, no clock.
//!
//! A pass ends with the first write to the Deployment itself: what comes after it is decided by the
//! next pass, which sees that write.

use std::time::Duration;

use crate::types::{Deployment, ReplicaSet};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DeploymentStatus;
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};

use super::annotations;
use super::numbers::{Strategy, counted, next_size_of_new, size, strategy};
use super::status::{self, PAUSED, PROGRESSING};
use super::template;

mod sizes;

/// One step of a plan, in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    /// Create the ReplicaSet of the current template.
    Create(Box<ReplicaSet>),
    /// Write a ReplicaSet that was changed.
    Update(Box<ReplicaSet>),
    /// Delete a ReplicaSet that no rollback will need.
    Delete(Box<ReplicaSet>),
    /// Note that a ReplicaSet was scaled.
    Scaled {
        /// Name of the ReplicaSet.
        name: String,
        /// Its size before.
        from: i32,
        /// Its size now.
        to: i32,
    },
    /// Write the Deployment's status (and the annotations, which go the same way).
    WriteStatus(Box<Deployment>),
}

/// What to do, and when to look again if nothing changes.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Plan {
    pub(crate) actions: Vec<Action>,
    pub(crate) recheck: Option<Duration>,
}

/// Plans the next steps of a Deployment from its ReplicaSets. The Pods of the ReplicaSets matter to the
/// strategy Recreate only.
pub(crate) fn plan(
    deployment: &Deployment,
    sets: &[ReplicaSet],
    pods: &[Pod],
    now: Timestamp,
) -> Plan {
    let mut pass = Pass::new(deployment, sets, now);
    pass.run(pods);
    pass.plan
}

struct Pass {
    deployment: Deployment,
    /// All ReplicaSets, oldest first, as they are after the actions so far.
    sets: Vec<ReplicaSet>,
    now: Timestamp,
    plan: Plan,
    /// The Deployment was written: the pass is over.
    over: bool,
}

impl Pass {
    fn new(deployment: &Deployment, sets: &[ReplicaSet], now: Timestamp) -> Self {
        let mut sets = sets.to_vec();
        sets.sort_by_key(age_and_name);
        Self { deployment: deployment.clone(), sets, now, plan: Plan::default(), over: false }
    }

    fn run(&mut self, pods: &[Pod]) {
        if self.deployment.metadata.deletion_timestamp.is_some() {
            self.sync_new_set();
            return self.write_counts();
        }
        self.note_pause();
        if self.over {
            return;
        }
        self.sync_new_set();
        if self.over {
            return;
        }
        if self.deployment.spec.paused == Some(true) || self.was_scaled() {
            return self.sync_size();
        }
        match strategy(&self.deployment) {
            Strategy::RollingUpdate => self.roll(),
            Strategy::Recreate => self.recreate(pods),
        }
    }

    /// The place of the ReplicaSet of the current template, if there is one: the oldest, should there
    /// be several.
    fn new_set(&self) -> Option<usize> {
        let template = &self.deployment.spec.template;
        self.sets.iter().position(|set| template::same(set.spec.template.as_ref(), template))
    }

    fn new_set_ref(&self) -> Option<&ReplicaSet> {
        self.new_set().and_then(|place| self.sets.get(place))
    }

    /// Places of the other ReplicaSets, oldest first.
    fn old_sets(&self) -> Vec<usize> {
        let new = self.new_set();
        (0..self.sets.len()).filter(|place| Some(*place) != new).collect()
    }

    fn size_at(&self, place: usize) -> i32 {
        self.sets.get(place).map_or(0, size)
    }

    fn active(&self, places: Vec<usize>) -> Vec<usize> {
        places.into_iter().filter(|place| self.size_at(*place) > 0).collect()
    }

    fn write_deployment(&mut self) {
        self.plan.actions.push(Action::WriteStatus(Box::new(self.deployment.clone())));
        self.over = true;
    }

    fn status_mut(&mut self) -> &mut DeploymentStatus {
        self.deployment.status.get_or_insert_default()
    }

    fn write_counts(&mut self) {
        if self.over {
            return;
        }
        let status = status::counts(&self.deployment, &self.sets, self.new_set_ref(), self.now);
        self.write_status_if_changed(status);
    }

    fn write_rollout_status(&mut self) {
        if self.over {
            return;
        }
        let status = status::of_rollout(&self.deployment, &self.sets, self.new_set_ref(), self.now);
        self.plan.recheck = status::recheck(&self.deployment, &status, self.now);
        self.write_status_if_changed(status);
    }

    fn write_status_if_changed(&mut self, status: DeploymentStatus) {
        if !status::same(&status, &self.deployment.status.clone().unwrap_or_default()) {
            *self.status_mut() = status;
            self.write_deployment();
        }
    }

    /// Progressing turns Unknown when a Deployment is paused or resumed, so that the time of the pause
    /// does not count as lack of progress.
    fn note_pause(&mut self) {
        if status::deadline(&self.deployment).is_none() {
            return;
        }
        let reason = self
            .deployment
            .status
            .as_ref()
            .and_then(|status| status::find(status, PROGRESSING))
            .and_then(|condition| condition.reason.as_deref());
        if reason == Some(status::TIMED_OUT) {
            return;
        }
        let noted = reason == Some(PAUSED);
        let paused = self.deployment.spec.paused == Some(true);
        let (reason, message) = match (paused, noted) {
            (true, false) => (PAUSED, "Deployment is paused"),
            (false, true) => ("DeploymentResumed", "Deployment is resumed"),
            (true, true) | (false, false) => return,
        };
        let condition =
            status::condition(PROGRESSING, "Unknown", reason, message.to_owned(), self.now);
        status::set(self.status_mut(), condition);
        self.write_deployment();
    }

    /// Brings annotations of the new ReplicaSet up to date, and the revision of the Deployment.
    fn sync_new_set(&mut self) {
        let Some(place) = self.new_set() else { return };
        let revision = self.next_revision();
        let Some(set) = self.sets.get_mut(place) else { return };
        let mut changed = annotations::inherit(&self.deployment, set, revision);
        if set.spec.min_ready_seconds.unwrap_or(0)
            != self.deployment.spec.min_ready_seconds.unwrap_or(0)
        {
            set.spec.min_ready_seconds = self.deployment.spec.min_ready_seconds;
            changed = true;
        }
        let (name, revision) =
            (set.metadata.name.clone().unwrap_or_default(), annotations::revision_text(set));
        if changed {
            self.plan.actions.push(Action::Update(Box::new(set.clone())));
            return;
        }
        let mut changed = annotations::set_revision(&mut self.deployment, &revision);
        let unknown = self
            .deployment
            .status
            .as_ref()
            .is_none_or(|one| status::find(one, PROGRESSING).is_none());
        if status::deadline(&self.deployment).is_some() && unknown {
            let message = format!("Found new replica set {name:?}");
            let found =
                status::condition(PROGRESSING, "True", "FoundNewReplicaSet", message, self.now);
            status::set(self.status_mut(), found);
            changed = true;
        }
        if changed && self.deployment.metadata.deletion_timestamp.is_none() {
            self.write_deployment();
        }
    }

    /// One more than the highest revision of the old ReplicaSets.
    fn next_revision(&self) -> i64 {
        let old = self.old_sets().into_iter().filter_map(|place| self.sets.get(place));
        old.map(annotations::revision).max().unwrap_or(0).max(0).saturating_add(1)
    }

    /// Creates the ReplicaSet of the current template, if it is missing. The Deployment's note of it is
    /// a write to the Deployment: the pass is over then.
    fn create_new_set(&mut self) {
        if self.new_set().is_some() {
            return;
        }
        let revision = self.next_revision();
        let mut set = template::new_replica_set(&self.deployment);
        let replicas = next_size_of_new(&self.deployment, &self.sets, 0);
        set.spec.replicas = Some(replicas);
        annotations::inherit(&self.deployment, &mut set, revision);
        annotations::set_sizes(&self.deployment, &mut set);
        let name = set.metadata.name.clone().unwrap_or_default();
        self.plan.actions.push(Action::Create(Box::new(set)));
        if replicas > 0 {
            self.plan.actions.push(Action::Scaled { name: name.clone(), from: 0, to: replicas });
        }
        let mut changed = annotations::set_revision(&mut self.deployment, &revision.to_string());
        if status::deadline(&self.deployment).is_some() {
            let message = format!("Created new replica set {name:?}");
            let created =
                status::condition(PROGRESSING, "True", "NewReplicaSetCreated", message, self.now);
            status::set(self.status_mut(), created);
            changed = true;
        }
        if changed {
            self.write_deployment();
        }
        // Whatever comes next needs the ReplicaSet as the server made it.
        self.over = true;
    }

    fn drop_old_revisions_if_complete(&mut self) {
        let current = self.deployment.status.clone().unwrap_or_default();
        if status::is_complete(&self.deployment, &current) {
            self.drop_old_revisions();
        }
    }

    /// Keeps as many old ReplicaSets as the history limit says, the newest revisions.
    fn drop_old_revisions(&mut self) {
        let limit = self.deployment.spec.revision_history_limit.filter(|limit| *limit != i32::MAX);
        let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else { return };
        let mut old: Vec<&ReplicaSet> = self
            .old_sets()
            .into_iter()
            .filter_map(|place| self.sets.get(place))
            .filter(|set| set.metadata.deletion_timestamp.is_none())
            .collect();
        let surplus = old.len().saturating_sub(limit);
        old.sort_by_key(|set| (annotations::revision(set), age_and_name(set)));
        let unused = old.into_iter().take(surplus).filter(|set| is_empty_and_observed(set));
        let deletes: Vec<Action> =
            unused.map(|set| Action::Delete(Box::new(set.clone()))).collect();
        self.plan.actions.extend(deletes);
    }
}

fn is_empty_and_observed(set: &ReplicaSet) -> bool {
    let observed = set.status.as_ref().and_then(|status| status.observed_generation);
    size(set) == 0
        && counted(set) == 0
        && set.metadata.generation.unwrap_or(0) <= observed.unwrap_or(0)
}

fn age_and_name(set: &ReplicaSet) -> (Option<Timestamp>, String) {
    let created = set.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (created, set.metadata.name.clone().unwrap_or_default())
}

/// The status of a Deployment whose new ReplicaSet could not be created.
pub(crate) fn after_failed_create(
    deployment: &Deployment,
    message: &str,
    now: Timestamp,
) -> Option<Deployment> {
    status::deadline(deployment)?;
    let mut deployment = deployment.clone();
    let condition =
        status::condition(PROGRESSING, "False", "ReplicaSetCreateError", message.to_owned(), now);
    let before = deployment.status.clone().unwrap_or_default();
    let status = deployment.status.get_or_insert_default();
    status::set(status, condition);
    (*status != before).then_some(deployment)
}

/// Whether a ReplicaSet that is in the way of a new one is the new one already.
pub(crate) fn is_the_new_set(deployment: &Deployment, set: &ReplicaSet) -> bool {
    let template: &PodTemplateSpec = &deployment.spec.template;
    crate::owners::is_controlled_by(&set.metadata, &deployment.metadata)
        && template::same(set.spec.template.as_ref(), template)
}
