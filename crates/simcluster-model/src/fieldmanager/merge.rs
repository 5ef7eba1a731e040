//! Merging an applied configuration into the live object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::path::PathElement;
use super::shape::{Node, Shape};

/// The live object with the configuration merged in. Both fit the types of the schema, and the
/// configuration holds no item twice.
pub(super) fn merge(node: Node<'_>, live: &Value, config: &Value) -> Value {
    value(node, Some(live), Some(config)).unwrap_or(Value::Null)
}

/// Where both have a value of different shapes, the configuration's wins.
fn value(node: Node<'_>, live: Option<&Value>, config: Option<&Value>) -> Option<Value> {
    let shape = node.shape(config.or(live)?);
    let leaf = || config.or(live).cloned();
    match shape {
        Shape::Scalar(_) => leaf(),
        Shape::List => {
            let (live_items, config_items) = (array(live), array(config));
            if node.is_atomic_list() || (live_items.is_empty() && config_items.is_empty()) {
                leaf()
            } else {
                Some(Value::Array(lists(node, live_items, config_items)))
            }
        }
        Shape::Map => {
            let live_fields = live.and_then(Value::as_object).filter(|map| !map.is_empty());
            let config_fields = config.and_then(Value::as_object).filter(|map| !map.is_empty());
            if node.is_atomic_map() || (live_fields.is_none() && config_fields.is_none()) {
                leaf()
            } else {
                Some(Value::Object(maps(node, live_fields, config_fields)))
            }
        }
    }
}

fn maps(
    node: Node<'_>,
    live: Option<&Map<String, Value>>,
    config: Option<&Map<String, Value>>,
) -> Map<String, Value> {
    let mut out = Map::new();
    let mut put = |name: &String, live: Option<&Value>, config: Option<&Value>| {
        let merged = match node.member(name) {
            Some((next, _)) => value(next, live, config),
            None => config.or(live).cloned(),
        };
        if let Some(merged) = merged {
            out.insert(name.clone(), merged);
        }
    };
    for (name, value) in live.into_iter().flatten() {
        put(name, Some(value), config.and_then(|map| map.get(name)));
    }
    for (name, value) in config.into_iter().flatten() {
        if !live.is_some_and(|map| map.contains_key(name)) {
            put(name, None, Some(value));
        }
    }
    out
}

/// Merges keyed lists and sets. Items that only the live list has keep their place before the items
/// that follow them; the configuration's items come in its order.
fn lists(node: Node<'_>, live: &[Value], config: &[Value]) -> Vec<Value> {
    static REPEATED: Value = Value::Null;
    let indexed = |items: &'_ [Value]| -> Vec<PathElement> {
        items.iter().filter_map(|item| node.step_to(item).ok()).collect()
    };
    let (live_steps, config_steps) = (indexed(live), indexed(config));
    if live_steps.len() != live.len() || config_steps.len() != config.len() {
        return config.to_vec();
    }
    // Items that the live list holds several times cannot be merged into: they count as null.
    let mut live_by_step: BTreeMap<&PathElement, &Value> = BTreeMap::new();
    for (step, item) in live_steps.iter().zip(live) {
        live_by_step.entry(step).and_modify(|item| *item = &REPEATED).or_insert(item);
    }
    let in_config: BTreeSet<&PathElement> = config_steps.iter().collect();
    let mut shared = config_steps.iter().filter(|step| live_by_step.contains_key(step)).peekable();
    let mut done: BTreeSet<&PathElement> = BTreeSet::new();
    let mut out = Vec::with_capacity(live.len().max(config.len()));
    let mut live_left = live_steps.iter().zip(live).peekable();
    let mut config_left = config_steps.iter().zip(config).peekable();
    loop {
        let (next_live, next_config) = (live_left.peek().copied(), config_left.peek().copied());
        if let (Some((step, _)), Some((config_step, config_item))) = (next_live, next_config) {
            if step == config_step {
                done.insert(step);
                out.extend(value(node.item(), live_by_step.get(step).copied(), Some(config_item)));
                live_left.next();
                config_left.next();
                shared.next();
                continue;
            }
            // An item of both, but not the one whose turn it is: it comes where the configuration
            // has it.
            if in_config.contains(step) && shared.peek().is_some_and(|next| *next != step) {
                live_left.next();
                continue;
            }
        }
        if let Some((step, item)) = next_live {
            if !in_config.contains(step) {
                out.extend(value(node.item(), Some(item), None));
                live_left.next();
                continue;
            }
            if done.contains(step) {
                live_left.next();
            }
        }
        if let Some((step, item)) = next_config {
            done.insert(step);
            out.extend(value(node.item(), live_by_step.get(step).copied(), Some(item)));
            config_left.next();
            if shared.peek() == Some(&step) {
                shared.next();
            }
        }
        if live_left.peek().is_none() && config_left.peek().is_none() {
            return out;
        }
    }
}

fn array(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
