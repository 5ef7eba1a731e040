//! Discovery: which groups, versions and resources there are, in the legacy lists and aggregated.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HOST, IF_NONE_MATCH, VARY};
use serde_json::{Value, json};
use sha2::{Digest, Sha256, Sha512};

use crate::http::accept::{self, Endpoint, Form};
use crate::http::pipeline::Exchange;
use crate::http::response::{self, Body, Writing, set_header};
use simcluster_model::builtin;
use simcluster_model::error::ApiError;
use simcluster_model::object::put;
use simcluster_model::resource::Resource;

/// A group with its versions, the preferred one first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) versions: Vec<String>,
    pub(super) custom: bool,
}

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// `/api`
pub(super) fn legacy_root(exchange: &Exchange<'_>) -> Response<Body> {
    let core = Group { name: String::new(), versions: vec!["v1".to_owned()], custom: false };
    root(exchange, &[core], || {
        json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [
                { "clientCIDR": "0.0.0.0/0", "serverAddress": exchange.header(&HOST) },
            ],
        })
    })
}

/// `/apis`
pub(super) fn groups_root(exchange: &Exchange<'_>) -> Response<Body> {
    let groups = groups(&exchange.server.resources());
    root(exchange, &groups, || {
        json!({
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": groups.iter().map(api_group).collect::<Vec<_>>(),
        })
    })
}

/// `/apis/GROUP`
pub(super) fn group(exchange: &Exchange<'_>, name: &str) -> Response<Body> {
    let groups = groups(&exchange.server.resources());
    let Some(group) = groups.iter().find(|group| group.name == name) else {
        return response::page_not_found();
    };
    let mut document = api_group(group);
    put(&mut document, "kind", json!("APIGroup"));
    put(&mut document, "apiVersion", json!("v1"));
    exchange.document(&document)
}

/// `/api/v1` and `/apis/GROUP/VERSION`
pub(super) fn resources(exchange: &Exchange<'_>, group: &str, version: &str) -> Response<Body> {
    let all = exchange.server.resources();
    let groups = groups(&all);
    let known = groups.iter().find(|one| one.name == group);
    let served = if group.is_empty() {
        version == "v1"
    } else {
        known.is_some_and(|known| known.versions.iter().any(|one| one == version))
    };
    if !served {
        return match known {
            Some(known) if !known.custom => exchange.refuse(&ApiError::no_such_resource()),
            _ => response::page_not_found(),
        };
    }
    let api_version =
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut document = json!({
        "kind": "APIResourceList",
        "groupVersion": api_version,
        "resources": resource_list(&all, group, version),
    });
    if !group.is_empty() {
        put(&mut document, "apiVersion", json!("v1"));
    }
    exchange.document(&document)
}

/// `/`: the paths there are.
pub(super) fn paths(exchange: &Exchange<'_>) -> Response<Body> {
    let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
    for group in groups(&exchange.server.resources()) {
        paths.push(format!("/apis/{}", group.name));
        paths
            .extend(group.versions.iter().map(|version| format!("/apis/{}/{version}", group.name)));
    }
    paths.extend(["/healthz", "/livez", "/openapi/v3", "/readyz", "/version"].map(str::to_owned));
    paths.sort();
    exchange.document(&json!({ "paths": paths }))
}

/// All groups but the core group: built-in ones first, then those of CRDs by name.
#[must_use]
pub(super) fn groups(resources: &[Arc<Resource>]) -> Vec<Group> {
    let mut all: Vec<Group> = builtin::groups()
        .iter()
        .map(|(name, versions)| Group {
            name: name.clone(),
            versions: versions.clone(),
            custom: false,
        })
        .collect();
    let mut own: Vec<Group> = Vec::new();
    for resource in resources.iter().filter(|one| one.custom) {
        match own.iter_mut().find(|group| group.name == resource.group) {
            Some(group) if group.versions.contains(&resource.version) => {}
            Some(group) => group.versions.push(resource.version.clone()),
            None => own.push(Group {
                name: resource.group.clone(),
                versions: vec![resource.version.clone()],
                custom: true,
            }),
        }
    }
    own.sort_by(|a, b| a.name.cmp(&b.name));
    for group in &mut own {
        group.versions.sort_by_key(|version| version_order(version));
    }
    all.extend(own);
    all
}

/// Sorts versions as Kubernetes does: GA before beta before alpha, higher numbers first, then names
/// that are no versions in alphabetical order.
fn version_order(version: &str) -> (u8, i64, i64, String) {
    let parsed = version.strip_prefix('v').and_then(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (major, tail) = rest.split_at(end);
        let major: i64 = major.parse().ok()?;
        let (stage, minor) = match (tail.strip_prefix("beta"), tail.strip_prefix("alpha")) {
            (Some(minor), _) => (1, minor.parse().ok()?),
            (_, Some(minor)) => (2, minor.parse().ok()?),
            _ if tail.is_empty() => (0, 0),
            _ => return None,
        };
        Some((stage, major, minor))
    });
    match parsed {
        Some((stage, major, minor)) => (stage, -major, -minor, String::new()),
        None => (3, 0, 0, version.to_owned()),
    }
}

/// A root document: aggregated if asked for, else the legacy one.
fn root(
    exchange: &Exchange<'_>,
    groups: &[Group],
    legacy: impl FnOnce() -> Value,
) -> Response<Body> {
    match accept::negotiate(exchange.accept(), Endpoint::Discovery) {
        Some(accepted) if accepted.form == Form::Discovery => aggregated(exchange, groups),
        Some(accepted) => {
            response::value(200, Writing::new(accepted, exchange.for_humans()), &legacy())
        }
        None if accept::router_accepts(exchange.accept()) => {
            exchange.refuse(&accept::not_acceptable())
        }
        None => exchange.refuse(&accept::router_not_acceptable(false)),
    }
}

fn aggregated(exchange: &Exchange<'_>, groups: &[Group]) -> Response<Body> {
    let all = exchange.server.resources();
    let items: Vec<Value> = groups.iter().map(|group| group_discovery(&all, group)).collect();
    let document = json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    });
    let mut text = document.to_string();
    text.push('\n');
    let etag = format!("\"{}\"", hash(text.as_bytes()));
    let unchanged = exchange.header(&IF_NONE_MATCH) == etag;
    let mut answer = if unchanged {
        let mut answer = Response::new(Body::empty());
        *answer.status_mut() = http::StatusCode::NOT_MODIFIED;
        answer
    } else {
        response::response(200, AGGREGATED, Body::full(text))
    };
    set_header(&mut answer, CONTENT_TYPE, AGGREGATED);
    set_header(&mut answer, ETAG, &etag);
    set_header(&mut answer, VARY, "Accept");
    set_header(&mut answer, CACHE_CONTROL, "public");
    answer
}

/// Upper-case hex of SHA-512, as `ETag`s and OpenAPI hashes have it.
pub(super) fn hash(bytes: &[u8]) -> String {
    use std::fmt::Write;
    Sha512::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02X}");
        text
    })
}

fn api_group(group: &Group) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| {
            json!({ "groupVersion": format!("{}/{version}", group.name), "version": version })
        })
        .collect();
    json!({ "name": group.name, "versions": versions, "preferredVersion": versions.first() })
}

/// The `APIResource`s of a group version.
fn resource_list(all: &[Arc<Resource>], group: &str, version: &str) -> Vec<Value> {
    let api_version =
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    if let Some(list) = builtin::discovery(&api_version) {
        return list.clone();
    }
    all.iter()
        .filter(|one| one.custom && one.group == group && one.version == version)
        .flat_map(|resource| custom_resources(resource))
        .collect()
}

/// A custom resource and its subresources.
fn custom_resources(resource: &Resource) -> Vec<Value> {
    let mut main = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs,
        "storageVersionHash": storage_version_hash(resource),
    });
    if !resource.short_names.is_empty() {
        put(&mut main, "shortNames", json!(resource.short_names));
    }
    if !resource.categories.is_empty() {
        put(&mut main, "categories", json!(resource.categories));
    }
    let mut list = vec![main];
    for subresource in &resource.subresources {
        let mut entry = json!({
            "name": format!("{}/{subresource}", resource.plural),
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": ["get", "patch", "update"],
        });
        if subresource == "scale" {
            put(&mut entry, "group", json!("autoscaling"));
            put(&mut entry, "version", json!("v1"));
            put(&mut entry, "kind", json!("Scale"));
        }
        list.push(entry);
    }
    list
}

fn storage_version_hash(resource: &Resource) -> String {
    let stored = format!("{}/{}/{}", resource.group, resource.storage_version, resource.kind);
    let digest = Sha256::digest(stored.as_bytes());
    STANDARD.encode(digest.get(..8).unwrap_or_default())
}

/// One group of the aggregated document, built from the legacy lists.
fn group_discovery(all: &[Arc<Resource>], group: &Group) -> Value {
    let metadata = if group.name.is_empty() { json!({}) } else { json!({ "name": group.name }) };
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| {
            // Built-in kinds leave the group and version of their own kind empty.
            let own = if group.custom { (group.name.as_str(), version.as_str()) } else { ("", "") };
            let list = resource_list(all, &group.name, version);
            json!({
                "version": version,
                "resources": aggregate(&list, own),
                "freshness": "Current",
            })
        })
        .collect();
    json!({ "metadata": metadata, "versions": versions })
}

/// `APIResource`s as `APIResourceDiscovery`s: subresources go into their resource.
fn aggregate(list: &[Value], own: (&str, &str)) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for entry in list {
        let name = text(entry, "name");
        if let Some((parent, subresource)) = name.split_once('/') {
            let entry = json!({
                "subresource": subresource,
                "responseKind": response_kind(entry, own),
                "verbs": entry.get("verbs"),
            });
            let parent = out.iter_mut().find(|one| text(one, "resource") == parent);
            if let Some(parent) = parent {
                let subresources = simcluster_model::object::child(parent, "subresources");
                match subresources.as_array_mut() {
                    Some(subresources) => subresources.push(entry),
                    None => *subresources = json!([entry]),
                }
            }
            continue;
        }
        let namespaced = entry.get("namespaced").and_then(Value::as_bool).unwrap_or_default();
        let mut resource = json!({
            "resource": name,
            "responseKind": response_kind(entry, own),
            "scope": if namespaced { "Namespaced" } else { "Cluster" },
            "singularResource": text(entry, "singularName"),
            "verbs": entry.get("verbs"),
        });
        for key in ["shortNames", "categories"] {
            if let Some(names) = entry.get(key) {
                put(&mut resource, key, names.clone());
            }
        }
        out.push(resource);
    }
    out
}

fn response_kind(entry: &Value, own: (&str, &str)) -> Value {
    let (group, version) = match (text(entry, "group"), text(entry, "version")) {
        ("", "") => own,
        named => named,
    };
    json!({ "group": group, "version": version, "kind": text(entry, "kind") })
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}
