//! `AdmissionReview`s: what is asked, and what may be answered.

use std::time::Duration;

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine as _};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Failure;
use super::hook::Hook;
use crate::admission::Attributes;
use crate::server::ApiServer;
use simcluster_model::error::ApiError;
use simcluster_model::golang;
use simcluster_model::object::{as_map, put};
use simcluster_model::resource::Resource;

const GROUP: &str = "admission.k8s.io";

/// The objects of a write in the version that a webhook knows.
#[derive(Debug)]
pub(super) struct Versioned {
    pub(super) object: Value,
    pub(super) old: Value,
}

impl Versioned {
    /// An error is the answer to the write.
    pub(super) async fn of(
        server: &ApiServer,
        attributes: &Attributes,
        resource: &Resource,
    ) -> Result<Self, ApiError> {
        let own = &attributes.resource;
        let convert = async |object: Option<&Value>| match object {
            None => Ok(Value::Null),
            Some(object) => server
                .in_version_of(own, resource, object.clone())
                .await
                .map_err(|why| ApiError::internal(&why)),
        };
        Ok(Self {
            object: convert(attributes.object.as_ref()).await?,
            old: convert(attributes.old_object.as_deref()).await?,
        })
    }
}

/// The request of a review, without uid and objects: also what conditions see.
pub(super) fn request(attributes: &Attributes, resource: &Resource) -> Value {
    let asked = &*attributes.resource;
    let own = attributes.kind.kind == asked.kind;
    let kind = &attributes.kind;
    let (group, version) =
        if own { (&resource.group, &resource.version) } else { (&kind.group, &kind.version) };
    let names = |resource: &Resource| {
        json!({
            "group": resource.group, "version": resource.version, "resource": resource.plural,
        })
    };
    let mut request = json!({
        "kind": { "group": group, "version": version, "kind": kind.kind },
        "resource": names(resource),
        "requestKind": { "group": kind.group, "version": kind.version, "kind": kind.kind },
        "requestResource": names(asked),
        "operation": attributes.operation.as_str(),
        "userInfo": attributes.user.info(),
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    });
    for (key, value) in [
        ("subResource", &attributes.subresource),
        ("requestSubResource", &attributes.subresource),
        ("name", &attributes.name),
        ("namespace", &attributes.namespace),
    ] {
        if !value.is_empty() {
            put(&mut request, key, json!(value));
        }
    }
    request
}

/// What a webhook answered, checked.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// The operations of its JSON patch.
    pub(super) patch: Vec<u8>,
}

/// Asks a webhook about a write; answers what it wants changed, if it lets the write pass.
pub(super) async fn ask(
    server: &ApiServer,
    hook: &Hook,
    attributes: &Attributes,
    resource: &Resource,
    versioned: &Versioned,
    mutating: bool,
) -> Result<Answer, Failure> {
    let uid = server.new_uid();
    let api_version = format!("{GROUP}/{}", hook.review_version);
    let mut request = request(attributes, resource);
    put(&mut request, "uid", json!(uid));
    put(&mut request, "object", versioned.object.clone());
    put(&mut request, "oldObject", versioned.old.clone());
    let review =
        json!({ "kind": "AdmissionReview", "apiVersion": api_version, "request": request });
    let answered = server
        .call_webhook(&hook.address, hook.timeout, told(hook, attributes), &review)
        .await
        .map_err(|why| Failure::Call(format!("failed to call webhook: {why}")))?;
    let response = Response::decode(&answered)
        .map_err(|why| Failure::Call(format!("failed to call webhook: {why}")))?;
    let patch = response
        .verify(&answered, &uid, &api_version, mutating)
        .map_err(|why| Failure::Call(format!("received invalid webhook response: {why}")))?;
    for warning in &response.warnings {
        attributes.warnings.add(warning.as_str());
    }
    if !response.allowed {
        return Err(Failure::Refused(denial(&hook.name, response.status)));
    }
    match response.unknown_patch_type() {
        Some(unknown) if !patch.is_empty() => {
            Err(Failure::Call(format!("unsupported patch type {unknown:?}")))
        }
        _ => Ok(Answer { patch }),
    }
}

/// How long a webhook is told that it may take: not longer than the client waits, in whole seconds. When
/// that is over the client is answered, whatever the webhook does.
fn told(hook: &Hook, attributes: &Attributes) -> Duration {
    let Some(deadline) = attributes.deadline else { return hook.timeout };
    let left = deadline.saturating_duration_since(Instant::now());
    let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
    hook.timeout.min(Duration::from_secs(seconds))
}

fn decode_base64(text: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(text).map_err(|error| {
        let at = match error {
            DecodeError::InvalidByte(at, _)
            | DecodeError::InvalidLastSymbol(at, _)
            | DecodeError::InvalidLength(at) => at,
            DecodeError::InvalidPadding => text.len(),
        };
        format!("illegal base64 data at input byte {at}")
    })
}

/// `AdmissionResponse`, decoded as Go decodes it.
#[derive(Debug, Default)]
struct Response {
    present: bool,
    uid: String,
    allowed: bool,
    status: Option<Value>,
    patch: Vec<u8>,
    patch_type: Option<String>,
    warnings: Vec<String>,
}

impl Response {
    fn decode(review: &Value) -> Result<Self, String> {
        let Some(response) = review.get("response").filter(|one| !one.is_null()) else {
            return Ok(Self::default());
        };
        let wrong = |found: &Value, field: &str, wanted: &str| {
            let found = golang::json_type_name(found);
            format!(
                "json: cannot unmarshal {found} into Go struct field AdmissionResponse.response.{field} \
                 of type {wanted}"
            )
        };
        let given = |field: &str| response.get(field).filter(|one| !one.is_null());
        let text = |field: &'static str, wanted: &'static str| match given(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(wrong(other, field, wanted)),
        };
        let allowed = match given("allowed") {
            None => false,
            Some(Value::Bool(allowed)) => *allowed,
            Some(other) => return Err(wrong(other, "allowed", "bool")),
        };
        let annotations = given("auditAnnotations").and_then(Value::as_object);
        for value in annotations.into_iter().flat_map(|map| map.values()) {
            if !value.is_string() && !value.is_null() {
                return Err(wrong(value, "auditAnnotations", "string"));
            }
        }
        for field in ["message", "reason", "status"] {
            let value = given("status").and_then(|status| status.get(field));
            if let Some(other) = value.filter(|value| !value.is_string() && !value.is_null()) {
                let found = golang::json_type_name(other);
                let kind = if field == "reason" { "v1.StatusReason" } else { "string" };
                return Err(format!(
                    "json: cannot unmarshal {found} into Go struct field Status.response.status.{field} \
                     of type {kind}"
                ));
            }
        }
        let patch = text("patch", "[]uint8")?.unwrap_or_default();
        let warnings = given("warnings").and_then(Value::as_array);
        Ok(Self {
            present: true,
            uid: text("uid", "types.UID")?.unwrap_or_default(),
            allowed,
            status: given("status").cloned(),
            patch: decode_base64(&patch)?,
            patch_type: text("patchType", "v1.PatchType")?,
            warnings: warnings
                .into_iter()
                .flatten()
                .filter_map(|one| one.as_str().map(str::to_owned))
                .collect(),
        })
    }

    /// Checks the answer against what was asked; answers its patch.
    fn verify(
        &self,
        review: &Value,
        uid: &str,
        api_version: &str,
        mutating: bool,
    ) -> Result<Vec<u8>, String> {
        if !self.present {
            return Err("webhook response was absent".to_owned());
        }
        if api_version.ends_with("v1beta1") {
            // Nothing else was ever checked in this version.
            return Ok(if mutating { self.patch.clone() } else { Vec::new() });
        }
        if self.uid != uid {
            return Err(format!("expected response.uid={uid:?}, got {:?}", self.uid));
        }
        let field = |key: &str| review.get(key).and_then(Value::as_str).unwrap_or_default();
        let (version, kind) = (field("apiVersion"), field("kind"));
        if version != api_version || kind != "AdmissionReview" {
            let version = if version.is_empty() { "/" } else { version };
            return Err(format!(
                "expected webhook response of {api_version}, Kind=AdmissionReview, got {version}, \
                 Kind={kind}"
            ));
        }
        let has_patch = !self.patch.is_empty();
        let has_type = self.patch_type.is_some();
        let fault = match (mutating, has_patch, has_type) {
            (true, true, false) => "webhook returned response.patch but not response.patchType",
            (true, false, true) => "webhook returned response.patchType but not response.patch",
            (true, true, true) if self.patch_type.as_deref() == Some("") => {
                "webhook returned invalid response.patchType of \"\""
            }
            (false, true, _) => "validating webhook may not return response.patch",
            (false, false, true) => "validating webhook may not return response.patchType",
            _ => return Ok(self.patch.clone()),
        };
        Err(fault.to_owned())
    }

    /// The patch type, where it is one that nobody knows.
    fn unknown_patch_type(&self) -> Option<&str> {
        self.patch_type.as_deref().filter(|one| *one != "JSONPatch")
    }
}

/// The refusal of a webhook, with all that its Status says (row AD04).
fn denial(hook: &str, status: Option<Value>) -> ApiError {
    let mut status = status.unwrap_or_default();
    let map = as_map(&mut status);
    let text = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (message, reason, said) = (text("message"), text("reason"), text("status"));
    let why = match (message.is_empty(), reason.is_empty()) {
        (false, _) => format!(": {message}"),
        (true, false) => format!(": {reason}"),
        (true, true) => " without explanation".to_owned(),
    };
    let code = map.get("code").and_then(Value::as_u64).filter(|code| *code >= 400);
    let code = code.and_then(|code| u16::try_from(code).ok()).unwrap_or(400);
    let said = if matches!(said.as_str(), "" | "Success") { "Failure" } else { said.as_str() };
    map.insert("kind".to_owned(), json!("Status"));
    map.insert("apiVersion".to_owned(), json!("v1"));
    map.entry("metadata").or_insert_with(|| json!({}));
    map.insert("status".to_owned(), json!(said));
    map.insert("code".to_owned(), json!(code));
    let message = format!("admission webhook {hook:?} denied the request{why}");
    map.insert("message".to_owned(), json!(message));
    ApiError::from_status(code, status)
}
