//! Oddities: values that do not fit, and texts that are hardly JSON or YAML.

use serde_json::{Number, Value, json};

use super::dice::Dice;

/// Makes one place of a document odd.
pub(super) fn spoil(document: &mut Value, dice: &mut Dice) {
    let places = count(document);
    let mut place = dice.below(places);
    visit(document, &mut place, &mut |node| spoil_here(node, dice));
}

fn spoil_here(node: &mut Value, dice: &mut Dice) {
    match node {
        Value::Object(map) if !map.is_empty() && dice.chance(60) => {
            let keys: Vec<String> = map.keys().cloned().collect();
            let key = dice.pick(&keys).clone();
            match dice.below(4) {
                0 => drop(map.remove(&key)),
                1 => drop(
                    map.insert(dice.text(&["unknown", "Spec", "", "a b", "metadata"]), json!(1)),
                ),
                2 => drop(map.insert(key, odd_value(dice))),
                _ => {
                    let value = map.remove(&key).unwrap_or_default();
                    map.insert(dice.text(&["kind", "Name", "x", "data"]), value);
                }
            }
        }
        Value::Array(items) if !items.is_empty() && dice.chance(60) => {
            let item = dice.pick(items).clone();
            match dice.below(3) {
                0 => items.push(item),
                1 => items.push(odd_value(dice)),
                _ => items.reverse(),
            }
        }
        Value::Number(number) if number.is_i64() && dice.chance(50) => {
            if let Some(whole) = number.as_f64().and_then(Number::from_f64) {
                *number = whole;
            }
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => {
            *node = odd_value(dice);
        }
    }
}

fn odd_value(dice: &mut Dice) -> Value {
    let values = [
        Value::Null,
        json!(""),
        json!("x"),
        json!("5"),
        json!("A_b/c"),
        json!("é\u{1F600}"),
        json!("x".repeat(254)),
        json!(0),
        json!(1),
        json!(-1),
        json!(2.0),
        json!(1.5),
        json!(1e3),
        json!(2_147_483_648_u64),
        json!(9_223_372_036_854_775_808_u64),
        json!(1e300),
        json!(true),
        json!([]),
        json!({}),
        json!([null]),
        json!([{}]),
        json!(["a"]),
        json!({ "a": null }),
        json!({ "a": "b" }),
        json!({ "": "" }),
    ];
    dice.pick(&values).clone()
}

/// How many nodes a document has.
fn count(node: &Value) -> usize {
    let inner: usize = match node {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    };
    inner + 1
}

/// Does something to the node whose number, in the order of [`count`], is `place`.
fn visit(node: &mut Value, place: &mut usize, act: &mut dyn FnMut(&mut Value)) -> bool {
    if *place == 0 {
        act(node);
        return true;
    }
    *place -= 1;
    match node {
        Value::Array(items) => items.iter_mut().any(|item| visit(item, place, act)),
        Value::Object(map) => map.values_mut().any(|value| visit(value, place, act)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// A document as JSON in which one key stands twice.
pub(super) fn with_duplicate(document: &Value, dice: &mut Dice) -> String {
    let text = document.to_string();
    let places: Vec<usize> = text.match_indices("{\"").map(|(at, _)| at + 1).collect();
    if places.is_empty() {
        return text;
    }
    let at = *dice.pick(&places);
    let (before, after) = text.split_at(at);
    let key = after.split("\":").next().unwrap_or_default();
    let value = odd_value(dice);
    if dice.chance(50) {
        return format!("{before}{key}\":{value},{after}");
    }
    // The same value twice is a duplicate, too, and the object stays what it is.
    let value = serde_json::Deserializer::from_str(after.get(key.len() + 2..).unwrap_or_default())
        .into_iter::<Value>()
        .next()
        .and_then(Result::ok)
        .unwrap_or(value);
    format!("{before}{key}\":{value},{after}")
}

/// A text that is broken JSON, or no object.
pub(super) fn broken(document: &Value, dice: &mut Dice) -> String {
    let text = document.to_string();
    let cut = |dice: &mut Dice| {
        let at = dice.below(text.len());
        text.get(..at).unwrap_or_default().to_owned()
    };
    match dice.below(10) {
        0 => String::new(),
        1 => "null".to_owned(),
        2 => "[]".to_owned(),
        3 => "\"x\"".to_owned(),
        4 => "{}".to_owned(),
        5 => format!("{text} {text}"),
        6 => format!("{text}}}"),
        7 => format!("\u{feff}{text}"),
        8 => text.replacen(':', "", 1),
        _ => cut(dice),
    }
}

/// A document as YAML with as few quotes as there can be, so that texts such as `n` and `012` are
/// read by the rules of YAML.
pub(super) fn bare_yaml(document: &Value, dice: &mut Dice) -> String {
    let mut document = document.clone();
    if dice.chance(40) {
        let odd = [
            "n",
            "y",
            "on",
            "Off",
            "yes",
            "012",
            "0x1F",
            "0o7",
            "1_000",
            "1e3",
            "~",
            "2026-01-01",
            "1:30",
            ".5",
            "+1",
            ".inf",
            "null",
            "!!str a",
            "<<",
        ];
        let places = count(&document);
        let mut place = dice.below(places);
        let text = dice.text(&odd);
        let as_key = dice.chance(40);
        visit(&mut document, &mut place, &mut |node| match node {
            Value::Object(map) if as_key => drop(map.insert(text.clone(), json!("v"))),
            Value::Object(_) | Value::Array(_) => {}
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                *node = text.clone().into();
            }
        });
    }
    let mut text = String::new();
    write_yaml(&document, 0, &mut text);
    match dice.below(12) {
        0 => format!("---\n{text}"),
        1 => format!("{text}---\n{text}"),
        2 => format!("# a comment\n{text}...\n"),
        3 => format!("{text}\tx: 1\n"),
        _ => text,
    }
}

fn write_yaml(node: &Value, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    match node {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                text.extend([&*indent, &bare(key), ":"]);
                write_child(value, depth + 1, text);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                text.extend([&*indent, "-"]);
                write_child(item, depth + 1, text);
            }
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => text.extend([&*indent, &scalar(node), "\n"]),
    }
}

fn write_child(value: &Value, depth: usize, text: &mut String) {
    let nested = match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    if nested {
        text.push('\n');
        write_yaml(value, depth, text);
    } else {
        text.extend([" ", &scalar(value), "\n"]);
    }
}

fn scalar(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), bare)
}

/// A text without quotes where YAML's syntax allows it.
fn bare(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._/+~ <!".contains(letter);
    let trimmed = text.trim() == text && !text.is_empty();
    if trimmed && text.chars().all(plain) { text.to_owned() } else { json!(text).to_string() }
}
