#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::collections::BTreeMap;

use crate::types::{Deployment, ReplicaSet};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::ReplicaSetStatus;
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};
use serde_json::{Value, json};

use super::numbers::{available, counted, max_surge, max_unavailable, size, total_size, wanted};
use super::plan::{Action, plan};
use super::{hash, status};

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn deployment(replicas: i32, surge: &Value, unavailable: &Value) -> Deployment {
    serde_json::from_value(json!({
        "metadata": { "name": "web", "namespace": "default", "uid": "d", "generation": 1 },
        "spec": {
            "replicas": replicas,
            "progressDeadlineSeconds": 600,
            "revisionHistoryLimit": 10,
            "selector": { "matchLabels": { "app": "web" } },
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": { "maxSurge": surge, "maxUnavailable": unavailable },
            },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "c", "image": "i:1" }] },
            },
        },
    }))
    .unwrap()
}

fn set_image(deployment: &mut Deployment, image: &str) {
    let containers = &mut deployment.spec.template.spec.as_mut().unwrap().containers;
    containers[0].image = Some(image.to_owned());
    *deployment.metadata.generation.as_mut().unwrap() += 1;
}

/// A world in which plans are carried out at once; Pods come and become available when told.
struct World {
    deployment: Deployment,
    sets: BTreeMap<String, ReplicaSet>,
    now: Timestamp,
    actions: Vec<String>,
}

impl World {
    fn new(deployment: Deployment) -> Self {
        Self { deployment, sets: BTreeMap::new(), now: start(), actions: Vec::new() }
    }

    /// One pass. Says whether it did anything.
    fn pass(&mut self) -> bool {
        let sets: Vec<ReplicaSet> = self.sets.values().cloned().collect();
        let plan = plan(&self.deployment, &sets, &[], self.now);
        for action in &plan.actions {
            match action {
                Action::Create(set) => {
                    let mut set = set.as_ref().clone();
                    let name = set.metadata.name.clone().unwrap();
                    set.metadata.uid = Some(name.clone());
                    self.now += SignedDuration::from_secs(1);
                    set.metadata.creation_timestamp =
                        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(self.now));
                    self.actions.push("create".to_owned());
                    assert!(self.sets.insert(name, set).is_none(), "created twice");
                }
                Action::Update(set) => {
                    self.sets.insert(set.metadata.name.clone().unwrap(), set.as_ref().clone());
                }
                Action::Delete(set) => {
                    self.actions.push("delete".to_owned());
                    self.sets.remove(set.metadata.name.as_ref().unwrap());
                }
                Action::Scaled { from, to, .. } => self.actions.push(format!("{from}->{to}")),
                Action::WriteStatus(deployment) => self.deployment = deployment.as_ref().clone(),
            }
        }
        !plan.actions.is_empty()
    }

    /// The ReplicaSet controller: counts follow sizes.
    fn count(&mut self) {
        for set in self.sets.values_mut() {
            let size = size(set);
            let status = set.status.get_or_insert_with(ReplicaSetStatus::default);
            status.replicas = size;
            status.available_replicas = Some(status.available_replicas.unwrap_or(0).min(size));
            status.ready_replicas = status.available_replicas;
            status.terminating_replicas = Some(0);
            status.observed_generation = Some(1);
        }
    }

    /// So many more Pods become available, in an order that the seed chooses.
    fn progress(&mut self, mut pods: i32, newest_first: bool) {
        let mut names: Vec<String> = self.sets.keys().cloned().collect();
        if newest_first {
            names.reverse();
        }
        for name in names {
            let set = self.sets.get_mut(&name).unwrap();
            let step = (size(set) - available(set)).min(pods);
            pods -= step;
            let status = set.status.as_mut().unwrap();
            status.available_replicas = Some(status.available_replicas.unwrap_or(0) + step);
            status.ready_replicas = status.available_replicas;
        }
    }

    fn settle(&mut self) {
        for _ in 0..1000 {
            let acted = self.pass();
            self.count();
            self.progress(i32::MAX, false);
            if !acted && !self.pass() {
                return;
            }
        }
        panic!("never at rest: {:?}", self.actions);
    }

    fn total(&self) -> i32 {
        total_size(self.sets.values())
    }

    fn available(&self) -> i32 {
        self.sets.values().map(available).sum()
    }
}

fn reason(world: &World, type_: &str) -> String {
    let status = world.deployment.status.as_ref().unwrap();
    status::find(status, type_).unwrap().reason.clone().unwrap()
}

#[test]
fn surge_is_rounded_up_and_unavailable_down() {
    let check = |replicas: i32, surge: Value, unavailable: Value, expected: (i32, i32)| {
        let deployment = deployment(replicas, &surge, &unavailable);
        assert_eq!((max_surge(&deployment), max_unavailable(&deployment)), expected);
    };
    check(3, json!("25%"), json!("25%"), (1, 0));
    check(10, json!("25%"), json!("25%"), (3, 2));
    check(1, json!("25%"), json!("25%"), (1, 0));
    check(2, json!("0%"), json!("1%"), (0, 1));
    check(0, json!("25%"), json!("25%"), (0, 0));
    check(4, json!(2), json!(9), (2, 4));
}

#[test]
fn a_new_deployment_creates_one_replica_set_and_notes_it() {
    let mut world = World::new(deployment(3, &json!("25%"), &json!("25%")));
    assert!(world.pass());
    assert_eq!(world.actions, ["create", "0->3"]);
    assert_eq!(reason(&world, "Progressing"), "NewReplicaSetCreated");
    let set = world.sets.values().next().unwrap();
    let annotations = set.metadata.annotations.as_ref().unwrap();
    assert_eq!(annotations["deployment.kubernetes.io/desired-replicas"], "3");
    assert_eq!(annotations["deployment.kubernetes.io/max-replicas"], "4");
    assert_eq!(annotations["deployment.kubernetes.io/revision"], "1");
    assert!(world.pass());
    let status = world.deployment.status.clone().unwrap();
    assert_eq!(status.unavailable_replicas, Some(3));
    assert_eq!((status.replicas, status.terminating_replicas), (None, Some(0)));
    assert!(!world.pass(), "nothing more until Pods are counted");
}

#[test]
fn a_rolling_update_of_three_takes_turns() {
    let mut world = World::new(deployment(3, &json!("25%"), &json!("25%")));
    world.settle();
    world.actions.clear();
    set_image(&mut world.deployment, "i:2");
    world.settle();
    assert_eq!(world.actions, ["create", "0->1", "3->2", "1->2", "2->1", "2->3", "1->0"]);
    assert_eq!(reason(&world, "Progressing"), "NewReplicaSetAvailable");
}

#[test]
fn a_condition_moves_to_the_end_and_keeps_its_time_while_its_status_stays() {
    let mut world = World::new(deployment(1, &json!(1), &json!(0)));
    world.pass();
    let created = world.deployment.status.clone().unwrap().conditions.unwrap()[0].clone();
    world.now += SignedDuration::from_secs(30);
    world.settle();
    let conditions = world.deployment.status.clone().unwrap().conditions.unwrap();
    let types: Vec<&str> = conditions.iter().map(|one| one.type_.as_deref().unwrap()).collect();
    assert_eq!(types, ["Available", "Progressing"]);
    assert_eq!(conditions[1].last_transition_time, created.last_transition_time);
    assert_ne!(conditions[1].last_update_time, created.last_update_time);
}

#[test]
fn the_deadline_counts_from_the_last_step_forward() {
    let mut world = World::new(deployment(1, &json!(1), &json!(0)));
    world.deployment.spec.progress_deadline_seconds = Some(10);
    while world.pass() {
        world.count();
    }
    let sets: Vec<ReplicaSet> = world.sets.values().cloned().collect();
    let recheck = plan(&world.deployment, &sets, &[], world.now).recheck.unwrap();
    assert!(recheck.as_secs() <= 11, "{recheck:?}");
    world.now += SignedDuration::try_from(recheck).unwrap();
    assert!(world.pass());
    assert_eq!(reason(&world, "Progressing"), "ProgressDeadlineExceeded");
    let sets: Vec<ReplicaSet> = world.sets.values().cloned().collect();
    assert_eq!(plan(&world.deployment, &sets, &[], world.now).recheck, None);
}

#[test]
fn a_failed_replica_set_shows_on_the_deployment() {
    let mut world = World::new(deployment(1, &json!(1), &json!(0)));
    world.pass();
    let failure = json!([{
        "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
        "message": "exceeded quota", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    let set = world.sets.values_mut().next().unwrap();
    let status = set.status.get_or_insert_default();
    status.conditions = serde_json::from_value(failure).unwrap();
    while world.pass() {}
    assert_eq!(reason(&world, "ReplicaFailure"), "FailedCreate");
    world.sets.values_mut().next().unwrap().status.as_mut().unwrap().conditions = None;
    while world.pass() {}
    let status = world.deployment.status.as_ref().unwrap();
    assert!(status::find(status, "ReplicaFailure").is_none());
}

#[test]
fn scaling_in_a_rollout_shares_in_proportion() {
    let mut world = World::new(deployment(10, &json!(3), &json!(2)));
    world.settle();
    set_image(&mut world.deployment, "i:2");
    world.pass();
    world.pass();
    world.count();
    let before: Vec<i32> = world.sets.values().map(size).collect();
    world.deployment.spec.replicas = Some(20);
    world.pass();
    let after: Vec<i32> = world.sets.values().map(size).collect();
    assert_eq!(world.total(), 23);
    assert!(
        before.iter().zip(&after).all(|(before, after)| before <= after),
        "{before:?} {after:?}"
    );
}

#[test]
fn names_are_stable_and_differ_by_template_and_collision() {
    let deployment = deployment(1, &json!(1), &json!(0));
    let template = &deployment.spec.template;
    let name = hash::template_hash(template, None);
    assert_eq!(name, hash::template_hash(template, None));
    assert_ne!(name, hash::template_hash(template, Some(1)));
    let long = "x".repeat(300);
    assert_eq!(hash::replica_set_name(&long, &name).len(), 253);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever the numbers and whatever becomes ready when: never too many Pods, never too few
    /// available ones, and it ends with the new template alone.
    #[test]
    fn rolling_updates_keep_their_limits_and_end(
        replicas in 0_i32..12,
        surge in 0_i32..5,
        unavailable in 0_i32..5,
        steps in proptest::collection::vec((0_i32..4, any::<bool>()), 1..60),
    ) {
        let deployment = deployment(replicas, &json!(surge), &json!(unavailable));
        let (surge, unavailable) = (max_surge(&deployment), max_unavailable(&deployment));
        let mut world = World::new(deployment);
        world.settle();
        set_image(&mut world.deployment, "i:2");
        for (pods, newest_first) in steps {
            world.pass();
            prop_assert!(world.total() <= replicas + surge, "too many: {}", world.total());
            prop_assert!(world.available() >= replicas - unavailable, "too few available");
            world.count();
            prop_assert!(world.available() >= replicas - unavailable, "too few left");
            world.progress(pods, newest_first);
        }
        world.settle();
        let new = plan(&world.deployment, &world.sets.values().cloned().collect::<Vec<_>>(), &[], world.now);
        prop_assert!(new.actions.is_empty());
        prop_assert_eq!(world.total(), replicas);
        prop_assert_eq!(world.available(), replicas);
        let status = world.deployment.status.clone().unwrap();
        prop_assert!(status::is_complete(&world.deployment, &status));
        let active = world.sets.values().filter(|set| counted(set) > 0).count();
        prop_assert_eq!(active, usize::from(wanted(&world.deployment) > 0));
    }
}
