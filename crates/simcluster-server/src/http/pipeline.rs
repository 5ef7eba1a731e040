//! A request's way through the server, after authentication: impersonation, authorisation, routing,
//! negotiation, the verb, and the form of the answer.

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, USER_AGENT};
use http::request::Parts;
use http::{Request, Response};

use crate::auth::{User, impersonate, rbac};
use crate::gate::{self, ConnectionReset, Stage, Stop, View};
use crate::http::accept::{self, Endpoint, Format};
use crate::http::present::Presentation;
use crate::http::request::{self, RequestInfo, segments};
use crate::http::response::{self, Body, Writing};
use crate::http::route::{self, Route, Target};
use crate::http::{discovery, health, list, openapi, reviews, watch};
use crate::server::ApiServer;
use crate::trace::{self, Changed};
use crate::verbs::{Call, Outcome, Verb, Warnings};
use simcluster_model::codec::body;
use simcluster_model::error::ApiError;
use simcluster_model::golang;
use simcluster_model::random::Random;
use simcluster_model::resource::Resource;
use simcluster_model::schema::is_go_duration;

/// The longest that a request may take, if it is no watch.
const LIMIT: Duration = Duration::from_mins(1);

/// A request with what was learned of it.
pub(super) struct Exchange<'a> {
    pub(super) server: &'a Arc<ApiServer>,
    pub(super) user: User,
    pub(super) method: String,
    pub(super) info: RequestInfo,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a Bytes,
    pub(super) warnings: Warnings,
    /// Name of the object that a POST made.
    created: OnceLock<String>,
    /// Where verbs note that they changed something.
    changed: Changed,
}

impl<'a> Exchange<'a> {
    fn new(server: &'a Arc<ApiServer>, user: &User, parts: &'a Parts, body: &'a Bytes) -> Self {
        let query = parts.uri.query().unwrap_or_default();
        Self {
            server,
            user: user.clone(),
            method: parts.method.as_str().to_owned(),
            info: request::parse(parts.method.as_str(), parts.uri.path(), query),
            headers: &parts.headers,
            body,
            warnings: Warnings::default(),
            created: OnceLock::new(),
            changed: Changed::default(),
        }
    }

    /// A header as text; empty if it is not there.
    pub(super) fn header(&self, name: &http::HeaderName) -> &str {
        header(self.headers, name)
    }

    pub(super) fn accept(&self) -> &str {
        self.header(&ACCEPT)
    }

    pub(super) fn for_humans(&self) -> bool {
        response::is_for_humans(self.info.param("pretty"), self.header(&USER_AGENT))
    }

    /// How this request wants errors written.
    pub(super) fn error_writing(&self) -> Writing {
        Writing::new(accept::negotiate_error(self.accept()), self.for_humans())
    }

    pub(super) fn refuse(&self, error: &ApiError) -> Response<Body> {
        response::error(error, self.error_writing())
    }

    /// A document that has no other form than its own, such as a discovery list.
    pub(super) fn document(&self, document: &serde_json::Value) -> Response<Body> {
        match accept::negotiate(self.accept(), Endpoint::Plain) {
            Some(accepted) => {
                response::value(200, Writing::new(accepted, self.for_humans()), document)
            }
            None => self.refuse(&accept::not_acceptable()),
        }
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Whether a user may do what a request asks for, so far as its head tells. What is refused is refused
/// again, and recorded, when the request is handled.
#[must_use]
pub fn may(server: &Arc<ApiServer>, user: &User, parts: &Parts) -> bool {
    let content = Bytes::new();
    let mut exchange = Exchange::new(server, user, parts, &content);
    identify(&mut exchange).and_then(|()| authorize(&exchange)).is_ok()
}

/// Answers a request of an authenticated user, unless a fault breaks the connection.
pub async fn handle(
    server: &Arc<ApiServer>,
    user: &User,
    request: Request<Bytes>,
) -> Result<Response<Body>, ConnectionReset> {
    let (parts, content) = request.into_parts();
    let mut exchange = Exchange::new(server, user, &parts, &content);
    let identified = identify(&mut exchange);
    let line = format!("{} {}", parts.method, parts.uri);
    let mut recording = server.trace().enter(facts(&exchange, line), &content);
    recording.changed = exchange.changed.clone();
    let answer = match identified {
        Err(refused) => Ok(exchange.refuse(&refused)),
        Ok(()) => {
            within_limit(&exchange, pass(&exchange, &parts.extensions, &recording.request)).await
        }
    };
    let mut answer = answer?;
    if exchange.method == "HEAD" {
        *answer.body_mut() = Body::empty();
    }
    // Other clients, and the order in which requests are answered, change no id.
    let audit_id = audit_id(&parts.headers, || {
        let trace::Request { user, client_ordinal, .. } = &recording.request;
        Random::stream(server.seed(), &format!("audit/{user}/{client_ordinal}"))
    });
    response::finish(&mut answer, &audit_id, &exchange.warnings.texts());
    if let Some(name) = exchange.created.get().filter(|_| exchange.info.name.is_empty()) {
        recording.request.name.clone_from(name);
    }
    let content = match answer.body() {
        Body::Full(content) if recording.keep_bodies => content.clone(),
        Body::Full(_) | Body::Stream(_) => None,
    };
    recording.finish(answer.status().as_u16(), server.clock().now(), content);
    Ok(answer)
}

/// Through the gate, to the answer, and through the gate again.
async fn pass(
    exchange: &Exchange<'_>,
    extensions: &http::Extensions,
    request: &trace::Request,
) -> Result<Response<Body>, ConnectionReset> {
    let gate = exchange.server.gate();
    let entered = gate.enter(exchange.server, request).await;
    let answer = match entered {
        Err(Stop::Fail(error)) => exchange.refuse(&error),
        Err(Stop::Reset | Stop::CutShort | Stop::Close) => return Err(ConnectionReset),
        Ok(view) => match authorize(exchange) {
            Err(refused) => exchange.refuse(&refused),
            Ok(()) if exchange.info.is_resource => {
                resource_request(exchange, extensions, request, view).await
            }
            Ok(()) => other_request(exchange),
        },
    };
    match gate.leave(exchange.server, Stage::Reply, request).await {
        Ok(()) => Ok(answer),
        Err(Stop::Fail(error)) => Ok(exchange.refuse(&error)),
        Err(Stop::CutShort) => Ok(answer.map(Body::cut_short)),
        Err(Stop::Reset | Stop::Close) => Err(ConnectionReset),
    }
}

/// Waits for an answer as long as the request allows it; watches take their time.
async fn within_limit(
    exchange: &Exchange<'_>,
    answer: impl Future<Output = Result<Response<Body>, ConnectionReset>>,
) -> Result<Response<Body>, ConnectionReset> {
    if exchange.info.verb == "watch" {
        return answer.await;
    }
    let asked = exchange.info.param("timeout").filter(|text| !text.is_empty());
    let asked = asked.and_then(|text| Duration::try_from(golang::duration(text)).ok());
    let limit = asked.filter(|time| !time.is_zero()).map_or(LIMIT, |time| time.min(LIMIT));
    match tokio::time::timeout(limit, answer).await {
        Ok(answer) => answer,
        Err(_) => Ok(timed_out()),
    }
}

/// The answer to a request that took too long: the real server writes it past all negotiation.
fn timed_out() -> Response<Body> {
    let message = golang::quote(&gate::timed_out().message);
    let status = format!(
        r#"{{"metadata":{{}},"status":"Failure","message":{message},"reason":"Timeout","details":{{}},"code":504}}"#
    );
    response::response(504, "text/plain; charset=utf-8", Body::full(status + "\n"))
}

/// What is known of a request when it comes in.
fn facts(exchange: &Exchange<'_>, line: String) -> trace::Request {
    let info = &exchange.info;
    trace::Request {
        time: exchange.server.clock().now(),
        user: exchange.user.name.clone(),
        verb: info.verb.clone(),
        group: info.group.clone(),
        resource: info.resource.clone(),
        subresource: info.subresource.clone(),
        namespace: info.namespace.clone(),
        name: info.name.clone(),
        line,
        ..trace::Request::default()
    }
}

/// The answer to a wrong token.
#[must_use]
pub fn unauthorized(server: &Arc<ApiServer>, request: &Request<Bytes>) -> Response<Body> {
    let headers = request.headers();
    let writing = Writing::new(
        accept::negotiate_error(header(headers, &ACCEPT)),
        response::is_for_humans(None, header(headers, &USER_AGENT)),
    );
    let error = ApiError::new(401, "Unauthorized", "Unauthorized");
    let mut answer = response::error(&error, writing);
    let id = audit_id(headers, || server.chance("audit", "unauthorized"));
    response::finish(&mut answer, &id, &[]);
    answer
}

/// The request's own id, or a random one.
fn audit_id(headers: &HeaderMap, chance: impl FnOnce() -> Random) -> String {
    match header(headers, &http::HeaderName::from_static("audit-id")) {
        "" => chance().uuid(),
        own => own.to_owned(),
    }
}

/// Changes to the user that the request impersonates.
fn identify(exchange: &mut Exchange<'_>) -> Result<(), ApiError> {
    check_timeout(&exchange.info)?;
    let server = exchange.server;
    if let Some(other) = impersonate::wanted(exchange.headers)? {
        impersonate::check(&|namespace| server.scope(namespace), &exchange.user, &other)?;
        exchange.user = other.user;
    }
    Ok(())
}

/// Asks the authorizer.
fn authorize(exchange: &Exchange<'_>) -> Result<(), ApiError> {
    let scopes = |namespace: &str| exchange.server.scope(namespace);
    let wanted = attributes(&exchange.info);
    let decision = rbac::authorize(&scopes, &exchange.user, &wanted);
    if decision.allowed {
        return Ok(());
    }
    Err(rbac::forbidden(&exchange.user, &wanted, &decision.reason))
}

/// A time limit must be one (row DR02).
fn check_timeout(info: &RequestInfo) -> Result<(), ApiError> {
    let timeout = info.param("timeout").unwrap_or_default();
    if info.verb == "watch" || timeout.is_empty() || is_go_duration(timeout) {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "invalid timeout specified in the request URL - time: invalid duration {timeout:?}"
    )))
}

fn attributes(info: &RequestInfo) -> rbac::Attributes {
    if !info.is_resource {
        let (verb, path) = (info.verb.clone(), info.path.clone());
        return rbac::Attributes { verb, path, ..rbac::Attributes::default() };
    }
    rbac::Attributes {
        verb: info.verb.clone(),
        group: info.group.clone(),
        resource: info.resource.clone(),
        subresource: info.subresource.clone(),
        namespace: info.namespace.clone(),
        name: if info.name.is_empty() { info.selected_name.clone() } else { info.name.clone() },
        path: String::new(),
    }
}

/// Paths that are no resource: discovery, OpenAPI, health, version.
fn other_request(exchange: &Exchange<'_>) -> Response<Body> {
    match segments(&exchange.info.path).as_slice() {
        ["api"] => discovery::legacy_root(exchange),
        ["apis"] => discovery::groups_root(exchange),
        ["api", version] => discovery::resources(exchange, "", version),
        ["apis", group] => discovery::group(exchange, group),
        ["apis", group, version] => discovery::resources(exchange, group, version),
        [check @ ("healthz" | "livez" | "readyz"), rest @ ..] => {
            health::check(exchange, check, rest)
        }
        ["version"] => health::version(exchange),
        ["openapi", "v2"] => openapi::v2(exchange),
        ["openapi", "v3", rest @ ..] => openapi::v3(exchange, rest),
        [] => discovery::paths(exchange),
        ["metrics"] => exchange.refuse(&ApiError::unsupported("the path /metrics")),
        _ => response::page_not_found(),
    }
}

async fn resource_request(
    exchange: &Exchange<'_>,
    extensions: &http::Extensions,
    request: &trace::Request,
    view: View,
) -> Response<Body> {
    let resources = exchange.server.served();
    let target = match route::resource(&exchange.method, &exchange.info, &resources) {
        Route::Resource(target) => target,
        Route::Refused { error, resource } => {
            warn_of_deprecation(exchange, resource.as_deref());
            return exchange.refuse(&error);
        }
        Route::PageNotFound => return response::page_not_found(),
    };
    warn_of_deprecation(exchange, Some(&target.resource));
    match serve_resource(exchange, extensions, request, view, target).await {
        Ok(answer) => answer,
        Err(error) => exchange.refuse(&error),
    }
}

fn warn_of_deprecation(exchange: &Exchange<'_>, resource: Option<&Resource>) {
    if let Some(text) = resource.and_then(|resource| resource.deprecation_warning.as_ref()) {
        exchange.warnings.add(text.as_str());
    }
}

async fn serve_resource(
    exchange: &Exchange<'_>,
    extensions: &http::Extensions,
    request: &trace::Request,
    view: View,
    target: Target,
) -> Result<Response<Body>, ApiError> {
    let Target { verb, resource } = target;
    check_before_negotiation(exchange, verb, &resource)?;
    let review = reviews::is_review(&resource);
    let endpoint = if review { Endpoint::ObjectsWithoutTable } else { Endpoint::Objects };
    let accepted =
        accept::negotiate(exchange.accept(), endpoint).ok_or_else(accept::not_acceptable)?;
    if verb == Verb::Watch && accepted.format == Format::Yaml {
        return Err(accept::stream_not_acceptable());
    }
    if writes(verb) {
        body::check_size(exchange.body)?;
    }
    let presentation =
        Presentation::new(accepted.form, exchange.info.param("includeObject"), &resource)?;
    let call = call(exchange, verb, &resource, view)?;
    let outcome = if review {
        reviews::answer(exchange, extensions, &call)?
    } else {
        exchange.server.call(verb, call).await?
    };
    let writing = Writing::new(accepted, exchange.for_humans());
    let clock = *exchange.server.clock();
    Ok(match outcome {
        Outcome::Object(code, object) => {
            if verb == Verb::Create {
                // Set once for each request, so it cannot be set already.
                let _ = exchange.created.set(simcluster_model::object::name(&object).to_owned());
            }
            let shown = presentation.object(object, clock.now())?;
            response::value(code, writing, &shown)
        }
        Outcome::List(list) if presentation.is_plain() => {
            list::response(&list, writing, exchange.server.texts())
        }
        Outcome::List(list) => {
            response::value(200, writing, &presentation.list(&list, clock.now())?)
        }
        Outcome::Text(text) => response::response(200, "text/plain", Body::full(text)),
        Outcome::Watch(events) => {
            let server = Arc::clone(exchange.server);
            let request = request.clone();
            let watch = watch::Watch { events, presentation, clock, server, request };
            response::response(200, "application/json", watch.into_body())
        }
    })
}

/// What the real server refuses before it looks at what a handler could answer: media types of
/// patches, missing names, and for built-in kinds media types that nobody serves.
fn check_before_negotiation(
    exchange: &Exchange<'_>,
    verb: Verb,
    resource: &Resource,
) -> Result<(), ApiError> {
    if verb == Verb::Patch {
        route::check_patch_type(resource, &body::media_type(exchange.header(&CONTENT_TYPE)))?;
    }
    if matches!(verb, Verb::Update | Verb::Patch) && exchange.info.name.is_empty() {
        return Err(ApiError::bad_request("name must be provided"));
    }
    if !resource.custom && !accept::router_accepts(exchange.accept()) {
        let collection = exchange.method == "GET" && exchange.info.name.is_empty();
        return Err(accept::router_not_acceptable(collection));
    }
    Ok(())
}

fn writes(verb: Verb) -> bool {
    !matches!(verb, Verb::Get | Verb::List | Verb::Watch)
}

fn call(
    exchange: &Exchange<'_>,
    verb: Verb,
    resource: &Arc<Resource>,
    view: View,
) -> Result<Call, ApiError> {
    let info = &exchange.info;
    let mut call = Call {
        user: exchange.user.clone(),
        user_agent: exchange.header(&USER_AGENT).to_owned(),
        resource: Arc::clone(resource),
        namespace: if resource.namespaced { info.namespace.clone() } else { String::new() },
        name: info.name.clone(),
        subresource: info.subresource.clone(),
        query: info.query.clone(),
        content_type: body::media_type(exchange.header(&CONTENT_TYPE)),
        body: exchange.body.clone(),
        warnings: exchange.warnings.clone(),
        view,
        changed: exchange.changed.clone(),
    };
    if verb == Verb::Create && call.subresource.is_empty() {
        // A custom resource can be posted to a name; the body's name counts.
        call.name.clear();
    }
    if verb == Verb::Watch && !call.name.is_empty() {
        watch_one(&mut call)?;
    }
    Ok(call)
}

/// Watching one object by path (`/watch/.../name`) is watching the collection for its name.
fn watch_one(call: &mut Call) -> Result<(), ApiError> {
    let name = std::mem::take(&mut call.name);
    let own = format!("metadata.name={name}");
    match call.query.iter_mut().find(|(key, _)| key == "fieldSelector") {
        None => call.query.push(("fieldSelector".to_owned(), own)),
        Some((_, asked)) if *asked == own || asked.is_empty() => *asked = own,
        Some((_, asked)) if asked.starts_with("metadata.name=") => {
            return Err(ApiError::bad_request(
                "fieldSelector metadata.name doesn't match requested name",
            ));
        }
        Some((_, asked)) => *asked = format!("{asked},{own}"),
    }
    Ok(())
}
