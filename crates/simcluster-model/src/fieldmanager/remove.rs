//! Taking fields out of an object.

use serde_json::{Map, Value};

use super::path::PathElement;
use super::set::FieldSet;
use super::shape::{Node, Shape};

/// The object without the fields of the set. A list or map that loses its last item, or that is one
/// value and has a member below it, becomes null.
pub(super) fn without(node: Node<'_>, value: &Value, fields: &FieldSet) -> Value {
    match (node.shape(value), value) {
        (Shape::Map, Value::Object(map)) if !node.is_atomic_map() => {
            without_fields(node, map, fields)
        }
        (Shape::List, Value::Array(items)) if !node.is_atomic_list() => {
            without_items(node, items, fields)
        }
        (Shape::Map | Shape::List, _) => Value::Null,
        (Shape::Scalar(_), value) => value.clone(),
    }
}

fn without_fields(node: Node<'_>, map: &Map<String, Value>, fields: &FieldSet) -> Value {
    let mut out = Map::new();
    for (name, value) in map {
        let step = PathElement::field(name);
        if fields.has(&step) {
            continue;
        }
        let kept = match (fields.below(&step), node.member(name)) {
            (Some(below), Some((next, _))) => without(next, value, below),
            (Some(_) | None, _) => value.clone(),
        };
        out.insert(name.clone(), kept);
    }
    if out.is_empty() { Value::Null } else { Value::Object(out) }
}

fn without_items(node: Node<'_>, items: &[Value], fields: &FieldSet) -> Value {
    let mut out = Vec::new();
    for item in items {
        let Ok(step) = node.step_to(item) else { continue };
        if fields.has(&step) {
            continue;
        }
        out.push(match fields.below(&step) {
            Some(below) => without(node.item(), item, below),
            None => item.clone(),
        });
    }
    if out.is_empty() { Value::Null } else { Value::Array(out) }
}
