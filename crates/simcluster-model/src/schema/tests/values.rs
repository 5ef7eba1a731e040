//! Value validations, list types and ratcheting.

use serde_json::{Value, json};

use super::{change_faults, faults, with_fields};
use crate::schema::{Schema, validate};

/// The remark that rules were left out; it comes only with schemas that have rules.
const BLOCKED: &str = "<nil>: Invalid value: null: some validation rules were not checked because the \
                       object was invalid; correct the existing errors to complete validation";

/// Checks one field of a spec.
fn check(field: &Value, value: &Value, expected: &[&str]) {
    let schema = with_fields(&json!({ "x": field }));
    assert_eq!(faults(&schema, &json!({ "x": value })), expected, "{field} {value}");
}

#[test]
fn types() {
    let wrong = |field: Value, value: Value, expected: &str| check(&field, &value, &[expected]);
    let string = json!({ "type": "string" });
    wrong(
        string.clone(),
        json!(1),
        "spec.x: Invalid value: \"integer\": spec.x in body must be of type string: \"integer\"",
    );
    wrong(
        string,
        json!(null),
        "spec.x: Invalid value: \"null\": spec.x in body must be of type string: \"null\"",
    );
    wrong(
        json!({ "type": "object" }),
        json!([]),
        "spec.x: Invalid value: \"array\": spec.x in body must be of type object: \"array\"",
    );
    wrong(
        json!({ "type": "array", "items": { "type": "string" } }),
        json!([1]),
        "spec.x[0]: Invalid value: \"integer\": spec.x[0] in body must be of type string: \"integer\"",
    );
    wrong(
        json!({ "x-kubernetes-int-or-string": true }),
        json!(1.5),
        "spec.x: Invalid value: \"number\": spec.x in body must be of type integer,string: \"number\"",
    );
    check(&json!({ "x-kubernetes-int-or-string": true }), &json!("a"), &[]);
    check(&json!({ "type": "number" }), &json!(1), &[]);
}

#[test]
fn numbers_that_do_not_fit_their_type() {
    check(
        &json!({ "type": "integer" }),
        &json!(1.5),
        &[
            "spec.x: Invalid value: \"number\": spec.x in body must be of type integer: \"number\"",
            "<nil>: Invalid value: \"\": Checked value must be of type integer (default format) in spec.x",
        ],
    );
    let int32 = json!({ "type": "integer", "format": "int32" });
    check(
        &int32,
        &json!(1.5),
        &[
            "spec.x: Invalid value: \"float64\": spec.x in body must be of type int32: \"float64\"",
            "<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in spec.x",
        ],
    );
    check(
        &int32,
        &json!(2_147_483_648_i64),
        &[
            "<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in spec.x",
        ],
    );
}

#[test]
fn bounds() {
    let says = |field: Value, value: Value, text: &str| {
        let expected = format!("spec.x: Invalid value: {value}: spec.x in body {text}");
        check(&field, &value, &[&expected]);
    };
    let integer = |rules: Value| {
        let mut field = json!({ "type": "integer" });
        field.as_object_mut().unwrap().extend(rules.as_object().unwrap().clone());
        field
    };
    says(integer(json!({ "maximum": 10 })), json!(11), "should be less than or equal to 10");
    says(
        integer(json!({ "maximum": 10, "exclusiveMaximum": true })),
        json!(10),
        "should be less than 10",
    );
    says(integer(json!({ "minimum": 0 })), json!(-1), "should be greater than or equal to 0");
    let above = json!({ "type": "number", "minimum": 0.5, "exclusiveMinimum": true });
    says(above, json!(0.5), "should be greater than 0.5");
    says(integer(json!({ "multipleOf": 5 })), json!(7), "should be a multiple of 5");
    says(
        json!({ "type": "string", "minLength": 3 }),
        json!("ab"),
        "should be at least 3 chars long",
    );
    says(json!({ "type": "string", "pattern": "^\\d+$" }), json!("a"), "should match '^\\d+$'");
}

#[test]
fn lengths_and_counts() {
    let strings = json!({ "type": "string" });
    check(
        &json!({ "type": "string", "maxLength": 3 }),
        &json!("abcd"),
        &["spec.x: Too long: may not be more than 3 bytes"],
    );
    check(
        &json!({ "type": "string", "maxLength": 1 }),
        &json!("ab"),
        &["spec.x: Too long: may not be more than 1 byte"],
    );
    check(&json!({ "type": "string", "maxLength": 3 }), &json!("äöü"), &[]);
    check(
        &json!({ "type": "array", "maxItems": 2, "items": strings }),
        &json!(["a", "b", "c"]),
        &["spec.x: Too many: 3: must have at most 2 items"],
    );
    check(
        &json!({ "type": "array", "minItems": 2, "items": strings }),
        &json!(["a"]),
        &["spec.x: Invalid value: 1: spec.x in body should have at least 2 items"],
    );
    check(
        &json!({ "type": "object", "maxProperties": 1, "additionalProperties": strings }),
        &json!({ "a": "1", "b": "2" }),
        &["spec.x: Too many: 2: must have at most 1 item"],
    );
    check(
        &json!({ "type": "object", "minProperties": 2, "additionalProperties": strings }),
        &json!({ "a": "1" }),
        &["spec.x: Invalid value: 1: spec.x in body should have at least 2 properties"],
    );
    check(
        &json!({ "type": "object", "additionalProperties": false }),
        &json!({ "a": "1" }),
        &["spec.x: Invalid value: \"a\": spec.x.a in body is a forbidden property"],
    );
}

#[test]
fn enums_and_required_fields() {
    let sizes = json!({ "type": "string", "enum": ["S", "M", "L"] });
    check(
        &sizes,
        &json!("XL"),
        &["spec.x: Unsupported value: \"XL\": supported values: \"S\", \"M\", \"L\""],
    );
    check(
        &sizes,
        &json!(1),
        &[
            "spec.x: Invalid value: \"integer\": spec.x in body must be of type string: \"integer\"",
            "spec.x: Unsupported value: 1: supported values: \"S\", \"M\", \"L\"",
        ],
    );
    check(
        &json!({ "type": "integer", "enum": [1, 2] }),
        &json!(3),
        &["spec.x: Unsupported value: 3: supported values: \"1\", \"2\""],
    );
    check(
        &json!({ "type": "object", "required": ["b", "a"] }),
        &json!({}),
        &["spec.x.b: Required value", "spec.x.a: Required value"],
    );
    let schema = Schema::parse(&json!({ "type": "object", "required": ["spec"] }));
    let faults = validate(&json!({ "kind": "A" }), None, &schema);
    assert_eq!(faults[0].to_string(), "spec: Required value");
}

#[test]
fn compositions() {
    let fields = json!({ "a": { "type": "string" }, "b": { "type": "string" } });
    let with = |rules: Value| {
        let mut field = json!({ "type": "object", "properties": fields });
        field.as_object_mut().unwrap().extend(rules.as_object().unwrap().clone());
        field
    };
    let choice = json!([{ "required": ["a"] }, { "required": ["b"] }]);
    let both = json!({ "a": "1", "b": "1" });
    check(
        &with(json!({ "oneOf": choice })),
        &json!({}),
        &[
            "<nil>: Invalid value: \"\": \"spec.x\" must validate one and only one schema (oneOf). Found \
             none valid",
            "spec.x.a: Required value",
        ],
    );
    check(
        &with(json!({ "oneOf": choice })),
        &both,
        &[
            "<nil>: Invalid value: \"\": \"spec.x\" must validate one and only one schema (oneOf). Found 2 \
           valid alternatives",
        ],
    );
    check(
        &with(json!({ "anyOf": choice })),
        &json!({}),
        &[
            "<nil>: Invalid value: \"\": \"spec.x\" must validate at least one schema (anyOf)",
            "spec.x.a: Required value",
        ],
    );
    check(
        &with(json!({ "not": { "required": ["a"] } })),
        &both,
        &["<nil>: Invalid value: \"\": \"spec.x\" must not validate the schema (not)"],
    );
    check(
        &with(json!({ "allOf": choice })),
        &json!({ "a": "1" }),
        &[
            "spec.x.b: Required value",
            "<nil>: Invalid value: \"\": \"spec.x\" must validate all the schemas (allOf)",
        ],
    );
}

#[test]
fn repeated_elements() {
    let tags =
        json!({ "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } });
    check(&tags, &json!(["a", "b", "a", "a"]), &["spec.x[2]: Duplicate value: \"a\""]);
    let parts = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    });
    check(
        &parts,
        &json!([{ "name": "a" }, { "name": "b" }, { "name": "a", "count": 2 }]),
        &["spec.x[2]: Duplicate value: {\"name\":\"a\"}"],
    );
}

#[test]
fn some_faults_block_rules_and_others_do_not() {
    let schema = with_fields(&json!({
        "x": { "type": "integer", "minimum": 0 },
        "y": { "type": "integer", "x-kubernetes-validations": [{ "rule": "self > 1" }] },
    }));
    assert_eq!(
        faults(&schema, &json!({ "x": -1, "y": 0 })),
        [
            "spec.x: Invalid value: -1: spec.x in body should be greater than or equal to 0",
            "spec.y: Invalid value: 0: failed rule: self > 1",
        ]
    );
    let wrong =
        "spec.x: Invalid value: \"string\": spec.x in body must be of type integer: \"string\"";
    assert_eq!(faults(&schema, &json!({ "x": "1", "y": 0 })), [wrong, BLOCKED]);
}

#[test]
fn an_update_keeps_what_does_not_change() {
    let item = json!({
        "type": "object", "required": ["n"],
        "properties": { "n": { "type": "string" }, "v": { "type": "string", "maxLength": 1 } },
    });
    let spec = json!({
        "type": "object", "required": ["c"],
        "properties": {
            "a": { "type": "string", "maxLength": 2 },
            "c": { "type": "string" },
            "list": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
                "items": item,
            },
        },
    });
    let schema = Schema::parse(&json!({ "type": "object", "properties": { "spec": spec } }));
    let list = json!([{ "n": "x", "v": "long" }, { "n": "y", "v": "s" }]);
    let old = json!({ "a": "long", "list": list });
    assert_eq!(change_faults(&schema, &old, &old), Vec::<String>::new());
    assert_eq!(
        change_faults(&schema, &old, &json!({ "a": "longer", "list": list })),
        ["spec.a: Too long: may not be more than 2 bytes", "spec.c: Required value"]
    );
    // Items are matched by their keys, wherever they stand.
    let moved = json!([{ "n": "y", "v": "t" }, { "n": "x", "v": "long" }]);
    let complete = json!({ "a": "long", "c": "x", "list": moved });
    assert_eq!(change_faults(&schema, &old, &complete), Vec::<String>::new());
    let changed = json!([{ "n": "x", "v": "other" }]);
    assert_eq!(
        change_faults(&schema, &old, &json!({ "a": "long", "c": "x", "list": changed })),
        ["spec.list[0].v: Too long: may not be more than 1 byte"]
    );
}
