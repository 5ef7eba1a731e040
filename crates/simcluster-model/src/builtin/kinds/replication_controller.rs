//! Replication controllers.

use serde_json::{Value, json};

use crate::builtin::cells::{View, labels_text};
use crate::builtin::check::Faults;
use crate::builtin::defaults::{Fields, inner, set};
use crate::builtin::kind::{Generation, Kind};
use crate::builtin::pod_template;
use crate::builtin::value::{at, int, text};
use crate::builtin::workload::{always_restarts, replica_counts, replicated_warnings};
use crate::field::FieldError;

/// `replicationcontrollers`.
pub(super) static KIND: Kind = Kind {
    generation: Generation::Spec,
    status_subresource: true,
    orphans_by_default: true,
    default,
    validate,
    validate_status,
    warnings,
    registry_path: Some("controllers"),
    cells,
    field_labels: &[("status.replicas", &["status.replicas"])],
    ..Kind::new("", "replicationcontrollers")
};

fn default(controller: &mut Fields) {
    let spec = inner(controller, "spec");
    set(spec, "replicas", || json!(1));
    let labels = spec.get("template").and_then(|one| one.get("metadata")?.get("labels")).cloned();
    let Some(labels) = labels else { return };
    set(spec, "selector", || labels.clone());
    set(inner(controller, "metadata"), "labels", || labels);
}

fn validate(object: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let mut declared = Faults::default();
    let spec = at(object, &["spec"]).unwrap_or(&Value::Null);
    declared.not_negative("spec.replicas", int(spec, &["replicas"]));
    declared.not_negative("spec.minReadySeconds", int(spec, &["minReadySeconds"]));
    let selector = at(spec, &["selector"]).and_then(Value::as_object);
    let selector = selector.filter(|selector| !selector.is_empty());
    if selector.is_none() {
        faults.required("spec.selector", "");
    }
    match at(spec, &["template"]) {
        None => faults.required("spec.template", ""),
        Some(template) => {
            let labels = at(template, &["metadata", "labels"]);
            let has = |(key, value): (&String, &Value)| {
                labels.is_some_and(|labels| labels.get(key) == Some(value))
            };
            if !selector.into_iter().flatten().all(has) {
                let why = "`selector` does not match template `labels`";
                let field = "spec.template.metadata.labels";
                faults.invalid(field, labels.unwrap_or(&Value::Null), why);
            }
            pod_template::validate(template, "spec.template", &mut faults);
            always_restarts(text(template, &["spec", "restartPolicy"]), &mut faults);
            if at(template, &["spec", "activeDeadlineSeconds"]).is_some() {
                let why = "activeDeadlineSeconds in ReplicationController is not Supported";
                faults.forbidden("spec.template.spec.activeDeadlineSeconds", why);
            }
        }
    }
    faults.extend(declared.0);
    faults.0
}

fn validate_status(object: &Value, _old: &Value) -> Vec<FieldError> {
    replica_counts(object, &["observedGeneration"])
}

fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    replicated_warnings(object, old, KIND.generation)
}

fn cells(view: View<'_>) -> Vec<Value> {
    let [names, images] = view.containers();
    view.named(vec![
        view.count("/spec/replicas"),
        view.count("/status/replicas"),
        view.count("/status/readyReplicas"),
        view.age(),
        names,
        images,
        json!(labels_text(view.object.pointer("/spec/selector"))),
    ])
}
