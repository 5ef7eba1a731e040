//! How ages, lists and selectors are shown.

use jiff::Timestamp;
use serde_json::Value;

use simcluster_model::object::meta_str;

/// The age of an object.
pub(super) fn age(object: &Value, now: Timestamp) -> String {
    since(Some(meta_str(object, "creationTimestamp")), now)
}

/// The time since a moment; `<unknown>` if there is none.
pub(super) fn since(time: Option<&str>, now: Timestamp) -> String {
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
pub(super) fn labels(map: Option<&Value>) -> String {
    let terms: Vec<String> = map
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    or(&terms.join(","), "<none>").to_owned()
}

/// A label selector as `metav1.FormatLabelSelector` shows it: terms by key.
pub(super) fn label_selector(selector: Option<&Value>) -> String {
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
