//! Where a recorded and an answered document differ.

use std::fmt;

use serde_json::Value;

/// A place at which two documents differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// The path, such as `body.spec.ports[0].port`.
    pub path: String,
    /// What is there in the recorded document; `None` if nothing.
    pub recorded: Option<Value>,
    /// What is there in the answered one.
    pub answered: Option<Value>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [recorded, answered] =
            [&self.recorded, &self.answered].map(|value| shown(value.as_ref()));
        write!(f, "{}\n      recorded {recorded}\n      answered {answered}", self.path)
    }
}

/// All places at which the documents differ, in order; empty if they are equal.
#[must_use]
pub fn differences(recorded: &Value, answered: &Value) -> Vec<Place> {
    let mut places = Vec::new();
    compare("", Some(recorded), Some(answered), &mut places);
    places
}

fn compare(
    path: &str,
    recorded: Option<&Value>,
    answered: Option<&Value>,
    places: &mut Vec<Place>,
) {
    match (recorded, answered) {
        (Some(Value::Object(recorded)), Some(Value::Object(answered))) => {
            for (key, value) in recorded {
                compare(&format!("{path}.{key}"), Some(value), answered.get(key), places);
            }
            for (key, value) in answered.iter().filter(|(key, _)| !recorded.contains_key(*key)) {
                compare(&format!("{path}.{key}"), None, Some(value), places);
            }
        }
        (Some(Value::Array(recorded)), Some(Value::Array(answered))) => {
            for index in 0..recorded.len().max(answered.len()) {
                let path = format!("{path}[{index}]");
                compare(&path, recorded.get(index), answered.get(index), places);
            }
        }
        (recorded, answered) if equal(recorded, answered) => {}
        (recorded, answered) => places.push(Place {
            path: path.trim_start_matches('.').to_owned(),
            recorded: recorded.cloned(),
            answered: answered.cloned(),
        }),
    }
}

/// Equal as JSON: 1 and 1.0 are one number.
fn equal(recorded: Option<&Value>, answered: Option<&Value>) -> bool {
    match (recorded, answered) {
        (Some(Value::Number(recorded)), Some(Value::Number(answered))) => {
            recorded == answered || recorded.as_f64() == answered.as_f64()
        }
        _ => recorded == answered,
    }
}

fn shown(value: Option<&Value>) -> String {
    const LONGEST: usize = 2000;
    let Some(value) = value else { return "nothing".to_owned() };
    let text = value.to_string();
    match text.char_indices().nth(LONGEST).and_then(|(end, _)| text.get(..end)) {
        Some(start) => format!("{start}... ({} bytes)", text.len()),
        None => text,
    }
}
