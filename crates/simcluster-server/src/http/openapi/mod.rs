//! OpenAPI documents, made from what the server knows of its resources.
//!
//! kubectl reads those of v3 to learn which fields there are and what they mean, which patches a kind takes,
//! and that the server validates fields by itself. It reads that of v2 for kinds that v3 does not have.

mod document;
mod gnostic;
mod paths;
mod schemas;
mod v2;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, ETAG, EXPIRES, IF_NONE_MATCH, LOCATION, VARY};
use http::{Response, StatusCode};
use serde_json::{Map, Value, json};

pub(crate) use self::v2::Kept;
pub(super) use self::v2::v2;
use crate::http::discovery::{groups, hash};
use crate::http::pipeline::Exchange;
use crate::http::response::{self, Body, set_header};
use simcluster_model::builtin;
use simcluster_model::registry;
use simcluster_model::resource::Resource;

/// A written document.
#[derive(Debug, Clone)]
struct Document {
    text: Bytes,
    hash: String,
}

impl Document {
    fn new(value: &Value) -> Self {
        let text = Bytes::from(value.to_string());
        let hash = hash(&text);
        Self { text, hash }
    }
}

/// `/openapi/v3` and below.
pub(super) fn v3(exchange: &Exchange<'_>, rest: &[&str]) -> Response<Body> {
    match rest {
        [] => index(exchange),
        ["api", version] => document(exchange, "", version),
        ["apis", group, version] => document(exchange, group, version),
        _ => empty(StatusCode::NOT_FOUND),
    }
}

/// The list of documents with their hashes.
fn index(exchange: &Exchange<'_>) -> Response<Body> {
    let all = exchange.server.resources();
    let mut paths = Map::new();
    for (group, version) in all_versions(&all) {
        if let Some(document) = find(exchange, &all, &group, &version) {
            let path = path(&group, &version);
            let url = format!("/openapi/v3/{path}?hash={}", document.hash);
            paths.insert(path, json!({ "serverRelativeURL": url }));
        }
    }
    let text = json!({ "paths": paths }).to_string();
    response::response(200, "text/plain; charset=utf-8", Body::full(text))
}

/// All served groups with each of their versions.
fn all_versions(all: &[Arc<Resource>]) -> Vec<(String, String)> {
    let mut versions = vec![(String::new(), "v1".to_owned())];
    for group in groups(all) {
        versions.extend(group.versions.into_iter().map(|version| (group.name.clone(), version)));
    }
    versions
}

fn document(exchange: &Exchange<'_>, group: &str, version: &str) -> Response<Body> {
    let Some(document) = find(exchange, &exchange.server.resources(), group, version) else {
        return empty(StatusCode::NOT_FOUND);
    };
    let asked = exchange.info.param("hash");
    if asked.is_some_and(|asked| asked != document.hash) {
        let url = format!("/openapi/v3/{}?hash={}", path(group, version), document.hash);
        let mut answer = response::response(301, "application/json", Body::empty());
        set_header(&mut answer, LOCATION, &url);
        return answer;
    }
    let etag = format!("\"{}\"", document.hash);
    let mut answer = if exchange.header(&IF_NONE_MATCH) == etag {
        empty(StatusCode::NOT_MODIFIED)
    } else {
        response::response(200, "application/json", Body::full(document.text))
    };
    set_header(&mut answer, ETAG, &etag);
    set_header(&mut answer, VARY, "Accept");
    if asked.is_some() {
        set_header(&mut answer, CACHE_CONTROL, "public, immutable");
        set_header(&mut answer, EXPIRES, &expiry(exchange));
    }
    answer
}

/// A year from now.
fn expiry(exchange: &Exchange<'_>) -> String {
    let now = exchange.server.clock().now();
    http_time(now.checked_add(jiff::SignedDuration::from_hours(365 * 24)).unwrap_or(now))
}

/// A time as HTTP writes it.
fn http_time(time: jiff::Timestamp) -> String {
    time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = status;
    answer
}

fn path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// The document of a group version, if it is served.
fn find(
    exchange: &Exchange<'_>,
    all: &[Arc<Resource>],
    group: &str,
    version: &str,
) -> Option<Document> {
    if let Some(document) = BUILT_IN.get(&path(group, version)) {
        return Some(document.clone());
    }
    let own: Vec<&Arc<Resource>> =
        all.iter().filter(|one| one.group == group && one.version == version).collect();
    if own.is_empty() {
        return None;
    }
    let definitions = exchange.server.stored("apiextensions.k8s.io/customresourcedefinitions");
    Some(Document::new(&document::custom(&own, &definitions)))
}

/// The documents of built-in kinds never change: written once, on first use.
static BUILT_IN: LazyLock<BTreeMap<String, Document>> = LazyLock::new(|| {
    let all = registry::built_in();
    let mut documents = BTreeMap::new();
    let core = (String::new(), vec!["v1".to_owned()]);
    for (group, versions) in std::iter::once(&core).chain(builtin::groups()) {
        for version in versions {
            let own: Vec<&Arc<Resource>> =
                all.iter().filter(|one| one.group == *group && one.version == *version).collect();
            let document = Document::new(&document::built_in(&own));
            documents.insert(path(group, version), document);
        }
    }
    documents
});
