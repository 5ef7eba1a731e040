//! Limit ranges.

use serde_json::{Map, Value};

use crate::builtin::defaults::{Fields, field_text, inner};
use crate::builtin::kind::{Kind, nil_lists};
use crate::builtin::value::objects_mut;

/// `limitranges`.
pub(super) static KIND: Kind = Kind {
    allow_create_on_update: true,
    default,
    encode_stored: nil_lists,
    ..Kind::new("", "limitranges")
};

fn default(range: &mut Fields) {
    let spec = inner(range, "spec");
    for item in objects_mut(spec.get_mut("limits")) {
        if field_text(item, "type") == "Container" {
            default_item(item);
        }
    }
}

fn default_item(item: &mut Fields) {
    let list = |item: &Fields, name: &str| match item.get(name) {
        Some(Value::Object(map)) => map.clone(),
        _ => Map::new(),
    };
    let (max, min) = (list(item, "max"), list(item, "min"));
    let mut default = list(item, "default");
    for (name, amount) in max {
        default.entry(name).or_insert(amount);
    }
    let mut request = list(item, "defaultRequest");
    for (name, amount) in default.clone().into_iter().chain(min) {
        request.entry(name).or_insert(amount);
    }
    for (name, amounts) in [("default", default), ("defaultRequest", request)] {
        if !amounts.is_empty() {
            item.insert(name.to_owned(), Value::Object(amounts));
        }
    }
}
