//! Validation of Services.

use serde_json::Value;

use crate::field::FieldError;

/// Faults of the fields that speak of addresses.
pub(super) fn cluster_ips(_service: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    Vec::new()
}
