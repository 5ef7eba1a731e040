//! A structural schema as server-side apply sees it: what is one field, and what has fields inside.
//!
//! The rules are those of the server's conversion of OpenAPI to merge types: lists are one value
//! unless declared otherwise, maps are not; what has no type takes the shape of its value; below
//! `x-kubernetes-preserve-unknown-fields` undeclared fields are allowed all the way down.

use std::sync::LazyLock;

use serde_json::Value;

use super::path::{Literal, PathElement};
use crate::golang;
use crate::schema::{Codec, ListType, Schema, Type};

/// The schema of free-form content: maps have fields, lists are one value.
static DEDUCED: LazyLock<Schema> = LazyLock::new(Schema::default);

/// The schema of content that is one value whatever it is.
static WHOLE: LazyLock<Schema> = LazyLock::new(|| Schema { atomic_map: true, ..Schema::default() });

/// A place in a schema.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    schema: &'a Schema,
    /// Whether undeclared fields are allowed because of a schema further up.
    open: bool,
}

/// What a value looks like to the merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A leaf.
    Scalar(Scalar),
    /// A list.
    List,
    /// An object.
    Map,
}

/// Types of leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    /// An integer or a float.
    Numeric,
    /// A string.
    String,
    /// A boolean.
    Boolean,
    /// Any of them.
    Untyped,
}

impl<'a> Node<'a> {
    /// The root of an object's schema.
    pub(super) fn root(schema: &'a Schema) -> Self {
        Self { schema, open: schema.preserve_unknown }
    }

    /// The shape of a value at this place. Declared types decide; else the value does, and null
    /// counts as a map.
    pub(super) fn shape(self, value: &Value) -> Shape {
        match self.schema.kind {
            Some(Type::Object) => Shape::Map,
            Some(Type::Array) => Shape::List,
            Some(Type::Integer | Type::Number) => Shape::Scalar(Scalar::Numeric),
            Some(Type::Boolean) => Shape::Scalar(Scalar::Boolean),
            Some(Type::String) => match self.schema.format.as_deref() {
                None | Some("" | "byte") if !self.is_quantity() => Shape::Scalar(Scalar::String),
                None | Some(_) => Shape::Scalar(Scalar::Untyped),
            },
            None => match value {
                Value::Null | Value::Object(_) => Shape::Map,
                Value::Array(_) => Shape::List,
                Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                    Shape::Scalar(Scalar::Untyped)
                }
            },
        }
    }

    /// Quantities may be written as numbers.
    fn is_quantity(self) -> bool {
        self.schema.go.as_ref().is_some_and(|go| go.codec == Codec::Quantity)
    }

    /// The shape that the schema alone gives a value here; without a declared type, a map.
    pub(super) fn declared_shape(self) -> Shape {
        self.shape(&Value::Null)
    }

    /// Whether a map here is one value.
    pub(super) fn is_atomic_map(self) -> bool {
        self.schema.atomic_map
    }

    /// Whether a list here is one value.
    pub(super) fn is_atomic_list(self) -> bool {
        self.schema.list_type == ListType::Atomic
    }

    /// Whether a map here declares nothing: its types are deduced from values.
    pub(super) fn is_deduced_map(self) -> bool {
        self.schema.properties.is_empty() && self.schema.additional_properties.is_none()
    }

    /// The place of a field of a map here, and whether the schema declares it by name. `None` if
    /// the schema does not allow the field.
    pub(super) fn member(self, name: &str) -> Option<(Self, bool)> {
        if let Some(schema) = self.schema.properties.get(name) {
            return Some((self.inner(schema.get()), true));
        }
        if let Some(schema) = &self.schema.additional_properties {
            return Some((self.inner(schema.get()), false));
        }
        let anything = self.open || self.schema.properties.is_empty();
        anything.then(|| (Self { schema: &DEDUCED, open: true }, false))
    }

    /// The place of the items of a list here.
    pub(super) fn item(self) -> Self {
        match &self.schema.items {
            Some(schema) => self.inner(schema.get()),
            None => Self { schema: &WHOLE, open: true },
        }
    }

    fn inner(self, schema: &'a Schema) -> Self {
        // `JSONSchemaPropsOrBool` and its siblings have no type in OpenAPI: values decide.
        if schema.go.as_ref().is_some_and(|go| go.codec == Codec::SchemaOr) {
            return Self { schema: &DEDUCED, open: true };
        }
        // Types with a Go form (`ObjectMeta` in a custom resource) stand on their own: what their
        // surroundings allow does not count in them.
        let inherited = self.open && schema.go.is_none();
        Self { schema, open: inherited || schema.preserve_unknown }
    }

    /// The step to an item of a set or keyed list here.
    pub(super) fn step_to(self, item: &Value) -> Result<PathElement, String> {
        match &self.schema.list_type {
            ListType::Map(keys) => self.step_by_keys(keys, item),
            ListType::Set => match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".to_owned())
                }
                Value::Array(_) => {
                    Err("not supported: associative list with lists as elements".to_owned())
                }
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null"
                        .to_owned())
                }
                Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                    Ok(PathElement::Value(Literal(item.clone())))
                }
            },
            ListType::Atomic => Err("invalid indexing of non-associative list".to_owned()),
        }
    }

    /// Missing key fields take their default (a port's `protocol`), or stay out of the key.
    fn step_by_keys(self, keys: &[String], item: &Value) -> Result<PathElement, String> {
        if item.is_null() {
            return Err("associative list with keys may not have a null element".to_owned());
        }
        let Value::Object(fields) = item else {
            return Err("associative list with keys may not have non-map elements".to_owned());
        };
        let default = |name: &String| {
            self.item().schema.properties.get(name).and_then(|field| field.default.as_ref())
        };
        let mut key: Vec<(String, Literal)> = keys
            .iter()
            .filter_map(|name| {
                let value = fields.get(name).or_else(|| default(name))?;
                Some((name.clone(), Literal(value.clone())))
            })
            .collect();
        if key.is_empty() {
            return Err(format!(
                "associative list with keys has an element that omits all key fields {} \
                 (and doesn't have default values for any key fields)",
                golang::quote_list(keys)
            ));
        }
        key.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(PathElement::Key(key))
    }
}
