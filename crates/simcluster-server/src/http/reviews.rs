//! Questions to the server that nothing is stored of: may I, who am I, whose token is this.

use http::header::CONTENT_TYPE;
use serde_json::{Map, Value, json};

use crate::auth::rbac::{self, Attributes};
use crate::auth::{Tokens, User};
use crate::http::pipeline::Exchange;
use crate::verbs::Outcome;
use simcluster_model::codec::body;
use simcluster_model::error::ApiError;
use simcluster_model::field::FieldError;
use simcluster_model::object::put;
use simcluster_model::resource::Resource;
use simcluster_model::time;

/// Whether a resource is a question.
pub(super) fn is_review(resource: &Resource) -> bool {
    matches!(resource.group.as_str(), "authentication.k8s.io" | "authorization.k8s.io")
}

/// Answers a question: the object with its status filled.
pub(super) fn answer(
    exchange: &Exchange<'_>,
    extensions: &http::Extensions,
    resource: &Resource,
) -> Result<Outcome, ApiError> {
    let parsed = body::parse(exchange.body, exchange.header(&CONTENT_TYPE), resource)?;
    let mut review = resource.strategy.decode(resource, parsed.value)?.object;
    let spec = review.get("spec").cloned().unwrap_or_default();
    let mut metadata = Map::new();
    let status = match resource.kind.as_str() {
        "SelfSubjectReview" => {
            let now = time::format_seconds(exchange.server.clock().now());
            metadata.insert("creationTimestamp".to_owned(), json!(now));
            json!({ "userInfo": user_info(&exchange.user) })
        }
        "TokenReview" => token_status(extensions, &spec),
        "SelfSubjectRulesReview" => rules_status(exchange, &spec)?,
        "SelfSubjectAccessReview" => access_status(exchange, &exchange.user, &spec)?,
        _ => access_status(exchange, &subject(&spec), &spec)?,
    };
    put(&mut review, "metadata", Value::Object(metadata));
    put(&mut review, "status", status);
    if resource.kind == "SelfSubjectRulesReview" {
        put(&mut review, "spec", json!({}));
    }
    Ok(Outcome::Object(201, review))
}

fn user_info(user: &User) -> Value {
    let mut info = json!({ "username": user.name, "groups": user.groups });
    if !user.uid.is_empty() {
        put(&mut info, "uid", json!(user.uid));
    }
    info
}

fn token_status(extensions: &http::Extensions, spec: &Value) -> Value {
    let token = text(spec, "token");
    let known = extensions.get::<Tokens>().and_then(|tokens| tokens.user(token));
    match known {
        Some(user) => json!({ "authenticated": true, "user": user_info(user) }),
        None => json!({ "user": {}, "error": "invalid bearer token" }),
    }
}

fn rules_status(exchange: &Exchange<'_>, spec: &Value) -> Result<Value, ApiError> {
    let namespace = text(spec, "namespace");
    if namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    let server = exchange.server;
    Ok(rbac::rules_status(&|scope| server.scope(scope), &exchange.user, namespace))
}

fn subject(spec: &Value) -> User {
    let groups = spec.get("groups").and_then(Value::as_array).into_iter().flatten();
    User {
        name: text(spec, "user").to_owned(),
        uid: text(spec, "uid").to_owned(),
        groups: groups.filter_map(Value::as_str).map(str::to_owned).collect(),
    }
}

fn access_status(exchange: &Exchange<'_>, user: &User, spec: &Value) -> Result<Value, ApiError> {
    let attributes = match (spec.get("resourceAttributes"), spec.get("nonResourceAttributes")) {
        (Some(resource), None) => Attributes {
            verb: text(resource, "verb").to_owned(),
            group: text(resource, "group").to_owned(),
            resource: text(resource, "resource").to_owned(),
            subresource: text(resource, "subresource").to_owned(),
            namespace: text(resource, "namespace").to_owned(),
            name: text(resource, "name").to_owned(),
            path: String::new(),
        },
        (None, Some(path)) => Attributes {
            verb: text(path, "verb").to_owned(),
            path: text(path, "path").to_owned(),
            ..Attributes::default()
        },
        _ => {
            let why =
                "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            let fault = FieldError::invalid("spec", &Value::Null, why);
            return Err(ApiError::invalid_kind("authorization.k8s.io", "", "", &[fault]));
        }
    };
    let server = exchange.server;
    let decision = rbac::authorize(&|scope| server.scope(scope), user, &attributes);
    let mut status = json!({ "allowed": decision.allowed });
    if !decision.reason.is_empty() {
        put(&mut status, "reason", json!(decision.reason));
    }
    Ok(status)
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}
