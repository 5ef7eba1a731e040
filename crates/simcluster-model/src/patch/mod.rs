//! Patches that are no applies: JSON patch, merge patch, strategic merge patch.
//!
//! They work on the JSON of an object in the version of the request; decoding and validating what
//! comes out is the caller's.

pub(crate) mod convert;
mod json;
mod merge;
mod order;
mod shown;
mod strategic;
#[cfg(test)]
mod tests;

use crate::error::{ApiError, Details};
use crate::field::{FieldError, FieldErrorKind};

pub(crate) use json::steps;
pub use json::{json_patch, notes};
pub use merge::merge_patch;
pub use shown::{by_json_patch, by_merge_patch, by_strategic_patch};
pub use strategic::strategic_merge;

/// Why a patch could not be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The body is JSON, but not a patch of its type: 400 with this text.
    #[error("{0}")]
    Malformed(String),
    /// More operations than the server takes: 413.
    #[error("The allowed maximum operations in a JSON patch is {max}, got {count}")]
    TooManyOperations {
        /// How many there are.
        count: usize,
        /// How many there may be.
        max: usize,
    },
    /// An operation does not apply to the object: 422 that does not say why. The text here does.
    #[error("{0}")]
    Rejected(String),
    /// The patched object does not fit its kind's types: 422 that says so of a field `patch`.
    #[error("{error}")]
    Undecodable {
        /// The patch, as Go prints it.
        shown: String,
        /// What does not fit.
        error: String,
    },
    /// The server's code fails in a way that it does not turn into a Status: 500 with this text.
    #[error("{0}")]
    Failed(String),
}

impl From<PatchError> for ApiError {
    fn from(error: PatchError) -> Self {
        let text = error.to_string();
        match error {
            PatchError::Malformed(_) => Self::bad_request(text),
            PatchError::TooManyOperations { .. } => {
                let message = format!("Request entity too large: {text}");
                Self::new(413, "RequestEntityTooLarge", message)
            }
            PatchError::Rejected(_) => {
                let message = "the server rejected our request due to an error in our request";
                Self::new(422, "Invalid", message).with_details(Details::default())
            }
            PatchError::Undecodable { shown, error } => undecodable(&shown, &error),
            PatchError::Failed(_) => Self::raw(text),
        }
    }
}

/// The 422 for a patched object that cannot be decoded: it names neither kind nor object. `shown` is
/// the patched object's JSON.
#[must_use]
pub fn undecodable(shown: &str, error: &str) -> ApiError {
    let fault = FieldError {
        kind: FieldErrorKind::Invalid,
        field: "patch".to_owned(),
        body: format!("Invalid value: {}: {error}", crate::golang::quote(shown)),
    };
    let cause = crate::error::Cause {
        reason: fault.kind.reason().to_owned(),
        message: fault.body.clone(),
        field: fault.field.clone(),
    };
    ApiError::new(422, "Invalid", format!(" \"\" is invalid: {fault}"))
        .with_details(Details { causes: vec![cause], ..Details::default() })
}
