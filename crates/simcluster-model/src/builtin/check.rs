//! Collecting faults of fields.

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::metadata;
use crate::names;

const NEGATIVE: &str = "must be greater than or equal to 0";

/// The faults found so far, in the server's order.
#[derive(Debug, Default)]
pub(super) struct Faults(pub(super) Vec<FieldError>);

impl Faults {
    pub(super) fn add(&mut self, fault: FieldError) {
        self.0.push(fault);
    }

    pub(super) fn extend(&mut self, faults: impl IntoIterator<Item = FieldError>) {
        self.0.extend(faults);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn required(&mut self, field: impl Into<String>, detail: &str) {
        self.add(FieldError::required(field, detail));
    }

    pub(super) fn invalid(&mut self, field: impl Into<String>, value: &Value, detail: &str) {
        self.add(FieldError::invalid(field, value, detail));
    }

    /// `Invalid value` with a value that JSON with sorted keys does not show as the server does, which
    /// prints structs in the order of their Go fields (and internal types by their Go names).
    pub(super) fn invalid_shown(&mut self, field: impl Into<String>, shown: &str, detail: &str) {
        self.add(FieldError::invalid_omitted(field, &format!("{shown}: {detail}")));
    }

    pub(super) fn forbidden(&mut self, field: impl Into<String>, detail: &str) {
        self.add(FieldError::forbidden(field, detail));
    }

    pub(super) fn duplicate(&mut self, field: impl Into<String>, value: &Value) {
        self.add(FieldError::duplicate(field, value));
    }

    /// One `Invalid value` for each of `texts`.
    pub(super) fn texts(&mut self, field: &str, value: &str, texts: Vec<String>) {
        self.extend(names::invalid(field, value, texts));
    }

    /// A value that must be one of a few; an empty one is `Required`.
    pub(super) fn one_of(&mut self, field: impl Into<String>, value: &str, supported: &[&str]) {
        if value.is_empty() {
            self.required(field, "");
        } else {
            self.supported(field, value, supported);
        }
    }

    /// A value that must be one of a few; an empty one is none of them.
    pub(super) fn supported(&mut self, field: impl Into<String>, value: &str, known: &[&str]) {
        if !known.contains(&value) {
            let known: Vec<String> = known.iter().map(|one| (*one).to_owned()).collect();
            self.add(FieldError::not_supported(field, &json!(value), &known));
        }
    }

    /// A number that must not be negative.
    pub(super) fn not_negative(&mut self, field: impl Into<String>, value: Option<i64>) {
        if let Some(value) = value.filter(|value| *value < 0) {
            self.invalid(field, &json!(value), NEGATIVE);
        }
    }

    /// A field that must stay as it was. `null` stands for a field that is not there.
    pub(super) fn immutable(&mut self, field: &str, new: Option<&Value>, old: Option<&Value>) {
        if new != old {
            self.invalid(field, new.unwrap_or(&Value::Null), "field is immutable");
        }
    }

    /// A port given by number or by name.
    pub(super) fn port(&mut self, field: &str, port: Option<&Value>) {
        match port {
            Some(Value::String(name)) => self.texts(field, name, names::port_name(name)),
            other => {
                let number = other.and_then(Value::as_i64).unwrap_or_default();
                for text in names::port_number(number) {
                    self.invalid(field, &json!(number), &text);
                }
            }
        }
    }

    /// The labels at a path.
    pub(super) fn labels(&mut self, field: &str, labels: Option<&Value>) {
        self.extend(metadata::label_faults(field, labels));
    }

    /// The keys and the size of annotations.
    pub(super) fn annotations(&mut self, field: &str, annotations: Option<&Value>) {
        self.extend(metadata::annotation_faults(field, annotations));
    }
}
