use serde_json::json;

use super::*;

mod answers;

#[test]
fn every_resource_has_a_schema() {
    for resource in resources() {
        assert!(resource.schema.properties.contains_key("metadata"), "{}", resource.plural);
        assert!(!resource.verbs.is_empty(), "{}", resource.plural);
    }
    assert_eq!(kubernetes_version(), "v1.37.2");
}

#[test]
fn every_reference_is_defined() {
    fn walk(node: &Value) {
        match node {
            Value::Object(map) => {
                if let Some(Value::String(name)) = map.get("$ref") {
                    assert!(openapi_definitions().contains_key(name), "{name} is missing");
                }
                map.values().for_each(walk);
            }
            Value::Array(list) => list.iter().for_each(walk),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    openapi_definitions().values().for_each(walk);
}

#[test]
fn metadata_of_a_wrong_type() {
    let error = decode_typed(json!({"labels": {"a": 1}}), &object_meta(), "metadata").unwrap_err();
    assert_eq!(
        error,
        "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"
    );
}

#[test]
fn unknown_fields_of_metadata() {
    let decoded = decode_typed(
        json!({"name": "a", "lables": {}, "labels": null, "ownerReferences": [{"zip": 1, "uid": "u"}]}),
        &object_meta(),
        "metadata",
    )
    .unwrap();
    assert_eq!(decoded.unknown, ["metadata.lables", "metadata.ownerReferences[0].zip"]);
    assert_eq!(
        decoded.object,
        json!({"name": "a", "ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": "u"}]})
    );
}
