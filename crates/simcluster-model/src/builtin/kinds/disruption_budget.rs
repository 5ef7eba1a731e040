//! Pod disruption budgets.

use serde_json::{Value, json};

use crate::builtin::cells::View;
use crate::builtin::check::Faults;
use crate::builtin::kind::{Generation, Kind};
use crate::builtin::percent::{at_most_all, int_or_percent};
use crate::builtin::selector::label_selector;
use crate::builtin::value::{at, text};
use crate::field::FieldError;

/// `poddisruptionbudgets`.
pub(super) static KIND: Kind = Kind {
    generation: Generation::Spec,
    status_subresource: true,
    allow_unconditional_update: false,
    validate,
    knows_finalizers: false,
    cells,
    ..Kind::new("policy", "poddisruptionbudgets")
};

fn validate(budget: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let limits = ["minAvailable", "maxUnavailable"];
    if limits.iter().all(|field| at(budget, &["spec", field]).is_some()) {
        let why = "minAvailable and maxUnavailable cannot be both set";
        faults.invalid_shown("spec", &internal_budget(budget), why);
    }
    for field in limits {
        if let Some(value) = at(budget, &["spec", field]) {
            let field = format!("spec.{field}");
            int_or_percent(value, &field, &mut faults);
            at_most_all(value, &field, &mut faults);
        }
    }
    if let Some(selector) = at(budget, &["spec", "selector"]) {
        label_selector(selector, "spec.selector", &mut faults);
    }
    let policy = text(budget, &["spec", "unhealthyPodEvictionPolicy"]);
    if !policy.is_empty() {
        let field = "spec.unhealthyPodEvictionPolicy";
        faults.one_of(field, policy, &["AlwaysAllow", "IfHealthyBudget"]);
    }
    faults.0
}

/// The server prints its internal type, whose fields have no JSON names.
fn internal_budget(budget: &Value) -> String {
    let field = |name: &str| at(budget, &["spec", name]).cloned().unwrap_or_default();
    format!(
        r#"{{"MinAvailable":{},"Selector":{},"MaxUnavailable":{},"UnhealthyPodEvictionPolicy":{}}}"#,
        field("minAvailable"),
        field("selector"),
        field("maxUnavailable"),
        field("unhealthyPodEvictionPolicy"),
    )
}

fn cells(view: View<'_>) -> Vec<Value> {
    let amount = |pointer: &str| match view.object.pointer(pointer) {
        Some(Value::String(text)) => json!(text),
        Some(Value::Number(number)) => json!(number.to_string()),
        _ => json!("N/A"),
    };
    view.named(vec![
        amount("/spec/minAvailable"),
        amount("/spec/maxUnavailable"),
        view.count("/status/disruptionsAllowed"),
        view.age(),
    ])
}
