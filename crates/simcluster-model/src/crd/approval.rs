//! Approval of definitions in protected groups (`*.k8s.io`, `*.kubernetes.io`).

use serde_json::{Value, json};

use super::bundle;
use crate::field::FieldError;
use crate::object::at_path;

const APPROVED: &str = "api-approved.kubernetes.io";

/// How a definition of a protected group is approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Approval {
    /// There is no annotation.
    Missing,
    /// The annotation is neither a URL nor a refusal.
    Invalid,
    /// The annotation says that it is not approved.
    Bypassed,
    /// The annotation names a URL.
    Given,
}

/// How the definition is approved, the annotation, and the words of the rule; `None` if its group is
/// not protected.
pub(super) fn approval_state(crd: &Value) -> Option<(Approval, &str, String)> {
    let group = at_path(crd, "spec.group").and_then(Value::as_str).unwrap_or_default();
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group == *domain || group.ends_with(&format!(".{domain}")));
    if !protected {
        return None;
    }
    let rule = format!("protected groups must have approval annotation \"{APPROVED}\"");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let state = approval(crd);
    let annotation = annotation(crd);
    let text = match state {
        Approval::Missing => format!("{rule}, {see}"),
        Approval::Invalid => {
            format!("{rule} with either a URL or a reason starting with \"unapproved\", {see}")
        }
        Approval::Bypassed => format!("not approved: {annotation:?}"),
        Approval::Given => format!("approved in {annotation}"),
    };
    Some((state, annotation, text))
}

fn approval(crd: &Value) -> Approval {
    let annotation = annotation(crd);
    match annotation {
        "" => Approval::Missing,
        text if text.starts_with("unapproved") => Approval::Bypassed,
        text if bundle::is_url(text) => Approval::Given,
        _ => Approval::Invalid,
    }
}

fn annotation(crd: &Value) -> &str {
    let annotations = crd.get("metadata").and_then(|metadata| metadata.get("annotations"));
    annotations.and_then(|map| map.get(APPROVED)).and_then(Value::as_str).unwrap_or_default()
}

/// The fault of a definition that must be approved and is not, unless it was not before.
pub(super) fn approval_fault(crd: &Value, old: Option<&Value>) -> Option<FieldError> {
    let (state, annotation, why) = approval_state(crd)?;
    if old.is_some_and(|old| approval(old) == state) {
        return None;
    }
    let field = format!("metadata.annotations[{APPROVED}]");
    match state {
        Approval::Missing => Some(FieldError::required(field, &why)),
        Approval::Invalid => Some(FieldError::invalid(field, &json!(annotation), &why)),
        Approval::Bypassed | Approval::Given => None,
    }
}
