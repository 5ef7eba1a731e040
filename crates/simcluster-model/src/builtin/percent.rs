//! Numbers that may be percentages.

use serde_json::Value;

use crate::builtin::check::Faults;
use crate::names;

/// A number or a percentage, not negative.
pub(super) fn int_or_percent(value: &Value, field: &str, faults: &mut Faults) {
    match value.as_str() {
        Some(percent) => faults.texts(field, percent, names::percent(percent)),
        None => faults.not_negative(field, value.as_i64()),
    }
}

/// A percentage of at most 100.
pub(super) fn at_most_all(value: &Value, field: &str, faults: &mut Faults) {
    let percent = value.as_str().filter(|text| names::percent(text).is_empty());
    if percent.is_some() && number_of(value) > 100 {
        faults.invalid(field, value, "must not be greater than 100%");
    }
}

pub(super) fn number_of(value: &Value) -> i64 {
    let text = value.as_str().map(|text| text.trim_end_matches('%'));
    text.map_or_else(|| value.as_i64().unwrap_or_default(), |text| text.parse().unwrap_or_default())
}
