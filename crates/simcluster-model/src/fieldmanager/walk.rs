//! The fields that an object names.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::path::PathElement;
use super::set::FieldSet;
use super::shape::{Node, Shape};

/// The fields of an object that fits its types: leaves, items of keyed lists, empty and null fields,
/// and maps whose name no schema declares.
pub(super) fn fields_of(node: Node<'_>, object: &Value) -> FieldSet {
    let mut walker = Walker { path: Vec::new(), set: FieldSet::default() };
    walker.value(node, object);
    walker.set
}

struct Walker {
    path: Vec<PathElement>,
    set: FieldSet,
}

impl Walker {
    fn value(&mut self, node: Node<'_>, value: &Value) {
        match (node.shape(value), value) {
            (Shape::Scalar(_), _) => self.set.insert(&self.path),
            (Shape::List, _) if node.is_atomic_list() => self.set.insert(&self.path),
            (Shape::Map, _) if node.is_atomic_map() => self.set.insert(&self.path),
            (Shape::List, Value::Array(items)) => self.list(node, items),
            (Shape::Map, Value::Object(fields)) => self.map(node, fields),
            (Shape::List | Shape::Map, _) => {}
        }
    }

    fn map(&mut self, node: Node<'_>, fields: &Map<String, Value>) {
        for (name, value) in fields {
            let Some((next, declared)) = node.member(name) else { continue };
            self.path.push(PathElement::field(name));
            self.value(next, value);
            if !declared || value.is_null() || value.as_object().is_some_and(Map::is_empty) {
                self.set.insert(&self.path);
            }
            self.path.pop();
        }
    }

    /// Items with equal keys are owned as one, without what is in them.
    fn list(&mut self, node: Node<'_>, items: &[Value]) {
        let steps: Vec<(PathElement, &Value)> =
            items.iter().filter_map(|item| Some((node.step_to(item).ok()?, item))).collect();
        let mut seen = BTreeSet::new();
        let repeated: BTreeSet<&PathElement> =
            steps.iter().map(|(step, _)| step).filter(|step| !seen.insert(*step)).collect();
        for (step, item) in &steps {
            self.path.push(step.clone());
            if !repeated.contains(step) {
                self.value(node.item(), item);
            }
            self.set.insert(&self.path);
            self.path.pop();
        }
    }
}
