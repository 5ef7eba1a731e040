//! Field labels: what `fieldSelector` may name beside `metadata.name` and `metadata.namespace`.

use serde_json::Value;

use super::value::at;

/// The labels of a kind: label and the paths where its value stands, the first one that is there.
pub(super) type Labels = &'static [(&'static str, &'static [&'static str])];

/// The value of a label; `None` if the kind has no such label.
pub(super) fn value(labels: Labels, object: &Value, label: &str) -> Option<String> {
    let (_, paths) = labels.iter().find(|(name, _)| *name == label)?;
    let found = paths.iter().find_map(|path| {
        let keys: Vec<&str> = path.split('.').collect();
        at(object, &keys)
    });
    Some(match found {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None if matches!(label, "spec.hostNetwork" | "spec.unschedulable") => "false".to_owned(),
        None => String::new(),
    })
}

pub(super) const POD: Labels = &[
    ("spec.nodeName", &["spec.nodeName"]),
    ("spec.host", &["spec.nodeName"]),
    ("spec.restartPolicy", &["spec.restartPolicy"]),
    ("spec.schedulerName", &["spec.schedulerName"]),
    ("spec.serviceAccountName", &["spec.serviceAccountName"]),
    ("spec.hostNetwork", &["spec.hostNetwork"]),
    ("status.phase", &["status.phase"]),
    ("status.podIP", &["status.podIP"]),
    ("status.podIPs", &["status.podIP"]),
    ("status.nominatedNodeName", &["status.nominatedNodeName"]),
];

/// Events are read in the form of either group.
pub(super) const EVENT: Labels = &[
    ("involvedObject.kind", &["involvedObject.kind", "regarding.kind"]),
    ("involvedObject.namespace", &["involvedObject.namespace", "regarding.namespace"]),
    ("involvedObject.name", &["involvedObject.name", "regarding.name"]),
    ("involvedObject.uid", &["involvedObject.uid", "regarding.uid"]),
    ("involvedObject.apiVersion", &["involvedObject.apiVersion", "regarding.apiVersion"]),
    (
        "involvedObject.resourceVersion",
        &["involvedObject.resourceVersion", "regarding.resourceVersion"],
    ),
    ("involvedObject.fieldPath", &["involvedObject.fieldPath", "regarding.fieldPath"]),
    ("reason", &["reason"]),
    ("reportingComponent", &["reportingComponent", "reportingController"]),
    ("source", &["source.component", "deprecatedSource.component", "reportingComponent"]),
    ("type", &["type"]),
];

pub(super) const NEW_EVENT: Labels = &[
    ("regarding.kind", &["regarding.kind", "involvedObject.kind"]),
    ("regarding.namespace", &["regarding.namespace", "involvedObject.namespace"]),
    ("regarding.name", &["regarding.name", "involvedObject.name"]),
    ("regarding.uid", &["regarding.uid", "involvedObject.uid"]),
    ("regarding.apiVersion", &["regarding.apiVersion", "involvedObject.apiVersion"]),
    ("regarding.resourceVersion", &["regarding.resourceVersion", "involvedObject.resourceVersion"]),
    ("regarding.fieldPath", &["regarding.fieldPath", "involvedObject.fieldPath"]),
    ("reason", &["reason"]),
    ("reportingController", &["reportingController", "reportingComponent"]),
    ("type", &["type"]),
];

pub(super) const SECRET: Labels = &[("type", &["type"])];
pub(super) const NODE: Labels = &[("spec.unschedulable", &["spec.unschedulable"])];
pub(super) const NAMESPACE: Labels = &[("status.phase", &["status.phase"])];
pub(super) const SERVICE: Labels =
    &[("spec.clusterIP", &["spec.clusterIP"]), ("spec.type", &["spec.type"])];
pub(super) const JOB: Labels = &[("status.successful", &["status.succeeded"])];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values() {
        let pod = json!({"spec": {"nodeName": "n"}});
        assert_eq!(value(POD, &pod, "spec.nodeName").as_deref(), Some("n"));
        assert_eq!(value(POD, &pod, "spec.hostNetwork").as_deref(), Some("false"));
        assert_eq!(value(POD, &pod, "status.podIP").as_deref(), Some(""));
        assert_eq!(value(POD, &pod, "spec.foo"), None);
        let event = json!({"regarding": {"name": "p"}});
        assert_eq!(value(EVENT, &event, "involvedObject.name").as_deref(), Some("p"));
    }
}
