//! Jobs.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::builtin::cells::{View, between};
use crate::builtin::check::Faults;
use crate::builtin::defaults::{Fields, inner, set};
use crate::builtin::kind::{Generation, Kind};
use crate::builtin::pod_template;
use crate::builtin::selector::label_selector;
use crate::builtin::value::{at, flag, int, is_unset, text};
use crate::builtin::workload::{POD_NAMES, matches_template, name_warning, with_immutable};
use crate::field::FieldError;
use crate::object::{self, as_map};

/// `jobs`.
pub(super) static KIND: Kind = Kind {
    generation: Generation::Spec,
    status_subresource: true,
    orphans_by_default: true,
    default,
    prepare_for_create,
    validate,
    validate_update: Some(validate_update),
    warnings,
    cells,
    field_labels: &[("status.successful", &["status.succeeded"])],
    ..Kind::new("batch", "jobs")
};

const JOB_UID: &str = "batch.kubernetes.io/controller-uid";

fn default(fields: &mut Fields) {
    let spec = inner(fields, "spec");
    if is_unset(spec.get("completions")) && is_unset(spec.get("parallelism")) {
        spec.insert("completions".to_owned(), json!(1));
    }
    set(spec, "parallelism", || json!(1));
    let per_index = !is_unset(spec.get("backoffLimitPerIndex"));
    set(spec, "backoffLimit", || if per_index { json!(i32::MAX) } else { json!(6) });
    set(spec, "completionMode", || json!("NonIndexed"));
    set(spec, "suspend", || json!(false));
    let policy = !is_unset(spec.get("podFailurePolicy"));
    let replacement = if policy { "Failed" } else { "TerminatingOrFailed" };
    set(spec, "podReplacementPolicy", || json!(replacement));
    set(spec, "manualSelector", || json!(false));
    let labels = spec.get("template").and_then(|one| one.get("metadata")?.get("labels")).cloned();
    if let Some(labels) = labels {
        set(inner(fields, "metadata"), "labels", || labels);
    }
}

/// A Job selects its Pods by its own uid, unless it was told otherwise.
fn prepare_for_create(job: &mut Value) {
    if flag(job, &["spec", "manualSelector"]) {
        return;
    }
    let (uid, name) = (object::uid(job).to_owned(), object::name(job).to_owned());
    let template = object::child(object::child(job, "spec"), "template");
    let labels = as_map(object::metadata_mut(template).entry("labels").or_insert(Value::Null));
    for (key, value) in [
        ("job-name", &name),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        (JOB_UID, &uid),
    ] {
        labels.entry(key).or_insert_with(|| json!(value));
    }
    let labels = labels.clone();
    let own = as_map(object::metadata_mut(job).entry("labels").or_insert(Value::Null));
    if own.is_empty() {
        *own = labels;
    }
    let selector = object::child(object::child(job, "spec"), "selector");
    as_map(object::child(selector, "matchLabels")).entry(JOB_UID).or_insert_with(|| json!(uid));
}

fn validate(object: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let spec = at(object, &["spec"]).unwrap_or(&Value::Null);
    validate_spec(spec, "spec", &mut faults);
    match at(spec, &["selector"]) {
        None => faults.required("spec.selector", ""),
        Some(found) => label_selector(found, "spec.selector", &mut faults),
    }
    let template = at(spec, &["template"]).unwrap_or(&Value::Null);
    matches_template(object, template, &mut faults);
    faults.0
}

/// Faults of the spec of a Job, or of a template of one: all but those of its selector.
pub(super) fn validate_spec(spec: &Value, path: &str, faults: &mut Faults) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
    ] {
        faults.not_negative(format!("{path}.{field}"), int(spec, &[field]));
    }
    let template = at(spec, &["template"]).unwrap_or(&Value::Null);
    pod_template::validate(template, &format!("{path}.template"), faults);
    let policy_field = format!("{path}.template.spec.restartPolicy");
    match text(template, &["spec", "restartPolicy"]) {
        "OnFailure" | "Never" => {}
        "" | "Always" => faults.required(policy_field, r#"valid values: "OnFailure", "Never""#),
        other => {
            let supported = ["OnFailure".to_owned(), "Never".to_owned()];
            faults.add(FieldError::not_supported(policy_field, &json!(other), &supported));
        }
    }
}

fn validate_update(object: &Value, old: &Value) -> Vec<FieldError> {
    let indexed = text(object, &["spec", "completionMode"]) == "Indexed";
    let suspended = flag(old, &["spec", "suspend"]);
    let mut fields = vec!["selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex"];
    if !indexed {
        fields.insert(0, "completions");
    }
    if !suspended {
        fields.push("template");
    }
    with_immutable(validate(object), object, old, &fields)
}

fn cells(view: View<'_>) -> Vec<Value> {
    let [names, images] = view.containers();
    let deleting = object::is_deleting(view.object);
    let status = match () {
        () if view.has_condition("Complete") => "Complete",
        () if view.has_condition("Failed") => "Failed",
        () if deleting => "Terminating",
        () if view.has_condition("Suspended") => "Suspended",
        () if view.has_condition("FailureTarget") => "FailureTarget",
        () if view.has_condition("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    };
    view.named(vec![
        json!(status),
        json!(completions(view)),
        json!(duration(view)),
        view.age(),
        names,
        images,
        view.selector(),
    ])
}

fn completions(view: View<'_>) -> String {
    let succeeded = view.number("/status/succeeded");
    let parallelism = view.number("/spec/parallelism");
    match view.object.pointer("/spec/completions").and_then(Value::as_i64) {
        Some(completions) => format!("{succeeded}/{completions}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    }
}

fn duration(view: View<'_>) -> String {
    let Ok(start) = view.str("/status/startTime").parse::<Timestamp>() else {
        return String::new();
    };
    let end = view.str("/status/completionTime").parse::<Timestamp>().unwrap_or(view.now);
    between(start, end)
}

fn warnings(job: &Value, old: Option<&Value>) -> Vec<String> {
    let mut found: Vec<String> = name_warning(job, old, POD_NAMES).into_iter().collect();
    if old.is_none_or(|old| KIND.generation.rises(job, old)) {
        found.extend(spec_warnings(at(job, &["spec"]).unwrap_or(&Value::Null), "spec"));
    }
    found
}

/// Warnings about the spec of a Job, or of a template of one.
pub(super) fn spec_warnings(spec: &Value, path: &str) -> Vec<String> {
    let mut found = Vec::new();
    let count = |field: &str| int(spec, &[field]).unwrap_or_default();
    let indexed = text(spec, &["completionMode"]) == "Indexed";
    if indexed && count("completions") > 100_000 && count("parallelism") > 10_000 {
        found.push(format!(
            "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism \
             higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number \
             of indexes fail"
        ));
    }
    let template = at(spec, &["template"]).unwrap_or(&Value::Null);
    found.extend(pod_template::warnings(template, &format!("{path}.template")));
    found
}
