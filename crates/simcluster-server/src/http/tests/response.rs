use serde_json::json;

use crate::http::accept::Format;
use crate::http::response::Writing;
use simcluster_model::codec::yaml;
use simcluster_model::error::ApiError;
use simcluster_model::field::FieldError;

/// What a real server wrote on 2026-12-01.
const NOT_FOUND: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods \"none\" not found","reason":"NotFound","details":{"name":"none","kind":"pods"},"code":404}"#;
const INVALID: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Pod \"x\" is invalid: spec.containers: Required value","reason":"Invalid","details":{"name":"x","kind":"Pod","causes":[{"reason":"FieldValueRequired","message":"Required value","field":"spec.containers"}]},"code":422}"#;

#[test]
fn a_status_has_its_fields_in_the_order_of_its_types() {
    let pods = simcluster_model::error::Names { group: "", plural: "pods", kind: "Pod" };
    let fault = FieldError::required("spec.containers", "");
    let compact = Writing { format: Format::Json, pretty: false };
    for (error, written) in [
        (ApiError::not_found(pods, "none"), NOT_FOUND),
        (ApiError::invalid(pods, "x", &[fault]), INVALID),
    ] {
        let text = String::from_utf8(compact.text(&error.to_status())).unwrap();
        assert_eq!(text, format!("{written}\n"));
    }
    // In YAML fields are sorted, and what else a webhook says is kept.
    let status =
        json!({ "kind": "Status", "apiVersion": "v1", "code": 1, "also": { "b": 1, "a": 2 } });
    let in_yaml = Writing { format: Format::Yaml, pretty: false }.text(&status);
    assert_eq!(String::from_utf8(in_yaml).unwrap(), yaml::write(&status));
    let text = String::from_utf8(compact.text(&status)).unwrap();
    let expected = r#"{"kind":"Status","apiVersion":"v1","code":1,"also":{"a":2,"b":1}}"#;
    assert_eq!(text, format!("{expected}\n"));
}
