//! POST of a `TokenRequest` to `serviceaccounts/NAME/token`.

use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Map, Value, json};

use super::options::WriteOptions;
use super::pods::{admit, stored};
use super::{Call, Outcome, decode, meta};
use crate::admission::ObjectKind;
use crate::auth::account_tokens::{self, ISSUER, reference, texts};
use crate::server::ApiServer;
use simcluster_model::builtin::TOKEN_REQUEST;
use simcluster_model::error::{ApiError, Names};
use simcluster_model::field::FieldError;
use simcluster_model::fieldmanager::{self, OneVersion, Writing};
use simcluster_model::{object, time};

/// How long a token is good for if nobody says, in seconds.
const SECONDS: i64 = 3600;
const SECONDS_MIN: i64 = 600;
const SECONDS_MAX: i64 = 1 << 32;

/// The kubelet's tokens, so long-lived by request, last for the other time all the same, in seconds.
const KUBELET_SECONDS: i64 = 3607;
const EXTENDED_SECONDS: i64 = 365 * 24 * 3600;

const GROUP: &str = "authentication.k8s.io";

/// Issues a token for the `ServiceAccount` of the path.
pub(super) async fn request(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let options = WriteOptions::parse(call, "CreateOptions")?;
    let mut request = decode::beside(call, &options, &TOKEN_REQUEST)?;
    meta::fill_namespace(&call.resource, &call.namespace, &mut request)?;
    let spec = object::child(&mut request, "spec");
    if spec.get("expirationSeconds").is_none_or(Value::is_null) {
        object::put(spec, "expirationSeconds", json!(SECONDS));
    }
    let now = server.clock().now();
    let resource = TOKEN_REQUEST.resource(&call.resource);
    let writing = Writing {
        resource: &resource,
        versions: &OneVersion,
        manager: &options.manager,
        subresource: "token",
        now,
    };
    fieldmanager::record_update(&writing, None, &mut request);
    let account = check_account(server, call, &request)?;
    fill(&mut request, &account, &time::format_seconds(now));
    check(&request)?;
    let kind = ObjectKind::new(GROUP, "v1", "TokenRequest");
    admit(server, call, &options, request.clone(), kind).await?;

    let bound = bound_objects(server, call, &request)?;
    let spec = request.get("spec").cloned().unwrap_or_default();
    let seconds = spec.get("expirationSeconds").and_then(Value::as_i64).unwrap_or(SECONDS);
    let audiences = texts(spec.get("audiences"));
    let is_own = audiences.iter().all(|one| one == ISSUER);
    let is_kubelets = bound.contains_key("pod") && seconds == KUBELET_SECONDS && is_own;
    let issued = now.as_second();
    let mut own = bound;
    own.insert("namespace".to_owned(), json!(call.namespace));
    own.insert("serviceaccount".to_owned(), reference(&account));
    if is_kubelets {
        own.insert("warnafter".to_owned(), json!(issued + seconds));
    }
    let lives = if is_kubelets { EXTENDED_SECONDS } else { seconds };
    let subject = format!("{}/{}", call.namespace, call.name);
    let token = server.token_key().token(&json!({
        "aud": audiences,
        "exp": issued + lives,
        "iat": issued,
        "iss": ISSUER,
        "jti": server.chance("token", &subject).uuid(),
        "kubernetes.io": own,
        "nbf": issued,
        "sub": format!("system:serviceaccount:{}:{}", call.namespace, call.name),
    }));
    let expires = now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(now);
    let status = json!({ "token": token, "expirationTimestamp": time::format_seconds(expires) });
    object::put(&mut request, "status", status);
    Ok(Outcome::made(201, request))
}

/// The `ServiceAccount`, if the request names no other one.
fn check_account(server: &ApiServer, call: &Call, request: &Value) -> Result<Arc<Value>, ApiError> {
    let name = object::name(request);
    if !name.is_empty() && name != call.name {
        let why = "must match the service account name if specified";
        let fault = FieldError::invalid("metadata.name", &json!(name), why);
        return Err(ApiError::invalid_kind(GROUP, "TokenRequest", &call.name, &[fault]));
    }
    let account = stored(server, call)?;
    let (asked, uid) = (object::uid(request), object::uid(&account));
    if !asked.is_empty() && asked != uid {
        let why = format!(
            "the UID in the token request ({asked}) does not match the UID of the service account ({uid})"
        );
        let names = Names { group: GROUP, plural: "TokenRequest", kind: "TokenRequest" };
        return Err(ApiError::conflict(names, &call.name, &why));
    }
    Ok(account)
}

/// Fills in what the request leaves to the server.
fn fill(request: &mut Value, account: &Value, now: &str) {
    let metadata = object::metadata_mut(request);
    metadata.insert("name".to_owned(), json!(object::name(account)));
    metadata.insert("uid".to_owned(), json!(object::uid(account)));
    metadata.insert("creationTimestamp".to_owned(), json!(now));
    let spec = object::child(request, "spec");
    if texts(spec.get("audiences")).is_empty() {
        object::put(spec, "audiences", json!(account_tokens::own_audiences()));
    }
}

/// `ValidateTokenRequest` of `k8s.io/kubernetes/pkg/apis/authentication/validation`.
fn check(request: &Value) -> Result<(), ApiError> {
    let at = |path: &str| object::at_path(request, path).cloned().unwrap_or_default();
    let mut faults = Vec::new();
    let seconds = at("spec.expirationSeconds");
    let mut invalid = |field: &str, value: &Value, why: &str| {
        faults.push(FieldError::invalid(field, value, why));
    };
    match seconds.as_i64().unwrap_or_default() {
        ..SECONDS_MIN => {
            let why = "may not specify a duration less than 10 minutes";
            invalid("spec.expirationSeconds", &seconds, why);
        }
        SECONDS_MIN..=SECONDS_MAX => {}
        _ => {
            let why = "may not specify a duration larger than 2^32 seconds";
            invalid("spec.expirationSeconds", &seconds, why);
        }
    }
    let attestations = at("spec.attestations");
    let given = attestations.as_object().map_or(0, Map::len);
    if is_webhook(&at("spec.boundObjectRef")) {
        let audiences = at("spec.audiences");
        if texts(Some(&audiences)).len() != 1 {
            let why = "must be length 1 when bound to a webhook config";
            invalid("spec.audiences", &audiences, why);
        }
        if given != 1 {
            let why =
                "webhook bound requests require exactly one admissionReviewAPIGroups attestation";
            invalid("spec.attestations", &attestations, why);
        }
    } else if given > 0 {
        let why = "attestations may only be specified with a webhook bound object reference";
        faults = vec![FieldError::invalid("spec.attestations", &attestations, why)];
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid_kind(GROUP, "TokenRequest", "", &faults))
}

/// What a token lives no longer than, as its claims name it.
fn bound_objects(
    server: &ApiServer,
    call: &Call,
    request: &Value,
) -> Result<Map<String, Value>, ApiError> {
    let mut claims = Map::new();
    let bound = object::at_path(request, "spec.boundObjectRef").filter(|bound| bound.is_object());
    let Some(bound) = bound else { return Ok(claims) };
    let (group, version, kind) = kind_of(bound);
    let (claim, plural, namespace) = match (group, kind) {
        ("", "Pod") => ("pod", "pods", call.namespace.as_str()),
        ("", "Secret") => ("secret", "secrets", call.namespace.as_str()),
        ("", "Node") => ("node", "nodes", ""),
        _ => {
            let gate = "APIServerWebhookAuthenticationToken";
            let gate = format!(" (feature gate {gate} is disabled)");
            let gate = if is_webhook(bound) { gate.as_str() } else { "" };
            return Err(ApiError::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={kind}{gate}"
            )));
        }
    };
    let name = text(bound, "name");
    if name.is_empty() {
        return Err(ApiError::bad_request("Name parameter required."));
    }
    let names = Names { group, plural, kind };
    let found = server.get(&format!("/{plural}"), namespace, name);
    let found = found.ok_or_else(|| ApiError::not_found(names, name))?;
    if kind == "Pod" {
        let spec = found.get("spec").cloned().unwrap_or_default();
        if text(&spec, "serviceAccountName") != call.name {
            return Err(ApiError::bad_request(format!(
                "cannot bind token for serviceaccount {:?} to pod running with different \
                 serviceaccount name.",
                call.name
            )));
        }
        let node = text(&spec, "nodeName");
        if !node.is_empty() {
            let known = server.get("/nodes", "", node);
            let claim = known.map_or_else(|| json!({ "name": node }), |node| reference(&node));
            claims.insert("node".to_owned(), claim);
        }
    }
    let (asked, uid) = (text(bound, "uid"), object::uid(&found));
    if !asked.is_empty() && asked != uid {
        let why = format!(
            "the UID in the bound object reference ({asked}) does not match the UID in record. The \
             object might have been deleted and then recreated"
        );
        let names = Names { group, plural: kind, kind };
        return Err(ApiError::conflict(names, name, &why));
    }
    claims.insert(claim.to_owned(), reference(&found));
    Ok(claims)
}

/// Group, version and kind of a reference.
fn kind_of(bound: &Value) -> (&str, &str, &str) {
    let api_version = text(bound, "apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    (group, version, text(bound, "kind"))
}

/// Whether a reference is to a configuration of webhooks, to which tokens can be bound only behind a
/// feature gate.
fn is_webhook(bound: &Value) -> bool {
    let (group, version, kind) = kind_of(bound);
    let kinds = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];
    group == "admissionregistration.k8s.io" && version == "v1" && kinds.contains(&kind)
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}
