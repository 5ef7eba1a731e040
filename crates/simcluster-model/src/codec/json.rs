//! JSON as the API server reads it: duplicate keys are noticed, and faults are worded as Go words them.
//!
//! The texts are those of Go's `encoding/json` (and `sigs.k8s.io/json` for duplicates).

use std::collections::BTreeSet;

use serde_json::Value;

use super::nesting::DEPTH_MAX;
use super::node::{self, Repeated};
use crate::schema::path::Path;

/// A JSON text and the paths of the keys that stood in it more than once.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The value.
    pub value: Value,
    /// Paths such as `spec.parts[0].name`, in the order of the text, each once.
    pub duplicates: Vec<String>,
    /// All that a text for a struct said of the keys that stand twice, with the JSON pointer of each key:
    /// Go reads it all, and fails if some of it does not fit.
    pub earlier: Vec<(String, Value)>,
}

/// Reads a JSON text; of equal keys the last one counts. The error is Go's text, such as `unexpected
/// end of JSON input`.
pub fn parse(bytes: &[u8]) -> Result<Parsed, String> {
    read(bytes, false)
}

/// Reads a JSON text as Go reads it into a struct: what a key brings the second time goes into what it
/// brought the first time.
pub fn parse_typed(bytes: &[u8]) -> Result<Parsed, String> {
    read(bytes, true)
}

fn read(bytes: &[u8], merges: bool) -> Result<Parsed, String> {
    let text = String::from_utf8_lossy(bytes);
    let mut found = Repetitions { merges, ..Repetitions::default() };
    let mut reader = serde_json::Deserializer::from_str(&text);
    let read = node::read(&mut reader, &mut found);
    match read.and_then(|value| reader.end().map(|()| value)) {
        Ok(value) => Ok(Parsed { value, duplicates: found.paths, earlier: found.earlier }),
        Err(error) => Err(syntax_fault(text.as_bytes()).unwrap_or_else(|| error.to_string())),
    }
}

/// The keys that stand twice, each once, and what they were the first time.
#[derive(Default)]
struct Repetitions {
    paths: Vec<String>,
    earlier: Vec<(String, Value)>,
    /// The keys whose first value was kept: what they have become since is made of all their values.
    begun: BTreeSet<String>,
    merges: bool,
}

impl Repeated for Repetitions {
    type Key = String;

    fn text(key: &String) -> &str {
        key
    }

    fn note(&mut self, _key: &String, path: &Path<'_>) {
        let path = path.dotted();
        if !self.paths.contains(&path) {
            self.paths.push(path);
        }
    }

    fn resolve(&mut self, path: &Path<'_>, first: Value, second: Value) -> Value {
        if !self.merges {
            return second;
        }
        let pointer = path.pointer();
        if self.begun.insert(pointer.clone()) {
            self.earlier.push((pointer.clone(), first.clone()));
        }
        self.earlier.push((pointer, second.clone()));
        into_first(first, second)
    }
}

/// What Go makes of a value that is decoded into another: maps are merged, lists item by item, and a
/// null leaves a struct as it is.
fn into_first(first: Value, second: Value) -> Value {
    match (first, second) {
        (Value::Object(mut first), Value::Object(second)) => {
            for (key, value) in second {
                let value = match first.remove(&key) {
                    Some(old) => into_first(old, value),
                    None => value,
                };
                first.insert(key, value);
            }
            Value::Object(first)
        }
        (Value::Array(first), Value::Array(second)) => {
            let mut old = first.into_iter();
            let merged = second.into_iter().map(|value| match old.next() {
                Some(old) => into_first(old, value),
                None => value,
            });
            Value::Array(merged.collect())
        }
        (first @ Value::Object(_), Value::Null) => first,
        (_, second) => second,
    }
}

/// What Go says is wrong with a text; `None` if its scanner finds nothing.
#[must_use]
pub fn syntax_fault(bytes: &[u8]) -> Option<String> {
    let mut scanner = Scanner { bytes, at: 0, depth: 0 };
    let outcome = scanner.value().and_then(|()| {
        scanner.space();
        match scanner.peek() {
            None => Ok(()),
            Some(_) => Err(scanner.unexpected("after top-level value")),
        }
    });
    outcome.err()
}

/// Checks the grammar only; the stages and their texts are those of Go's scanner.
struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Lists and objects that are open.
    depth: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn unexpected(&self, context: &str) -> String {
        match self.peek() {
            None => "unexpected end of JSON input".to_owned(),
            Some(byte) => format!("invalid character {} {context}", quoted(byte)),
        }
    }

    fn value(&mut self) -> Result<(), String> {
        self.space();
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string(),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.unexpected("looking for beginning of value")),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<(), String>) -> Result<(), String> {
        if self.depth == DEPTH_MAX {
            return Err(self.unexpected("exceeded max depth"));
        }
        self.depth += 1;
        read(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn object(&mut self) -> Result<(), String> {
        self.at += 1;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("looking for beginning of object key string"));
            }
            self.string()?;
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.unexpected("after object key"));
            }
            self.at += 1;
            self.value()?;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.unexpected("after object key:value pair")),
            }
        }
    }

    fn array(&mut self) -> Result<(), String> {
        self.at += 1;
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.value()?;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.unexpected("after array element")),
            }
        }
    }

    fn string(&mut self) -> Result<(), String> {
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(0x20..) => self.at += 1,
                _ => return Err(self.unexpected("in string literal")),
            }
        }
    }

    fn escape(&mut self) -> Result<(), String> {
        self.at += 1;
        match self.peek() {
            Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return Err(self.unexpected("in \\u hexadecimal character escape"));
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.unexpected("in string escape code")),
        }
        Ok(())
    }

    fn literal(&mut self, word: &str) -> Result<(), String> {
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                let expected = char::from(expected);
                return Err(self.unexpected(&format!("in literal {word} (expecting '{expected}')")));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), String> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.unexpected("in numeric literal")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                return Err(self.unexpected("after decimal point in numeric literal"));
            }
            self.digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                return Err(self.unexpected("in exponent of numeric literal"));
            }
            self.digits();
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }
}

/// A byte as Go's scanner quotes it.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        0x00..=0x1f | 0x7f => format!("'\\x{byte:02x}'"),
        // Go turns the byte into the rune of the same number.
        0x20..=0x7e | 0x80..=0xff => format!("'{}'", char::from(byte)),
    }
}
