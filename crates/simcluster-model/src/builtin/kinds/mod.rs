//! The built-in kinds: a file for each of them, or for those that are two forms of one.
//!
//! A kind is its line in [`ALL`], its file, and its part of the generated data (`schema/kinds.json`,
//! `columns.json`).

mod autoscaler;
mod config_map;
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
mod priority_class;
mod replica_set;
mod resource_quota;
mod review;
mod role;
mod role_binding;
mod secret;
mod service;
mod service_account;
mod stateful_set;
mod webhook_configuration;

use super::kind::Kind;

/// The rules of all built-in kinds but definitions of custom resources (`crd::DefinitionStrategy`).
static ALL: &[&Kind] = &[
    &config_map::KIND,
    &endpoints::KIND,
    &event::KIND,
    &limit_range::KIND,
    &namespace::KIND,
    &node::KIND,
    &pod::KIND,
    &resource_quota::KIND,
    &secret::KIND,
    &service::KIND,
    &service_account::KIND,
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
    &job::KIND,
    &ingress::KIND,
    &ingress_class::KIND,
    &network_policy::KIND,
    &disruption_budget::KIND,
    &role::KIND,
    &role::CLUSTER,
    &role_binding::KIND,
    &role_binding::CLUSTER,
    &webhook_configuration::MUTATING,
    &webhook_configuration::VALIDATING,
    &priority_class::KIND,
    &lease::KIND,
    &endpoints::SLICE,
];

/// The rules of a kind.
pub(super) fn of(group: &str, plural: &str) -> Option<&'static Kind> {
    ALL.iter().copied().find(|kind| kind.group == group && kind.plural == plural)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::registry;

    #[test]
    fn each_kind_is_in_the_data_and_the_other_way_round() {
        let ruled: BTreeSet<(&str, &str)> =
            ALL.iter().map(|kind| (kind.group, kind.plural)).collect();
        assert_eq!(ruled.len(), ALL.len(), "no kind is ruled twice");
        let mut served: BTreeSet<(&str, &str)> = registry::built_in()
            .iter()
            .map(|one| (one.group.as_str(), one.plural.as_str()))
            .collect();
        assert!(served.remove(&("apiextensions.k8s.io", "customresourcedefinitions")));
        assert_eq!(ruled, served);
    }
}
