use std::sync::Arc;

use crate::http::request::parse;
use crate::http::route::{Route, resource};
use crate::resources::Resources;
use simcluster_model::registry;

/// The built-in resources and two custom ones: `ws` in namespaces, `rs` in none, both in `e.com/v1`.
fn resources() -> Resources {
    let all = registry::built_in();
    let deployments = all.iter().find(|one| one.plural == "deployments").unwrap().as_ref().clone();
    let custom = [("ws", true), ("rs", false)].map(|(plural, namespaced)| {
        let mut one = deployments.clone();
        one.custom = true;
        one.group = "e.com".to_owned();
        one.plural = plural.to_owned();
        one.namespaced = namespaced;
        one.subresources = vec!["status".to_owned()];
        Arc::new(one)
    });
    Resources::with_custom(&custom)
}

/// The verb that a request leads to, the code of its refusal, or `page` for a 404 in plain text.
#[track_caller]
fn check(line: &str, expected: &str) {
    let (method, path) = line.split_once(' ').unwrap();
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let found = match resource(method, &parse(method, path, query), &resources()) {
        Route::Resource(target) => target.verb.as_str().to_owned(),
        Route::Refused { error, .. } => error.code.to_string(),
        Route::PageNotFound => "page".to_owned(),
    };
    assert_eq!(found, expected, "{line}");
}

#[test]
fn built_in_kinds_are_routed_by_path_and_method() {
    check("GET /api/v1/pods", "list");
    check("GET /api/v1/namespaces/a/pods?watch=1", "watch");
    check("POST /api/v1/namespaces/a/pods", "create");
    check("POST /api/v1/pods", "405");
    check("POST /api/v1/namespaces/a/pods/p", "405");
    check("PUT /api/v1/namespaces/a/pods", "405");
    check("HEAD /api/v1/namespaces/a/pods/p", "405");
    check("OPTIONS /api/v1/namespaces/a/pods/p", "405");
    check("DELETE /api/v1/namespaces/a/pods", "deletecollection");
    check("DELETE /api/v1/pods", "405");
    check("DELETE /api/v1/namespaces", "405");
    check("GET /api/v1/pods/p", "404");
    check("GET /api/v1/namespaces/a/nodes", "404");
    check("GET /api/v1/namespaces/a/nopes", "404");
    check("GET /apis/apps/v9/namespaces/a/deployments", "404");
    check("GET /api/v1/namespaces/a", "get");
    check("GET /api/v1/watch/namespaces/a/pods/p", "watch");
    check("GET /apis/authorization.k8s.io/v1/subjectaccessreviews", "405");
}

#[test]
fn subresources_of_built_in_kinds_have_the_verbs_of_discovery() {
    check("GET /api/v1/namespaces/a/pods/p/log", "get");
    check("POST /api/v1/namespaces/a/pods/p/eviction", "create");
    check("GET /api/v1/namespaces/a/pods/p/eviction", "405");
    check("DELETE /api/v1/namespaces/a/pods/p/status", "405");
    check("PUT /api/v1/namespaces/a/finalize", "update");
    check("GET /api/v1/namespaces/a/configmaps/c/status", "404");
}

#[test]
fn custom_resources_are_routed_as_their_own_server_does() {
    check("GET /apis/e.com/v1/ws", "list");
    check("GET /apis/e.com/v1/namespaces/a/ws/x", "get");
    check("HEAD /apis/e.com/v1/namespaces/a/ws/x", "get");
    check("POST /apis/e.com/v1/namespaces/a/ws/x", "create");
    check("PUT /apis/e.com/v1/namespaces/a/ws", "update");
    check("OPTIONS /apis/e.com/v1/namespaces/a/ws/x", "405");
    check("POST /apis/e.com/v1/namespaces/a/ws/x/status", "405");
    check("GET /apis/e.com/v1/namespaces/a/ws/x/scale", "404");
    check("GET /apis/e.com/v1/ws/x", "page");
    check("POST /apis/e.com/v1/ws", "page");
    check("DELETE /apis/e.com/v1/ws", "page");
    check("GET /apis/e.com/v1/namespaces/a/rs/x", "page");
    check("GET /apis/e.com/v2/namespaces/a/ws", "page");
    check("GET /apis/e.com/v1/namespaces/a/nopes", "page");
    check("GET /apis/nope.com/v1/namespaces/a/nopes", "page");
}
