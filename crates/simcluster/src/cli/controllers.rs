//! Controllers by the names that kube-controller-manager has for them.

use std::collections::BTreeSet;

use simcluster::controllers::Kind;

/// Names of what runs here: the present ones, then those of older versions. Some controllers are one
/// here; each of their names stands for it.
const SIMULATED: [(&str, Kind); 29] = [
    ("deployment-controller", Kind::Deployment),
    ("replicaset-controller", Kind::ReplicaSet),
    ("garbage-collector-controller", Kind::Garbage),
    ("namespace-controller", Kind::Namespace),
    ("endpoints-controller", Kind::Endpoints),
    ("endpointslice-controller", Kind::Endpoints),
    ("serviceaccount-controller", Kind::ServiceAccount),
    ("root-ca-certificate-publisher-controller", Kind::ServiceAccount),
    ("disruption-controller", Kind::Disruption),
    ("pod-garbage-collector-controller", Kind::PodGarbage),
    ("certificatesigningrequest-approving-controller", Kind::Certificates),
    ("certificatesigningrequest-cleaner-controller", Kind::Certificates),
    ("certificatesigningrequest-signing-controller", Kind::Certificates),
    ("scheduler", Kind::Scheduler),
    ("kubelet", Kind::Kubelet),
    ("deployment", Kind::Deployment),
    ("replicaset", Kind::ReplicaSet),
    ("garbagecollector", Kind::Garbage),
    ("namespace", Kind::Namespace),
    ("endpoint", Kind::Endpoints),
    ("endpointslice", Kind::Endpoints),
    ("serviceaccount", Kind::ServiceAccount),
    ("root-ca-cert-publisher", Kind::ServiceAccount),
    ("disruption", Kind::Disruption),
    ("podgc", Kind::PodGarbage),
    ("csrapproving", Kind::Certificates),
    ("csrcleaner", Kind::Certificates),
    ("csrsigning", Kind::Certificates),
    ("kube-scheduler", Kind::Scheduler),
];

/// What kube-controller-manager 1.37 has beyond that: to turn it off is no mistake, to ask for it is.
const OTHERS: [&str; 58] = [
    "bootstrap-signer-controller",
    "clusterrole-aggregation-controller",
    "cronjob-controller",
    "daemonset-controller",
    "device-taint-eviction-controller",
    "endpointslice-mirroring-controller",
    "ephemeral-volume-controller",
    "horizontal-pod-autoscaler-controller",
    "job-controller",
    "kube-apiserver-serving-clustertrustbundle-publisher-controller",
    "legacy-serviceaccount-token-cleaner-controller",
    "node-ipam-controller",
    "node-lifecycle-controller",
    "persistentvolume-attach-detach-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-expander-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    "podcertificaterequest-cleaner-controller",
    "podgroup-protection-controller",
    "replicationcontroller-controller",
    "resourceclaim-controller",
    "resourcepoolstatusrequest-controller",
    "resourcequota-controller",
    "selinux-warning-controller",
    "service-cidr-controller",
    "serviceaccount-token-controller",
    "statefulset-controller",
    "storage-version-migrator-controller",
    "storageversion-garbage-collector-controller",
    "taint-eviction-controller",
    "token-cleaner-controller",
    "ttl-after-finished-controller",
    "ttl-controller",
    "validatingadmissionpolicy-status-controller",
    "volumeattributesclass-protection-controller",
    "attachdetach",
    "bootstrapsigner",
    "clusterrole-aggregation",
    "cronjob",
    "daemonset",
    "endpointslicemirroring",
    "horizontalpodautoscaling",
    "job",
    "legacy-service-account-token-cleaner",
    "nodeipam",
    "nodelifecycle",
    "persistentvolume-binder",
    "persistentvolume-expander",
    "pv-protection",
    "pvc-protection",
    "replicationcontroller",
    "resourcequota",
    "serviceaccount-token",
    "statefulset",
    "tokencleaner",
    "ttl",
    "ttl-after-finished",
];

/// A name that no controller of this cluster has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not in the list of known controllers: {}", known())]
pub(crate) struct UnknownController {
    name: String,
}

fn known() -> String {
    let names: Vec<&str> = SIMULATED.iter().map(|(name, _)| *name).take(15).collect();
    names.join(", ")
}

/// The controllers of a list: a controller that is named is on or off as the first of its names says; the
/// others are on if there is a `*`.
pub(super) fn parse(list: &[String]) -> Result<BTreeSet<Kind>, UnknownController> {
    let names: Vec<&str> = list.iter().map(|name| name.trim()).collect();
    let mut on = BTreeSet::new();
    let mut decided = BTreeSet::new();
    for name in names.iter().filter(|name| !matches!(**name, "" | "*" | "-*")) {
        let (bare, wanted) = name.strip_prefix('-').map_or((*name, true), |bare| (bare, false));
        match SIMULATED.iter().find(|(known, _)| *known == bare) {
            Some((_, kind)) if decided.insert(*kind) && wanted => drop(on.insert(*kind)),
            Some(_) => {}
            None if !wanted && OTHERS.contains(&bare) => {}
            None => return Err(UnknownController { name: bare.to_owned() }),
        }
    }
    if names.contains(&"*") {
        on.extend(Kind::all().difference(&decided));
    }
    Ok(on)
}
