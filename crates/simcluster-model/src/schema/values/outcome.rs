//! What a validation finds, and where.

use serde_json::Value;

use crate::field::FieldError;
use crate::schema::path::Path;

/// The faults of a value and how many checks passed.
#[derive(Debug, Default)]
pub(in crate::schema) struct Outcome {
    pub(in crate::schema) faults: Vec<FieldError>,
    pub(super) passed: u32,
}

impl Outcome {
    pub(super) fn add(&mut self, fault: FieldError) {
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.passed += other.passed;
        other.faults.into_iter().for_each(|fault| self.add(fault));
    }

    pub(super) fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Where faults are reported: the path in the value, below the field that was handed in.
#[derive(Debug, Clone, Copy)]
pub(in crate::schema) struct Place<'a> {
    /// `status` when only the status is validated, else empty.
    pub(in crate::schema) prefix: &'a str,
    pub(in crate::schema) path: &'a Path<'a>,
}

impl Place<'_> {
    /// The name in the texts.
    pub(super) fn name(self) -> String {
        self.path.dotted()
    }

    /// The field of the fault.
    pub(super) fn field(self) -> String {
        self.field_named(&self.name())
    }

    pub(super) fn field_named(self, name: &str) -> String {
        let name = name.strip_prefix('.').unwrap_or(name);
        match (self.prefix, name) {
            ("", "") => "<nil>".to_owned(),
            ("", name) => name.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, name) => format!("{prefix}.{name}"),
        }
    }

    /// A fault of the whole value that names no field.
    pub(super) fn composite(self, text: &str) -> FieldError {
        let field = if self.prefix.is_empty() { "<nil>" } else { self.prefix };
        FieldError::invalid(field, &Value::String(String::new()), text)
    }

    pub(super) fn wrong_type(self, wanted: &str, seen: &str) -> FieldError {
        let text = format!("{} in body must be of type {wanted}: {seen:?}", self.name());
        FieldError::type_invalid(self.field(), &Value::from(seen), &text)
    }

    pub(super) fn invalid(self, value: &Value, text: &str) -> FieldError {
        FieldError::invalid(self.field(), value, &format!("{} in body {text}", self.name()))
    }
}
