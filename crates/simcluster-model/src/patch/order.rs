//! The order of merged lists: items of the patch in its order, the others in theirs, and each of
//! these before the first item that it stood before.

use std::cmp::Ordering;

use serde_json::Value;

use super::PatchError;
use crate::golang;

/// The value of an item's merge key.
pub(super) fn key_of<'a>(item: &'a Value, key: &str) -> Result<&'a Value, PatchError> {
    if !item.is_object() {
        return Err(PatchError::Failed(format!(
            "expected a map[string]interface {{}}, but received a {}",
            golang::type_name(item)
        )));
    }
    match item.get(key) {
        None => {
            let map = golang::plain(item);
            let text = format!("map: {map} does not contain declared merge key: {key}");
            Err(PatchError::Failed(text))
        }
        // The real server panics here, and closes the connection.
        Some(value @ (Value::Array(_) | Value::Object(_))) => Err(PatchError::Failed(format!(
            "runtime error: comparing uncomparable type {}",
            golang::type_name(value)
        ))),
        Some(value) => Ok(value),
    }
}

/// The order of a list's items as it is remembered after changes have been merged into it. The
/// server merges in place: items that come new fill the room that deleted ones left.
pub(super) fn order_after_merge(mut items: Vec<Value>, changes: &[Value], key: &str) -> Vec<Value> {
    let directive = |item: &Value| item.get("$patch").and_then(Value::as_str).map(str::to_owned);
    let room = items.len();
    let deleted = changes.iter().filter(|item| directive(item).as_deref() == Some("delete"));
    for change in deleted {
        items.retain(|item| item.get(key) != change.get(key));
    }
    let replaces = changes.iter().any(|item| directive(item).as_deref() == Some("replace"));
    for change in changes.iter().filter(|item| !replaces && item.get("$patch").is_none()) {
        let is_new = items.iter().all(|item| item.get(key) != change.get(key));
        if is_new && items.len() < room {
            items.push(change.clone());
        }
    }
    items
}

/// Splits items in those that a list names, and the others.
pub(super) fn partition(
    items: Vec<Value>,
    by: &[Value],
    key: Option<&str>,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for item in items {
        let is_named = match key {
            None => by.contains(&item),
            Some(key) => {
                let wanted = key_of(&item, key)?;
                by.iter().any(|other| other.get(key) == Some(wanted))
            }
        };
        if is_named { named.push(item) } else { others.push(item) }
    }
    Ok((named, others))
}

/// Merges both lists: `named` sorted by `order`, `others` by `live_order`.
pub(super) fn keep_order(
    mut named: Vec<Value>,
    mut others: Vec<Value>,
    order: &[Value],
    live_order: &[Value],
    key: Option<&str>,
) -> Vec<Value> {
    sort(&mut named, order, key);
    sort(&mut others, live_order, key);
    let mut out = Vec::with_capacity(named.len() + others.len());
    let mut named = named.into_iter().peekable();
    let mut others = others.into_iter().peekable();
    loop {
        let other_first = match (others.peek(), named.peek()) {
            (None, None) => return out,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(other), Some(named)) => {
                let place = |item| position(live_order, item, key);
                matches!((place(other), place(named)), (Some(other), Some(named)) if other < named)
            }
        };
        out.extend(if other_first { others.next() } else { named.next() });
    }
}

/// Sorts items by their place in a list; those that it does not name come last, as they are.
fn sort(items: &mut [Value], order: &[Value], key: Option<&str>) {
    items.sort_by(|a, b| match (position(order, a, key), position(order, b, key)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    });
}

fn position(items: &[Value], item: &Value, key: Option<&str>) -> Option<usize> {
    items.iter().position(|other| match key {
        None => other == item,
        Some(key) => other.get(key) == item.get(key),
    })
}
