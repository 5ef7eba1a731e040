//! By what differences are told apart.

use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::case::Step;
use crate::pair::Answers;

/// The most of a text that tells differences apart.
const TEXT_MAX: usize = 90;

/// What alike differences have in common.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signature {
    /// What was asked for, such as `apply services/status`; empty if the texts say enough.
    pub request: String,
    /// The status codes of both answers.
    pub statuses: [u64; 2],
    /// The first place that differs, without what only one object has.
    pub path: String,
    /// The form of both texts, if that place has texts.
    pub texts: [String; 2],
}

impl Signature {
    /// The signature of a step whose answers differ.
    #[must_use]
    pub fn of(step: &Step, answers: &Answers) -> Self {
        let status = |answer: &Value| answer.get("status").and_then(Value::as_u64).unwrap_or(0);
        let statuses = [status(&answers.real), status(&answers.simulated)];
        let wordy = |path: &str| path.ends_with("message") || path.starts_with("headers");
        // Between faults, or a fault and none, the texts tell most; else the first place does.
        let worded = answers.places.iter().find(|place| wordy(&place.path));
        let Some(place) = worded.or_else(|| answers.places.first()) else {
            return Self { statuses, ..Self::default() };
        };
        let text = |value: &Option<Value>| match value {
            Some(Value::String(text)) => form(text),
            Some(Value::Null) => "null".to_owned(),
            Some(_) => "a value".to_owned(),
            None => "nothing".to_owned(),
        };
        Self {
            request: if worded.is_none() { request(step) } else { String::new() },
            statuses,
            path: path_form(&place.path),
            texts: [text(&place.recorded), text(&place.answered)],
        }
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { request, statuses: [real, simulated], path, texts } = self;
        if !request.is_empty() {
            write!(f, "{request}: ")?;
        }
        write!(f, "real {real}, simulated {simulated}")?;
        if !path.is_empty() {
            let [real, simulated] = texts;
            write!(f, "; {path}: real `{real}`, simulated `{simulated}`")?;
        }
        Ok(())
    }
}

/// What a step asks for, such as `apply services/status`.
#[must_use]
pub fn request(step: &Step) -> String {
    format!("{} {}", verb(step), resource(step))
}

/// What a step asks for: the verb of the API, and which kind a patch is of.
#[must_use]
pub fn verb(step: &Step) -> &'static str {
    let method = step.line.split(' ').next().unwrap_or_default();
    let kind = step.headers.get("Content-Type").map_or("", String::as_str);
    match method {
        "POST" => "create",
        "PUT" => "update",
        "PATCH" if kind.contains("apply-patch") => "apply",
        "PATCH" if kind.contains("json-patch") => "json patch",
        "PATCH" if kind.contains("strategic") => "strategic patch",
        "PATCH" => "merge patch",
        "DELETE" if is_item(step) => "delete",
        "DELETE" => "deletecollection",
        _ if step.events.is_some() => "watch",
        _ if is_item(step) => "get",
        _ => "list",
    }
}

/// The parts of a step's path after the version and the namespace.
fn parts(step: &Step) -> Vec<&str> {
    let path = step.line.split([' ', '?']).nth(1).unwrap_or_default();
    let mut parts: Vec<&str> = path.split('/').skip(1).collect();
    let version = if parts.first() == Some(&"api") { 2 } else { 3 };
    parts.drain(..version.min(parts.len()));
    if parts.len() > 2 && parts.starts_with(&["namespaces", "{ns}"]) {
        parts.drain(..2);
    }
    parts
}

fn is_item(step: &Step) -> bool {
    parts(step).len() > 1
}

fn resource(step: &Step) -> String {
    let parts = parts(step);
    let plural = parts.first().copied().unwrap_or_default();
    parts.get(2).map_or_else(|| plural.to_owned(), |subresource| format!("{plural}/{subresource}"))
}

/// A path without numbers.
fn path_form(path: &str) -> String {
    static INDEX: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\[\d+\]").expect("a valid pattern"));
    INDEX.replace_all(path, "[]").into()
}

/// A text without names, numbers and values.
fn form(text: &str) -> String {
    static VALUES: LazyLock<Regex> = LazyLock::new(|| {
        let quoted = r#""(\\.|[^"\\])*"|'[^']*'|`[^`]*`"#;
        let pattern = format!(r"{quoted}|\[[^\]]*\]|\{{.*\}}|\(.*\)|<[a-z]+-\d+>|\d+|é\S*|x{{9,}}");
        Regex::new(&pattern).expect("a valid pattern")
    });
    // Which kind it is, in the words of each text that names one.
    static KIND: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^[\w.]+ (_ is invalid|in version _|_ not found|_ already exists)|as a \w+|Go (struct field|value of type) [\w.\[\]]+")
            .expect("a valid pattern")
    });
    let text = VALUES.replace_all(text.lines().next().unwrap_or_default(), "_");
    KIND.replace_all(&text, "K $1$2").chars().take(TEXT_MAX).collect()
}

#[cfg(test)]
mod tests;
