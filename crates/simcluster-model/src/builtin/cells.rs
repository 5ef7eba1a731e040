//! Cells of Tables: what they look at, and how ages, lists and selectors are shown.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::builtin::value::text;
use crate::object::{self, meta_str};

/// An object and the time, with short ways to what cells show.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) object: &'a Value,
    pub(crate) now: Timestamp,
}

impl<'a> View<'a> {
    /// The cells of a row that begins with the object's name.
    pub(crate) fn named(self, others: Vec<Value>) -> Vec<Value> {
        std::iter::once(json!(object::name(self.object))).chain(others).collect()
    }

    pub(crate) fn str(self, pointer: &str) -> &'a str {
        self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn text(self, pointer: &str) -> Value {
        json!(self.str(pointer))
    }

    pub(crate) fn number(self, pointer: &str) -> i64 {
        self.object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
    }

    pub(crate) fn count(self, pointer: &str) -> Value {
        json!(self.number(pointer))
    }

    pub(crate) fn flag(self, pointer: &str) -> bool {
        self.object.pointer(pointer).and_then(Value::as_bool).unwrap_or_default()
    }

    pub(crate) fn list(self, pointer: &str) -> &'a [Value] {
        self.object
            .pointer(pointer)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    pub(crate) fn size(self, pointer: &str) -> usize {
        self.object.pointer(pointer).and_then(Value::as_object).map_or(0, serde_json::Map::len)
    }

    pub(crate) fn age(self) -> Value {
        json!(age(self.object, self.now))
    }

    pub(crate) fn since(self, pointer: &str) -> String {
        since(self.object.pointer(pointer).and_then(Value::as_str), self.now)
    }

    pub(crate) fn joined(self, pointer: &str, field: &str) -> Value {
        let items: Vec<&str> = self.list(pointer).iter().map(|item| text(item, &[field])).collect();
        json!(items.join(","))
    }

    pub(crate) fn containers(self) -> [Value; 2] {
        let containers = "/spec/template/spec/containers";
        [self.joined(containers, "name"), self.joined(containers, "image")]
    }

    pub(crate) fn selector(self) -> Value {
        json!(selector_text(self.object.pointer("/spec/selector")))
    }

    pub(crate) fn has_condition(self, kind: &str) -> bool {
        let conditions = self.list("/status/conditions");
        let found = conditions.iter().find(|condition| text(condition, &["type"]) == kind);
        found.is_some_and(|condition| text(condition, &["status"]) == "True")
    }
}

/// The age of an object.
#[must_use]
pub fn age(object: &Value, now: Timestamp) -> String {
    since(Some(meta_str(object, "creationTimestamp")), now)
}

/// The time since a moment; `<unknown>` if there is none.
#[must_use]
pub fn since(time: Option<&str>, now: Timestamp) -> String {
    match time {
        None | Some("") => "<unknown>".to_owned(),
        Some(text) => text
            .parse::<Timestamp>()
            .map_or_else(|_| "<invalid>".to_owned(), |time| between(time, now)),
    }
}

/// The time between two moments.
pub(super) fn between(start: Timestamp, end: Timestamp) -> String {
    human_duration(end.duration_since(start).as_secs())
}

/// A duration with two or three significant figures (`k8s.io/apimachinery/pkg/util/duration`).
#[must_use]
pub fn human_duration(seconds: i64) -> String {
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let two = |big: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{small}{small_unit}") }
    };
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if hours < 192 => two(days, "d", hours % 24, "h"),
        () if days < 730 => format!("{days}d"),
        () if days < 2920 => two(days / 365, "y", days % 365, "d"),
        () => format!("{}y", days / 365),
    }
}

/// The text, or what stands for an empty one.
pub(super) fn or<'a>(text: &'a str, empty: &'a str) -> &'a str {
    if text.is_empty() { empty } else { text }
}

/// At most `max` items, and how many more there are.
pub(super) fn few(items: &[String], max: usize, separator: &str) -> String {
    let shown = items.get(..max).unwrap_or(items).join(separator);
    match items.len().checked_sub(max) {
        Some(more) if more > 0 => format!("{shown} + {more} more..."),
        _ => shown,
    }
}

/// A map of labels; `<none>` if there are none.
pub(super) fn labels_text(map: Option<&Value>) -> String {
    let terms: Vec<String> = map
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    or(&terms.join(","), "<none>").to_owned()
}

/// A label selector as `metav1.FormatLabelSelector` shows it: terms by key.
pub(super) fn selector_text(selector: Option<&Value>) -> String {
    let Some(selector) = selector else { return "<none>".to_owned() };
    let equal = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut terms: Vec<(String, String)> = equal
        .map(|(key, value)| (key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())))
        .collect();
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    terms.extend(expressions.into_iter().flatten().map(expression));
    terms.sort_by(|(a, _), (b, _)| a.cmp(b));
    let texts: Vec<String> = terms.into_iter().map(|(_, text)| text).collect();
    or(&texts.join(","), "<none>").to_owned()
}

fn expression(expression: &Value) -> (String, String) {
    let text = |key: &str| expression.get(key).and_then(Value::as_str).unwrap_or_default();
    let key = text("key");
    let values = || {
        let list = expression.get("values").and_then(Value::as_array).into_iter().flatten();
        let mut values: Vec<&str> = list.filter_map(Value::as_str).collect();
        values.sort_unstable();
        values.join(",")
    };
    let term = match text("operator") {
        "In" => format!("{key} in ({})", values()),
        "NotIn" => format!("{key} notin ({})", values()),
        "DoesNotExist" => format!("!{key}"),
        _ => key.to_owned(),
    };
    (key.to_owned(), term)
}
