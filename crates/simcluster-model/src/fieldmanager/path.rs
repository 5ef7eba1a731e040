//! One step of a path into an object, as `managedFields` names it.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

use crate::golang;

/// One step of a path. The order of the variants is the order in which the server sorts them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathElement {
    /// A field of an object.
    Field(String),
    /// An item of a keyed list: its key fields, sorted by name.
    Key(Vec<(String, Literal)>),
    /// An item of a set.
    Value(Literal),
    /// An item of an atomic list. Only read and written, never made.
    Index(i64),
}

impl PathElement {
    /// The step into a field.
    pub(super) fn field(name: &str) -> Self {
        Self::Field(name.to_owned())
    }

    /// From the form in `fieldsV1`. `Ok(None)` for kinds of steps that this version does not know.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, String> {
        let Some((kind, rest)) = text.split_at_checked(2) else {
            return Err("key must be 2 characters long:".to_owned());
        };
        let json = || serde_json::from_str::<Value>(rest).map_err(|error| error.to_string());
        match kind {
            "f:" => Ok(Some(Self::field(rest))),
            "v:" => Ok(Some(Self::Value(Literal(json()?)))),
            "k:" => {
                let Value::Object(fields) = json()? else {
                    return Err(format!("expect {{ in {text}"));
                };
                let mut key: Vec<(String, Literal)> =
                    fields.into_iter().map(|(name, value)| (name, Literal(value))).collect();
                key.sort_by(|a, b| a.0.cmp(&b.0));
                Ok(Some(Self::Key(key)))
            }
            "i:" => rest.parse().map(|index| Some(Self::Index(index))).map_err(|_| {
                format!("strconv.Atoi: parsing {}: invalid syntax", golang::quote(rest))
            }),
            _ if kind.ends_with(':') => Ok(None),
            _ => Err(format!("missing colon: {text}")),
        }
    }

    /// The form in `fieldsV1`.
    pub(super) fn encode(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(key) => {
                let fields: Vec<String> = key
                    .iter()
                    .map(|(name, value)| {
                        format!("{}:{}", Value::from(name.as_str()), golang::json(&value.0))
                    })
                    .collect();
                format!("k:{{{}}}", fields.join(","))
            }
            Self::Value(value) => format!("v:{}", golang::json(&value.0)),
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

impl fmt::Display for PathElement {
    /// The form in conflicts and type errors.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(key) => {
                let fields: Vec<String> =
                    key.iter().map(|(name, value)| format!("{name}={}", shown(&value.0))).collect();
                write!(f, "[{}]", fields.join(","))
            }
            Self::Value(value) => write!(f, "[={}]", shown(&value.0)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A path as text.
pub(super) fn shown_path(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => golang::quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(shown).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(map) => {
            let fields: Vec<String> =
                map.iter().map(|(key, value)| format!("{key}={}", shown(value))).collect();
            fields.concat()
        }
        Value::Bool(_) | Value::Number(_) => golang::plain(value),
    }
}

/// A JSON value with an order: numbers, strings, booleans, lists, objects, null; numbers by size,
/// whether written as integers or not.
#[derive(Debug, Clone)]
pub(super) struct Literal(pub(super) Value);

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Literal {}

impl PartialOrd for Literal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Literal {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_values(&self.0, &other.0)
    }
}

/// Whether two values are the same to the server: `1` and `1.0` are.
pub(super) fn same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same_value(a, b)))
        }
        (Value::Number(_), Value::Number(_)) => compare_values(a, b) == Ordering::Equal,
        (a, b) => a == b,
    }
}

fn compare_values(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Equal),
        },
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let items = a.iter().zip(b).map(|(a, b)| compare_values(a, b));
            items.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            let fields = a.iter().zip(b).map(|((key_a, a), (key_b, b))| {
                key_a.cmp(key_b).then_with(|| compare_values(a, b))
            });
            fields.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
        }
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}
