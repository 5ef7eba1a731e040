//! JSON as Go writes typed objects: fields in the order in which their types declare them.
//!
//! The order is that of the protobuf messages, which are made from the same types. Objects that no type
//! declares, custom ones above all, are maps in Go, too, and come in the order of their keys.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::protobuf::{DEFINITIONS, Field};
use crate::builtin;
use crate::resource::Resource;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// Messages whose JSON is not an object of their fields.
const OPAQUE: [&str; 3] = ["FieldsV1", "RawExtension", "JSON"];

/// What is known of the type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    /// Nothing that matters for its order.
    Other,
    /// An object with declared fields.
    Object(usize),
    /// A list of such objects.
    List(usize),
    /// A map to such objects.
    Map(usize),
}

/// The places of an object's fields, and their types.
type Places = BTreeMap<&'static str, (usize, Type)>;

struct Types {
    ids: BTreeMap<&'static str, usize>,
    places: Vec<Places>,
}

static TYPES: LazyLock<Types> = LazyLock::new(|| {
    let ids: BTreeMap<&str, usize> =
        DEFINITIONS.keys().enumerate().map(|(id, name)| (name.as_str(), id)).collect();
    let places = DEFINITIONS.values().map(|fields| {
        let mut declared: Vec<&Field> = Vec::new();
        flatten(fields, &mut declared);
        let places = declared.iter().enumerate();
        places.map(|(place, field)| (field.name(), (place, type_of(&ids, field.kind())))).collect()
    });
    let places = places.collect();
    Types { ids, places }
});

/// The fields of a definition, those of its inlined parts in their place.
fn flatten(fields: &'static [Field], declared: &mut Vec<&'static Field>) {
    for field in fields {
        match field.kind().strip_prefix('=').and_then(|inlined| DEFINITIONS.get(inlined)) {
            Some(inlined) if field.name().is_empty() => flatten(inlined, declared),
            _ => declared.push(field),
        }
    }
}

fn type_of(ids: &BTreeMap<&str, usize>, kind: &str) -> Type {
    let Some((form, definition)) = kind.split_once('=') else { return Type::Other };
    let opaque = OPAQUE.iter().any(|name| definition.rsplit('.').next() == Some(name));
    match (form, ids.get(definition).filter(|_| !opaque)) {
        ("", Some(id)) => Type::Object(*id),
        ("[]", Some(id)) => Type::List(*id),
        ("{}", Some(id)) => Type::Map(*id),
        _ => Type::Other,
    }
}

impl Type {
    /// The type with this OpenAPI definition.
    pub(crate) fn of_definition(definition: &str) -> Self {
        TYPES.ids.get(definition).map_or(Self::Other, |id| Self::Object(*id))
    }

    /// The type of an object that says of which kind it is.
    fn of_kind(object: &Value) -> Self {
        let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
        match (text("apiVersion"), text("kind")) {
            ("v1", "Status") => Self::of_definition(&format!("{META}.Status")),
            (version, kind) => {
                builtin::definition_name(version, kind).map_or(Self::Other, Self::of_definition)
            }
        }
    }

    /// The type of the items of a list.
    pub(crate) fn item(self) -> Self {
        match self {
            Self::List(id) => Self::Object(id),
            Self::Other | Self::Object(_) | Self::Map(_) => Self::Other,
        }
    }

    /// The members of an object in declared order, with their types. What is not declared comes last; in
    /// Go the kind and the version of an object come before all else.
    pub(crate) fn members(self, map: &Map<String, Value>) -> Vec<(&String, &Value, Self)> {
        let places = match self {
            Self::Object(id) => TYPES.places.get(id),
            Self::Map(id) => {
                return map.iter().map(|(key, value)| (key, value, Self::Object(id))).collect();
            }
            Self::Other | Self::List(_) => None,
        };
        let Some(places) = places else {
            return map.iter().map(|(key, value)| (key, value, Self::Other)).collect();
        };
        let place = |key: &str| match (places.get(key), key) {
            (Some((place, of)), _) => (place + 2, *of),
            (None, "kind") => (0, Self::Other),
            (None, "apiVersion") => (1, Self::Other),
            (None, _) => (usize::MAX, Self::Other),
        };
        let mut placed: Vec<_> = map.iter().map(|(key, value)| (place(key), key, value)).collect();
        // Stable, so what is not declared stays in the order of its keys.
        placed.sort_by_key(|((place, _), ..)| *place);
        placed.into_iter().map(|((_, of), key, value)| (key, value, of)).collect()
    }
}

/// A value that is written as Go writes it.
#[derive(Debug, Clone, Copy)]
pub struct Declared<'a> {
    value: &'a Value,
    of: Type,
    /// Whether it leaves out its kind and version.
    nameless: bool,
}

impl<'a> Declared<'a> {
    /// An object that says of which kind it is.
    #[must_use]
    pub fn new(value: &'a Value) -> Self {
        Self { value, of: Type::of_kind(value), nameless: false }
    }
}

/// The form of the items of a list of a resource: those of built-in kinds do not repeat kind and version
/// (row LI01).
#[derive(Debug, Clone, Copy)]
pub struct ItemForm {
    of: Type,
    nameless: bool,
}

impl ItemForm {
    /// The form for a resource, which is looked up once for all of its items.
    #[must_use]
    pub fn new(resource: &Resource) -> Self {
        let definition = builtin::definition_name(&resource.api_version(), &resource.kind);
        let of = definition.map_or(Type::Other, Type::of_definition);
        Self { of, nameless: !resource.custom }
    }

    /// An object in this form.
    #[must_use]
    pub fn of(self, value: &Value) -> Declared<'_> {
        Declared { value, of: self.of, nameless: self.nameless }
    }
}

impl Serialize for Declared<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let below = |value, of| Declared { value, of, nameless: false };
        if let Value::Object(map) = self.value
            && (self.of != Type::Other || self.nameless)
        {
            let mut members = self.of.members(map);
            if self.nameless {
                members.retain(|(key, ..)| !matches!(key.as_str(), "kind" | "apiVersion"));
            }
            let members = members.into_iter();
            return serializer.collect_map(members.map(|(key, value, of)| (key, below(value, of))));
        }
        if let (Value::Array(items), Type::List(_)) = (self.value, self.of) {
            let of = self.of.item();
            return serializer.collect_seq(items.iter().map(|value| below(value, of)));
        }
        self.value.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers of a real server, as they came.
    const RECORDED: &str = include_str!("tests/declared.jsonl");

    #[test]
    fn answers_have_the_order_of_a_real_servers() {
        for line in RECORDED.lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            assert_eq!(serde_json::to_string(&Declared::new(&value)).unwrap(), line);
        }
    }
}
