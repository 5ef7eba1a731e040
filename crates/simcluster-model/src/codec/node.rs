//! Any value of a text format, and which keys stood twice in one map.

use std::fmt;

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::schema::path::Path;

/// What a format does about repeated keys.
pub(super) trait Repeated {
    /// A key as the format's deserializer gives it.
    type Key: DeserializeOwned;

    /// The text of a key.
    fn text(key: &Self::Key) -> &str;

    /// A key stood in its map already; `path` is the key's.
    fn note(&mut self, key: &Self::Key, path: &Path<'_>);

    /// What counts of the values of a key that stands twice, at `path`.
    fn resolve(&mut self, _path: &Path<'_>, _first: Value, second: Value) -> Value {
        second
    }
}

/// Reads one value.
pub(super) fn read<'de, D: Deserializer<'de>, R: Repeated>(
    deserializer: D,
    repeated: &mut R,
) -> Result<Value, D::Error> {
    Node { path: &Path::ROOT, repeated }.deserialize(deserializer)
}

struct Node<'a, R> {
    path: &'a Path<'a>,
    repeated: &'a mut R,
}

impl<'de, R: Repeated> DeserializeSeed<'de> for Node<'_, R> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, R: Repeated> Visitor<'de> for Node<'_, R> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
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
        loop {
            let path = self.path.index(list.len());
            match items.next_element_seed(Node { path: &path, repeated: &mut *self.repeated })? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<R::Key>()? {
            let text = R::text(&key);
            let path = self.path.field(text);
            if map.contains_key(text) {
                self.repeated.note(&key, &path);
            }
            let mut value =
                entries.next_value_seed(Node { path: &path, repeated: &mut *self.repeated })?;
            if let Some(first) = map.remove(text) {
                value = self.repeated.resolve(&path, first, value);
            }
            map.insert(text.to_owned(), value);
        }
        Ok(Value::Object(map))
    }
}
