//! CEL rules: what they answer, and how they are checked when a definition is written.

use serde_json::{Value, json};

use super::{change_faults, faults, with_fields};
use crate::schema::{check_rule, unsupported_function};

fn with_rule(field: Value, rule: Value) -> Value {
    let mut field = field;
    field["x-kubernetes-validations"] = json!([rule]);
    field
}

fn integer(rule: Value) -> Value {
    with_rule(json!({ "type": "integer" }), rule)
}

#[test]
fn messages_reasons_and_places() {
    let fields = json!({ "a": { "type": "integer" } });
    for (field, value, expected) in [
        (
            integer(json!({ "rule": "self > 1" })),
            json!(0),
            "spec.x: Invalid value: 0: failed rule: self > 1",
        ),
        (
            integer(json!({ "rule": "self > 1", "message": "must exceed one" })),
            json!(0),
            "spec.x: Invalid value: 0: must exceed one",
        ),
        (
            integer(json!({
                "rule": "self > 1", "message": "no", "messageExpression": "self < 0 ? 'negative' : 'small'",
            })),
            json!(0),
            "spec.x: Invalid value: 0: small",
        ),
        (
            integer(
                json!({ "rule": "self > 1", "reason": "FieldValueForbidden", "message": "no" }),
            ),
            json!(0),
            "spec.x: Forbidden: no",
        ),
        (
            integer(
                json!({ "rule": "self > 1", "reason": "FieldValueDuplicate", "message": "no" }),
            ),
            json!(0),
            "spec.x: Duplicate value: 0",
        ),
        (
            integer(
                json!({ "rule": "self > 1", "reason": "FieldValueRequired", "message": "needed" }),
            ),
            json!(0),
            "spec.x: Required value: needed",
        ),
        (
            with_rule(
                json!({ "type": "object", "properties": fields }),
                json!({ "rule": "self.a > 1", "fieldPath": ".a", "message": "bad a" }),
            ),
            json!({ "a": 0 }),
            "spec.x.a: Invalid value: bad a",
        ),
        (
            with_rule(
                json!({ "type": "array", "items": { "type": "integer" } }),
                json!({ "rule": "self[3] > 1" }),
            ),
            json!([1]),
            "spec.x: Invalid value: \"array\": index out of bounds: 3 evaluating rule: self[3] > 1",
        ),
        (
            with_rule(
                json!({ "type": "object", "properties": fields }),
                json!({ "rule": "self.a > 1" }),
            ),
            json!({}),
            "spec.x: Invalid value: \"object\": no such key: a evaluating rule: self.a > 1",
        ),
        (
            json!({
                "type": "object",
                "additionalProperties": integer(json!({ "rule": "self > 1", "message": "small" })),
            }),
            json!({ "k": 1 }),
            "spec.x[k]: Invalid value: 1: small",
        ),
    ] {
        let schema = with_fields(&json!({ "x": field }));
        assert_eq!(faults(&schema, &json!({ "x": value })), [expected]);
    }
}

#[test]
fn transition_rules() {
    let frozen = json!({
        "type": "string", "x-kubernetes-validations": [{ "rule": "self == oldSelf", "message": "frozen" }],
    });
    let start = integer(json!({
        "rule": "oldSelf.hasValue() || self == 0", "optionalOldSelf": true, "message": "must start at 0",
    }));
    let schema = with_fields(&json!({ "frozen": frozen, "start": start }));
    assert_eq!(faults(&schema, &json!({ "frozen": "a" })), Vec::<String>::new());
    assert_eq!(
        faults(&schema, &json!({ "start": 1 })),
        ["spec.start: Invalid value: 1: must start at 0"]
    );
    assert_eq!(
        change_faults(
            &schema,
            &json!({ "frozen": "a", "start": 0 }),
            &json!({ "frozen": "b", "start": 1 })
        ),
        ["spec.frozen: Invalid value: \"b\": frozen"]
    );
    assert_eq!(change_faults(&schema, &json!({}), &json!({ "frozen": "b" })), Vec::<String>::new());
}

#[test]
fn a_rule_that_holds_no_longer_is_forgiven_where_nothing_changes() {
    let schema = with_fields(
        &json!({ "x": integer(json!({ "rule": "self > 5" })), "y": { "type": "string" } }),
    );
    assert_eq!(
        change_faults(&schema, &json!({ "x": 1 }), &json!({ "x": 1, "y": "new" })),
        Vec::<String>::new()
    );
    assert_eq!(
        change_faults(&schema, &json!({ "x": 1 }), &json!({ "x": 2 })),
        ["spec.x: Invalid value: 2: failed rule: self > 5"]
    );
}

#[test]
fn values_have_the_types_of_their_schema() {
    let fields = json!({
        "na-me": { "type": "string" }, "namespace": { "type": "string" }, "a__b": { "type": "string" },
        "n": { "type": "number" }, "when": { "type": "string", "format": "date-time" },
        "wait": { "type": "string", "format": "duration" }, "io": { "x-kubernetes-int-or-string": true },
        "limit": { "type": "string" },
    });
    let value = json!({
        "na-me": "a", "namespace": "b", "a__b": "c", "n": 2, "when": "2024-01-01T00:00:00Z", "wait": "90s",
        "io": "50%", "limit": "1Gi",
    });
    for rule in [
        "self.na__dash__me == 'a' && self.__namespace__ == 'b' && self.a__underscores__b == 'c'",
        "self.n / 4.0 == 0.5",
        "self.when < timestamp('2025-01-01T00:00:00Z')",
        "self.wait > duration('1m')",
        "self.io == '50%'",
        "quantity(self.limit).isGreaterThan(quantity('1Mi'))",
        "self.?limit.orValue('x') == '1Gi'",
        "!has(self.gone) || true",
    ] {
        let field =
            with_rule(json!({ "type": "object", "properties": fields }), json!({ "rule": rule }));
        let schema = with_fields(&json!({ "x": field }));
        assert_eq!(faults(&schema, &json!({ "x": value })), Vec::<String>::new(), "{rule}");
    }
}

fn compile_error(rule: &str) -> String {
    let source = json!({
        "type": "object",
        "properties": {
            "x": { "type": "integer" }, "s": { "type": "string" },
            "l": { "type": "array", "items": { "type": "integer" } },
            "m": {
                "type": "object",
                "additionalProperties": { "type": "object", "properties": { "k": { "type": "string" } } },
            },
            "io": { "x-kubernetes-int-or-string": true },
        },
    });
    check_rule(&json!({ "rule": rule }), &source, false).rule_error.unwrap_or_default()
}

#[test]
fn rules_are_checked_when_they_are_written() {
    for (rule, expected) in [
        ("self.nope", "1:5: undefined field 'nope'\n | self.nope\n | ....^"),
        ("self.x.y", "1:7: type 'int' does not support field selection\n | self.x.y\n | ......^"),
        (
            "self.x > 'a'",
            "1:8: found no matching overload for '_>_' applied to '(int, string)'\n | self.x > 'a'\n | .......^",
        ),
        (
            "self.l.all(i, i.y > 1)",
            "1:16: type 'int' does not support field selection\n | self.l.all(i, i.y > 1)\n | ...............^",
        ),
        (
            "self.m.all(k, self.m[k].z == 'a')",
            "1:24: undefined field 'z'\n | self.m.all(k, self.m[k].z == 'a')\n | .......................^",
        ),
        (
            "nope(self.x)",
            "1:5: undeclared reference to 'nope' (in container '')\n | nope(self.x)\n | ....^",
        ),
        ("has(self.nope)", "1:4: undefined field 'nope'\n | has(self.nope)\n | ...^"),
        (
            "'a' in self.l",
            "1:5: found no matching overload for '@in' applied to '(string, list(int))'\n | 'a' in self.l\n \
             | ....^",
        ),
    ] {
        assert_eq!(compile_error(rule), format!("compilation failed: ERROR: <input>:{expected}"));
    }
    assert_eq!(compile_error("self.x"), "cel expression must evaluate to a bool");
}

#[test]
fn good_rules_pass() {
    for rule in [
        "self.x > 1 && size(self.s) < 3u || self.l.exists(i, i == self.x)",
        "self.l.map(i, i + 1).filter(i, i > 1).size() > 0",
        "self.m.all(k, self.m[k].k == 'a')",
        "self.io == 1 || self.io == '1'",
        "oldSelf.x == self.x",
        "self.?x.orValue(1) > 0 && optional.of(self.x).hasValue()",
        "type(self.x) == int",
        "quantity(self.s).compareTo(quantity('1')) == 0",
        "self.s.matches('^[a-z]$') && self.s.lowerAscii() == 'a'",
        "double(self.x) * 1.5 > 1.0 && self.x < 1.5",
        "self.l.sum() > 3 && self.l == [] && -self.x < -1 - 2",
        "[1, 2].exists_one(i, i == self.x) ? true : self.s != 'x'",
    ] {
        assert_eq!(compile_error(rule), "", "{rule}");
    }
}

#[test]
fn macros_that_cannot_be_evaluated_are_named() {
    let schema = |rule: &str| with_rule(json!({ "type": "object" }), json!({ "rule": rule }));
    let rule = "self.l.transformList(i, v, v * 2).size() == 3";
    assert_eq!(unsupported_function(&schema(rule)), Some("transformList".to_owned()));
    assert_eq!(unsupported_function(&schema("self.l.all(i, i > 1)")), None);
}

#[test]
fn expressions_that_are_nested_deeply_are_refused_or_evaluated() {
    let deep = |open: &str, inner: &str, close: &str, depth: usize| {
        open.repeat(depth) + inner + &close.repeat(depth)
    };
    let forms: [(&dyn Fn(usize) -> String, usize); 8] = [
        (&|depth| deep("(", "self > 0", ")", depth), 88),
        (&|depth| deep("!", "true", "", depth & !1), 88),
        (&|depth| deep("[", "1", "]", depth) + " != []", 88),
        (&|depth| deep("[1].all(x, ", "x > 0", ")", depth), 28),
        (&|depth| format!("self{} > 1", " + 1".repeat(depth)), 88),
        (&|depth| deep("self < 0 ? false : ", "true", "", depth), 40),
        (&|depth| deep("-", "1", "", depth) + " < 2", 88),
        (&|depth| deep("{'a': ", "1", "}", depth) + " != {}", 88),
    ];
    for (form, depth) in forms {
        let shallow = integer(json!({ "rule": form(depth) }));
        let what = form(2);
        let found = faults(&with_fields(&json!({ "x": shallow })), &json!({ "x": 1 }));
        assert!(!found.iter().any(|fault| fault.contains("recursion")), "{what}: {found:?}");
        assert_eq!(check_rule(&json!({ "rule": form(depth) }), &shallow, false).rule_error, None);
        for depth in [92, 5_000] {
            let deep = integer(json!({ "rule": form(depth) }));
            let found = check_rule(&json!({ "rule": form(depth) }), &deep, false).rule_error;
            let why = found.unwrap_or_default();
            assert!(why.ends_with("expression recursion limit exceeded: 90"), "{what}: {why}");
        }
    }
    let long = format!("self > {}", "1".repeat(100_000));
    let why = check_rule(&json!({ "rule": long }), &integer(json!({})), false).rule_error.unwrap();
    assert!(why.ends_with("expression code point size exceeds limit: size: 100007, limit 100000"));
}
