//! Schemas of the Kubernetes types that the custom resources hold.
//!
//! `k8s-openapi` can derive them, but only for all of its types at once: that feature took longer to
//! compile than the operator itself.

use schemars::{Schema, SchemaGenerator, json_schema};

/// `Time`: RFC 3339, in seconds.
pub(super) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

/// A list of `Condition`, in the words of the Kubernetes API.
pub(super) fn conditions(_: &mut SchemaGenerator) -> Schema {
    let condition = json_schema!({
        "description": "Condition contains details for one aspect of the current state of this API Resource.",
        "type": "object",
        "properties": {
            "lastTransitionTime": {
                "description": "lastTransitionTime is the last time the condition transitioned from one status to another. This should be when the underlying condition changed.  If that is not known, then using the time when the API field changed is acceptable.",
                "type": "string",
                "format": "date-time",
            },
            "message": {
                "description": "message is a human readable message indicating details about the transition. This may be an empty string.",
                "type": "string",
            },
            "observedGeneration": {
                "description": "observedGeneration represents the .metadata.generation that the condition was set based upon. For instance, if .metadata.generation is currently 12, but the .status.conditions[x].observedGeneration is 9, the condition is out of date with respect to the current state of the instance.",
                "type": "integer",
                "format": "int64",
            },
            "reason": {
                "description": "reason contains a programmatic identifier indicating the reason for the condition's last transition. Producers of specific condition types may define expected values and meanings for this field, and whether the values are considered a guaranteed API. The value should be a CamelCase string. This field may not be empty.",
                "type": "string",
            },
            "status": {
                "description": "status of the condition, one of True, False, Unknown.",
                "type": "string",
            },
            "type": {
                "description": "type of condition in CamelCase or in foo.example.com/CamelCase.",
                "type": "string",
            },
        },
        "required": ["lastTransitionTime", "message", "reason", "status", "type"],
    });
    json_schema!({ "type": "array", "items": condition })
}
