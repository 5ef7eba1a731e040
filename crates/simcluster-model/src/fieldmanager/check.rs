//! Whether an object fits the types that the merge knows. Not the validation of values: that comes
//! later, and says so in other words.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use super::path::PathElement;
use super::shape::{Node, Scalar, Shape};
use crate::golang;

/// Where an object does not fit its types.
#[derive(Debug)]
pub(super) struct TypeErrors(Vec<TypeError>);

#[derive(Debug)]
struct TypeError {
    path: String,
    message: String,
}

impl fmt::Display for TypeErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |error: &TypeError| match error.path.as_str() {
            "" => error.message.clone(),
            path => format!("{path}: {}", error.message),
        };
        if let [only] = self.0.as_slice() {
            return f.write_str(&line(only));
        }
        f.write_str("errors:")?;
        self.0.iter().try_for_each(|error| write!(f, "\n  {}", line(error)))
    }
}

/// What a list may hold twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Duplicates {
    /// Stored objects may hold items with equal keys.
    Allowed,
    /// An applied configuration may not.
    Refused,
}

/// Checks an object against the types of its schema.
pub(super) fn check(
    node: Node<'_>,
    object: &Value,
    duplicates: Duplicates,
) -> Result<(), TypeErrors> {
    check_beside(node, object, &Value::Null, duplicates)
}

/// Checks an object against the types of its schema, beside one that fits them: what is the same in both
/// needs no second look.
pub(super) fn check_beside(
    node: Node<'_>,
    object: &Value,
    fitting: &Value,
    duplicates: Duplicates,
) -> Result<(), TypeErrors> {
    let mut checker = Checker { path: Vec::new(), duplicates, errors: Vec::new() };
    checker.value(node, object, fitting);
    if checker.errors.is_empty() { Ok(()) } else { Err(TypeErrors(checker.errors)) }
}

struct Checker {
    path: Vec<PathElement>,
    duplicates: Duplicates,
    errors: Vec<TypeError>,
}

impl Checker {
    fn fail(&mut self, message: String) {
        self.errors.push(TypeError { path: super::path::shown_path(&self.path), message });
    }

    fn below(&mut self, step: PathElement, node: Node<'_>, value: &Value, fitting: &Value) {
        self.path.push(step);
        self.value(node, value, fitting);
        self.path.pop();
    }

    fn value(&mut self, node: Node<'_>, value: &Value, fitting: &Value) {
        if value.is_null() {
            return;
        }
        match (node.shape(value), value) {
            (Shape::Map, Value::Object(fields)) => self.map(node, fields, fitting),
            (Shape::List, Value::Array(items)) => self.list(node, items),
            (Shape::Scalar(Scalar::Numeric), Value::Number(_))
            | (Shape::Scalar(Scalar::String), Value::String(_))
            | (Shape::Scalar(Scalar::Boolean), Value::Bool(_))
            | (
                Shape::Scalar(Scalar::Untyped),
                Value::Number(_) | Value::String(_) | Value::Bool(_),
            ) => {}
            (shape, value) => self.fail(mismatch(shape, value)),
        }
    }

    /// The first undeclared field ends the check of a map, as on the server.
    fn map(&mut self, node: Node<'_>, fields: &Map<String, Value>, fitting: &Value) {
        for (name, value) in fields {
            let fitting = fitting.get(name).unwrap_or(&Value::Null);
            if fitting == value && !value.is_null() {
                continue;
            }
            let Some((next, _)) = node.member(name) else {
                self.path.push(PathElement::field(name));
                self.fail("field not declared in schema".to_owned());
                self.path.pop();
                return;
            };
            // Leaves that fit are the common case: no step is made for them.
            match (next.shape(value), value) {
                (Shape::Scalar(Scalar::Untyped | Scalar::String), Value::String(_))
                | (_, Value::Null) => {}
                _ => self.below(PathElement::field(name), next, value, fitting),
            }
        }
    }

    fn list(&mut self, node: Node<'_>, items: &[Value]) {
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let step = if node.is_atomic_list() {
                PathElement::Index(i64::try_from(index).unwrap_or(i64::MAX))
            } else {
                match node.step_to(item) {
                    Ok(step) => step,
                    Err(error) => return self.fail(format!("element {index}: {error}")),
                }
            };
            if self.duplicates == Duplicates::Refused && !seen.insert(step.clone()) {
                self.fail(format!("duplicate entries for key {step}"));
            }
            self.below(step, node.item(), item, &Value::Null);
        }
    }
}

fn mismatch(shape: Shape, value: &Value) -> String {
    let pointer = || format!("&{{{}}}", golang::plain(value));
    match shape {
        Shape::Map => format!("expected map, got {}", pointer()),
        Shape::List => format!("expected list, got {}", pointer()),
        Shape::Scalar(Scalar::Numeric) => {
            format!("expected numeric (int or float), got {}", golang::type_name(value))
        }
        Shape::Scalar(Scalar::String) => {
            format!(
                "expected string, got &value.valueUnstructured{{Value:{}}}",
                golang::syntax(value)
            )
        }
        Shape::Scalar(Scalar::Boolean) => format!("expected boolean, got {}", pointer()),
        Shape::Scalar(Scalar::Untyped) => format!("expected any scalar, got {}", pointer()),
    }
}
