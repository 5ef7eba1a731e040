//! Names for what differs from run to run: uids, resource versions, times, generated names.
//!
//! An answer is first *marked* (values that differ become marks), then cut down to what a step
//! picks, then *named*: marks get the names that the recorded answer has at the same places. A name
//! belongs to one value for the whole conversation, so values that were equal must stay equal, and
//! different ones different. An answer with which others will be compared is *recorded*: its marks
//! get new names in the order in which they come.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value};

use crate::text::map_texts;

static UID: LazyLock<Regex> = LazyLock::new(|| {
    pattern("[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
});
static TIME: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"));
/// The server's own end of a connection to a webhook.
static CLIENT: LazyLock<Regex> = LazyLock::new(|| pattern(r"127\.0\.0\.1:\d+->"));
/// Addresses of Services; the range itself, which a text names, is a matter of configuration.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b10\.0\.\d{1,3}\.\d{1,3}\b(/\d+)?"));
/// Node ports of Services.
static PORT: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b3[0-2]\d{3}\b"));
/// Versions in texts: the newest one, and those of objects in YAML.
static CURRENT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(current: |resourceVersion(: |\\*":\\*)?")\d+"#));
static MARK: LazyLock<Regex> = LazyLock::new(|| pattern("\u{1}([a-z]+)-([^\u{2}]*)\u{2}"));
static NAME: LazyLock<Regex> = LazyLock::new(|| pattern(r"<(uid|rv|ip|port)-\d+>"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a valid pattern")
}

/// The names given so far in one conversation.
#[derive(Debug)]
pub struct Placeholders {
    namespace: String,
    prefixes: BTreeSet<String>,
    /// Whether what servers allocate to Services gets names, too.
    allocations: bool,
    /// From the marked value to its name.
    names: BTreeMap<String, String>,
    /// Texts that have names of their own: addresses of webhooks, their certificate.
    pub(crate) texts: Vec<(String, String)>,
    /// The uids of reviews: nothing else ever has one of them.
    pub(crate) reviews: BTreeSet<String>,
    /// Who asks, as the server calls them.
    pub(crate) me: Option<Value>,
}

impl Placeholders {
    /// The names of a conversation in a namespace.
    #[must_use]
    pub fn new(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            prefixes: BTreeSet::new(),
            allocations: false,
            names: BTreeMap::new(),
            texts: Vec::new(),
            reviews: BTreeSet::new(),
            me: None,
        }
    }

    /// Addresses and node ports of Services get names, too, and so does the newest version where a
    /// text names it: two servers choose their own. Cases that are recorded leave them out instead.
    #[must_use]
    pub fn with_allocations(mut self) -> Self {
        self.allocations = true;
        self
    }

    /// The namespace of the conversation.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Looks for `generateName` in a request body: names made from it differ.
    pub(crate) fn note_prefixes(&mut self, body: &[u8]) {
        static PREFIX: LazyLock<Regex> = LazyLock::new(|| pattern(r#""generateName": ?"([^"]+)""#));
        let body = String::from_utf8_lossy(body);
        let found = PREFIX.captures_iter(&body).filter_map(|found| found.get(1));
        self.prefixes.extend(found.map(|prefix| prefix.as_str().to_owned()));
    }

    /// Marks a text.
    pub(crate) fn mark_text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (own, name) in &self.texts {
            text = text.replace(own, name);
        }
        text = CLIENT.replace_all(&text, "<client>->").into();
        for prefix in &self.prefixes {
            // Five characters without vowels and look-alikes end a generated name.
            let generated =
                format!(r"{}[bcdfghjklmnpqrstvwxz2456789]{{5}}\b", regex::escape(prefix));
            text = pattern(&generated).replace_all(&text, format!("{prefix}<generated>")).into();
        }
        text = mark_all(&UID, "uid", &text.replace(&self.namespace, "<ns>"));
        for review in &self.reviews {
            text = text.replace(&mark("uid", review), "<review>");
        }
        if self.allocations {
            text = mark_choices(&text);
        }
        TIME.replace_all(&text, "<time>").into()
    }

    /// Marks a JSON document.
    pub(crate) fn mark(&self, node: &Value) -> Value {
        self.mark_at(node, "")
    }

    fn mark_at(&self, node: &Value, key: &str) -> Value {
        match node {
            Value::Object(_) if key == "userInfo" && self.me.as_ref() == Some(node) => {
                "<me>".into()
            }
            Value::Object(map) => Value::Object(self.mark_map(map)),
            Value::Array(items) => items.iter().map(|item| self.mark_at(item, "")).collect(),
            Value::String(_) | Value::Number(_) if key == "resourceVersion" => mark_version(node),
            Value::String(text) if key == "continue" && !text.is_empty() => "<continue>".into(),
            Value::String(text) => self.mark_text(text).into(),
            Value::Number(port) if self.allocations && key.ends_with("odePort") => {
                self.mark_text(&port.to_string()).into()
            }
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

    /// Gives new names to the marks of an answer that have none.
    pub(crate) fn record(&mut self, answered: &Value) -> Value {
        let mut found = Vec::new();
        find_marks(answered, &mut found);
        for (mark, kind) in found {
            let number = self.names.values().filter(|name| kind_of(name) == kind).count() + 1;
            self.names.entry(mark).or_insert_with(|| format!("<{kind}-{number}>"));
        }
        self.named(answered)
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
                        self.learn(value, recorded.get(other).unwrap_or(&Value::Null));
                    }
                }
            }
            _ => {}
        }
    }

    fn learn_text(&mut self, answered: &str, recorded: &str) {
        let marks: Vec<Captures<'_>> = MARK.captures_iter(answered).collect();
        let names: Vec<&str> = NAME.find_iter(recorded).map(|found| found.as_str()).collect();
        if marks.len() != names.len() {
            return;
        }
        for (mark, name) in marks.iter().zip(names) {
            let (mark, kind, _) = parts(mark);
            let taken = self.names.values().any(|known| known == name);
            if !taken && kind == kind_of(name) {
                self.names.entry(mark.to_owned()).or_insert_with(|| name.to_owned());
            }
        }
    }

    fn named(&self, node: &Value) -> Value {
        map_texts(node, &|text| self.named_text(text))
    }

    fn named_text(&self, text: &str) -> String {
        let name = |found: &Captures<'_>| {
            let (mark, kind, value) = parts(found);
            self.names.get(mark).cloned().unwrap_or_else(|| format!("<other {kind} {value}>"))
        };
        MARK.replace_all(text, name).into()
    }
}

fn mark(kind: &str, value: &str) -> String {
    format!("\u{1}{kind}-{value}\u{2}")
}

fn mark_all(pattern: &Regex, kind: &str, text: &str) -> String {
    let value = |found: &Captures<'_>| mark(kind, found.get(0).map_or("", |all| all.as_str()));
    pattern.replace_all(text, value).into()
}

/// Marks what servers choose for themselves, where texts name it.
fn mark_choices(text: &str) -> String {
    let address = |found: &Captures<'_>| match found.get(1) {
        Some(_) => "<range>".to_owned(),
        None => mark("ip", found.get(0).map_or("", |all| all.as_str())),
    };
    let text = mark_all(&PORT, "port", &ADDRESS.replace_all(text, address));
    CURRENT.replace_all(&text, "$1<list-rv>").into()
}

/// A found mark: all of it, its kind, its value.
fn parts<'a>(found: &Captures<'a>) -> (&'a str, &'a str, &'a str) {
    let part = |index| found.get(index).map_or("", |part| part.as_str());
    (part(0), part(1), part(2))
}

/// The kind in a name such as `<uid-1>`.
fn kind_of(name: &str) -> &str {
    name.trim_start_matches('<').split('-').next().unwrap_or_default()
}

/// All marks of a document and their kinds, in order.
fn find_marks(node: &Value, found: &mut Vec<(String, String)>) {
    match node {
        Value::String(text) => marks_in(text, found),
        Value::Array(items) => items.iter().for_each(|item| find_marks(item, found)),
        Value::Object(map) => {
            for (key, value) in map {
                marks_in(key, found);
                find_marks(value, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn marks_in(text: &str, found: &mut Vec<(String, String)>) {
    let marks = MARK.captures_iter(text).map(|mark| {
        let (mark, kind, _) = parts(&mark);
        (mark.to_owned(), kind.to_owned())
    });
    found.extend(marks);
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
pub(crate) fn form(text: &str) -> String {
    NAME.replace_all(&MARK.replace_all(text, "<>"), "<>").into()
}
