//! Values as Go prints them: some of the server's texts are formatted Go values.

use std::fmt::Write as _;

use jiff::SignedDuration;
use serde_json::{Map, Number, Value};

/// `time.Duration(n) * time.Second`: nanoseconds in 64 bits, where what does not fit wraps around.
#[must_use]
pub fn seconds(count: i64) -> SignedDuration {
    SignedDuration::from_nanos(count.wrapping_mul(1_000_000_000))
}

/// `time.ParseDuration`, for texts that it accepts: `1.5h`, `300ms`, `-1m30s`. What does not fit
/// into Go's 64 bits of nanoseconds is the longest that does.
#[must_use]
pub fn duration(text: &str) -> SignedDuration {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut total = SignedDuration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(number);
        let unit = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit);
        let seconds = match unit {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "m" => 60.0,
            "h" => 3600.0,
            _ => 1.0,
        };
        let seconds = number.parse::<f64>().unwrap_or_default() * seconds;
        total = total.saturating_add(
            SignedDuration::try_from_secs_f64(seconds).unwrap_or(SignedDuration::MAX),
        );
        rest = tail;
    }
    let longest = SignedDuration::from_nanos(i64::MAX);
    if negative { -total.min(longest) } else { total.min(longest) }
}

/// The error of `time.ParseDuration`, for texts that it refuses.
pub(crate) fn duration_fault(text: &str) -> Option<String> {
    const UNITS: [&str; 8] = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"];
    let invalid = || Some(format!("time: invalid duration {}", quote(text)));
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned == "0" {
        return None;
    }
    if unsigned.is_empty() {
        return invalid();
    }
    let mut rest = unsigned;
    while !rest.is_empty() {
        let in_number = |c: char| c.is_ascii_digit() || c == '.';
        let whole = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (whole, tail) = rest.split_at(whole);
        let after_dot = tail.strip_prefix('.').unwrap_or(tail);
        let tail = if after_dot.len() < tail.len() {
            after_dot.trim_start_matches(|c: char| c.is_ascii_digit())
        } else {
            tail
        };
        if whole.is_empty() && tail.len() == after_dot.len() {
            return invalid();
        }
        let (unit, tail) = tail.split_at(tail.find(in_number).unwrap_or(tail.len()));
        match unit {
            "" => return Some(format!("time: missing unit in duration {}", quote(text))),
            unit if !UNITS.contains(&unit) => {
                let (unit, text) = (quote(unit), quote(text));
                return Some(format!("time: unknown unit {unit} in duration {text}"));
            }
            _ => {}
        }
        rest = tail;
    }
    let longest = SignedDuration::from_nanos(i64::MAX);
    if duration(unsigned) >= longest { invalid() } else { None }
}

/// `%q` of a string.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            other if other.is_ascii_control() => {
                write!(out, "\\x{:02x}", u32::from(other)).expect("writing to a string");
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// `%q` of a list of strings: `["a" "b"]`.
#[must_use]
pub fn quote_list(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}

/// `%v` of a decoded value: `map[a:1 b:[x y]]`.
#[must_use]
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => shown_number(number),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let fields: Vec<String> = sorted(map)
                .into_iter()
                .map(|(key, value)| format!("{key}:{}", plain(value)))
                .collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

/// `%#v` of a decoded value: `map[string]interface {}{"a":1}`.
#[must_use]
pub fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => shown_number(number),
        Value::String(text) => quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let fields: Vec<String> = sorted(map)
                .into_iter()
                .map(|(key, value)| format!("{}:{}", quote(key), syntax(value)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
    }
}

/// `%T` of a decoded value.
#[must_use]
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// What `encoding/json` calls the JSON type of a value in its errors.
#[must_use]
pub fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The value as `encoding/json` writes it: compact, keys sorted, `<`, `>` and `&` escaped.
#[must_use]
pub fn json(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(json).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(map) => {
            let fields: Vec<String> = sorted(map)
                .into_iter()
                .map(|(key, value)| format!("{}:{}", json_string(key), json(value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::String(text) => json_string(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn json_string(text: &str) -> String {
    let plain = Value::from(text).to_string();
    if !plain.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return plain;
    }
    let mut out = String::with_capacity(plain.len() + 10);
    for character in plain.chars() {
        if matches!(character, '<' | '>' | '&' | '\u{2028}' | '\u{2029}') {
            write!(out, "\\u{:04x}", u32::from(character)).expect("writing to a string");
        } else {
            out.push(character);
        }
    }
    out
}

fn sorted(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut fields: Vec<(&String, &Value)> = map.iter().collect();
    fields.sort_by_key(|(key, _)| *key);
    fields
}

/// `%v` of a number: integers as they are, floats in the shortest form, with an exponent (of two
/// digits at least) below 1e-4 and from 1e6 on.
fn shown_number(number: &Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else {
        return number.to_string();
    };
    let scientific = format!("{float:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return float.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Bytes as `%x` writes them.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string");
        text
    })
}

#[cfg(test)]
mod tests;
