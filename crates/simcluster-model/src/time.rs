//! How Kubernetes writes times.

use jiff::Timestamp;

/// A time as `metav1.Time` prints it: RFC 3339 in UTC, whole seconds.
#[must_use]
pub fn format_seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
