//! Kinds that are served in full, but that nothing in a simulated cluster acts on: whoever creates such
//! an object is told so, for on a real cluster something would happen.

/// Storage keys, and what the kinds are called.
const IDLE: [(&str, &str); 14] = [
    ("/persistentvolumeclaims", "PersistentVolumeClaims"),
    ("/persistentvolumes", "PersistentVolumes"),
    ("/replicationcontrollers", "ReplicationControllers"),
    ("apps/daemonsets", "DaemonSets"),
    ("apps/statefulsets", "StatefulSets"),
    ("autoscaling/horizontalpodautoscalers", "HorizontalPodAutoscalers"),
    ("batch/cronjobs", "CronJobs"),
    ("batch/jobs", "Jobs"),
    ("networking.k8s.io/ingresses", "Ingresses"),
    ("networking.k8s.io/networkpolicies", "NetworkPolicies"),
    ("resource.k8s.io/resourceclaims", "ResourceClaims"),
    ("storage.k8s.io/csidrivers", "CSIDrivers"),
    ("storage.k8s.io/storageclasses", "StorageClasses"),
    ("storage.k8s.io/volumeattachments", "VolumeAttachments"),
];

/// The warning of a create, if there is one.
pub(super) fn warning(storage_key: &str) -> Option<String> {
    let (_, called) = IDLE.iter().find(|(key, _)| *key == storage_key)?;
    Some(format!("simcluster stores {called}, but nothing acts on them"))
}
