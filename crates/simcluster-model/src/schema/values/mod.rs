//! The value validations of `OpenAPI` schemas, worded as kube-openapi words them.
//!
//! Each node also counts the checks that passed: among failing branches of `anyOf` and `oneOf` the
//! one with the most is reported.

mod outcome;
mod scalars;

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

pub(super) use self::outcome::{Outcome, Place};
use self::scalars::{converts_to, is_json_integer};
use super::Type;
use super::correlate::Old;
use super::formats::{Format, go_regex};
use super::parse::strings;
use crate::field::FieldError;

/// A compiled node.
#[derive(Debug, Default)]
pub(super) struct Node {
    types: Vec<Type>,
    nullable: bool,
    /// As written, unless it is not supported for the type.
    format: Option<String>,
    string_format: Option<Format>,
    allowed: Vec<Value>,
    maximum: Option<f64>,
    exclusive_maximum: bool,
    minimum: Option<f64>,
    exclusive_minimum: bool,
    multiple_of: Option<f64>,
    max_length: Option<u64>,
    min_length: Option<u64>,
    pattern: Option<Pattern>,
    max_items: Option<u64>,
    min_items: Option<u64>,
    items: Option<Box<Node>>,
    max_properties: Option<u64>,
    min_properties: Option<u64>,
    required: Vec<String>,
    properties: BTreeMap<String, Node>,
    additional: Additional,
    all_of: Vec<Node>,
    any_of: Vec<Node>,
    one_of: Vec<Node>,
    not: Option<Box<Node>>,
}

#[derive(Debug)]
struct Pattern {
    source: String,
    regex: Result<Regex, String>,
}

#[derive(Debug, Default)]
enum Additional {
    #[default]
    Allowed,
    Forbidden,
    Schema(Box<Node>),
}

impl Node {
    /// Compiles a schema and what is below it.
    pub(super) fn compile(source: &Value) -> Self {
        let flag = |key: &str| source.get(key).and_then(Value::as_bool).unwrap_or_default();
        let count = |key: &str| source.get(key).and_then(Value::as_u64);
        let float = |key: &str| source.get(key).and_then(Value::as_f64);
        let child = |key: &str| source.get(key).filter(|value| value.is_object()).map(Self::boxed);
        let list = |key: &str| {
            let items = source.get(key).and_then(Value::as_array).into_iter().flatten();
            items.map(Self::compile).collect::<Vec<_>>()
        };
        let text = |key: &str| source.get(key).and_then(Value::as_str);
        let types = types(source);
        let format = text("format").filter(|format| supported_format(&types, format));
        let string_format = format.and_then(Format::parse);
        let properties = source.get("properties").and_then(Value::as_object).into_iter().flatten();
        Self {
            nullable: flag("nullable"),
            format: format.map(str::to_owned),
            string_format,
            allowed: source.get("enum").and_then(Value::as_array).cloned().unwrap_or_default(),
            maximum: float("maximum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            minimum: float("minimum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            multiple_of: float("multipleOf"),
            max_length: count("maxLength"),
            min_length: count("minLength"),
            pattern: text("pattern")
                .filter(|text| !text.is_empty())
                .map(|source| Pattern { source: source.to_owned(), regex: go_regex(source) }),
            max_items: count("maxItems"),
            min_items: count("minItems"),
            items: child("items"),
            max_properties: count("maxProperties"),
            min_properties: count("minProperties"),
            required: strings(source.get("required")),
            properties: properties
                .map(|(name, node)| (name.clone(), Self::compile(node)))
                .collect(),
            additional: match source.get("additionalProperties") {
                Some(Value::Bool(false)) => Additional::Forbidden,
                Some(schema @ Value::Object(_)) => Additional::Schema(Self::boxed(schema)),
                Some(_) | None => Additional::Allowed,
            },
            all_of: list("allOf"),
            any_of: list("anyOf"),
            one_of: list("oneOf"),
            not: child("not"),
            types,
        }
    }

    fn boxed(source: &Value) -> Box<Self> {
        Box::new(Self::compile(source))
    }

    /// The declared field of that name.
    pub(super) fn property(&self, name: &str) -> Option<&Self> {
        self.properties.get(name)
    }

    /// Validates a value; the faults of a value that is as it was are forgiven.
    pub(super) fn validate(
        &self,
        value: &Value,
        place: Place<'_>,
        old: Option<Old<'_>>,
    ) -> Outcome {
        let mut outcome = self.branch(value, place, old);
        if !outcome.is_valid() && old.is_some_and(|old| old.equals(value)) {
            outcome.faults.clear();
        }
        outcome
    }

    /// Validates a value without forgiving faults of the value itself.
    fn branch(&self, value: &Value, place: Place<'_>, old: Option<Old<'_>>) -> Outcome {
        let mut outcome = Outcome::default();
        if self.has_type_check() {
            outcome.merge(self.check_type(value, place));
            outcome.passed += u32::from(!value.is_null());
        }
        if value.is_null() {
            self.check_enum(value, place, &mut outcome);
            return outcome;
        }
        outcome.merge(self.check_compositions(value, place, old));
        outcome.passed += 1;
        match value {
            Value::String(text) => self.check_string(text, place, &mut outcome),
            Value::Number(number) => self.check_number(number, place, &mut outcome),
            Value::Array(items) => self.check_items(items, place, old, &mut outcome),
            Value::Null | Value::Bool(_) | Value::Object(_) => {}
        }
        self.check_enum(value, place, &mut outcome);
        outcome.passed += 1;
        if let Value::Object(map) = value {
            self.check_object(map, place, old, &mut outcome);
            outcome.passed += 1;
        }
        outcome.passed += 1;
        outcome
    }

    fn has_type_check(&self) -> bool {
        !self.types.is_empty() || self.format.is_some()
    }

    fn check_type(&self, value: &Value, place: Place<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        let expected = || {
            let names: Vec<&str> = self.types.iter().map(|kind| kind.name()).collect();
            names.join(",")
        };
        let (seen, seen_format, float) = match value {
            Value::Null => {
                if !self.types.is_empty() && !self.nullable {
                    outcome.add(place.wrong_type(&expected(), "null"));
                } else {
                    outcome.passed += 1;
                }
                return outcome;
            }
            Value::Bool(_) => (Type::Boolean, "", None),
            Value::String(_) => (Type::String, "", None),
            Value::Array(_) => (Type::Array, "", None),
            Value::Object(_) => (Type::Object, "", None),
            Value::Number(number) if number.is_i64() => (Type::Integer, "int64", None),
            Value::Number(number) => (Type::Number, "float64", number.as_f64()),
        };
        let wants = |kind: Type| self.types.contains(&kind);
        let whole_float = float.is_some_and(is_json_integer) && wants(Type::Integer);
        let integer_as_float = seen == Type::Integer && wants(Type::Number);
        let fits = wants(seen) || whole_float || integer_as_float;
        let textual = matches!(seen, Type::String | Type::Array);
        if let Some(format) = &self.format {
            if !textual && !fits && seen_format != format {
                outcome.add(place.wrong_type(format, seen_format));
                return outcome;
            }
            if textual && !wants(Type::Number) && !wants(Type::Integer) {
                outcome.passed += 1;
                return outcome;
            }
        }
        if fits {
            outcome.passed += 1;
        } else {
            outcome.add(place.wrong_type(&expected(), seen.name()));
        }
        outcome
    }

    fn check_compositions(&self, value: &Value, place: Place<'_>, old: Option<Old<'_>>) -> Outcome {
        let mut outcome = Outcome::default();
        if !self.any_of.is_empty() {
            let best = best_of(&self.any_of, value, place, old, true);
            if best.valid == 0 {
                let text = format!("{:?} must validate at least one schema (anyOf)", place.name());
                outcome.add(place.composite(&text));
            }
            outcome.merge(best.outcome);
        }
        if !self.one_of.is_empty() {
            let best = best_of(&self.one_of, value, place, old, false);
            if best.valid == 1 {
                outcome.merge(best.outcome);
            } else {
                let found = match best.valid {
                    0 => "Found none valid".to_owned(),
                    many => format!("Found {many} valid alternatives"),
                };
                let name = place.name();
                outcome.add(place.composite(&format!(
                    "{name:?} must validate one and only one schema (oneOf). {found}"
                )));
                if best.valid == 0 {
                    outcome.merge(best.outcome);
                }
            }
        }
        if !self.all_of.is_empty() {
            let mut valid = 0;
            for branch in &self.all_of {
                let result = branch.branch(value, place, old);
                valid += usize::from(result.is_valid());
                outcome.merge(result);
            }
            if valid != self.all_of.len() {
                let none = if valid == 0 { ". None validated" } else { "" };
                let name = place.name();
                outcome.add(
                    place.composite(&format!(
                        "{name:?} must validate all the schemas (allOf){none}"
                    )),
                );
            }
        }
        if let Some(not) = &self.not
            && not.branch(value, place, old).is_valid()
        {
            let text = format!("{:?} must not validate the schema (not)", place.name());
            outcome.add(place.composite(&text));
        }
        outcome.passed += 1;
        outcome
    }

    fn check_items(
        &self,
        items: &[Value],
        place: Place<'_>,
        old: Option<Old<'_>>,
        outcome: &mut Outcome,
    ) {
        if let Some(node) = &self.items {
            for (index, item) in items.iter().enumerate() {
                let path = place.path.index(index);
                let old = old.and_then(|old| old.item(item));
                outcome.merge(node.validate(item, Place { path: &path, ..place }, old));
            }
        }
        let count = count_of(items.len());
        if let Some(min) = self.min_items.filter(|min| count < *min) {
            let text = format!("should have at least {min} items");
            outcome.add(place.invalid(&Value::from(count), &text));
        }
        if let Some(max) = self.max_items.filter(|max| count > *max) {
            outcome.add(FieldError::too_many(place.field(), count, max));
        }
        outcome.passed += 2;
    }

    fn check_object(
        &self,
        map: &serde_json::Map<String, Value>,
        place: Place<'_>,
        old: Option<Old<'_>>,
        outcome: &mut Outcome,
    ) {
        let count = count_of(map.len());
        if let Some(min) = self.min_properties.filter(|min| count < *min) {
            let text = format!("should have at least {min} properties");
            outcome.add(place.invalid(&Value::from(count), &text));
        }
        if let Some(max) = self.max_properties.filter(|max| count > *max) {
            outcome.add(FieldError::too_many(place.field(), count, max));
        }
        for (key, value) in map {
            let (node, path) = match (self.properties.get(key), &self.additional) {
                (Some(node), _) => (node, place.path.field(key)),
                (None, Additional::Schema(node)) => (&**node, place.path.key(key)),
                (None, Additional::Allowed) => continue,
                (None, Additional::Forbidden) => {
                    let name = place.name();
                    let text = format!("{name}.{key} in body is a forbidden property");
                    let value = Value::from(key.as_str());
                    outcome.add(FieldError::invalid(place.field(), &value, &text));
                    continue;
                }
            };
            // Old and new always have the same type, so a change of these two cannot be seen.
            let type_meta = place.prefix.is_empty()
                && place.path.is_root()
                && matches!(key.as_str(), "apiVersion" | "kind");
            let old = old.filter(|_| !type_meta).and_then(|old| old.field(key));
            outcome.merge(node.validate(value, Place { path: &path, ..place }, old));
        }
        for name in self.required.iter().filter(|name| !map.contains_key(*name)) {
            let field = place.field_named(&format!("{}.{name}", place.name()));
            outcome.add(FieldError::required(field, ""));
        }
    }

    fn check_enum(&self, value: &Value, place: Place<'_>, outcome: &mut Outcome) {
        if self.allowed.is_empty() || self.allowed.iter().any(|allowed| converts_to(value, allowed))
        {
            return;
        }
        let supported: Vec<String> = self
            .allowed
            .iter()
            .map(|allowed| allowed.as_str().map_or_else(|| allowed.to_string(), str::to_owned))
            .collect();
        outcome.add(FieldError::not_supported(place.field(), value, &supported));
    }
}

/// The best branch of a composition and how many were valid.
struct Best {
    outcome: Outcome,
    valid: usize,
}

fn best_of(
    branches: &[Node],
    value: &Value,
    place: Place<'_>,
    old: Option<Old<'_>>,
    first_is_enough: bool,
) -> Best {
    let mut success = None;
    let mut failure: Option<Outcome> = None;
    let mut valid = 0;
    for branch in branches {
        let outcome = branch.branch(value, place, old);
        if outcome.is_valid() {
            valid += 1;
            success.get_or_insert(outcome);
            if first_is_enough {
                break;
            }
        } else if valid == 0 && failure.as_ref().is_none_or(|best| outcome.passed > best.passed) {
            failure = Some(outcome);
        }
    }
    Best { outcome: success.or(failure).unwrap_or_default(), valid }
}

fn types(source: &Value) -> Vec<Type> {
    if source.get("x-kubernetes-int-or-string").and_then(Value::as_bool) == Some(true) {
        return vec![Type::Integer, Type::String];
    }
    source.get("type").and_then(Value::as_str).and_then(Type::parse).into_iter().collect()
}

/// Whether a format is checked for values of a type; an empty type stands for none.
pub(crate) fn is_format_checked(kind: &str, format: &str) -> bool {
    let types: Vec<Type> = Type::parse(kind).into_iter().collect();
    supported_format(&types, format)
}

/// Formats that the server does not know for the type are ignored.
fn supported_format(types: &[Type], format: &str) -> bool {
    match types {
        [Type::Integer] => matches!(format, "int32" | "int64"),
        [Type::Number] => matches!(format, "float" | "double"),
        [Type::Object | Type::Array | Type::Boolean] => false,
        _ => Format::is_known(format),
    }
}

fn count_of(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
