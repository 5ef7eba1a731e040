//! Strategic merge patch: lists merge by the keys that the schema names, and directives in the patch
//! (`$patch`, `$deleteFromPrimitiveList/..`, `$setElementOrder/..`, `$retainKeys`) say what merging
//! cannot.

use serde_json::{Map, Value};

use super::PatchError;
use super::by_strategic_patch;
use super::convert::conversion_fault;
use super::order::{keep_order, key_of, order_after_merge, partition};
use crate::golang;
use crate::schema::numbers;
use crate::schema::{PatchStrategy, Schema, Type};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_PREFIX: &str = "$deleteFromPrimitiveList";
const ORDER_PREFIX: &str = "$setElementOrder";

type Fields = Map<String, Value>;

/// The document with the patch merged in by the strategies of the schema.
pub fn strategic_merge(
    document: &Value,
    patch: &Value,
    schema: &Schema,
) -> Result<Value, PatchError> {
    if patch.is_null() {
        return Ok(document.clone());
    }
    let Value::Object(changes) = patch else {
        return Err(PatchError::Malformed(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            golang::json_type_name(patch)
        )));
    };
    let document = document.as_object().cloned().unwrap_or_default();
    let mut merged = merge_maps(document, changes.clone(), Some(schema)).map(Value::Object)?;
    if let Some(error) = conversion_fault(&merged, schema) {
        return Err(PatchError::Undecodable { shown: by_strategic_patch(patch), error });
    }
    numbers::normalise(&mut merged);
    Ok(merged)
}

/// The schema and the strategy of a field. Types of maps have no named fields: all their values are
/// alike. `None` as schema is free-form content.
fn field_of<'a>(
    schema: Option<&'a Schema>,
    name: &str,
) -> Result<(Option<&'a Schema>, PatchStrategy), PatchError> {
    let Some(schema) = schema else { return Ok((None, PatchStrategy::default())) };
    if let Some(field) = schema.properties.get(name) {
        return Ok((Some(field), field.patch.clone()));
    }
    match &schema.additional_properties {
        Some(value) => Ok((Some(value), PatchStrategy::default())),
        None if schema.properties.is_empty() => Ok((None, PatchStrategy::default())),
        None => Err(PatchError::Failed(format!(
            "unable to find api field in struct {} for the json field {}",
            type_name(schema),
            golang::quote(name)
        ))),
    }
}

/// The name of the Go type, without its package.
fn type_name(schema: &Schema) -> &str {
    let name = schema.go.as_deref().map_or("", |go| go.type_name.as_str());
    name.rsplit('.').next().unwrap_or_default()
}

fn merge_maps(
    mut original: Fields,
    mut patch: Fields,
    schema: Option<&Schema>,
) -> Result<Fields, PatchError> {
    if let Some(directive) = patch.get(DIRECTIVE).cloned() {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(DIRECTIVE);
                Ok(patch)
            }
            Some("delete") => Ok(Fields::new()),
            _ => Err(unknown_directive(&directive, &patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    set_element_orders(&mut original, &mut patch, schema)?;
    for (name, value) in patch {
        let deletes = name.starts_with(DELETE_PREFIX);
        let name = if deletes { list_of(&name, DELETE_PREFIX)?.to_owned() } else { name };
        merge_field(&mut original, name, value, schema, deletes)?;
    }
    Ok(original)
}

fn merge_field(
    original: &mut Fields,
    name: String,
    value: Value,
    schema: Option<&Schema>,
    deletes: bool,
) -> Result<(), PatchError> {
    if value.is_null() {
        original.remove(&name);
        return Ok(());
    }
    let Some(current) = original.remove(&name) else {
        if !deletes && let Some(value) = without_directives(without_nulls(value)) {
            original.insert(name, value);
        }
        return Ok(());
    };
    if golang::type_name(&current) != golang::type_name(&value) {
        let kept = if deletes { Some(current) } else { without_directives(without_nulls(value)) };
        original.extend(kept.map(|value| (name, value)));
        return Ok(());
    }
    let merged = match (current, value) {
        (Value::Object(current), Value::Object(value)) => {
            let (schema, strategy) = field_of(schema, &name)?;
            if strategy.replace {
                Value::Object(value)
            } else {
                Value::Object(merge_maps(current, value, schema)?)
            }
        }
        (Value::Array(current), Value::Array(value)) => {
            let (schema, strategy) = field_of(schema, &name)?;
            if deletes || strategy.merge {
                let item = schema.and_then(|schema| schema.items.as_ref()).map(|items| &**items);
                Value::Array(merge_lists(current, value, item, &strategy, deletes)?)
            } else {
                Value::Array(value)
            }
        }
        (_, value) => value,
    };
    original.insert(name, merged);
    Ok(())
}

/// `$retainKeys`: of a map only these keys stay. The patch may not name others.
fn retain_keys(original: &mut Fields, patch: &mut Fields) -> Result<(), PatchError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let bad = || PatchError::Malformed("invalid patch format of retainKeys".to_owned());
    let Value::Array(keys) = keys else { return Err(bad()) };
    let kept = |name: &str| keys.iter().any(|key| key.as_str() == Some(name));
    let named = patch.iter().filter(|(name, value)| {
        !value.is_null() && !name.starts_with(DELETE_PREFIX) && !name.starts_with(ORDER_PREFIX)
    });
    if named.into_iter().any(|(name, _)| !kept(name)) {
        return Err(bad());
    }
    original.retain(|name, _| kept(name));
    Ok(())
}

/// `$setElementOrder/<list>`: merges the list and puts its items in this order.
fn set_element_orders(
    original: &mut Fields,
    patch: &mut Fields,
    schema: Option<&Schema>,
) -> Result<(), PatchError> {
    let directives: Vec<String> =
        patch.keys().filter(|name| name.starts_with(ORDER_PREFIX)).cloned().collect();
    for directive in directives {
        let Some(order) = patch.remove(&directive) else { continue };
        let order = as_list(order)?;
        let name = list_of(&directive, ORDER_PREFIX)?;
        let current = original.get(name).cloned().map(as_list).transpose()?;
        let changes = patch.get(name).cloned().map(as_list).transpose()?;
        let (field, strategy) = field_of(schema, name)?;
        if field.is_some_and(|field| field.kind != Some(Type::Array)) {
            let text = "expected slice or array type, but got: struct";
            return Err(PatchError::Failed(text.to_owned()));
        }
        let merge_key = strategy.merge_key.as_deref();
        check_order(changes.as_deref().unwrap_or_default(), &order, merge_key)?;
        let mut live_order = current.clone().unwrap_or_default();
        let merged = match (current, changes) {
            (None, None) => continue,
            (Some(current), None) => current,
            (None, Some(changes)) if changes.is_empty() => changes,
            (None, Some(changes)) => {
                check_types(&[], &changes)?;
                changes.into_iter().filter_map(without_directives).collect()
            }
            (Some(current), Some(changes)) if strategy.merge => {
                let item = field.and_then(|field| field.items.as_ref()).map(|items| &**items);
                if let Some(key) = merge_key {
                    live_order = order_after_merge(live_order, &changes, key);
                }
                merge_lists(current, changes, item, &strategy, false)?
            }
            (Some(_), Some(changes)) => changes,
        };
        if merged.is_empty() && live_order.is_empty() {
            let text = "no elements in any of the given slices";
            return Err(PatchError::Failed(text.to_owned()));
        }
        let (named, others) = partition(merged, &order, merge_key)?;
        if let Some(key) = merge_key {
            order.iter().try_for_each(|item| key_of(item, key).map(drop))?;
        }
        let sorted = keep_order(named, others, &order, &live_order, merge_key);
        original.insert(name.to_owned(), Value::Array(sorted));
        patch.remove(name);
    }
    Ok(())
}

/// The items of the patch must come in the order that the directive names. Items with another
/// directive than a delete count only while there is something left of that order.
fn check_order(
    patch: &[Value],
    order: &[Value],
    merge_key: Option<&str>,
) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let key = |item: &Value| match merge_key {
        None => Ok(item.clone()),
        Some(key) => key_of(item, key).cloned(),
    };
    let deletes = |item: &&Value| item.get(DIRECTIVE).and_then(Value::as_str) == Some("delete");
    let mut items = patch.iter().filter(|item| !deletes(item)).peekable();
    let mut places = order.iter().peekable();
    while let (Some(item), Some(place)) = (items.peek(), places.peek()) {
        if item.get(DIRECTIVE).is_some() {
            items.next();
        } else {
            if key(item)? == key(place)? {
                items.next();
            }
            places.next();
        }
    }
    if items.peek().is_none() {
        return Ok(());
    }
    Err(PatchError::Failed(format!(
        "The order in patch list:\n{}\n doesn't match {ORDER_PREFIX} list:\n{}\n",
        golang::plain(&Value::from(patch)),
        golang::plain(&Value::from(order))
    )))
}

fn merge_lists(
    mut original: Vec<Value>,
    mut patch: Vec<Value>,
    item: Option<&Schema>,
    strategy: &PatchStrategy,
    deletes: bool,
) -> Result<Vec<Value>, PatchError> {
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    let of_maps = check_types(&original, &patch)?;
    let merge_key = strategy.merge_key.as_deref();
    let (merged, live_order) = if of_maps {
        let Some(key) = merge_key else {
            return Err(PatchError::Failed(
                "cannot merge lists without merge key for struct".to_owned(),
            ));
        };
        (original, patch) = apply_item_directives(original, patch, key)?;
        let known = original.len();
        let merged = merge_items(original, &patch, key, item)?;
        let live_order = merged.get(..known).unwrap_or_default().to_vec();
        (merged, live_order)
    } else {
        if deletes {
            original.retain(|item| !patch.contains(item));
            return Ok(original);
        }
        let both: Vec<Value> = original.iter().chain(&patch).cloned().collect();
        (without_repeats(both), original)
    };
    let (named, others) = partition(merged, &patch, merge_key)?;
    Ok(keep_order(named, others, &patch, &live_order, merge_key))
}

/// Lists are merged only if all items are of one type; tells whether they are maps.
fn check_types(original: &[Value], patch: &[Value]) -> Result<bool, PatchError> {
    let mut items = original.iter().chain(patch);
    let first = items.next().unwrap_or(&Value::Null);
    if first.is_array() {
        return Err(PatchError::Rejected("lists of lists are not supported".to_owned()));
    }
    let expected = golang::type_name(first);
    if items.any(|item| golang::type_name(item) != expected) {
        return Err(PatchError::Failed(format!(
            "list element types are not identical: [{} {}]",
            golang::plain(&Value::from(original)),
            golang::plain(&Value::from(patch))
        )));
    }
    Ok(first.is_object())
}

/// Items with `$patch`: one deletes the item of its key, or replaces the whole list. Returns what is
/// left of both lists.
fn apply_item_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut plain = Vec::new();
    let mut replaces = false;
    for item in patch {
        let (Some(fields), Some(directive)) = (item.as_object(), item.get(DIRECTIVE)) else {
            plain.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let wanted = key_of(&item, key)?;
                original.retain(|item| item.get(key) != Some(wanted));
            }
            Some("replace") => replaces = true,
            Some("merge") => {
                let text = "merging lists cannot yet be specified in the patch";
                return Err(PatchError::Failed(text.to_owned()));
            }
            _ => return Err(unknown_directive(directive, fields)),
        }
    }
    Ok(if replaces { (plain, Vec::new()) } else { (original, plain) })
}

fn merge_items(
    mut original: Vec<Value>,
    patch: &[Value],
    key: &str,
    schema: Option<&Schema>,
) -> Result<Vec<Value>, PatchError> {
    for item in patch {
        let wanted = key_of(item, key)?;
        match original.iter_mut().find(|item| item.get(key) == Some(wanted)) {
            Some(current) => {
                let (Value::Object(old), Value::Object(new)) = (current.take(), item.clone())
                else {
                    continue;
                };
                *current = Value::Object(merge_maps(old, new, schema)?);
            }
            None => original.push(item.clone()),
        }
    }
    Ok(original)
}

/// Each value once. A repeated one is filled with the last of the list, as the server does it.
fn without_repeats(mut items: Vec<Value>) -> Vec<Value> {
    let mut index = 0;
    while index < items.len() {
        let mut other = index + 1;
        while other < items.len() {
            if items.get(index) == items.get(other) {
                items.swap_remove(other);
            } else {
                other += 1;
            }
        }
        index += 1;
    }
    items
}

/// The value without maps that hold a directive; `None` if it is one itself.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => None,
        Value::Object(fields) => Some(
            fields
                .into_iter()
                .filter_map(|(name, value)| Some((name, without_directives(value)?)))
                .collect(),
        ),
        Value::Array(items) => Some(items.into_iter().filter_map(without_directives).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(value),
    }
}

/// The value without the null fields of its maps, also of those in lists.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name, without_nulls(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// The list that a directive `<prefix>/<list>` is about.
fn list_of<'a>(name: &'a str, prefix: &str) -> Result<&'a str, PatchError> {
    name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/')).ok_or_else(|| {
        let what = if prefix == DELETE_PREFIX { "primitive list" } else { "setElementOrder list" };
        PatchError::Malformed(format!("invalid patch format of {what}"))
    })
}

fn as_list(value: Value) -> Result<Vec<Value>, PatchError> {
    let received = if value.is_null() { "%!s(<nil>)" } else { golang::type_name(&value) };
    let Value::Array(items) = value else {
        let text = format!("expected a []interface {{}}, but received a {received}");
        return Err(PatchError::Failed(text));
    };
    Ok(items)
}

fn unknown_directive(directive: &Value, patch: &Fields) -> PatchError {
    let patch = golang::plain(&Value::Object(patch.clone()));
    let shown = directive.as_str().map_or_else(
        || format!("%!s({}={})", golang::type_name(directive), golang::plain(directive)),
        str::to_owned,
    );
    PatchError::Failed(format!("unknown patch type: {shown} in map: {patch}"))
}
