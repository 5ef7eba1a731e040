//! DaemonSets.

use serde_json::{Value, json};

use crate::builtin::cells::{View, labels_text};
use crate::builtin::check::Faults;
use crate::builtin::defaults::{Fields, field_text, inner, set};
use crate::builtin::kind::{Generation, Kind};
use crate::builtin::percent::{at_most_all, int_or_percent, number_of};
use crate::builtin::pod_template;
use crate::builtin::selector::{is_empty_selector, label_selector, shown_selector};
use crate::builtin::value::{at, int, text};
use crate::builtin::workload::{
    always_restarts, matches_template, not_negative, template_warnings, with_immutable,
};
use crate::field::FieldError;
use crate::object;

/// The annotation that holds the older count of templates, which this version has no field for.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// `daemonsets`.
pub(super) static KIND: Kind = Kind {
    generation: Generation::Spec,
    status_subresource: true,
    default,
    prepare_for_create: |set| count_templates(set, 1),
    prepare_for_update: |_, subresource, set, old| {
        if subresource.is_empty() {
            let path = ["spec", "template"];
            let changed = i64::from(at(set, &path) != at(old, &path));
            count_templates(set, templates(old) + changed);
        }
    },
    validate,
    validate_update: Some(|set, old| with_immutable(validate(set), set, old, &["selector"])),
    validate_status,
    warnings,
    cells,
    ..Kind::new("apps", "daemonsets")
};

fn default(set_: &mut Fields) {
    let spec = inner(set_, "spec");
    let strategy = inner(spec, "updateStrategy");
    set(strategy, "type", || json!("RollingUpdate"));
    if field_text(strategy, "type") == "RollingUpdate" {
        let rolling = inner(strategy, "rollingUpdate");
        rolling.entry("maxUnavailable").or_insert_with(|| json!(1));
        rolling.entry("maxSurge").or_insert_with(|| json!(0));
    }
    set(spec, "revisionHistoryLimit", || json!(10));
    // So does a real server show the count to whoever owns fields, before it counts.
    let annotations = inner(inner(set_, "metadata"), "annotations");
    annotations.entry(TEMPLATE_GENERATION).or_insert_with(|| json!("0"));
}

fn templates(set: &Value) -> i64 {
    let count = text(set, &["metadata", "annotations", TEMPLATE_GENERATION]);
    count.parse().unwrap_or_default()
}

fn count_templates(set: &mut Value, count: i64) {
    let annotations = object::metadata_mut(set).entry("annotations").or_insert(Value::Null);
    object::put(annotations, TEMPLATE_GENERATION, json!(count.to_string()));
}

fn validate(object: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let template = at(object, &["spec", "template"]).unwrap_or(&Value::Null);
    if let Some(selector) = at(object, &["spec", "selector"]) {
        let mut wrong = Faults::default();
        label_selector(selector, "spec.selector", &mut wrong);
        let usable = wrong.is_empty();
        faults.extend(wrong.0);
        if usable {
            matches_template(object, template, &mut faults);
        }
        if is_empty_selector(selector) {
            let why = "empty selector is invalid for daemonset";
            faults.invalid_shown("spec.selector", &shown_selector(selector), why);
        }
    } else {
        matches_template(object, template, &mut faults);
    }
    pod_template::validate(template, "spec.template", &mut faults);
    always_restarts(text(template, &["spec", "restartPolicy"]), &mut faults);
    if at(template, &["spec", "activeDeadlineSeconds"]).is_some() {
        let why = "activeDeadlineSeconds in DaemonSet is not Supported";
        faults.forbidden("spec.template.spec.activeDeadlineSeconds", why);
    }
    faults.not_negative("spec.minReadySeconds", int(object, &["spec", "minReadySeconds"]));
    strategy(at(object, &["spec", "updateStrategy"]).unwrap_or(&Value::Null), &mut faults);
    let limit = int(object, &["spec", "revisionHistoryLimit"]);
    faults.not_negative("spec.revisionHistoryLimit", limit);
    faults.0
}

fn strategy(strategy: &Value, faults: &mut Faults) {
    let field = "spec.updateStrategy";
    match text(strategy, &["type"]) {
        "OnDelete" => {}
        "RollingUpdate" => match at(strategy, &["rollingUpdate"]) {
            None => faults.required(format!("{field}.rollingUpdate"), ""),
            Some(rolling) => rolling_update(rolling, faults),
        },
        other => {
            let shown = format!(r#"{{"Type":{other:?},"RollingUpdate":null}}"#);
            let mut fault = FieldError::not_supported(field, &Value::Null, &[]);
            fault.body = format!(
                r#"Unsupported value: {shown}: supported values: "RollingUpdate", "OnDelete""#
            );
            faults.add(fault);
        }
    }
}

fn rolling_update(rolling: &Value, faults: &mut Faults) {
    let field = |name: &str| format!("spec.updateStrategy.rollingUpdate.{name}");
    let zero = json!(0);
    let value = |name: &str| at(rolling, &[name]).unwrap_or(&zero);
    let fields = ["maxUnavailable", "maxSurge"];
    for name in fields {
        int_or_percent(value(name), &field(name), faults);
    }
    for name in fields {
        at_most_all(value(name), &field(name), faults);
    }
    match fields.map(|name| number_of(value(name)) != 0) {
        [true, true] => {
            let why = "may not be set when maxUnavailable is non-zero";
            faults.invalid(field("maxSurge"), value("maxSurge"), why);
        }
        [false, false] => {
            faults.required(field("maxUnavailable"), "cannot be 0 when maxSurge is 0");
        }
        _ => {}
    }
}

fn validate_status(object: &Value, old: &Value) -> Vec<FieldError> {
    const COUNTS: [&str; 9] = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ];
    let mut faults = Faults::default();
    not_negative(object, &COUNTS, &mut faults);
    let collisions = |one| int(one, &["status", "collisionCount"]);
    let now = collisions(object).unwrap_or_default();
    if collisions(old).is_some_and(|before| now < before) {
        faults.invalid("status.collisionCount", &json!(now), "cannot be decremented");
    }
    faults.0
}

fn warnings(set: &Value, old: Option<&Value>) -> Vec<String> {
    let template = at(set, &["spec", "template"]);
    if old.is_some_and(|old| at(old, &["spec", "template"]) == template) {
        return Vec::new();
    }
    template_warnings(set, None, KIND.generation)
}

fn cells(view: View<'_>) -> Vec<Value> {
    let [names, images] = view.containers();
    view.named(vec![
        view.count("/status/desiredNumberScheduled"),
        view.count("/status/currentNumberScheduled"),
        view.count("/status/numberReady"),
        view.count("/status/updatedNumberScheduled"),
        view.count("/status/numberAvailable"),
        json!(labels_text(view.object.pointer("/spec/template/spec/nodeSelector"))),
        view.age(),
        names,
        images,
        view.selector(),
    ])
}
