//! One order for what a real server lists in any.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::placeholders::form;
use crate::text::map_texts;

/// Puts faults into one order where a real server lists them in any: the causes of a `Status`, and
/// the parts of its message. `all` says that every list of faults counts as a set; else only those
/// that are always random: conflicts of several managers and typed-patch errors.
pub(crate) fn in_one_order(document: &mut Value, all: bool) {
    match document {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match value {
                    Value::String(text) if key == "message" || key.ends_with(".message") => {
                        *text = message_in_one_order(text, all);
                    }
                    Value::Array(causes) if key == "causes" || key.ends_with(".causes") => {
                        if all || is_conflict(causes) {
                            causes.sort_by_key(Value::to_string);
                        }
                    }
                    Value::Object(_) | Value::Array(_) => in_one_order(value, all),
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| in_one_order(item, all)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Sorts the calls to webhooks for which no request waited.
pub(crate) fn calls_in_one_order(document: &mut Value) {
    if let Some(calls) = document.get_mut("called").and_then(Value::as_array_mut) {
        calls.sort_by_cached_key(|call| map_texts(call, &form).to_string());
    }
}

/// Sorts the entries of `managedFields` as a server does that wrote them all in one second: before the
/// manager's name it goes by the second of the last write, which no two runs share.
pub(crate) fn managers_in_one_order(document: &mut Value) {
    match document {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                if let Value::Array(entries) = value
                    && (key == "managedFields" || key.ends_with(".managedFields"))
                {
                    let key = |entry: &Value| {
                        ["operation", "manager", "apiVersion", "subresource"].map(|field| {
                            entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
                        })
                    };
                    entries.sort_by_key(key);
                }
                managers_in_one_order(value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(managers_in_one_order),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A document in which every text of the form of a Pod template's hash is the same.
pub(crate) fn without_hashes(document: &Value) -> Value {
    static HASH: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\b[bcdfghjklmnpqrstvwxz2456789]{8,10}\b").expect("a valid pattern")
    });
    map_texts(document, &|text| HASH.replace_all(text, "<hash>").into_owned())
}

fn is_conflict(causes: &[Value]) -> bool {
    causes
        .iter()
        .all(|cause| cause.get("reason").is_some_and(|reason| reason == "FieldManagerConflict"))
}

fn message_in_one_order(text: &str, all: bool) -> String {
    if text.starts_with("Apply failed with ") {
        // Blocks of one manager each: a line that names it, then a line for each field.
        let mut blocks: Vec<String> = Vec::new();
        for line in text.lines() {
            match blocks.last_mut() {
                Some(block) if line.starts_with("- ") => {
                    block.push('\n');
                    block.push_str(line);
                }
                _ => blocks.push(line.to_owned()),
            }
        }
        if let Some((head, first)) = blocks.first().and_then(|block| block.split_once(": ")) {
            let mut rest: Vec<&str> = blocks.iter().skip(1).map(String::as_str).collect();
            rest.push(first);
            rest.sort_unstable();
            return format!("{head}: {}", rest.join("\n"));
        }
    }
    if let Some((head, list)) = text.split_once("errors:\n") {
        let mut list: Vec<&str> = list.lines().collect();
        list.sort_unstable();
        return format!("{head}errors:\n{}", list.join("\n"));
    }
    if let Some((head, list)) = text.split_once(" is invalid: [").filter(|_| all) {
        let mut list: Vec<&str> = list.trim_end_matches(']').split(", ").collect();
        list.sort_unstable();
        return format!("{head} is invalid: [{}]", list.join(", "));
    }
    text.to_owned()
}
