//! Validations of strings and numbers.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::{Node, Outcome, Place, count_of};
use crate::field::FieldError;
use crate::schema::Type;
use crate::schema::numbers::{go_float, whole};

/// What the server says first when a number does not fit its type.
const CHECKED: &str = "Checked";

impl Node {
    pub(super) fn check_string(&self, text: &str, place: Place<'_>, outcome: &mut Outcome) {
        if let Some(fault) = self.string_fault(text, place) {
            outcome.add(fault);
        }
        outcome.passed += 1;
        if let Some(format) = self.string_format {
            if !format.accepts(text) {
                let wanted = self.format.as_deref().unwrap_or_default();
                outcome.add(place.wrong_type(wanted, text));
            }
            outcome.passed += 1;
        }
    }

    /// The first fault of a string; the server looks no further.
    fn string_fault(&self, text: &str, place: Place<'_>) -> Option<FieldError> {
        let length = count_of(text.chars().count());
        let value = || Value::from(text);
        if let Some(max) = self.max_length.filter(|max| length > *max) {
            return Some(FieldError::too_long(place.field(), max));
        }
        if let Some(min) = self.min_length.filter(|min| length < *min) {
            return Some(place.invalid(&value(), &format!("should be at least {min} chars long")));
        }
        let pattern = self.pattern.as_ref()?;
        match &pattern.regex {
            Ok(regex) if regex.is_match(text) => None,
            Ok(_) => Some(place.invalid(&value(), &format!("should match '{}'", pattern.source))),
            Err(why) => {
                let source = &pattern.source;
                let text = format!("should match '{source}, but pattern is invalid: {why}'");
                Some(place.invalid(&value(), &text))
            }
        }
    }

    pub(super) fn check_number(&self, number: &Number, place: Place<'_>, outcome: &mut Outcome) {
        outcome.passed += 2;
        if let Some(fault) = self.range_fault(number, CHECKED, place) {
            outcome.add(fault);
        }
        let value = Value::Number(number.clone());
        if let Some(factor) = self.multiple_of {
            self.check_bound_range(factor, "MultipleOf", place, outcome);
            if let Some(text) = not_multiple(number, factor) {
                outcome.add(place.invalid(&value, &text));
            }
        }
        if let Some(minimum) = self.minimum {
            self.check_bound_range(minimum, "Minimum boundary", place, outcome);
            if outside(number, minimum, self.exclusive_minimum, std::cmp::Ordering::Less) {
                let or = if self.exclusive_minimum { "" } else { "or equal to " };
                let text = format!("should be greater than {or}{}", bound(number, minimum));
                outcome.add(place.invalid(&value, &text));
            }
        }
        if let Some(maximum) = self.maximum {
            self.check_bound_range(maximum, "Maximum boundary", place, outcome);
            if outside(number, maximum, self.exclusive_maximum, std::cmp::Ordering::Greater) {
                let or = if self.exclusive_maximum { "" } else { "or equal to " };
                let text = format!("should be less than {or}{}", bound(number, maximum));
                outcome.add(place.invalid(&value, &text));
            }
        }
    }

    fn check_bound_range(&self, limit: f64, what: &str, place: Place<'_>, outcome: &mut Outcome) {
        let number = whole(limit).map(Number::from).or_else(|| Number::from_f64(limit));
        if let Some(fault) = number.and_then(|number| self.range_fault(&number, what, place)) {
            outcome.add(fault);
        }
    }

    /// Whether a number fits the type and format of the node.
    fn range_fault(&self, number: &Number, what: &str, place: Place<'_>) -> Option<FieldError> {
        let [kind] = self.types.as_slice() else { return None };
        let format = self.format.as_deref().unwrap_or_default();
        let fits = match kind {
            Type::Integer if format == "int32" => {
                integer(number).is_some_and(|value| i32::try_from(value).is_ok())
            }
            Type::Integer => integer(number).is_some(),
            Type::Number if format == "float" => {
                number.as_f64().is_none_or(|value| value.abs() <= f64::from(f32::MAX))
            }
            Type::Number | Type::Object | Type::Array | Type::String | Type::Boolean => true,
        };
        if fits {
            return None;
        }
        let with = match format {
            "" => "(default format)".to_owned(),
            format => format!("with format {format}"),
        };
        let text =
            format!("{what} value must be of type {} {with} in {}", kind.name(), place.name());
        Some(place.composite(&text))
    }
}

/// Whether a float is a whole number that JavaScript holds exactly.
pub(super) fn is_json_integer(float: f64) -> bool {
    float.abs() <= 9_007_199_254_740_991.0 && float.fract() == 0.0
}

/// Whether a value equals an allowed one after a conversion to its type, as Go's reflection does it.
pub(super) fn converts_to(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Null, _) => false,
        (Value::Number(value), Value::Number(allowed)) => {
            match (value.as_i64(), allowed.as_i64()) {
                (Some(value), Some(allowed)) => value == allowed,
                (None, Some(allowed)) => {
                    value.as_f64().and_then(|value| whole(value.trunc())) == Some(allowed)
                }
                (_, None) => value.as_f64() == allowed.as_f64(),
            }
        }
        (value, allowed) => value == allowed,
    }
}

/// Whether a number lies beyond a limit. Integers are compared as integers.
fn outside(number: &Number, limit: f64, exclusive: bool, beyond: Ordering) -> bool {
    let order = match (number.as_i64(), whole(limit.trunc())) {
        (Some(value), Some(limit)) => Some(value.cmp(&limit)),
        _ => number.as_f64().and_then(|value| value.partial_cmp(&limit)),
    };
    order == Some(beyond) || (exclusive && order == Some(Ordering::Equal))
}

/// The limit as it is printed beside this number.
fn bound(number: &Number, limit: f64) -> String {
    match whole(limit.trunc()).filter(|_| number.is_i64()) {
        Some(limit) => limit.to_string(),
        None => go_float(limit),
    }
}

fn not_multiple(number: &Number, factor: f64) -> Option<String> {
    let text = || format!("should be a multiple of {}", bound(number, factor));
    if let (Some(value), Some(factor)) = (number.as_i64(), whole(factor.trunc())) {
        if factor <= 0 {
            return Some(format!("factor MultipleOf declared must be positive: {factor}"));
        }
        return (value % factor != 0).then(text);
    }
    let value = number.as_f64()?;
    let quotient = if factor < 1.0 { 1.0 / factor * value } else { value / factor };
    (!is_json_integer(quotient)).then(text)
}

/// A number as an integer: `2.0` is one, too.
fn integer(number: &Number) -> Option<i64> {
    number.as_i64().or_else(|| number.as_f64().and_then(whole))
}
