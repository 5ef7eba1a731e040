//! What kinds with a Pod template have in common.

use serde_json::{Value, json};

use crate::builtin::check::Faults;
use crate::builtin::kind::Generation;
use crate::builtin::pod_template;
use crate::builtin::selector::{is_empty_selector, label_selector, selects, shown_selector};
use crate::builtin::value::{at, int, text};
use crate::field::FieldError;
use crate::names;
use crate::object;

/// Checks the selector; returns whether it can be used at all.
pub(super) fn usable_selector(
    object: &Value,
    kind: &str,
    unusable: &str,
    faults: &mut Faults,
) -> bool {
    let field = "spec.selector";
    let Some(selector) = at(object, &["spec", "selector"]) else {
        faults.required(field, "");
        return true;
    };
    let mut wrong = Faults::default();
    label_selector(selector, field, &mut wrong);
    let usable = wrong.is_empty();
    faults.extend(wrong.0);
    if !usable {
        let shown = shown_selector(selector);
        let detail = if unusable.is_empty() { shown } else { format!("{shown}: {unusable}") };
        faults.add(FieldError::invalid_omitted(field, &detail));
    }
    if is_empty_selector(selector) {
        let why = format!("empty selector is invalid for {kind}");
        faults.invalid_shown(field, &shown_selector(selector), &why);
    }
    usable
}

pub(super) fn matches_template(object: &Value, template: &Value, faults: &mut Faults) {
    let selector = at(object, &["spec", "selector"]);
    let labels = at(template, &["metadata", "labels"]);
    if !selector.is_some_and(is_empty_selector) && !selects(selector, labels) {
        let why = "`selector` does not match template `labels`";
        let value = labels.unwrap_or(&Value::Null);
        faults.invalid("spec.template.metadata.labels", value, why);
    }
}

pub(super) fn replicated_template(object: &Value, faults: &mut Faults) {
    let template = at(object, &["spec", "template"]).unwrap_or(&Value::Null);
    matches_template(object, template, faults);
    pod_template::validate(template, "spec.template", faults);
    always_restarts(text(template, &["spec", "restartPolicy"]), faults);
    if at(template, &["spec", "activeDeadlineSeconds"]).is_some() {
        let why = "activeDeadlineSeconds in ReplicaSet is not Supported";
        faults.forbidden("spec.template.spec.activeDeadlineSeconds", why);
    }
}

pub(super) fn always_restarts(policy: &str, faults: &mut Faults) {
    if policy != "Always" {
        let field = "spec.template.spec.restartPolicy";
        faults.add(FieldError::not_supported(field, &json!(policy), &["Always".to_owned()]));
    }
}

/// A strategy as the server's internal type prints it.
pub(super) fn internal_strategy(kind: &str, rolling: Option<&Value>) -> String {
    let rolling = rolling.map_or("null".to_owned(), |rolling| {
        let field = |name: &str| at(rolling, &[name]).unwrap_or(&Value::Null).to_string();
        format!(
            r#"{{"MaxUnavailable":{},"MaxSurge":{}}}"#,
            field("maxUnavailable"),
            field("maxSurge")
        )
    });
    format!(r#"{{"Type":{kind:?},"RollingUpdate":{rolling}}}"#)
}

pub(super) fn with_immutable(
    faults: Vec<FieldError>,
    object: &Value,
    old: &Value,
    fields: &[&str],
) -> Vec<FieldError> {
    let mut faults = Faults(faults);
    for name in fields {
        let (new, old) = (at(object, &["spec", name]), at(old, &["spec", name]));
        let field = format!("spec.{name}");
        match new {
            Some(new) if *name == "selector" && Some(new) != old => {
                faults.invalid_shown(field, &shown_selector(new), "field is immutable");
            }
            _ => faults.immutable(&field, new, old),
        }
    }
    faults.0
}

/// A count in the status; one that is not there is zero.
pub(super) fn counted(object: &Value, field: &str) -> i64 {
    int(object, &["status", field]).unwrap_or_default()
}

pub(super) fn not_negative(object: &Value, fields: &[&str], faults: &mut Faults) {
    for field in fields {
        faults.not_negative(format!("status.{field}"), int(object, &["status", field]));
    }
}

pub(super) fn not_more_than_replicas(object: &Value, fields: &[&str], faults: &mut Faults) {
    let replicas = counted(object, "replicas");
    for field in fields {
        let count = counted(object, field);
        if count > replicas {
            let why = "cannot be greater than status.replicas";
            faults.invalid(format!("status.{field}"), &json!(count), why);
        }
    }
}

/// `ready` is what the text calls the ready ones.
pub(super) fn not_more_available(object: &Value, ready: &str, faults: &mut Faults) {
    let available = counted(object, "availableReplicas");
    if available > counted(object, "readyReplicas") {
        let why = format!("cannot be greater than {ready}");
        faults.invalid("status.availableReplicas", &json!(available), &why);
    }
}

/// What a name becomes part of.
pub(super) const POD_NAMES: &str = "Pod names and hostnames";

/// Warnings about the Pods that an object makes, which are said of new objects and of changes that
/// raise the generation.
pub(super) fn template_warnings(
    object: &Value,
    old: Option<&Value>,
    generation: Generation,
) -> Vec<String> {
    if old.is_some_and(|old| !generation.rises(object, old)) {
        return Vec::new();
    }
    let template = at(object, &["spec", "template"]).unwrap_or(&Value::Null);
    pod_template::warnings(template, "spec.template")
}

/// Warnings about an object that makes as many Pods as it is told to, whose names begin with its own.
pub(super) fn replicated_warnings(
    object: &Value,
    old: Option<&Value>,
    generation: Generation,
) -> Vec<String> {
    let mut found: Vec<String> = name_warning(object, old, POD_NAMES).into_iter().collect();
    found.extend(template_warnings(object, old, generation));
    found
}

/// Faults of the counts in the status of an object that makes Pods itself; `others` are fields that may not
/// be negative, either.
pub(super) fn replica_counts(object: &Value, others: &[&str]) -> Vec<FieldError> {
    const PARTS: [&str; 3] = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    let mut faults = Faults::default();
    not_negative(object, &["replicas"], &mut faults);
    not_negative(object, &PARTS, &mut faults);
    not_negative(object, others, &mut faults);
    not_more_than_replicas(object, &PARTS, &mut faults);
    not_more_available(object, "readyReplicas", &mut faults);
    faults.0
}

/// A warning about a new object whose name is no label: `use_` says what is made of it.
pub(super) fn name_warning(object: &Value, old: Option<&Value>, use_: &str) -> Option<String> {
    let wrong = names::dns1123_label(object::name(object));
    (old.is_none() && !wrong.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in {use_}, which can result in surprising behavior; a DNS label \
             is recommended: [{}]",
            wrong.join(" ")
        )
    })
}
