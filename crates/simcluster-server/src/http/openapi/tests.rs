use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{BUILT_IN, gnostic, schemas};

/// A document as gnostic-models v0.7.0 (`ParseDocument`, then `proto.Marshal`) wrote it.
const WRITTEN: &str = "CgMyLjASBgoBdBIBdkKqAhKnAgoJL2Eve25hbWV9EpkCEvUBCgF4KgVyZWFkQTIQYXBwbGljYXRpb24vanNvbjoD\
     Ki8qQiUKIwohEgRib2R5GgRib2R5IAEqEQoPIy9kZWZpbml0aW9ucy9BQiAKHhIcGhoSBXF1ZXJ5IgZwcmV0dHky\
     BnN0cmluZ6ABAUo9CiIKAzIwMBIbChkKAk9LEhMKEQoPIy9kZWZpbml0aW9ucy9BChcKAzQwMRIQCg4KDFVuYXV0\
     aG9yaXplZFIFaHR0cHNqQwofeC1rdWJlcm5ldGVzLWdyb3VwLXZlcnNpb24ta2luZBIgEh5ncm91cDogIiIKa2lu\
     ZDogQQp2ZXJzaW9uOiB2MQpKHwodEhsiGQgBEgRwYXRoIgRuYW1lKgZzdHJpbmeYAQFK/QEK+gEKAUES9AEiBUFu\
     IEEumgEBbLIBCAoGb2JqZWN0ygGOAQolCgFsEiB4AbIBBwoFYXJyYXm6AREKD2oCYSuyAQgKBnN0cmluZwooCgFt\
     EiOqARUKExIFaW50MzKyAQkKB2ludGVnZXKyAQgKBm9iamVjdAo7CgFuEjYxAAAAAAAA4D85AAAAAAAABEBJAAAA\
     AAAA8L9QAaIBBBICMQqiAQQSAjIKsgEICgZudW1iZXL6AUkKH3gta3ViZXJuZXRlcy1ncm91cC12ZXJzaW9uLWtp\
     bmQSJhIkLSBncm91cDogIiIKICBraW5kOiBBCiAgdmVyc2lvbjogdjEKYhEKDwoLQmVhcmVyVG9rZW4SAGo1CjMK\
     C0JlYXJlclRva2VuEiQSIgoGYXBpS2V5Eg1hdXRob3JpemF0aW9uGgZoZWFkZXIiAWQ=";

fn document() -> Value {
    let kind = json!([{ "group": "", "kind": "A", "version": "v1" }]);
    let query = json!({ "name": "pretty", "in": "query", "type": "string", "uniqueItems": true });
    let path = json!({
        "name": "name", "in": "path", "required": true, "type": "string", "uniqueItems": true,
    });
    let reference = json!({ "$ref": "#/definitions/A" });
    json!({
        "swagger": "2.0",
        "info": { "title": "t", "version": "v" },
        "paths": { "/a/{name}": {
            "get": {
                "tags": ["x"],
                "operationId": "readA",
                "consumes": ["*/*"],
                "produces": ["application/json"],
                "schemes": ["https"],
                "parameters": [
                    { "name": "body", "in": "body", "required": true, "schema": reference },
                    query,
                ],
                "responses": {
                    "200": { "description": "OK", "schema": reference },
                    "401": { "description": "Unauthorized" },
                },
                "x-kubernetes-group-version-kind": kind[0],
            },
            "parameters": [path],
        } },
        "definitions": { "A": {
            "description": "An A.",
            "type": "object",
            "required": ["l"],
            "properties": {
                "l": {
                    "type": "array", "items": { "type": "string", "pattern": "a+" }, "minItems": 1,
                },
                "m": {
                    "type": "object",
                    "additionalProperties": { "type": "integer", "format": "int32" },
                },
                "n": {
                    "type": "number", "minimum": -1, "maximum": 2.5, "multipleOf": 0.5,
                    "exclusiveMinimum": true, "enum": [1, 2],
                },
            },
            "x-kubernetes-group-version-kind": kind,
        } },
        "securityDefinitions": { "BearerToken": {
            "type": "apiKey", "name": "authorization", "in": "header", "description": "d",
        } },
        "security": [{ "BearerToken": [] }],
    })
}

#[test]
fn a_document_in_protobuf_is_what_gnostic_writes() {
    assert_eq!(STANDARD.encode(gnostic::encode(&document())), WRITTEN);
}

#[test]
fn documents_of_built_in_kinds_refer_to_schemas_that_are_described() {
    for (path, document) in BUILT_IN.iter() {
        let text = std::str::from_utf8(&document.text).unwrap();
        assert!(!text.contains("#/components/schemas/\""), "{path} refers to nothing");
    }
    let core: Value = serde_json::from_slice(&BUILT_IN["api/v1"].text).unwrap();
    let schemas = &core["components"]["schemas"];
    let list = "io.k8s.api.core.v1.PodList";
    assert_eq!(
        schemas[list]["properties"]["items"]["items"],
        json!({ "$ref": "#/components/schemas/io.k8s.api.core.v1.Pod" })
    );
    let status = &schemas["io.k8s.api.core.v1.Pod"]["properties"]["status"];
    assert!(status["description"].as_str().unwrap().starts_with("Most recently observed status"));
    let referred = json!({ "$ref": "#/components/schemas/io.k8s.api.core.v1.PodStatus" });
    assert_eq!(status["allOf"][0], referred);
}

#[track_caller]
fn check_v2(schema: Value, expected: Value) {
    assert_eq!(schemas::in_v2(schema), expected);
}

#[test]
fn schemas_of_v2_leave_out_what_kubectl_does_not_understand() {
    // References and built-in types.
    check_v2(
        json!({ "description": "d", "default": {}, "allOf": [{ "$ref": "#/components/schemas/a.B" }] }),
        json!({ "description": "d", "$ref": "#/definitions/a.B" }),
    );
    check_v2(
        json!({ "oneOf": [{ "type": "string" }, { "type": "number" }] }),
        json!({ "type": "string" }),
    );
    // Schemas of definitions.
    check_v2(
        json!({
            "type": "object",
            "required": ["n", "t"],
            "properties": {
                "default": { "type": "string", "default": "x" },
                "n": { "type": "object", "nullable": true, "properties": { "a": { "type": "string" } } },
                "t": { "type": "string", "anyOf": [{ "pattern": "a" }] },
                "i": { "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }] },
                "o": { "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": { "a": {} } },
                "l": { "type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": {} },
            },
        }),
        json!({
            "type": "object",
            "required": ["t"],
            "properties": {
                "default": { "type": "string" },
                "n": {},
                "t": { "type": "string" },
                "i": { "x-kubernetes-int-or-string": true },
                "o": { "x-kubernetes-preserve-unknown-fields": true },
                "l": { "x-kubernetes-preserve-unknown-fields": true },
            },
        }),
    );
    // A kind that takes every field.
    let kind = json!([{ "group": "g", "kind": "K", "version": "v1" }]);
    check_v2(
        json!({
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "properties": { "metadata": {} },
            "x-kubernetes-group-version-kind": kind,
        }),
        json!({ "type": "object", "x-kubernetes-group-version-kind": kind }),
    );
}
