//! Reviews, which are answered and not stored.

use crate::builtin::kind::Kind;

/// `selfsubjectreviews`.
pub(super) static SELF_SUBJECT: Kind =
    Kind { ..Kind::new("authentication.k8s.io", "selfsubjectreviews") };

/// `tokenreviews`.
pub(super) static TOKEN: Kind = Kind { ..Kind::new("authentication.k8s.io", "tokenreviews") };

/// `localsubjectaccessreviews`.
pub(super) static LOCAL_SUBJECT_ACCESS: Kind =
    Kind { ..Kind::new("authorization.k8s.io", "localsubjectaccessreviews") };

/// `selfsubjectaccessreviews`.
pub(super) static SELF_SUBJECT_ACCESS: Kind =
    Kind { ..Kind::new("authorization.k8s.io", "selfsubjectaccessreviews") };

/// `selfsubjectrulesreviews`.
pub(super) static SELF_SUBJECT_RULES: Kind =
    Kind { ..Kind::new("authorization.k8s.io", "selfsubjectrulesreviews") };

/// `subjectaccessreviews`.
pub(super) static SUBJECT_ACCESS: Kind =
    Kind { ..Kind::new("authorization.k8s.io", "subjectaccessreviews") };

/// Whether a resource is a review.
pub(super) fn is_review(group: &str, plural: &str) -> bool {
    [
        &SELF_SUBJECT,
        &TOKEN,
        &LOCAL_SUBJECT_ACCESS,
        &SELF_SUBJECT_ACCESS,
        &SELF_SUBJECT_RULES,
        &SUBJECT_ACCESS,
    ]
    .iter()
    .any(|kind| kind.group == group && kind.plural == plural)
}
