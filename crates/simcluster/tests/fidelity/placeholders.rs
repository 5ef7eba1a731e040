//! Names for what differs from run to run: uids, resource versions, times, generated names.
//!
//! An answer is first *marked* (values that differ become marks), then cut down to what a step
//! picks, then *named*: marks get the names that the recorded answer has at the same places. A name
//! belongs to one value for the whole case, so values that were equal must stay equal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

static UID: LazyLock<Regex> = LazyLock::new(|| {
    let hex = "[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";
    Regex::new(hex).expect("a valid pattern")
});
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").expect("a valid pattern")
});
static MARK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("\u{1}(uid|rv)-([^\u{2}]*)\u{2}").expect("a valid pattern"));
static NAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"<(?:uid|rv)-\d+>").expect("a valid pattern"));

/// The names given so far in one case.
#[derive(Debug)]
pub(crate) struct Placeholders {
    namespace: String,
    prefixes: BTreeSet<String>,
    /// From the marked value to its recorded name.
    names: BTreeMap<String, String>,
}

impl Placeholders {
    pub(crate) fn new(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), prefixes: BTreeSet::new(), names: BTreeMap::new() }
    }

    /// Looks for `generateName` in a request body: names made from it differ.
    pub(crate) fn note_prefixes(&mut self, body: &str) {
        static PREFIX: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r#""generateName": ?"([^"]+)""#).expect("a valid pattern"));
        self.prefixes.extend(PREFIX.captures_iter(body).map(|found| found[1].to_owned()));
    }

    /// Marks a text.
    pub(crate) fn mark_text(&self, text: &str) -> String {
        let mut text = text.replace(&self.namespace, "<ns>");
        text = UID.replace_all(&text, |found: &regex::Captures<'_>| mark("uid", &found[0])).into();
        for prefix in &self.prefixes {
            // Five characters without vowels and look-alikes end a generated name.
            let pattern = format!(r"{}[bcdfghjklmnpqrstvwxz2456789]{{5}}\b", regex::escape(prefix));
            let pattern = Regex::new(&pattern).expect("an escaped prefix is a valid pattern");
            text = pattern.replace_all(&text, format!("{prefix}<generated>")).into();
        }
        TIME.replace_all(&text, "<time>").into()
    }

    /// Marks a JSON document.
    pub(crate) fn mark(&self, node: &Value) -> Value {
        self.mark_at(node, "")
    }

    fn mark_at(&self, node: &Value, key: &str) -> Value {
        match node {
            Value::Object(map) => Value::Object(self.mark_map(map)),
            Value::Array(items) => items.iter().map(|item| self.mark_at(item, "")).collect(),
            Value::String(_) | Value::Number(_) if key == "resourceVersion" => mark_version(node),
            Value::String(text) if key == "continue" && !text.is_empty() => "<continue>".into(),
            Value::String(text) => self.mark_text(text).into(),
            Value::Null | Value::Bool(_) | Value::Number(_) => node.clone(),
        }
    }

    fn mark_map(&self, map: &Map<String, Value>) -> Map<String, Value> {
        let mut marked: Map<String, Value> = map
            .iter()
            .map(|(key, value)| (self.mark_text(key), self.mark_at(value, key)))
            .collect();
        // A list's own version and a bookmark's move with every write to the cluster.
        if map.get("items").is_some_and(Value::is_array) {
            hide_version(marked.get_mut("metadata"), "<list-rv>");
        }
        if map.get("type").is_some_and(|kind| kind == "BOOKMARK") {
            let object = marked.get_mut("object");
            hide_version(object.and_then(|object| object.get_mut("metadata")), "<bookmark-rv>");
        }
        marked
    }

    /// Names the marks of an answer as the recorded one does.
    pub(crate) fn name(&mut self, answered: &Value, recorded: &Value) -> Value {
        self.learn(answered, recorded);
        self.named(answered)
    }

    fn learn(&mut self, answered: &Value, recorded: &Value) {
        match (answered, recorded) {
            (Value::String(answered), Value::String(recorded)) => {
                self.learn_text(answered, recorded);
            }
            (Value::Array(answered), Value::Array(recorded)) => {
                for (answered, recorded) in answered.iter().zip(recorded) {
                    self.learn(answered, recorded);
                }
            }
            (Value::Object(answered), Value::Object(recorded)) => {
                for (key, value) in answered {
                    if let Some(recorded) = recorded.get(&self.named_text(key)) {
                        self.learn(value, recorded);
                        continue;
                    }
                    // A key with a value that has no name yet: the recorded key of the same form.
                    let mut alike = recorded.keys().filter(|other| form(other) == form(key));
                    if let (Some(other), None) = (alike.next(), alike.next()) {
                        self.learn_text(key, other);
                        self.learn(value, &recorded[other]);
                    }
                }
            }
            _ => {}
        }
    }

    fn learn_text(&mut self, answered: &str, recorded: &str) {
        let marks: Vec<&str> = MARK.find_iter(answered).map(|found| found.as_str()).collect();
        let names: Vec<&str> = NAME.find_iter(recorded).map(|found| found.as_str()).collect();
        if marks.len() != names.len() {
            return;
        }
        for (mark, name) in marks.into_iter().zip(names) {
            let taken = self.names.values().any(|known| known == name);
            let same_kind = mark.trim_start_matches('\u{1}').starts_with(&name[1..3]);
            if !taken && same_kind {
                self.names.entry(mark.to_owned()).or_insert_with(|| name.to_owned());
            }
        }
    }

    fn named(&self, node: &Value) -> Value {
        match node {
            Value::Object(map) => map
                .iter()
                .map(|(key, value)| (self.named_text(key), self.named(value)))
                .collect::<Map<_, _>>()
                .into(),
            Value::Array(items) => items.iter().map(|item| self.named(item)).collect(),
            Value::String(text) => self.named_text(text).into(),
            Value::Null | Value::Bool(_) | Value::Number(_) => node.clone(),
        }
    }

    fn named_text(&self, text: &str) -> String {
        let name = |found: &regex::Captures<'_>| match self.names.get(&found[0]) {
            Some(name) => name.clone(),
            None => format!("<other {} {}>", &found[1], &found[2]),
        };
        MARK.replace_all(text, name).into()
    }
}

fn mark(kind: &str, value: &str) -> String {
    format!("\u{1}{kind}-{value}\u{2}")
}

fn mark_version(version: &Value) -> Value {
    let text = version.as_str().map_or_else(|| version.to_string(), str::to_owned);
    let is_version = !text.starts_with('0')
        && !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_version { mark("rv", &text).into() } else { version.clone() }
}

fn hide_version(metadata: Option<&mut Value>, name: &str) {
    let version = metadata.and_then(|metadata| metadata.get_mut("resourceVersion"));
    if let Some(version) = version.filter(|version| version.as_str() != Some("")) {
        *version = name.into();
    }
}

/// A text without what tells its marks and names apart.
fn form(text: &str) -> String {
    NAME.replace_all(&MARK.replace_all(text, "<>"), "<>").into()
}
