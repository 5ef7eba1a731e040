//! The life of a definition, told by its conditions: names are accepted or not, then the resource is
//! established, and at the end it terminates.
//!
//! Each function answers the status after one step, or nothing if the step changes nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::approval::{Approval, approval_state};
use super::{list, text, texts};
use crate::object::{self, at_path, child, put};
use crate::time::format_seconds;

/// The finalizer of a definition whose objects are still there; it appears with the DELETE.
pub const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Whether the definition's resources are served.
#[must_use]
pub fn is_established(crd: &Value) -> bool {
    is_true(crd, "Established")
}

/// Whether the definition is going away: nothing new may be created.
#[must_use]
pub fn is_terminating(crd: &Value) -> bool {
    is_true(crd, "Terminating")
}

fn is_true(crd: &Value, kind: &str) -> bool {
    condition(crd, kind).is_some_and(|found| text(found, "status") == "True")
}

fn condition<'a>(crd: &'a Value, kind: &str) -> Option<&'a Value> {
    list(crd.get("status")?, "conditions").find(|one| text(one, "type") == kind)
}

/// The outcome of one condition.
struct Outcome {
    kind: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

impl Outcome {
    fn new(kind: &'static str, status: bool, reason: &'static str, message: &str) -> Self {
        let status = if status { "True" } else { "False" };
        Self { kind, status, reason, message: message.to_owned() }
    }

    fn equals(&self, condition: &Value) -> bool {
        text(condition, "status") == self.status
            && text(condition, "reason") == self.reason
            && text(condition, "message") == self.message
    }

    /// Writes the condition; its time moves only when its status does.
    fn set(&self, status: &mut Value, now: Timestamp) {
        let conditions = child(status, "conditions");
        if !conditions.is_array() {
            *conditions = json!([]);
        }
        let Some(conditions) = conditions.as_array_mut() else { return };
        let place = conditions.iter().position(|one| text(one, "type") == self.kind);
        let same = place
            .and_then(|place| conditions.get(place))
            .filter(|old| text(old, "status") == self.status)
            .and_then(|old| old.get("lastTransitionTime").cloned());
        let new = json!({
            "type": self.kind,
            "status": self.status,
            "lastTransitionTime": same.unwrap_or_else(|| json!(format_seconds(now))),
            "reason": self.reason,
            "message": self.message,
        });
        match place.and_then(|place| conditions.get_mut(place)) {
            Some(old) => *old = new,
            None => conditions.push(new),
        }
    }
}

/// Accepts the names that no other definition of the group has, and sets `NamesAccepted` and, until
/// the definition is established, `Established`. `others` are all definitions; the definition itself
/// may be among them.
#[must_use]
pub fn naming_conditions(crd: &Value, others: &[Arc<Value>], now: Timestamp) -> Option<Value> {
    let asked = at_path(crd, "spec.names")?;
    let none = json!({});
    let accepted = at_path(crd, "status.acceptedNames").unwrap_or(&none);
    if same_names(asked, accepted) {
        return None;
    }
    let taken = taken_names(crd, others);
    let mut names = accepted.clone();
    let mut conflict: Option<(&'static str, String)> = None;
    for (key, reason, used) in [
        ("plural", "PluralConflict", &taken.resources),
        ("singular", "SingularConflict", &taken.resources),
        ("shortNames", "ShortNamesConflict", &taken.resources),
        ("kind", "KindConflict", &taken.kinds),
        ("listKind", "ListKindConflict", &taken.kinds),
    ] {
        let message = if key == "shortNames" {
            short_name_conflict(asked, accepted, used)
        } else {
            let wanted = text(asked, key);
            let fresh = wanted == text(accepted, key) || !used.contains(&wanted);
            (!fresh).then(|| in_use(&wanted))
        };
        match message {
            // The last conflict is the one that is told.
            Some(message) => conflict = Some((reason, message)),
            None => copy(&mut names, asked, key),
        }
    }
    copy(&mut names, asked, "categories");
    let good = conflict.is_none();
    let (reason, message) = conflict.unwrap_or(("NoConflicts", "no conflicts found".to_owned()));
    let accepted_now = Outcome::new("NamesAccepted", good, reason, &message);
    let known = condition(crd, "NamesAccepted").is_some_and(|old| accepted_now.equals(old));
    if known && same_names(&names, accepted) {
        return None;
    }
    let mut status = crd.get("status").cloned().unwrap_or_else(|| json!({}));
    put(&mut status, "acceptedNames", names);
    accepted_now.set(&mut status, now);
    if !is_established(crd) {
        let installing = Outcome::new(
            "Established",
            false,
            "Installing",
            "the initial names have been accepted",
        );
        let refused =
            Outcome::new("Established", false, "NotAccepted", "not all names are accepted");
        if good {
            installing.set(&mut status, now);
        } else if condition(crd, "Established").is_none() {
            refused.set(&mut status, now);
        }
    }
    Some(status)
}

/// Names that other definitions of the group hold.
struct Taken {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

fn taken_names(crd: &Value, others: &[Arc<Value>]) -> Taken {
    let mut taken = Taken { resources: BTreeSet::new(), kinds: BTreeSet::new() };
    let group = at_path(crd, "spec.group");
    for other in others.iter().filter(|other| at_path(other, "spec.group") == group) {
        let is_self = object::name(other) == object::name(crd);
        let source = if is_self { crd } else { &**other };
        let Some(names) = at_path(source, "status.acceptedNames") else { continue };
        taken.resources.extend([text(names, "plural"), text(names, "singular")]);
        taken.resources.extend(texts(names, "shortNames"));
        taken.kinds.extend([text(names, "kind"), text(names, "listKind")]);
    }
    taken
}

fn short_name_conflict(asked: &Value, accepted: &Value, used: &BTreeSet<String>) -> Option<String> {
    let own = texts(accepted, "shortNames");
    let mut conflicts: Vec<String> = Vec::new();
    for name in texts(asked, "shortNames") {
        if !own.contains(&name) && used.contains(&name) && !conflicts.contains(&in_use(&name)) {
            conflicts.push(in_use(&name));
        }
    }
    match conflicts.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}

fn in_use(name: &str) -> String {
    format!("{name:?} is already in use")
}

fn copy(names: &mut Value, asked: &Value, key: &str) {
    match asked.get(key) {
        Some(value) => put(names, key, value.clone()),
        None => {
            object::as_map(names).remove(key);
        }
    }
}

fn same_names(left: &Value, right: &Value) -> bool {
    ["plural", "singular", "kind", "listKind"].iter().all(|key| text(left, key) == text(right, key))
        && ["shortNames", "categories"].iter().all(|key| texts(left, key) == texts(right, key))
}

/// Establishes a definition whose names are accepted, unless the bundle of its conversion webhook
/// cannot be used.
#[must_use]
pub fn established(crd: &Value, now: Timestamp) -> Option<Value> {
    if !is_true(crd, "NamesAccepted") || is_established(crd) {
        return None;
    }
    let bundle = at_path(crd, "spec.conversion.webhook.clientConfig")
        .map(|config| text(config, "caBundle"))
        .unwrap_or_default();
    let outcome = if super::bundle::fault(&bundle).is_some() {
        let message = "The conversion webhook CABundle is invalid";
        Outcome::new("Established", false, "InvalidCABundle", message)
    } else {
        let message = "the initial names have been accepted";
        Outcome::new("Established", true, "InitialNamesAccepted", message)
    };
    if condition(crd, "Established").is_some_and(|old| outcome.equals(old)) {
        return None;
    }
    let mut status = crd.get("status").cloned().unwrap_or_else(|| json!({}));
    outcome.set(&mut status, now);
    Some(status)
}

/// Tells whether the definition of a protected group (`*.k8s.io`) is approved.
#[must_use]
pub fn approval(crd: &Value, now: Timestamp) -> Option<Value> {
    let (state, _, message) = approval_state(crd)?;
    let (good, reason) = match state {
        Approval::Given => (true, "ApprovedAnnotation"),
        Approval::Bypassed => (false, "UnapprovedAnnotation"),
        Approval::Invalid => (false, "InvalidAnnotation"),
        Approval::Missing => (false, "MissingAnnotation"),
    };
    let outcome = Outcome::new("KubernetesAPIApprovalPolicyConformant", good, reason, &message);
    if condition(crd, outcome.kind).is_some_and(|old| outcome.equals(old)) {
        return None;
    }
    let mut status = crd.get("status").cloned().unwrap_or_else(|| json!({}));
    outcome.set(&mut status, now);
    Some(status)
}

/// How far the end of a definition has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Termination {
    /// The DELETE was accepted.
    Pending,
    /// Objects are being deleted.
    InProgress,
    /// No object is left.
    Completed,
}

/// The status with the condition `Terminating`.
#[must_use]
pub fn terminating(crd: &Value, step: Termination, now: Timestamp) -> Value {
    let (active, reason, message) = match step {
        Termination::Pending => (
            true,
            "InstanceDeletionPending",
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        ),
        Termination::InProgress => {
            (true, "InstanceDeletionInProgress", "CustomResource deletion is in progress")
        }
        Termination::Completed => (false, "InstanceDeletionCompleted", "removed all instances"),
    };
    let mut status = crd.get("status").cloned().unwrap_or_else(|| json!({}));
    Outcome::new("Terminating", active, reason, message).set(&mut status, now);
    status
}
