//! The types of CEL values, as far as rules are checked when a definition is written.

use std::fmt;
use std::sync::Arc;

use crate::schema::{Schema, Type};

use super::values::escape;

/// The type of an expression.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// Anything; also what is not known here, and what follows a fault.
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
    List(Box<Kind>),
    Map(Box<Kind>),
    /// An object with declared fields.
    Object(Arc<Schema>, Scope),
    Optional(Box<Kind>),
    /// A type of a function library; the name is that of the server.
    Library(&'static str),
}

/// Whether an object has `apiVersion`, `kind` and `metadata`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Plain,
    Resource,
    /// `metadata`, of which rules see the names only.
    Metadata,
}

impl Kind {
    /// The type of a schema's values; `None` if rules do not see them.
    pub(super) fn of(schema: &Arc<Schema>, resource: bool) -> Option<Self> {
        if schema.int_or_string {
            return Some(Self::Dyn);
        }
        Some(match schema.kind? {
            Type::Boolean => Self::Bool,
            Type::Integer => Self::Int,
            Type::Number => Self::Double,
            Type::String => match schema.format.as_deref() {
                Some("byte") => Self::Bytes,
                Some("duration") => Self::Duration,
                Some("date" | "date-time") => Self::Timestamp,
                Some(_) | None => Self::String,
            },
            Type::Array => {
                let items = schema.items.as_ref()?.get();
                Self::List(Box::new(Self::of(items, items.embedded_resource)?))
            }
            Type::Object => match &schema.additional_properties {
                Some(values) => {
                    let values = values.get();
                    Self::Map(Box::new(Self::of(values, values.embedded_resource)?))
                }
                None if resource => Self::Object(Arc::clone(schema), Scope::Resource),
                None => Self::Object(Arc::clone(schema), Scope::Plain),
            },
        })
    }

    /// The type of a declared field, by its name in rules.
    pub(super) fn field(schema: &Arc<Schema>, scope: Scope, name: &str) -> Option<Self> {
        match (scope, name) {
            (Scope::Metadata, "name" | "generateName")
            | (Scope::Resource, "apiVersion" | "kind") => return Some(Self::String),
            (Scope::Metadata, _) => return None,
            (Scope::Resource, "metadata") => {
                return Some(Self::Object(Arc::clone(schema), Scope::Metadata));
            }
            (Scope::Resource | Scope::Plain, _) => {}
        }
        let (_, field) = schema.properties.iter().find(|(key, _)| escape(key) == name)?;
        Self::of(field.get(), field.embedded_resource)
    }

    /// Whether a value of one type may stand where the other is wanted.
    pub(super) fn fits(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(left), Self::List(right))
            | (Self::Map(left), Self::Map(right))
            | (Self::Optional(left), Self::Optional(right)) => left.fits(right),
            (Self::Library(left), Self::Library(right)) => left == right,
            (Self::Dyn, _)
            | (_, Self::Dyn)
            | (Self::Null, Self::Timestamp | Self::Duration | Self::Object(..))
            | (Self::Timestamp | Self::Duration | Self::Object(..), Self::Null) => true,
            (left, right) => std::mem::discriminant(left) == std::mem::discriminant(right),
        }
    }

    /// Whether nothing is known of the type.
    pub(super) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn)
    }

    /// Whether the type is one of numbers.
    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Uint | Self::Double)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::List(items) => write!(f, "list({items})"),
            Self::Map(values) => write!(f, "map(string, {values})"),
            Self::Object(..) => f.write_str("object"),
            Self::Optional(inner) => write!(f, "optional_type({inner})"),
            Self::Library(name) => f.write_str(name),
        }
    }
}
