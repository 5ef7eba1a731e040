//! `/healthz`, `/livez`, `/readyz` and `/version`.

use std::fmt::Write;

use http::Response;
use serde_json::json;

use crate::http::pipeline::Exchange;
use crate::http::response::{self, Body};
use simcluster_model::error::ApiError;

/// The checks there are; all of them pass as long as the process answers.
const CHECKS: [&str; 3] = ["ping", "log", "etcd"];

/// One of the three endpoints, or a single check below it.
pub(super) fn check(exchange: &Exchange<'_>, endpoint: &str, rest: &[&str]) -> Response<Body> {
    match rest {
        [] => summary(exchange, endpoint),
        [one] if CHECKS.contains(one) => response::text(200, "ok"),
        _ => response::page_not_found(),
    }
}

fn summary(exchange: &Exchange<'_>, endpoint: &str) -> Response<Body> {
    if exchange.info.param("verbose").is_none() {
        return response::text(200, "ok");
    }
    let excluded: Vec<&str> = exchange
        .info
        .query
        .iter()
        .filter(|(key, _)| key == "exclude")
        .map(|(_, value)| value.as_str())
        .collect();
    let mut text = String::new();
    for check in CHECKS {
        let note = if excluded.contains(&check) { "excluded: ok" } else { "ok" };
        let _ = writeln!(text, "[+]{check} {note}");
    }
    let _ = writeln!(text, "{endpoint} check passed");
    response::text(200, text)
}

/// The version of Kubernetes whose behaviour this server has.
pub(super) fn version(exchange: &Exchange<'_>) -> Response<Body> {
    if !matches!(exchange.method.as_str(), "GET") {
        return exchange.refuse(&ApiError::method_not_allowed());
    }
    if !crate::http::accept::router_accepts(exchange.accept()) {
        return exchange.refuse(&crate::http::accept::router_not_acceptable(false));
    }
    exchange.document(&json!({
        "major": "1",
        "minor": "37",
        "emulationMajor": "1",
        "emulationMinor": "37",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "36",
        "gitVersion": simcluster_model::builtin::kubernetes_version(),
        "gitCommit": "simcluster",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "gc",
        "platform": "linux/amd64",
    }))
}
