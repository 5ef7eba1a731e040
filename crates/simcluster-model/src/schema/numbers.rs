//! Numbers as the API server holds them: 64-bit integers where they fit, else floats.

use serde_json::{Number, Value};

/// Below this size a whole float prints as an integer and comes back from storage as one.
const WHOLE_FLOAT_LIMIT: f64 = 1e21;

/// Turns every number of a decoded body into the server's form: `1.0` and `1e3` become integers,
/// integers beyond 64 bits become floats.
pub fn normalise(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(better) = normal(number) {
                *number = better;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalise),
        Value::Object(map) => map.values_mut().for_each(normalise),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// The better form of a number, if it is not in it yet.
fn normal(number: &Number) -> Option<Number> {
    if number.is_i64() {
        return None;
    }
    let float = number.as_f64()?;
    if number.is_u64() {
        return Number::from_f64(float);
    }
    whole(float).map(Number::from)
}

/// The integer that a float equals, if it is one of 64 bits.
pub(crate) fn whole(float: f64) -> Option<i64> {
    if float.fract() != 0.0 || float.abs() >= WHOLE_FLOAT_LIMIT {
        return None;
    }
    // Printing and parsing is exact for whole floats and needs no cast.
    format!("{float:.0}").parse().ok().or_else(|| (float == 0.0).then_some(0))
}

/// A float as Go's `%v` prints it: the shortest text that reads back, with an exponent from 1e21 on
/// and below 1e-4.
#[must_use]
pub fn go_float(float: f64) -> String {
    let size = float.abs();
    if size == 0.0 || (1e-4..1e21).contains(&size) {
        return format!("{float}");
    }
    let text = format!("{float:e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let (sign, digits_of_exponent) = match exponent.strip_prefix('-') {
        Some(rest) => ('-', rest),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{digits_of_exponent:0>2}")
}
