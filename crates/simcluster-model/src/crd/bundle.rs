//! Addresses and CA bundles of webhooks (`apiserver`, `pkg/util/webhook/validation.go`).

use base64::Engine as _;
use serde_json::{Value, json};

use super::text;
use crate::field::FieldError;
use crate::names::{dns1123_subdomain, port_number};

const FORM: &str = "; desired format: https://host[/path]";

/// What is wrong with a bundle as it stands in a `clientConfig` (base64 of PEM); an empty one is good.
#[must_use]
pub(super) fn fault(bundle: &str) -> Option<&'static str> {
    if bundle.is_empty() {
        return None;
    }
    let pem = base64::engine::general_purpose::STANDARD.decode(bundle).unwrap_or_default();
    let text = String::from_utf8_lossy(&pem);
    let blocks = text.matches("-----BEGIN ").count();
    if blocks == 0 || text.matches("-----END ").count() < blocks {
        return Some("unable to load root certificates: unable to parse bytes as PEM block");
    }
    None
}

/// The parts of a URL that are looked at.
struct Parts<'a> {
    scheme: &'a str,
    user: &'a str,
    host: &'a str,
    query: &'a str,
    fragment: &'a str,
}

fn split(url: &str) -> Parts<'_> {
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once("://").unwrap_or(("", rest));
    let authority = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or_default() };
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    Parts { scheme, user, host, query, fragment }
}

/// Whether a text is a URL with a scheme and a host.
pub(super) fn is_url(text: &str) -> bool {
    let parts = split(text);
    !parts.scheme.is_empty() && !parts.host.is_empty() && !text.contains(char::is_whitespace)
}

/// Faults of the URL of a webhook.
pub(crate) fn url_faults(url: &str, field: &str, faults: &mut Vec<FieldError>) {
    let parts = split(url);
    let mut wrong = |value: &str, why: &str| {
        faults.push(FieldError::invalid(field, &json!(value), why));
    };
    if parts.scheme != "https" {
        wrong(parts.scheme, &format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if parts.host.is_empty() {
        wrong(parts.host, &format!("host must be specified{FORM}"));
    }
    for (value, why) in [
        (parts.user, "user information is not permitted in the URL"),
        (parts.fragment, "fragments are not permitted in the URL"),
        (parts.query, "query parameters are not permitted in the URL"),
    ] {
        if !value.is_empty() {
            wrong(value, why);
        }
    }
}

/// Faults of the Service of a webhook. The server takes name and namespace for one another here.
pub(crate) fn service_faults(service: &Value, field: &str, faults: &mut Vec<FieldError>) {
    for (key, reported) in [("namespace", "name"), ("name", "namespace")] {
        if text(service, key).is_empty() {
            faults.push(FieldError::required(format!("{field}.{reported}"), ""));
        }
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
    let wrong = port_number(port);
    if !wrong.is_empty() {
        let why = format!("port is not valid: {}", wrong.join(", "));
        faults.push(FieldError::invalid(format!("{field}.port"), &json!(port), &why));
    }
    path_faults(&text(service, "path"), &format!("{field}.path"), faults);
}

fn path_faults(path: &str, field: &str, faults: &mut Vec<FieldError>) {
    let mut wrong = |why: &str| faults.push(FieldError::invalid(field, &json!(path), why));
    if matches!(path, "" | "/") {
        return;
    }
    if path == "//" {
        wrong("segment[0] may not be empty");
        return;
    }
    if !path.starts_with('/') {
        wrong("must start with a '/'");
    }
    // The first character is taken for the slash, whatever it is.
    let mut rest = path.chars();
    rest.next();
    let rest = rest.as_str();
    for (index, segment) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if segment.is_empty() {
            wrong(&format!("segment[{index}] may not be empty"));
            continue;
        }
        for why in dns1123_subdomain(segment) {
            wrong(&format!("segment[{index}]: {why}"));
        }
    }
}
