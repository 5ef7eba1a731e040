//! Error answers of the API server: `metav1.Status` with the server's own texts.
//!
//! The constructors mirror `k8s.io/apimachinery/pkg/api/errors`; the texts are those recorded from a
//! real server (rows HT, CR, UP, ... of the fidelity cases).

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::object::put;

/// A failed request: everything its `Status` answer holds.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason; empty for a plain Go error, which the server answers as a bare 500.
    pub reason: &'static str,
    /// Text for humans.
    pub message: String,
    /// What the error is about; `None` prints no `details` at all, `Some(default)` prints `{}`.
    pub details: Option<Box<Details>>,
    /// `metadata.continue` of the Status (only 410 on a list has it).
    pub continue_token: Option<String>,
    /// The whole Status as somebody else wrote it (an admission webhook); all else is left out then.
    pub status: Option<Box<Value>>,
}

/// `StatusDetails`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Details {
    /// Name of the object.
    pub name: String,
    /// API group of the object.
    pub group: String,
    /// The plural resource, except for `Invalid`, where it is the Kind.
    pub kind: String,
    /// UID of the object.
    pub uid: String,
    /// One entry for each single fault.
    pub causes: Vec<Cause>,
    /// Mirrored in the `Retry-After` header.
    pub retry_after_seconds: Option<u32>,
}

/// `StatusCause`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cause {
    /// Machine-readable reason; left out when empty.
    pub reason: String,
    /// Text for humans.
    pub message: String,
    /// The field at fault; left out when empty.
    pub field: String,
}

/// What a resource and its objects are called in errors.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// API group, empty for the core group.
    pub group: &'a str,
    /// Plural resource name.
    pub plural: &'a str,
    /// Kind.
    pub kind: &'a str,
}

impl Names<'_> {
    /// `plural.group`, or `plural` in the core group.
    #[must_use]
    pub fn qualified_resource(&self) -> String {
        qualified(self.plural, self.group)
    }

    /// `Kind.group`, or `Kind` in the core group.
    #[must_use]
    pub fn qualified_kind(&self) -> String {
        qualified(self.kind, self.group)
    }

    fn details(&self, name: &str) -> Details {
        Details {
            name: name.to_owned(),
            group: self.group.to_owned(),
            kind: self.plural.to_owned(),
            ..Details::default()
        }
    }
}

fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

impl ApiError {
    /// An error with no details.
    #[must_use]
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            continue_token: None,
            status: None,
        }
    }

    /// The same with other details.
    #[must_use]
    pub fn with_details(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// 400 `BadRequest`.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 404 `NotFound` of an object.
    #[must_use]
    pub fn not_found(names: Names<'_>, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} \"{name}\" not found", names.qualified_resource()))
            .with_details(names.details(name))
    }

    /// 404 `NotFound` of a path in a built-in group.
    #[must_use]
    pub fn no_such_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
            .with_details(Details::default())
    }

    /// 409 `AlreadyExists`.
    #[must_use]
    pub fn already_exists(names: Names<'_>, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", names.qualified_resource());
        Self::new(409, "AlreadyExists", message).with_details(names.details(name))
    }

    /// 409 `Conflict`; `why` follows the colon.
    #[must_use]
    pub fn conflict(names: Names<'_>, name: &str, why: &str) -> Self {
        let resource = names.qualified_resource();
        let message = format!("Operation cannot be fulfilled on {resource} \"{name}\": {why}");
        Self::new(409, "Conflict", message).with_details(names.details(name))
    }

    /// 403 `Forbidden`; `why` follows the colon. An empty name leaves the quotes out.
    #[must_use]
    pub fn forbidden(names: Names<'_>, name: &str, why: &str) -> Self {
        let resource = names.qualified_resource();
        let message = if name.is_empty() {
            format!("{resource} is forbidden: {why}")
        } else {
            format!("{resource} \"{name}\" is forbidden: {why}")
        };
        Self::new(403, "Forbidden", message).with_details(names.details(name))
    }

    /// 422 `Invalid` with one cause for each fault; `qualified_kind` is `Kind.group` and
    /// `kind` what `details.kind` says. Equal faults are listed once in the message.
    #[must_use]
    pub fn invalid_kind(group: &str, kind: &str, name: &str, faults: &[FieldError]) -> Self {
        let mut texts: Vec<String> = Vec::new();
        for fault in faults {
            let text = fault.to_string();
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let list = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} \"{name}\" is invalid: {list}", qualified(kind, group));
        let causes = faults
            .iter()
            .map(|fault| Cause {
                reason: fault.kind.reason().to_owned(),
                message: fault.body.clone(),
                field: fault.field.clone(),
            })
            .collect();
        Self::new(422, "Invalid", message).with_details(Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            causes,
            ..Details::default()
        })
    }

    /// 422 `Invalid` of an object of a resource.
    #[must_use]
    pub fn invalid(names: Names<'_>, name: &str, faults: &[FieldError]) -> Self {
        Self::invalid_kind(names.group, names.kind, name, faults)
    }

    /// 422 `Invalid` of request options (`CreateOptions.meta.k8s.io "" is invalid: ...`).
    #[must_use]
    pub fn invalid_options(kind: &str, faults: &[FieldError]) -> Self {
        Self::invalid_kind("meta.k8s.io", kind, "", faults)
    }

    /// 405 of a custom resource: `verb` is `create`, `delete`, ...
    #[must_use]
    pub fn method_not_supported(names: Names<'_>, verb: &str) -> Self {
        let resource = names.qualified_resource();
        let message = format!("{verb} is not supported on resources of kind \"{resource}\"");
        Self::new(405, "MethodNotAllowed", message).with_details(names.details(""))
    }

    /// 405 of a built-in path.
    #[must_use]
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message).with_details(Details::default())
    }

    /// A plain Go error that no handler turned into a Status: 500 with an empty reason.
    #[must_use]
    pub fn raw(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// 500 `InternalError`.
    #[must_use]
    pub fn internal(message: &str) -> Self {
        let text = format!("Internal error occurred: {message}");
        Self::new(500, "InternalError", text).with_details(Details {
            causes: vec![Cause { message: message.to_owned(), ..Cause::default() }],
            ..Details::default()
        })
    }

    /// 501: what this server does not do. Never answered by a real one.
    #[must_use]
    pub fn unsupported(what: &str) -> Self {
        Self::new(501, "NotImplemented", format!("simcluster does not support {what}"))
    }

    /// The refusal of an admission webhook, with all that it says.
    #[must_use]
    pub fn from_status(code: u16, status: Value) -> Self {
        let message = status.get("message").and_then(Value::as_str).unwrap_or_default();
        let retry = status.pointer("/details/retryAfterSeconds").and_then(Value::as_u64);
        let retry_after_seconds = retry.and_then(|seconds| u32::try_from(seconds).ok());
        let details = Details { retry_after_seconds, ..Details::default() };
        let error = Self::new(code, "", message).with_details(details);
        Self { status: Some(Box::new(status)), ..error }
    }

    /// The `Status` object.
    #[must_use]
    pub fn to_status(&self) -> Value {
        if let Some(status) = &self.status {
            return Value::clone(status);
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            put(&mut status, "reason", json!(self.reason));
        }
        if let Some(token) = &self.continue_token {
            put(&mut status, "metadata", json!({ "continue": token }));
        }
        if let Some(details) = &self.details {
            put(&mut status, "details", details.to_json());
        }
        status
    }
}

impl Details {
    fn to_json(&self) -> Value {
        let mut out = serde_json::Map::new();
        for (key, text) in
            [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)]
        {
            if !text.is_empty() {
                out.insert(key.to_owned(), json!(text));
            }
        }
        if !self.causes.is_empty() {
            out.insert("causes".to_owned(), self.causes.iter().map(Cause::to_json).collect());
        }
        if let Some(seconds) = self.retry_after_seconds {
            out.insert("retryAfterSeconds".to_owned(), json!(seconds));
        }
        Value::Object(out)
    }
}

impl Cause {
    fn to_json(&self) -> Value {
        let mut out = serde_json::Map::new();
        for (key, text) in
            [("reason", &self.reason), ("message", &self.message), ("field", &self.field)]
        {
            if !text.is_empty() {
                out.insert(key.to_owned(), json!(text));
            }
        }
        Value::Object(out)
    }
}
