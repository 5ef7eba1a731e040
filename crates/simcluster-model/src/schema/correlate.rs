//! Finding the old value that belongs to a value, for transition rules and for ratcheting.

use serde_json::Value;

use super::{ListType, Schema};

/// An old value and the schema that says how its parts are matched with the new ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Old<'a> {
    pub(super) value: &'a Value,
    pub(super) schema: &'a Schema,
}

impl Old<'_> {
    /// The old value of a field; `None` if there was none or nothing is known of it.
    pub(super) fn field(self, name: &str) -> Option<Self> {
        let schema =
            self.schema.properties.get(name).or(self.schema.additional_properties.as_ref())?;
        Some(Self { value: self.value.as_object()?.get(name)?, schema })
    }

    /// The old value of a list item: only items of map lists can be told apart.
    pub(super) fn item(self, new: &Value) -> Option<Self> {
        let schema = self.schema.items.as_ref()?;
        let ListType::Map(keys) = &self.schema.list_type else { return None };
        Some(Self { value: find_by_keys(self.value.as_array()?, keys, new)?, schema })
    }

    /// Whether nothing changed; items of map lists may have moved.
    pub(super) fn equals(self, new: &Value) -> bool {
        match (self.value, new) {
            (Value::Array(old), Value::Array(items)) if is_map_list(self.schema) => {
                old.len() == items.len()
                    && items
                        .iter()
                        .all(|item| self.item(item).is_some_and(|found| found.equals(item)))
            }
            (Value::Object(old), Value::Object(fields)) => {
                old.len() == fields.len()
                    && fields.iter().all(|(name, field)| match self.field(name) {
                        Some(found) => found.equals(field),
                        // Parts without a schema are not looked at one by one.
                        None => old.get(name) == Some(field),
                    })
            }
            (old, new) => old == new,
        }
    }
}

fn is_map_list(schema: &Schema) -> bool {
    matches!(&schema.list_type, ListType::Map(_))
}

/// The first item whose keys equal those of `like`.
pub(super) fn find_by_keys<'a>(
    items: &'a [Value],
    keys: &[String],
    like: &Value,
) -> Option<&'a Value> {
    let wanted = key_values(like, keys)?;
    items.iter().find(|item| key_values(item, keys).as_ref() == Some(&wanted))
}

/// The scalar values of the keys; `None` if one is missing.
fn key_values<'a>(item: &'a Value, keys: &[String]) -> Option<Vec<&'a Value>> {
    keys.iter()
        .map(|key| {
            let value = item.as_object()?.get(key)?;
            let scalar = !value.is_null() && !value.is_object() && !value.is_array();
            scalar.then_some(value)
        })
        .collect()
}
