//! Questions to the server that nothing is stored of: may I, who am I, whose token is this.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::auth::account_tokens::{self, Authenticated};
use crate::auth::rbac::{self, Attributes};
use crate::auth::{Tokens, User};
use crate::http::pipeline::Exchange;
use crate::verbs::{self, Call, Outcome};
use simcluster_model::error::ApiError;
use simcluster_model::field::FieldError;
use simcluster_model::object::{self, put};
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
    call: &Call,
) -> Result<Outcome, ApiError> {
    let mut review = verbs::posted(exchange.server, call)?;
    let spec = review.get("spec").cloned().unwrap_or_default();
    let kind = call.resource.kind.as_str();
    let status = match kind {
        "SelfSubjectReview" => json!({ "userInfo": exchange.user.info() }),
        "TokenReview" => token_status(exchange, extensions, &spec)?,
        "SelfSubjectRulesReview" => rules_status(exchange, &spec)?,
        _ => {
            check_metadata(&review)?;
            let subject = (kind != "SelfSubjectAccessReview").then(|| subject(&spec));
            access_status(exchange, subject.as_ref().unwrap_or(&exchange.user), &spec)?
        }
    };
    // Questions of one's own are answered by objects that are made for it.
    match kind {
        "SelfSubjectReview" => {
            let now = time::format_seconds(exchange.server.clock().now());
            put(&mut review, "metadata", json!({ "creationTimestamp": now }));
        }
        "SelfSubjectRulesReview" => {
            put(&mut review, "metadata", json!({}));
            put(&mut review, "spec", json!({}));
        }
        _ => {}
    }
    put(&mut review, "status", status);
    Ok(Outcome::made(201, review))
}

/// Questions of access have no metadata of their own.
fn check_metadata(review: &Value) -> Result<(), ApiError> {
    let metadata = object::metadata(review);
    if metadata.keys().all(|key| matches!(key.as_str(), "managedFields" | "namespace")) {
        return Ok(());
    }
    let fault = FieldError::invalid("metadata", &json!(metadata), "must be empty");
    Err(ApiError::invalid_kind("authorization.k8s.io", "", "", &[fault]))
}

/// Whose a token is: one of the fixed ones, or one of a `ServiceAccount`.
fn token_status(
    exchange: &Exchange<'_>,
    extensions: &http::Extensions,
    spec: &Value,
) -> Result<Value, ApiError> {
    let token = text(spec, "token");
    if token.is_empty() {
        return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
    }
    let own = account_tokens::own_audiences();
    let audiences = match account_tokens::texts(spec.get("audiences")) {
        none if none.is_empty() => own.clone(),
        asked => asked,
    };
    let fixed = extensions.get::<Tokens>().and_then(|tokens| tokens.user(token));
    let found = match fixed {
        Some(user) => {
            let audiences: Vec<String> =
                own.into_iter().filter(|one| audiences.contains(one)).collect();
            let user = user.clone();
            if audiences.is_empty() { Err(None) } else { Ok(Authenticated { user, audiences }) }
        }
        None => account_tokens::authenticate(exchange.server, token, &audiences),
    };
    Ok(match found {
        Ok(Authenticated { user, audiences }) => {
            json!({ "authenticated": true, "user": user.info(), "audiences": audiences })
        }
        Err(None) => json!({ "user": {}, "error": "invalid bearer token" }),
        Err(Some(why)) => json!({ "user": {}, "error": format!("[invalid bearer token, {why}]") }),
    })
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
        extra: BTreeMap::new(),
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
