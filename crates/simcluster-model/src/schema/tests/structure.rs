//! Pruning, defaults and numbers.

use serde_json::{Value, json};

use super::{object, with_fields};
use crate::schema::numbers::{go_float, normalise};
use crate::schema::{Schema, fill_defaults, prune};

fn pruned(schema: &Schema, spec: Value) -> (Value, Vec<String>) {
    let mut whole = object(&spec);
    let unknown = prune(&mut whole, schema);
    (whole["spec"].take(), unknown)
}

#[test]
fn unknown_fields_go_and_are_named_in_order() {
    let schema = with_fields(&json!({
        "plain": { "type": "string" },
        "parts": { "type": "array", "items": { "type": "object", "properties": { "name": { "type": "string" } } } },
        "map": { "type": "object", "additionalProperties": { "type": "object" } },
    }));
    let (spec, unknown) = pruned(
        &schema,
        json!({ "zip": 1, "plain": { "a": 1 }, "parts": [{ "name": "p", "x": 1 }], "map": { "k": { "y": 1 } } }),
    );
    assert_eq!(spec, json!({ "plain": {}, "parts": [{ "name": "p" }], "map": { "k": {} } }));
    assert_eq!(unknown, ["spec.map.k.y", "spec.parts[0].x", "spec.plain.a", "spec.zip"]);
}

#[test]
fn what_is_preserved_stays_except_below_declared_fields() {
    let known = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let schema = with_fields(&json!({
        "free": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": { "known": known },
        },
        "list": { "type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": known },
        "yes": { "type": "object", "additionalProperties": true },
    }));
    let (spec, unknown) = pruned(
        &schema,
        json!({
            "free": { "x": { "y": 1 }, "known": { "a": "1", "b": 2 } },
            "list": [{ "a": "1", "b": 2 }],
            "yes": { "scalar": 1, "map": { "gone": 1 } },
        }),
    );
    assert_eq!(spec["free"], json!({ "x": { "y": 1 }, "known": { "a": "1" } }));
    assert_eq!(spec["list"], json!([{ "a": "1", "b": 2 }]));
    assert_eq!(spec["yes"], json!({ "scalar": 1, "map": {} }));
    assert_eq!(unknown, ["spec.free.known.b", "spec.yes.map.gone"]);
}

#[test]
fn nulls_go_unless_the_field_may_be_null_or_has_a_default() {
    let schema = with_fields(&json!({
        "def": { "type": "string", "default": "d" },
        "nulldef": { "type": "string", "nullable": true, "default": "d" },
        "nullable": { "type": "string", "nullable": true },
        "plain": { "type": "string" },
        "map": { "type": "object", "additionalProperties": { "type": "object" } },
        "items": { "type": "array", "items": { "type": "object" } },
    }));
    let spec = json!({
        "def": null, "nulldef": null, "nullable": null, "plain": null, "map": { "k": null }, "items": [null],
    });
    let mut whole = object(&spec);
    assert!(prune(&mut whole, &schema).is_empty());
    fill_defaults(&mut whole, &schema);
    let expected =
        json!({ "def": "d", "nulldef": null, "nullable": null, "map": {}, "items": [null] });
    assert_eq!(whole["spec"], expected);
}

#[test]
fn defaults_need_a_parent() {
    let inner = json!({ "type": "object", "properties": { "inner": { "type": "string", "default": "in" } } });
    let mut with_default = inner.clone();
    with_default["default"] = json!({});
    let schema = with_fields(&json!({
        "outer": inner, "outerdef": with_default,
        "items": { "type": "array", "items": inner },
        "map": { "type": "object", "additionalProperties": inner },
    }));
    let fill = |spec: Value| {
        let mut whole = object(&spec);
        fill_defaults(&mut whole, &schema);
        whole["spec"].take()
    };
    assert_eq!(fill(json!({})), json!({ "outerdef": { "inner": "in" } }));
    let expected = json!({
        "outer": { "inner": "in" }, "outerdef": { "inner": "x" },
        "items": [{ "inner": "in" }], "map": { "k": { "inner": "in" } },
    });
    let given =
        json!({ "outer": {}, "outerdef": { "inner": "x" }, "items": [{}], "map": { "k": {} } });
    assert_eq!(fill(given), expected);
}

#[test]
fn whole_floats_are_integers_and_large_integers_are_floats() {
    for (text, expected) in [
        ("1.0", "1"),
        ("1e3", "1000"),
        ("1.50", "1.5"),
        ("-0.0", "0"),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("9223372036854775808", "9.223372036854776e+18"),
        ("1e21", "1e+21"),
    ] {
        let mut value: Value = serde_json::from_str(text).unwrap();
        normalise(&mut value);
        assert_eq!(value.to_string(), expected, "{text}");
    }
}

#[test]
fn floats_as_go_prints_them() {
    for (float, text) in [
        (0.5, "0.5"),
        (10.0, "10"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1e-7, "1e-07"),
    ] {
        assert_eq!(go_float(float), text);
    }
}
