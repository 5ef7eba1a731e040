//! What the cells of built-in kinds look at.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::format::{self, label_selector};

/// An object and the time, with short ways to what cells show.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) object: &'a Value,
    pub(super) now: Timestamp,
}

impl<'a> View<'a> {
    pub(super) fn str(self, pointer: &str) -> &'a str {
        text(self.object, pointer)
    }

    pub(super) fn text(self, pointer: &str) -> Value {
        json!(self.str(pointer))
    }

    pub(super) fn number(self, pointer: &str) -> i64 {
        self.object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
    }

    pub(super) fn count(self, pointer: &str) -> Value {
        json!(self.number(pointer))
    }

    pub(super) fn flag(self, pointer: &str) -> bool {
        self.object.pointer(pointer).and_then(Value::as_bool).unwrap_or_default()
    }

    pub(super) fn list(self, pointer: &str) -> &'a [Value] {
        list(self.object, pointer)
    }

    pub(super) fn size(self, pointer: &str) -> usize {
        self.object.pointer(pointer).and_then(Value::as_object).map_or(0, serde_json::Map::len)
    }

    pub(super) fn age(self) -> Value {
        json!(format::age(self.object, self.now))
    }

    pub(super) fn since(self, pointer: &str) -> String {
        format::since(self.object.pointer(pointer).and_then(Value::as_str), self.now)
    }

    pub(super) fn joined(self, pointer: &str, field: &str) -> Value {
        let items: Vec<&str> = self.list(pointer).iter().map(|item| text(item, field)).collect();
        json!(items.join(","))
    }

    pub(super) fn containers(self) -> [Value; 2] {
        let containers = "/spec/template/spec/containers";
        [self.joined(containers, "/name"), self.joined(containers, "/image")]
    }

    pub(super) fn selector(self) -> Value {
        json!(label_selector(self.object.pointer("/spec/selector")))
    }

    pub(super) fn has_condition(self, kind: &str) -> bool {
        let conditions = self.list("/status/conditions");
        let found = conditions.iter().find(|condition| text(condition, "/type") == kind);
        found.is_some_and(|condition| text(condition, "/status") == "True")
    }
}

pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
