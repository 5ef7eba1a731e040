//! The audit log of a real API server, read as the record that the simulated one keeps.

use serde_json::Value;

use simcluster_server::trace::Request;

/// The requests of an audit log in JSON lines. A watch counts when it begins, all others when they
/// are answered; a last line that is not complete yet is left for the next look.
pub(super) fn requests(log: &str) -> Vec<Request> {
    log.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|event| request(&event))
        .collect()
}

fn request(event: &Value) -> Option<Request> {
    let text =
        |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let verb = text("/verb");
    let counted = if verb == "watch" { "ResponseStarted" } else { "ResponseComplete" };
    if text("/stage") != counted {
        return None;
    }
    let real = text("/user/username");
    let impersonated = text("/impersonatedUser/username");
    let code = event.pointer("/responseStatus/code").and_then(Value::as_u64).unwrap_or_default();
    Some(Request {
        time: text("/stageTimestamp").parse().ok()?,
        user: if impersonated.is_empty() { real } else { impersonated },
        line: format!("{} {}", method(&verb), text("/requestURI")),
        verb,
        group: text("/objectRef/apiGroup"),
        resource: text("/objectRef/resource"),
        subresource: text("/objectRef/subresource"),
        namespace: text("/objectRef/namespace"),
        name: text("/objectRef/name"),
        code: u16::try_from(code).unwrap_or_default(),
        ..Request::default()
    })
}

/// The HTTP method of a verb.
fn method(verb: &str) -> String {
    match verb {
        "get" | "list" | "watch" => "GET".to_owned(),
        "create" => "POST".to_owned(),
        "update" => "PUT".to_owned(),
        "deletecollection" => "DELETE".to_owned(),
        other => other.to_uppercase(),
    }
}
