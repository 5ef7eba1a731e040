//! All validations of a custom resource, in the server's order.

use serde_json::Value;

use super::Schema;
use super::cel::Rules;
use super::correlate::Old;
use super::list_types;
use super::path::Path;
use super::values::{Node, Place};
use crate::field::{FieldError, FieldErrorKind};

/// What is validated and against what.
#[derive(Debug, Clone, Copy)]
pub struct Validation<'a> {
    /// The object.
    pub object: &'a Value,
    /// The object before the change; `None` for a new one. What did not change is forgiven.
    pub old: Option<&'a Value>,
    /// Schema of the version, from [`Schema::parse`].
    pub schema: &'a Schema,
}

/// The faults of a new or changed object against its version's schema: value validations, list types,
/// CEL rules, and the remark that rules were left out if something blocked them. Metadata is not
/// looked at.
#[must_use]
pub fn validate(object: &Value, old: Option<&Value>, schema: &Schema) -> Vec<FieldError> {
    let validation = Validation { object, old, schema };
    let mut faults = validation.values();
    faults.extend(validation.lists());
    validation.rules(&mut faults);
    faults
}

impl Validation<'_> {
    /// Faults against the value validations of the whole object.
    #[must_use]
    pub fn values(&self) -> Vec<FieldError> {
        let Some(checks) = &self.schema.checks else { return Vec::new() };
        let place = Place { prefix: "", path: &Path::ROOT };
        let old = self.old.map(|value| Old { value, schema: self.schema });
        checks.values().validate(self.object, place, old).faults
    }

    /// Faults of the status alone; their texts name paths below `status`.
    #[must_use]
    pub fn status_values(&self) -> Vec<FieldError> {
        let node =
            self.schema.checks.as_ref().and_then(|checks| checks.values().property("status"));
        let (Some(node), Some(status)) = (node, self.object.get("status")) else {
            return Vec::new();
        };
        let place = Place { prefix: "status", path: &Path::ROOT };
        let old = self.old.map(|value| Old { value, schema: self.schema });
        let old = old.and_then(|old| old.field("status"));
        node.validate(status, place, old).faults
    }

    /// Faults of set and map lists, unless the old object had such faults already.
    #[must_use]
    pub fn lists(&self) -> Vec<FieldError> {
        let old_is_clean =
            self.old.is_none_or(|old| list_types::validate(old, self.schema).is_empty());
        if old_is_clean { list_types::validate(self.object, self.schema) } else { Vec::new() }
    }

    /// Adds the faults against CEL rules; if one of the faults so far blocks them, only the remark
    /// that they were not checked. Answers the faults of unchanged values, of which the server warns.
    pub fn rules(&self, faults: &mut Vec<FieldError>) -> Vec<FieldError> {
        let Some(rules) = self.schema.checks.as_ref().and_then(|checks| checks.rules()) else {
            return Vec::new();
        };
        if let Some(fault) = blocking_fault(faults) {
            faults.push(fault);
            return Vec::new();
        }
        let verdict = rules.validate(self.object, self.old, self.schema);
        faults.extend(verdict.faults);
        verdict.forgiven
    }
}

/// The remark that rules were not checked, if one of the faults keeps them from being checked.
#[must_use]
pub fn blocking_fault(faults: &[FieldError]) -> Option<FieldError> {
    let blocks = faults.iter().any(|fault| match fault.kind {
        FieldErrorKind::NotSupported
        | FieldErrorKind::Required
        | FieldErrorKind::TooLong
        | FieldErrorKind::TooMany
        | FieldErrorKind::TypeInvalid => true,
        FieldErrorKind::NotFound
        | FieldErrorKind::Duplicate
        | FieldErrorKind::Invalid
        | FieldErrorKind::Forbidden
        | FieldErrorKind::Internal => false,
    });
    let detail = "some validation rules were not checked because the object was invalid; correct the \
                  existing errors to complete validation";
    blocks.then(|| FieldError::invalid("<nil>", &Value::Null, detail))
}

/// The faults of a default against the schema (`source`) of its field. `path` is that of the default.
pub(crate) fn default_value_faults(
    source: &Value,
    default: &Value,
    schema: &Schema,
    path: &str,
) -> Vec<FieldError> {
    let place = Place { prefix: path, path: &Path::ROOT };
    let faults = Node::compile(source).validate(default, place, None).faults;
    let Some(rules) = Rules::compile(source).filter(|_| faults.is_empty()) else { return faults };
    // The default must also be good as a value that is new.
    let mut found = rules.validate(default, Some(default), schema).faults;
    if found.is_empty() {
        found = rules.validate(default, None, schema).faults;
    }
    let below = |field: &str| match field {
        "<nil>" => path.to_owned(),
        key if key.starts_with('[') => format!("{path}{key}"),
        field => format!("{path}.{field}"),
    };
    found.into_iter().map(|fault| FieldError { field: below(&fault.field), ..fault }).collect()
}
