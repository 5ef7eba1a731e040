//! Which handler a request goes to, and the answer if there is none.
//!
//! Built-in kinds are routed as `go-restful` routes them (404 and 405 as a generic Status), custom
//! resources as `apiextensions-apiserver` does (404 in plain text, 405 with the resource's name).

use std::sync::Arc;

use serde_json::Value;

use crate::http::request::RequestInfo;
use crate::resources::Resources;
use crate::verbs::Verb;
use simcluster_model::builtin;
use simcluster_model::codec::body;
use simcluster_model::error::{ApiError, Details};
use simcluster_model::resource::Resource;

/// Where a request on a resource path goes.
#[derive(Debug)]
pub(super) enum Route {
    /// To a resource.
    Resource(Target),
    /// An error's Status.
    Refused {
        /// The error.
        error: ApiError,
        /// The custom resource that was found all the same: its deprecation is told.
        resource: Option<Arc<Resource>>,
    },
    /// `404 page not found` in plain text.
    PageNotFound,
}

/// A resource and what is done with it.
#[derive(Debug)]
pub(super) struct Target {
    /// The verb.
    pub(super) verb: Verb,
    /// The resource in the version asked for.
    pub(super) resource: Arc<Resource>,
}

/// Routes a request on a resource path.
#[must_use]
pub(super) fn resource(method: &str, info: &RequestInfo, resources: &Resources) -> Route {
    let mut kin = resources.kin(&info.group, &info.resource);
    let served = kin.clone().find(|one| one.version == info.version);
    if kin.any(|one| one.custom) {
        return served.map_or(Route::PageNotFound, |resource| custom(method, info, resource));
    }
    let known = |one: &Arc<Resource>| {
        !one.custom
            && one.group == info.group
            && (!info.group.is_empty() || one.version == info.version)
    };
    match served {
        Some(resource) => built_in(method, info, resource),
        None if resources.all().iter().any(known) => refused(ApiError::no_such_resource()),
        None => Route::PageNotFound,
    }
}

fn refused(error: ApiError) -> Route {
    Route::Refused { error, resource: None }
}

fn custom(method: &str, info: &RequestInfo, resource: &Arc<Resource>) -> Route {
    let in_namespace = !info.namespace.is_empty();
    let spans_namespaces = matches!(info.verb.as_str(), "list" | "watch");
    if in_namespace != resource.namespaced && !(resource.namespaced && spans_namespaces) {
        return Route::PageNotFound;
    }
    let refused = |error| Route::Refused { error, resource: Some(Arc::clone(resource)) };
    if !info.subresource.is_empty() && !resource.has_subresource(&info.subresource) {
        return refused(ApiError::not_found(resource.names(), &info.name));
    }
    let unsupported = || refused(ApiError::method_not_supported(resource.names(), &info.verb));
    let verb = match verb(info) {
        Some(verb) if info.subresource.is_empty() => verb,
        Some(verb @ (Verb::Get | Verb::Update | Verb::Patch)) => verb,
        _ => return unsupported(),
    };
    if verb == Verb::Watch && info.verb_in_path && method != "GET" {
        return unsupported();
    }
    Route::Resource(Target { verb, resource: Arc::clone(resource) })
}

fn built_in(method: &str, info: &RequestInfo, resource: &Arc<Resource>) -> Route {
    let own_namespace = resource.plural == "namespaces" && resource.group.is_empty();
    let in_namespace = !info.namespace.is_empty() && !own_namespace;
    if in_namespace && !resource.namespaced {
        return refused(ApiError::no_such_resource());
    }
    if resource.namespaced && !in_namespace && !info.name.is_empty() {
        return refused(ApiError::no_such_resource());
    }
    if !info.subresource.is_empty() && !resource.has_subresource(&info.subresource) {
        return refused(ApiError::no_such_resource());
    }
    let is_listed = |verb: &str| resource.verbs.iter().any(|one| one == verb);
    if info.verb == "watch" && is_listed("list") && !is_listed("watch") {
        return refused(if info.verb_in_path {
            ApiError::no_such_resource()
        } else {
            ApiError::method_not_supported(resource.names(), &info.verb)
        });
    }
    let all_namespaces = resource.namespaced && !in_namespace;
    let allowed = match verb(info) {
        Some(verb) if !info.subresource.is_empty() => {
            (method != "HEAD" && subresource_allows(resource, info)).then_some(verb)
        }
        Some(verb) => main_allows(method, info, resource, all_namespaces).then_some(verb),
        None => None,
    };
    match allowed {
        Some(verb) => Route::Resource(Target { verb, resource: Arc::clone(resource) }),
        None => refused(ApiError::method_not_allowed()),
    }
}

/// Whether a built-in's main endpoint has this method on this path.
fn main_allows(
    method: &str,
    info: &RequestInfo,
    resource: &Resource,
    all_namespaces: bool,
) -> bool {
    let named = !info.name.is_empty();
    let on_path = match method {
        "GET" => true,
        "POST" => !named && !all_namespaces,
        "PUT" | "PATCH" => named,
        "DELETE" => named || !all_namespaces,
        _ => false,
    };
    on_path && resource.verbs.contains(&info.verb)
}

/// Whether discovery lists the verb for a subresource of a built-in kind.
fn subresource_allows(resource: &Resource, info: &RequestInfo) -> bool {
    let name = format!("{}/{}", resource.plural, info.subresource);
    let listed = builtin::discovery(&resource.api_version()).and_then(|list| {
        list.iter().find(|one| one.get("name") == Some(&Value::from(name.as_str())))
    });
    let verbs = listed.and_then(|one| one.get("verbs")).and_then(Value::as_array);
    verbs.is_some_and(|verbs| verbs.contains(&Value::from(info.verb.as_str())))
}

fn verb(info: &RequestInfo) -> Option<Verb> {
    match info.verb.as_str() {
        "create" => Some(Verb::Create),
        "get" => Some(Verb::Get),
        "list" => Some(Verb::List),
        "watch" => Some(Verb::Watch),
        "update" => Some(Verb::Update),
        "patch" => Some(Verb::Patch),
        "delete" => Some(Verb::Delete),
        "deletecollection" => Some(Verb::DeleteCollection),
        _ => None,
    }
}

/// 415 of a PATCH whose media type the resource does not know.
pub(super) fn check_patch_type(resource: &Resource, media_type: &str) -> Result<(), ApiError> {
    const CUSTOM: [&str; 3] = [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/apply-patch+yaml",
    ];
    if CUSTOM.contains(&media_type) {
        return Ok(());
    }
    if resource.custom {
        return Err(body::unsupported_media_type(&CUSTOM));
    }
    if media_type == "application/strategic-merge-patch+json" {
        return Ok(());
    }
    let message = "415: Unsupported Media Type";
    Err(ApiError::new(415, "UnsupportedMediaType", message).with_details(Details::default()))
}
