//! YAML as the API server reads it: YAML 1.1, turned into JSON; duplicate keys are noticed by line.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};

/// A YAML text and the texts of its duplicate keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The value; of equal keys the last one counts.
    pub value: Value,
    /// Texts such as `line 6: key "size" already set in map`.
    pub duplicates: Vec<String>,
}

/// Reads the first document of a YAML text. The error begins with `yaml: `, as the server's does.
pub fn parse(bytes: &[u8]) -> Result<Parsed, String> {
    let text = String::from_utf8_lossy(bytes);
    if text.trim().is_empty() {
        return Ok(Parsed { value: Value::Null, duplicates: Vec::new() });
    }
    let mut duplicates = Vec::new();
    let outcome =
        serde_saphyr::with_deserializer_from_str_with_options(&text, options(), |deserializer| {
            Node { duplicates: &mut duplicates }.deserialize(deserializer)
        });
    match outcome {
        Ok(value) => Ok(Parsed { value, duplicates }),
        Err(error) => Err(fault(&error)),
    }
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        legacy_octal_numbers: true,
        null_as_string: true,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
    }
}

/// The server's text where the two parsers see the same fault, else this parser's own.
fn fault(error: &serde_saphyr::Error) -> String {
    let own = error.to_string();
    let line = error.location().map_or(1, |location| location.line());
    let known = [
        ("unclosed bracket '['", "did not find expected ',' or ']'"),
        ("expected ',' or ']'", "did not find expected ',' or ']'"),
        ("unclosed bracket '{'", "did not find expected ',' or '}'"),
        ("expected ',' or '}'", "did not find expected ',' or '}'"),
        ("mapping values are not allowed", "mapping values are not allowed in this context"),
        ("did not find expected key", "did not find expected key"),
    ];
    let text = known.iter().find(|(mark, _)| own.contains(mark)).map(|(_, text)| *text);
    let first_line = own.lines().next().unwrap_or_default().trim_start_matches("error: ");
    format!("yaml: line {line}: {}", text.unwrap_or(first_line))
}

/// Reads one value and notes duplicate keys.
struct Node<'a> {
    duplicates: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) =
            items.next_element_seed(Node { duplicates: &mut *self.duplicates })?
        {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            if map.contains_key(&key.value) {
                let line = key.referenced.line();
                self.duplicates
                    .push(format!("line {line}: key {:?} already set in map", key.value));
            }
            let value = entries.next_value_seed(Node { duplicates: &mut *self.duplicates })?;
            map.insert(key.value, value);
        }
        Ok(Value::Object(map))
    }
}
