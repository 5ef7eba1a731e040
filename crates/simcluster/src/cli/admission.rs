//! Admission plugins by the names that kube-apiserver has for them.

use std::collections::BTreeSet;

/// The plugins that kube-apiserver 1.37 has. To turn one off that this server does not have changes
/// nothing.
const PLUGINS: [&str; 39] = [
    "AlwaysAdmit",
    "AlwaysDeny",
    "AlwaysPullImages",
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "ClusterTrustBundleAttest",
    "DefaultIngressClass",
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "DenyServiceExternalIPs",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "NamespaceLifecycle",
    "NodeDeclaredFeatureValidator",
    "NodeRestriction",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "PodGroupProtection",
    "PodNodeSelector",
    "PodResizeValidator",
    "PodSecurity",
    "PodTolerationRestriction",
    "PodTopologyLabels",
    "Priority",
    "ResourceQuota",
    "RuntimeClass",
    "ServiceAccount",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
];

/// A name that no plugin has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("plugin {name:?} is unknown; known are {}", PLUGINS.join(", "))]
pub(crate) struct UnknownPlugin {
    name: String,
}

/// The plugins of a list.
pub(super) fn parse(list: &[String]) -> Result<BTreeSet<String>, UnknownPlugin> {
    let named = list.iter().map(|name| name.trim()).filter(|name| !name.is_empty());
    named
        .map(|name| {
            let known = PLUGINS.contains(&name);
            known.then(|| name.to_owned()).ok_or_else(|| UnknownPlugin { name: name.to_owned() })
        })
        .collect()
}
