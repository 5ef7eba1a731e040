//! YAML as the API server reads it: YAML 1.1, turned into JSON; duplicate keys are noticed by line.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::Spanned;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};

use super::body::LIMIT_BYTES;
use super::nesting::DEPTH_MAX;
use super::node::{self, Repeated};
use crate::golang;
use crate::schema::numbers;
use crate::schema::path::Path;
use crate::stack::on_large_stack;

/// A YAML text and the texts of its duplicate keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The value; of equal keys the last one counts.
    pub value: Value,
    /// Texts such as `line 6: key "size" already set in map`.
    pub duplicates: Vec<String>,
}

/// Reads the first document of a YAML text. Numbers are as the server's way over JSON leaves them: a
/// whole float is an integer. The error begins with `yaml: `, as the server's does.
pub fn parse(bytes: &[u8]) -> Result<Parsed, String> {
    let text = String::from_utf8_lossy(bytes);
    let text = first_document(&text);
    if text.trim().is_empty() {
        return Ok(Parsed { value: Value::Null, duplicates: Vec::new() });
    }
    match parse_within(text, SHALLOW) {
        Err(error) if is_too_deep(&error) => parse_deep(text),
        outcome => outcome.map_err(|error| fault(&error)),
    }
}

/// Nesting that is read on the caller's stack. The parser takes up to 28 KiB of it for each level.
const SHALLOW: usize = 32;

/// Reads a text on a stack of its own.
fn parse_deep(text: &str) -> Result<Parsed, String> {
    let read = || match parse_within(text, DEPTH_MAX) {
        Err(error) if is_too_deep(&error) => Err(too_deep(&error)),
        outcome => outcome.map_err(|error| fault(&error)),
    };
    on_large_stack(read).unwrap_or_else(|why| Err(format!("yaml: {why}")))
}

fn parse_within(text: &str, depth: usize) -> Result<Parsed, serde_saphyr::Error> {
    let mut texts = Texts(Vec::new());
    let mut value = serde_saphyr::with_deserializer_from_str_with_options(
        text,
        options(depth),
        |deserializer| node::read(deserializer, &mut texts),
    )?;
    numbers::normalise(&mut value);
    Ok(Parsed { value, duplicates: texts.0 })
}

/// A stream up to the end of its first document.
fn first_document(text: &str) -> &str {
    let (mut begun, mut end) = (false, 0);
    for line in text.split_inclusive('\n') {
        let is = |mark| {
            line.strip_prefix(mark).is_some_and(|rest| rest.trim_start() != rest || rest.is_empty())
        };
        if is("...") || (begun && is("---")) {
            return text.get(..end).unwrap_or(text);
        }
        let content = line.trim_start();
        begun |= !(content.is_empty() || content.starts_with('#') || line.starts_with('%'));
        end += line.len();
    }
    text
}

fn options(depth: usize) -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: depth,
            // Bodies are limited in size, and with it in nodes. What aliases repeat is limited by the
            // parser's defaults.
            max_nodes: LIMIT_BYTES,
            max_events: 2 * LIMIT_BYTES,
        },
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        legacy_octal_numbers: true,
        null_as_string: true,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
    }
}

fn is_too_deep(error: &serde_saphyr::Error) -> bool {
    use serde_saphyr::Error;
    if let Error::WithSnippet { error, .. } | Error::AliasError { error, .. } = error {
        return is_too_deep(error);
    }
    matches!(error, Error::Budget { breach: BudgetBreach::Depth { .. }, .. })
}

fn too_deep(error: &serde_saphyr::Error) -> String {
    format!("yaml: line {}: exceeded max depth of {DEPTH_MAX}", line(error))
}

fn line(error: &serde_saphyr::Error) -> u64 {
    error.location().map_or(1, |location| location.line())
}

/// Who finds a fault in Go's library decides how it counts lines.
#[derive(Clone, Copy)]
enum Finder {
    /// The scanner: lines as people count them, but none for the first.
    Scanner,
    /// The parser: one less, and none for the first.
    Parser,
    /// The parser at the end of the text, which is on a line of its own.
    End,
    /// The scanner, on the line after the text that this parser speaks of.
    Next,
}

/// The server's text where the two parsers see the same fault, else this parser's own.
fn fault(error: &serde_saphyr::Error) -> String {
    use Finder::{End, Next, Parser, Scanner};
    let own = error.to_string();
    // The parser looks ahead, and has a limit of its own for what it sees there.
    if own.contains("recursion limit exceeded") {
        return too_deep(error);
    }
    let first_line = own.lines().next().unwrap_or_default().trim_start_matches("error: ");
    if let Some((_, key)) = first_line.split_once(INVALID_KEY) {
        return format!("yaml: {INVALID_KEY}{key}");
    }
    let line = line(error);
    let known = [
        ("unclosed bracket '['", "did not find expected ',' or ']'", End),
        ("expected ',' or ']'", "did not find expected ',' or ']'", End),
        ("unclosed bracket '{'", "did not find expected ',' or '}'", End),
        ("expected ',' or '}'", "did not find expected ',' or '}'", End),
        (
            "mapping values are not allowed",
            "mapping values are not allowed in this context",
            Scanner,
        ),
        ("did not find expected key", "did not find expected key", Parser),
        ("did not find expected '-' indicator", "did not find expected '-' indicator", Parser),
        ("unclosed quote", "found unexpected end of stream", Scanner),
        ("found a tab", "found a tab character that violates indentation", Next),
        ("tabs disallowed", "found character that cannot start any token", Scanner),
        ("unexpected character", "found character that cannot start any token", Scanner),
    ];
    let Some((_, text, finder)) = known.iter().find(|(mark, _, _)| own.contains(mark)) else {
        return format!("yaml: line {line}: {first_line}");
    };
    let shown = match finder {
        Scanner if line == 1 => 0,
        Scanner | End => line,
        Next => line.saturating_add(1),
        Parser => line.saturating_sub(1),
    };
    if shown == 0 { format!("yaml: {text}") } else { format!("yaml: line {shown}: {text}") }
}

const INVALID_KEY: &str = "invalid map key: ";

/// A key: any scalar, turned into text as the server does it. `yes` is a boolean, so it is `true`.
struct Key {
    text: String,
    /// As Go prints it.
    shown: String,
}

impl Key {
    fn of(text: String) -> Self {
        Self { shown: text.clone(), text }
    }

    fn refused<E: Error>(value: &Value) -> E {
        let shown = golang::syntax(value).replace("map[string]", "map[interface {}]");
        E::custom(format_args!("{INVALID_KEY}{shown}"))
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeyVisitor)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Key, E> {
        Ok(Key::of(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Key, E> {
        Ok(Key::of(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Key, E> {
        Ok(Key::of(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Key, E> {
        Ok(Key::of(numbers::go_float(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Key, E> {
        Ok(Key { text: value.to_owned(), shown: golang::quote(value) })
    }

    fn visit_unit<E>(self) -> Result<Key, E> {
        Ok(Key::of("null".to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Key, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(items))
            .and_then(|key| Err(Key::refused(&key)))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Key, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(entries))
            .and_then(|key| Err(Key::refused(&key)))
    }
}

/// The server's texts for repeated keys.
struct Texts(Vec<String>);

impl Repeated for Texts {
    type Key = Spanned<Key>;

    fn text(key: &Spanned<Key>) -> &str {
        &key.value.text
    }

    fn note(&mut self, key: &Spanned<Key>, _path: &Path<'_>) {
        let line = key.referenced.line();
        self.0.push(format!("line {line}: key {} already set in map", key.value.shown));
    }
}

/// Writes a value as the server does: keys sorted, lists at the level of their key.
#[must_use]
pub fn write(value: &Value) -> String {
    let mut text = String::new();
    write_node(&mut text, value, 0, Place::Top);
    text
}

/// What stands before a value on its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Top,
    AfterKey,
    AfterDash,
}

fn write_node(text: &mut String, value: &Value, indent: usize, place: Place) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            let mut first = true;
            if place == Place::AfterKey {
                text.push('\n');
            }
            for (key, item) in map {
                if !(first && place == Place::AfterDash) {
                    push_indent(text, indent);
                }
                first = false;
                text.push_str(&scalar(key, indent));
                text.push(':');
                write_node(text, item, next_indent(item, indent), Place::AfterKey);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            if place == Place::AfterKey {
                text.push('\n');
            }
            for (index, item) in list.iter().enumerate() {
                if !(index == 0 && place == Place::AfterDash) {
                    push_indent(text, indent);
                }
                text.push_str("- ");
                write_node(text, item, indent + 1, Place::AfterDash);
            }
        }
        Value::Object(_) => push_scalar(text, "{}", place),
        Value::Array(_) => push_scalar(text, "[]", place),
        Value::Null => push_scalar(text, "null", place),
        Value::Bool(flag) => push_scalar(text, &flag.to_string(), place),
        Value::Number(number) => push_scalar(text, &number.to_string(), place),
        Value::String(string) => push_scalar(text, &scalar(string, indent), place),
    }
}

/// Lists below a key stay at the key's level.
fn next_indent(item: &Value, indent: usize) -> usize {
    if item.is_array() { indent } else { indent + 1 }
}

fn push_indent(text: &mut String, indent: usize) {
    text.push_str(&"  ".repeat(indent));
}

fn push_scalar(text: &mut String, scalar: &str, place: Place) {
    if place == Place::AfterKey {
        text.push(' ');
    }
    text.push_str(scalar);
    text.push('\n');
}

/// A string: plain where it reads back as the same string, a block where it has lines, else quoted.
fn scalar(string: &str, indent: usize) -> String {
    if string.contains('\n') && is_block_safe(string) {
        return block(string, indent);
    }
    if is_plain(string) {
        return string.to_owned();
    }
    let has_special = string.chars().any(|c| c.is_control() || c == '\u{feff}');
    if has_special || reads_as_other_type(string) {
        return serde_json::to_string(string).unwrap_or_default();
    }
    format!("'{}'", string.replace('\'', "''"))
}

fn is_block_safe(string: &str) -> bool {
    !string.starts_with([' ', '\n']) && !string.chars().any(|c| c.is_control() && c != '\n')
}

fn block(string: &str, indent: usize) -> String {
    let (mark, body) = match string.strip_suffix('\n') {
        Some(body) if !body.ends_with('\n') => ("|", body),
        Some(_) => ("|+", string.strip_suffix('\n').unwrap_or(string)),
        None => ("|-", string),
    };
    let mut text = mark.to_owned();
    for line in body.split('\n') {
        text.push('\n');
        if !line.is_empty() {
            push_indent(&mut text, indent.max(1));
            text.push_str(line);
        }
    }
    text
}

fn is_plain(string: &str) -> bool {
    const INDICATORS: &str = "-?:,[]{}#&*!|>'\"%@`";
    let Some(first) = string.chars().next() else { return false };
    let starts_plainly = !INDICATORS.contains(first)
        || (matches!(first, '-' | '?' | ':')
            && string
                .chars()
                .nth(1)
                .is_some_and(|next| !next.is_whitespace() && !INDICATORS.contains(next)));
    starts_plainly
        && !string.starts_with(' ')
        && !string.ends_with(' ')
        && !string.ends_with(':')
        && !string.contains(": ")
        && !string.contains(" #")
        && !string.chars().any(|c| c.is_control() || c == '\u{feff}')
        && !reads_as_other_type(string)
}

/// Whether a plain scalar of this text would be read as something else than a string.
fn reads_as_other_type(string: &str) -> bool {
    const WORDS: [&str; 17] = [
        "", "~", "null", "y", "n", "yes", "no", "on", "off", "true", "false", ".inf", "-.inf",
        "+.inf", ".nan", "=", "<<",
    ];
    let lower = string.to_ascii_lowercase();
    WORDS.contains(&lower.as_str()) || looks_numeric(&lower) || looks_like_time(string)
}

fn looks_numeric(lower: &str) -> bool {
    let body = lower.trim_start_matches(['-', '+']);
    if !body.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return false;
    }
    let clean = body.replace('_', "");
    let radix = ["0x", "0o", "0b"].iter().any(|prefix| {
        clean.strip_prefix(prefix).is_some_and(|digits| {
            !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit())
        })
    });
    radix || clean.parse::<f64>().is_ok()
}

/// Dates and times of YAML 1.1 (`2001-12-14`, `2001-12-14T21:59:43Z`).
fn looks_like_time(string: &str) -> bool {
    let mut parts = string.splitn(3, '-');
    let [Some(year), Some(month), Some(day)] = [parts.next(), parts.next(), parts.next()] else {
        return false;
    };
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let (day, time) = day.split_at(day.find(['T', 't', ' ']).unwrap_or(day.len()));
    year.len() == 4
        && digits(year)
        && digits(month)
        && digits(day)
        && (time.is_empty()
            || time.chars().skip(1).all(|c| c.is_ascii_digit() || ":.-+ Zz".contains(c)))
}
