//! Makes of a derived custom resource definition what the API server stores of it.
//!
//! The derive says `nullable: true` of every optional field and prints the bounds of integers as
//! floats. A nullable field is not defaulted when it is `null`, which would make `null` and absent
//! two different things for a user; and `1.0` is not what anybody would write.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Number, Value};

/// The definition as JSON, with whole numbers printed as integers and nothing nullable.
#[must_use]
pub fn to_json(derived: &CustomResourceDefinition) -> Value {
    let mut value = serde_json::to_value(derived).expect("a definition is plain data");
    tidy(&mut value);
    value
}

fn tidy(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("nullable") == Some(&Value::Bool(true)) {
                fields.remove("nullable");
            }
            fields.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Number(number) => {
            if let Some(whole) = whole(number) {
                *number = whole;
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// `number` as an integer, if it is a float without a fraction.
fn whole(number: &Number) -> Option<Number> {
    if !number.is_f64() {
        return None;
    }
    let text = number.to_string();
    text.strip_suffix(".0").and_then(|digits| digits.parse::<i64>().ok()).map(Number::from)
}
