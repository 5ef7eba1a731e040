//! Columns of custom resources: JSON paths of a CRD's `additionalPrinterColumns`.
//!
//! Follows `apiextensions-apiserver/pkg/registry/customresource/tableconvertor`. The paths are those of
//! `kubectl`: `.a.b\.c`, `[0]`, `[*]`, `[?(@.type=="Ready")]`.

use std::fmt::Write;

use jiff::Timestamp;
use jsonpath_rust::parser::model::JpQuery;
use jsonpath_rust::parser::parse_json_path;
use jsonpath_rust::query::js_path_process;
use serde_json::{Value, json};

use super::{age_column, name_column};
use simcluster_model::builtin::since;

/// The columns of one version.
#[derive(Debug)]
pub(super) struct Columns {
    columns: Vec<Column>,
}

#[derive(Debug)]
struct Column {
    definition: Value,
    kind: String,
    /// `None` if the path cannot be read; its cells stay empty.
    path: Option<JpQuery>,
}

impl Columns {
    /// Reads `additionalPrinterColumns`; without any there is one column, `Age`.
    pub(super) fn new(written: &[Value]) -> Self {
        if written.is_empty() {
            let age = Column {
                definition: age_column(),
                kind: "date".to_owned(),
                path: compile(".metadata.creationTimestamp"),
            };
            return Self { columns: vec![age] };
        }
        Self { columns: written.iter().map(Column::new).collect() }
    }

    pub(super) fn definitions(&self) -> Value {
        let own = self.columns.iter().map(|column| column.definition.clone());
        std::iter::once(name_column()).chain(own).collect()
    }

    pub(super) fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let own = self.columns.iter().map(|column| column.cell(object, now));
        std::iter::once(json!(simcluster_model::object::name(object))).chain(own).collect()
    }
}

impl Column {
    fn new(written: &Value) -> Self {
        let text = |key: &str| written.get(key).and_then(Value::as_str).unwrap_or_default();
        let path = text("jsonPath");
        let description = match text("description") {
            "" => format!("Custom resource definition column (in JSONPath format): {path}"),
            own => own.to_owned(),
        };
        let definition = json!({
            "name": text("name"),
            "type": text("type"),
            "format": text("format"),
            "description": description,
            "priority": written.get("priority").and_then(Value::as_i64).unwrap_or_default(),
        });
        Self { definition, kind: text("type").to_owned(), path: compile(path) }
    }

    fn cell(&self, object: &Value, now: Timestamp) -> Value {
        let Some(path) = &self.path else { return Value::Null };
        let found = js_path_process(path, object).ok();
        match found.and_then(|results| results.into_iter().next()) {
            Some(first) => cell(&self.kind, first.val(), now),
            None => Value::Null,
        }
    }
}

fn cell(kind: &str, value: &Value, now: Timestamp) -> Value {
    match (kind, value) {
        ("string", Value::String(text)) => json!(text),
        ("string", Value::Null) => json!("<no value>"),
        ("string", other) => json!(other.to_string()),
        ("integer", Value::Number(number)) => number.as_i64().map_or_else(
            || number.as_f64().map_or(Value::Null, |float| whole(float.trunc())),
            |integer| json!(integer),
        ),
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(text)) => json!(since(Some(text), now)),
        _ => Value::Null,
    }
}

/// A float without fraction as an integer.
fn whole(float: f64) -> Value {
    format!("{float:.0}").parse::<i64>().map_or(Value::Null, |integer| json!(integer))
}

/// Turns a path of kubectl's dialect into RFC 9535 and parses it.
fn compile(path: &str) -> Option<JpQuery> {
    parse_json_path(&standard(path)).ok()
}

/// Dotted names become quoted ones, so that `a\.b/c` and `a-b` are names too; brackets stay.
fn standard(path: &str) -> String {
    let mut out = String::from("$");
    let mut rest = path.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '.' if rest.peek() == Some(&'[') => {}
            '.' => {
                let mut name = String::new();
                while let Some(&next) = rest.peek() {
                    if matches!(next, '.' | '[') {
                        break;
                    }
                    rest.next();
                    if next == '\\' {
                        name.extend(rest.next());
                    } else {
                        name.push(next);
                    }
                }
                match name.as_str() {
                    "" => {}
                    "*" => out.push_str("[*]"),
                    name => {
                        let _ = write!(out, "[{}]", quoted(name));
                    }
                }
            }
            '[' => {
                out.push('[');
                copy_bracket(&mut out, &mut rest);
            }
            other => out.push(other),
        }
    }
    out
}

/// Copies up to the closing bracket; brackets and quotes in filters nest.
fn copy_bracket(out: &mut String, rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    let mut depth = 1;
    let mut quote = None;
    for c in rest.by_ref() {
        out.push(c);
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return;
        }
    }
}

fn quoted(name: &str) -> String {
    let escaped = name.replace('\\', "\\\\").replace('\'', "\\'");
    format!("'{escaped}'")
}
