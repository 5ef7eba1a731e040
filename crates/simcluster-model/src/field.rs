//! Faults of single fields, worded as `k8s.io/apimachinery/pkg/util/validation/field` words them.

use std::fmt;

use serde_json::Value;

use crate::golang;

/// One fault of one field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// What kind of fault it is.
    pub kind: FieldErrorKind,
    /// Path of the field, such as `spec.parts[0].name`; `<nil>` where the server has none.
    pub field: String,
    /// The text after `field: `, such as `Required value` or `Invalid value: 0: must be positive`.
    pub body: String,
}

/// What validation says of an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// Why it is refused.
    pub faults: Vec<FieldError>,
    /// Faults of what did not change: the server warns of them.
    pub forgiven: Vec<FieldError>,
}

impl From<Vec<FieldError>> for Verdict {
    fn from(faults: Vec<FieldError>) -> Self {
        Self { faults, forgiven: Vec::new() }
    }
}

/// `field.ErrorType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// `FieldValueNotFound`
    NotFound,
    /// `FieldValueRequired`
    Required,
    /// `FieldValueDuplicate`
    Duplicate,
    /// `FieldValueInvalid`
    Invalid,
    /// `FieldValueNotSupported`
    NotSupported,
    /// `FieldValueForbidden`
    Forbidden,
    /// `FieldValueTooLong`
    TooLong,
    /// `FieldValueTooMany`
    TooMany,
    /// `InternalError`
    Internal,
    /// `FieldValueTypeInvalid`
    TypeInvalid,
}

impl FieldErrorKind {
    /// The `reason` of the cause.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::Internal => "InternalError",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }
}

impl FieldError {
    fn new(kind: FieldErrorKind, field: impl Into<String>, body: String) -> Self {
        Self { kind, field: field.into(), body }
    }

    /// `Required value`, with `: detail` if there is one.
    #[must_use]
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        Self::new(FieldErrorKind::Required, field, with_detail("Required value", detail))
    }

    /// `Invalid value: <value>: <detail>`.
    #[must_use]
    pub fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        let body = with_detail(&format!("Invalid value: {}", shown(value)), detail);
        Self::new(FieldErrorKind::Invalid, field, body)
    }

    /// `Invalid value: <shown>: <detail>`, for values that do not print as plain JSON.
    #[must_use]
    pub fn invalid_shown(field: impl Into<String>, shown: &str, detail: &str) -> Self {
        let body = with_detail(&format!("Invalid value: {shown}"), detail);
        Self::new(FieldErrorKind::Invalid, field, body)
    }

    /// `Invalid value: <detail>`, for values that the server does not print (objects, lists).
    #[must_use]
    pub fn invalid_omitted(field: impl Into<String>, detail: &str) -> Self {
        Self::new(FieldErrorKind::Invalid, field, format!("Invalid value: {detail}"))
    }

    /// `Invalid value: <value>: <detail>` of the kind `FieldValueTypeInvalid`.
    #[must_use]
    pub fn type_invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        let body = with_detail(&format!("Invalid value: {}", shown(value)), detail);
        Self::new(FieldErrorKind::TypeInvalid, field, body)
    }

    /// `Duplicate value: <value>`.
    #[must_use]
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::new(FieldErrorKind::Duplicate, field, format!("Duplicate value: {}", shown(value)))
    }

    /// `Forbidden: <detail>`.
    #[must_use]
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new(FieldErrorKind::Forbidden, field, with_detail("Forbidden", detail))
    }

    /// `Unsupported value: <value>: supported values: "a", "b"`, in the order given.
    #[must_use]
    pub fn not_supported(field: impl Into<String>, value: &Value, supported: &[String]) -> Self {
        let list: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
        let body =
            format!("Unsupported value: {}: supported values: {}", shown(value), list.join(", "));
        Self::new(FieldErrorKind::NotSupported, field, body)
    }

    /// `Too long: may not be more than <max> bytes`.
    #[must_use]
    pub fn too_long(field: impl Into<String>, max: u64) -> Self {
        let unit = if max == 1 { "byte" } else { "bytes" };
        let body = format!("Too long: may not be more than {max} {unit}");
        Self::new(FieldErrorKind::TooLong, field, body)
    }

    /// `Too many: <actual>: must have at most <max> items`.
    #[must_use]
    pub fn too_many(field: impl Into<String>, actual: u64, max: u64) -> Self {
        let unit = if max == 1 { "item" } else { "items" };
        let body = format!("Too many: {actual}: must have at most {max} {unit}");
        Self::new(FieldErrorKind::TooMany, field, body)
    }

    /// `Not found: <value>`.
    #[must_use]
    pub fn not_found(field: impl Into<String>, value: &Value) -> Self {
        Self::new(FieldErrorKind::NotFound, field, format!("Not found: {}", shown(value)))
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body)
    }
}

fn with_detail(text: &str, detail: &str) -> String {
    if detail.is_empty() { text.to_owned() } else { format!("{text}: {detail}") }
}

/// A value as the server quotes it: JSON, which for strings is close to Go's `%q`.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => golang::quote(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}
