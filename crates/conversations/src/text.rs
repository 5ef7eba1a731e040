//! The small language of steps: saved values in braces, dotted paths, and JSON as the recorder sent it.

use std::collections::BTreeMap;
use std::io::{Result, Write};
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde::Serialize as _;
use serde_json::{Map, Value};

/// The longest padding that a step can ask for.
const PADDING_MAX: usize = 10_000_000;

/// Puts saved values where a step says `{name}`, and so many letters where it says `{pad:1000}`; other
/// braces stay.
pub(crate) fn fill_text(text: &str, names: &BTreeMap<String, String>) -> String {
    static BRACES: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\{(\w+(?::\w+)?)\}").expect("a valid pattern"));
    let value = |found: &Captures<'_>| {
        let name = found.get(1).map_or("", |name| name.as_str());
        match name.split_once(':').map(|(kind, size)| (kind, size.parse())) {
            Some(("pad", Ok(size))) => "x".repeat(PADDING_MAX.min(size)),
            _ => names.get(name).cloned().unwrap_or_else(|| format!("{{{name}}}")),
        }
    };
    BRACES.replace_all(text, value).into()
}

/// Puts saved values into a document.
pub(crate) fn fill(node: &Value, names: &BTreeMap<String, String>) -> Value {
    map_texts(node, &|text| fill_text(text, names))
}

/// The document with every text, key or value, replaced.
pub(crate) fn map_texts(node: &Value, replace: &dyn Fn(&str) -> String) -> Value {
    match node {
        Value::String(text) => replace(text).into(),
        Value::Array(items) => items.iter().map(|item| map_texts(item, replace)).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (replace(key), map_texts(value, replace)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => node.clone(),
    }
}

/// The value at a dotted path; numbers index lists, negative ones from their end.
pub(crate) fn lookup<'a>(document: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(document, |node, part| match node {
        Value::Array(items) => {
            let index: isize = part.parse().ok()?;
            let index = if index < 0 {
                items.len().checked_add_signed(index)?
            } else {
                index.unsigned_abs()
            };
            items.get(index)
        }
        Value::Object(map) => map.get(part),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

/// Moves a value to another dotted path, if it is there; objects on the way are made.
pub(crate) fn move_value(document: &mut Value, from: &str, to: &str) {
    let (parents, last) = from.rsplit_once('.').unwrap_or(("", from));
    let mut holder = Some(&mut *document);
    for part in parents.split('.').filter(|part| !part.is_empty()) {
        holder = holder.and_then(|node| node.get_mut(part));
    }
    let moved = holder.and_then(Value::as_object_mut).and_then(|map| map.remove(last));
    if let Some(value) = moved {
        put(document, to, value);
    }
}

/// Puts a value at a dotted path; what is on the way is made or replaced.
pub(crate) fn put(document: &mut Value, path: &str, value: Value) {
    let mut node = document;
    for part in path.split('.') {
        node = match (node, part.parse::<usize>()) {
            (Value::Array(items), Ok(index)) => {
                if items.len() <= index {
                    items.resize(index + 1, Value::Null);
                }
                items.get_mut(index).expect("the list is long enough")
            }
            (node, _) => {
                if !node.is_object() {
                    *node = Value::Object(Map::new());
                }
                let map = node.as_object_mut().expect("it was made one");
                map.entry(part).or_insert(Value::Null)
            }
        };
    }
    *node = value;
}

/// JSON with a space after each comma and colon, as the recorder sent it: some answers quote it.
pub(crate) fn spaced(body: &Value) -> String {
    struct Spaces;
    impl serde_json::ser::Formatter for Spaces {
        fn begin_array_value<W: Write + ?Sized>(&mut self, to: &mut W, first: bool) -> Result<()> {
            to.write_all(if first { b"" } else { b", " })
        }
        fn begin_object_key<W: Write + ?Sized>(&mut self, to: &mut W, first: bool) -> Result<()> {
            to.write_all(if first { b"" } else { b", " })
        }
        fn begin_object_value<W: Write + ?Sized>(&mut self, to: &mut W) -> Result<()> {
            to.write_all(b": ")
        }
    }
    let mut text = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, Spaces);
    body.serialize(&mut serializer).expect("a Value can be written to memory");
    String::from_utf8(text).expect("JSON is UTF-8")
}
