//! What changed between two states of an object, field by field.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::path::{PathElement, same_value};
use super::set::FieldSet;
use super::shape::{Node, Shape};

/// The fields in which two objects differ.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// Fields that only the new object has.
    pub(super) added: FieldSet,
    /// Fields that both have, with different values.
    pub(super) modified: FieldSet,
    /// Fields that only the old object has.
    pub(super) removed: FieldSet,
}

impl Comparison {
    /// The fields that the new object sets.
    pub(super) fn set_by_new(&self) -> FieldSet {
        self.added.union(&self.modified)
    }

    /// Whether nothing differs.
    pub(super) fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// Drops what does not count.
    pub(super) fn filter(&mut self, filter: &dyn Fn(&mut FieldSet)) {
        filter(&mut self.added);
        filter(&mut self.modified);
        filter(&mut self.removed);
    }
}

/// Compares two objects that fit the types of the schema. `metadata.managedFields` are left out.
pub(super) fn compare(node: Node<'_>, old: &Value, new: &Value) -> Comparison {
    let mut walker = Walker { path: Vec::new(), out: Comparison::default() };
    walker.value(node, Some(old), Some(new));
    walker.out
}

struct Walker {
    path: Vec<PathElement>,
    out: Comparison,
}

impl Walker {
    fn value(&mut self, node: Node<'_>, old: Option<&Value>, new: Option<&Value>) {
        let shape_old = old.map(|value| node.shape(value));
        let shape_new = new.map(|value| node.shape(value));
        let mut is_leaf = false;
        match (shape_old, shape_new) {
            (None, None) => return,
            (Some(shape), None) | (None, Some(shape)) => {
                is_leaf = self.shaped(node, shape, old, new);
            }
            (Some(a), Some(b)) if a == b => is_leaf = self.shaped(node, a, old, new),
            (Some(a), Some(b)) => {
                self.shaped(node, a, old, new);
                is_leaf |= self.shaped(node, b, old, new);
            }
        }
        if !is_leaf {
            if old.is_none() {
                self.out.added.insert(&self.path);
            } else if new.is_none() {
                self.out.removed.insert(&self.path);
            }
        }
    }

    /// Compares as one shape; tells whether it was as leaves. Values of another shape count as
    /// empty; two empty lists or maps are leaves, which keeps null, `[]` and `{}` apart.
    fn shaped(
        &mut self,
        node: Node<'_>,
        shape: Shape,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> bool {
        match shape {
            Shape::Scalar(_) => self.leaf(old, new),
            Shape::List => {
                let old_items = array(old);
                let new_items = array(new);
                if node.is_atomic_list() || (old_items.is_empty() && new_items.is_empty()) {
                    self.leaf(old, new)
                } else {
                    self.lists(node, old_items, new_items);
                    false
                }
            }
            Shape::Map => {
                let old_fields = old.and_then(Value::as_object).filter(|map| !map.is_empty());
                let new_fields = new.and_then(Value::as_object).filter(|map| !map.is_empty());
                if node.is_atomic_map() || (old_fields.is_none() && new_fields.is_none()) {
                    self.leaf(old, new)
                } else {
                    self.maps(node, old_fields, new_fields);
                    false
                }
            }
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) -> bool {
        match (old, new) {
            (None, _) => self.out.added.insert(&self.path),
            (_, None) => self.out.removed.insert(&self.path),
            (Some(old), Some(new)) if same_value(old, new) => {}
            (Some(_), Some(_)) => self.out.modified.insert(&self.path),
        }
        true
    }

    fn maps(
        &mut self,
        node: Node<'_>,
        old: Option<&Map<String, Value>>,
        new: Option<&Map<String, Value>>,
    ) {
        for (name, value) in old.into_iter().flatten() {
            self.field(node, name, Some(value), new.and_then(|map| map.get(name)));
        }
        for (name, value) in new.into_iter().flatten() {
            if !old.is_some_and(|map| map.contains_key(name)) {
                self.field(node, name, None, Some(value));
            }
        }
    }

    fn field(&mut self, node: Node<'_>, name: &str, old: Option<&Value>, new: Option<&Value>) {
        // Most fields are the same, so that is looked at first.
        if old == new || (name == "managedFields" && self.is_in_metadata()) {
            return;
        }
        let Some((next, _)) = node.member(name) else { return };
        self.path.push(PathElement::field(name));
        self.value(next, old, new);
        self.path.pop();
    }

    fn is_in_metadata(&self) -> bool {
        matches!(self.path.as_slice(), [PathElement::Field(name)] if name == "metadata")
    }

    fn lists(&mut self, node: Node<'_>, old: &[Value], new: &[Value]) {
        let mut items: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for item in old {
            if let Ok(step) = node.step_to(item) {
                items.entry(step).or_default().0.push(item);
            }
        }
        for item in new {
            if let Ok(step) = node.step_to(item) {
                items.entry(step).or_default().1.push(item);
            }
        }
        for (step, (old, new)) in items {
            self.path.push(step);
            self.items(node.item(), &old, &new);
            self.path.pop();
        }
    }

    /// Compares the items of one key. Several items of one key are one field.
    fn items(&mut self, node: Node<'_>, old: &[&Value], new: &[&Value]) {
        match (old, new) {
            ([one], [other]) if one == other => {}
            ([] | [_], [] | [_]) => {
                self.value(node, old.first().copied(), new.first().copied());
            }
            ([_, _, ..], [_, _, ..]) => {
                let same = old.len() == new.len()
                    && old.iter().zip(new).all(|(old, new)| same_value(old, new));
                if !same {
                    self.out.modified.insert(&self.path);
                }
            }
            ([_, _, ..], [] | [_]) => {
                self.value(node, None, new.first().copied());
                self.out.removed.insert(&self.path);
            }
            ([] | [_], [_, _, ..]) => {
                self.value(node, old.first().copied(), None);
                self.out.added.insert(&self.path);
            }
        }
    }
}

fn array(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
