//! The built-in kinds: a file for each of them, or for those that are two forms of one.
//!
//! A kind is its line in [`ALL`], its file, and its part of the generated data (`schema/kinds.json`,
//! `columns.json`).

mod autoscaler;
mod certificate_request;
mod component_status;
mod config_map;
mod controller_revision;
mod cron_job;
mod daemon_set;
mod deployment;
mod disruption_budget;
mod endpoints;
mod event;
mod ingress;
mod ingress_class;
mod job;
mod lease;
mod limit_range;
mod namespace;
mod network_policy;
mod node;
pub(super) mod pod;
mod pod_template;
mod priority_class;
mod replica_set;
mod replication_controller;
mod resource_quota;
mod review;
mod role;
mod role_binding;
mod secret;
mod service;
mod service_account;
mod stateful_set;
mod storage_class;
mod volume;
mod volume_claim;
mod webhook_configuration;

use super::kind::Kind;

/// The rules of all built-in kinds but definitions of custom resources (`crd::DefinitionStrategy`).
static ALL: &[&Kind] = &[
    &component_status::KIND,
    &config_map::KIND,
    &endpoints::KIND,
    &event::KIND,
    &limit_range::KIND,
    &namespace::KIND,
    &node::KIND,
    &volume_claim::KIND,
    &volume::KIND,
    &pod::KIND,
    &pod_template::KIND,
    &replication_controller::KIND,
    &resource_quota::KIND,
    &secret::KIND,
    &service::KIND,
    &service_account::KIND,
    &controller_revision::KIND,
    &daemon_set::KIND,
    &deployment::KIND,
    &replica_set::KIND,
    &stateful_set::KIND,
    &event::NEWER,
    &review::SELF_SUBJECT,
    &review::TOKEN,
    &review::LOCAL_SUBJECT_ACCESS,
    &review::SELF_SUBJECT_ACCESS,
    &review::SELF_SUBJECT_RULES,
    &review::SUBJECT_ACCESS,
    &autoscaler::KIND,
    &autoscaler::KIND_V1,
    &cron_job::KIND,
    &job::KIND,
    &certificate_request::KIND,
    &ingress::KIND,
    &ingress_class::KIND,
    &network_policy::KIND,
    &disruption_budget::KIND,
    &role::KIND,
    &role::CLUSTER,
    &role_binding::KIND,
    &role_binding::CLUSTER,
    &storage_class::KIND,
    &webhook_configuration::MUTATING,
    &webhook_configuration::VALIDATING,
    &priority_class::KIND,
    &lease::KIND,
    &endpoints::SLICE,
];

/// The rules of a kind in a version.
pub(super) fn of(group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
    let versions =
        || ALL.iter().copied().filter(|kind| kind.group == group && kind.plural == plural);
    let own = versions().find(|kind| kind.version == version);
    own.or_else(|| versions().find(|kind| kind.version.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;

    #[test]
    fn each_kind_is_in_the_data_and_the_other_way_round() {
        let mut unused = ALL.to_vec();
        for resource in registry::built_in() {
            let kind = of(&resource.group, &resource.version, &resource.plural);
            let is_definition = resource.plural == "customresourcedefinitions";
            assert_eq!(kind.is_none(), is_definition, "{}", resource.plural);
            unused.retain(|one| kind.is_none_or(|kind| !std::ptr::eq(*one, kind)));
        }
        assert!(unused.is_empty(), "{unused:?}");
    }
}
