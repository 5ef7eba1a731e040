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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values() {
        let labels: Labels = &[
            ("spec.nodeName", &["spec.nodeName"]),
            ("spec.hostNetwork", &["spec.hostNetwork"]),
            ("status.podIP", &["status.podIP"]),
            ("involvedObject.name", &["involvedObject.name", "regarding.name"]),
        ];
        let pod = json!({"spec": {"nodeName": "n"}});
        assert_eq!(value(labels, &pod, "spec.nodeName").as_deref(), Some("n"));
        assert_eq!(value(labels, &pod, "spec.hostNetwork").as_deref(), Some("false"));
        assert_eq!(value(labels, &pod, "status.podIP").as_deref(), Some(""));
        assert_eq!(value(labels, &pod, "spec.foo"), None);
        let event = json!({"regarding": {"name": "p"}});
        assert_eq!(value(labels, &event, "involvedObject.name").as_deref(), Some("p"));
    }
}
