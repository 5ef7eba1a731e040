use serde_json::json;

use super::answer::choose;
use super::*;

fn rules(rules: Value) -> Vec<Rule> {
    serde_json::from_value(rules).unwrap()
}

fn admission(name: &str) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": { "uid": "u", "name": name, "operation": "CREATE" },
    })
}

/// What the rules answer to a review.
#[track_caller]
fn check(given: Value, review: &Value, expected: Value) {
    let rule = choose(&rules(given), review, &BTreeMap::new());
    let answer: Value = serde_json::from_str(&rule.body(review)).unwrap();
    assert_eq!(answer, expected);
}

fn answer(response: Value) -> Value {
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response })
}

#[test]
fn the_first_rule_that_applies_answers() {
    let given = json!([
        { "if": { "request.name": "a", "request.object": null }, "unless": { "request.operation": "DELETE" },
          "answer": { "response": { "allowed": false } } },
        { "if": { "request.name": "b" }, "answer": { "response": { "uid": null, "warnings": ["w"] } } },
    ]);
    check(given.clone(), &admission("a"), answer(json!({ "uid": "u", "allowed": false })));
    check(given.clone(), &admission("b"), answer(json!({ "allowed": true, "warnings": ["w"] })));
    check(given, &admission("c"), answer(json!({ "uid": "u", "allowed": true })));
}

#[test]
fn patches_are_encoded() {
    let given = json!([{ "answer": { "response": { "patch": [{ "op": "remove" }] } } }]);
    let encoded = STANDARD.encode(r#"[{"op":"remove"}]"#);
    let expected =
        json!({ "uid": "u", "allowed": true, "patch": encoded, "patchType": "JSONPatch" });
    check(given, &admission("a"), answer(expected));
    let given = json!([{ "answer": { "response": { "patch": "x", "patchType": null } } }]);
    let expected = json!({ "uid": "u", "allowed": true, "patch": STANDARD.encode("x") });
    check(given, &admission("a"), answer(expected));
}

#[test]
fn objects_are_converted() {
    let review = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": { "uid": "u", "desiredAPIVersion": "g/v2", "objects": [
            { "apiVersion": "g/v1", "spec": { "host": "h" } }, { "apiVersion": "g/v1" },
        ] },
    });
    let rule = json!([{ "move": { "spec.host": "spec.at.address" }, "each": { "x": 1 } }]);
    let expected = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "response": { "uid": "u", "result": { "status": "Success" }, "convertedObjects": [
            { "apiVersion": "g/v2", "spec": { "at": { "address": "h" } }, "x": 1 },
            { "apiVersion": "g/v2", "x": 1 },
        ] },
    });
    check(rule, &review, expected);
}

#[test]
fn saved_values_are_filled_in() {
    let names = BTreeMap::from([("u".to_owned(), "v".to_owned())]);
    let rules = rules(json!([{ "if": { "request.name": "{u}" }, "text": "{u} {x}" }]));
    assert_eq!(choose(&rules, &admission("v"), &names).body(&admission("v")), "v {x}");
}
