//! Where a recorded and an answered document differ.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

/// One line for each place where the documents differ; empty if they are equal.
pub(crate) fn differences(recorded: &Value, answered: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    compare("", Some(recorded), Some(answered), &mut lines);
    lines
}

fn compare(
    path: &str,
    recorded: Option<&Value>,
    answered: Option<&Value>,
    lines: &mut Vec<String>,
) {
    match (recorded, answered) {
        (Some(Value::Object(recorded)), Some(Value::Object(answered))) => {
            for (key, value) in recorded {
                compare(&format!("{path}.{key}"), Some(value), answered.get(key), lines);
            }
            for (key, value) in answered.iter().filter(|(key, _)| !recorded.contains_key(*key)) {
                compare(&format!("{path}.{key}"), None, Some(value), lines);
            }
        }
        (Some(Value::Array(recorded)), Some(Value::Array(answered))) => {
            for index in 0..recorded.len().max(answered.len()) {
                let path = format!("{path}[{index}]");
                compare(&path, recorded.get(index), answered.get(index), lines);
            }
        }
        (recorded, answered) if equal(recorded, answered) => {}
        (recorded, answered) => {
            let path = path.trim_start_matches('.');
            lines.push(format!(
                "{path}\n      recorded {}\n      answered {}",
                shown(recorded),
                shown(answered)
            ));
        }
    }
}

/// Equal as JSON: 1 and 1.0 are one number.
fn equal(recorded: Option<&Value>, answered: Option<&Value>) -> bool {
    match (recorded, answered) {
        (Some(Value::Number(recorded)), Some(Value::Number(answered))) => {
            recorded == answered || recorded.as_f64() == answered.as_f64()
        }
        _ => recorded == answered,
    }
}

fn shown(value: Option<&Value>) -> String {
    const LONGEST: usize = 2000;
    let Some(value) = value else { return "nothing".to_owned() };
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}... ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}

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
                        ["operation", "manager", "apiVersion", "subresource"]
                            .map(|field| entry[field].as_str().unwrap_or_default().to_owned())
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
    let text = |text: &str| HASH.replace_all(text, "<hash>").into_owned();
    match document {
        Value::String(value) => text(value).into(),
        Value::Array(items) => items.iter().map(without_hashes).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (text(key), without_hashes(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => document.clone(),
    }
}

fn is_conflict(causes: &[Value]) -> bool {
    causes.iter().all(|cause| cause["reason"] == "FieldManagerConflict")
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
            let (head, first) = (head.to_owned(), first.to_owned());
            blocks[0] = first;
            blocks.sort();
            return format!("{head}: {}", blocks.join("\n"));
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
