use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::compare::differences;

fn patch(line: &str, kind: &str) -> Step {
    let mut step = Step::new(line);
    step.headers = BTreeMap::from([("Content-Type".to_owned(), kind.to_owned())]);
    step
}

#[test]
fn verbs_and_resources() {
    let said = request;
    let things = "/apis/a.b/v1/namespaces/{ns}/things";
    let check = |line: &str, expected: &str| assert_eq!(said(&Step::new(line)), expected);
    check(&format!("POST {things}?dryRun=All"), "create things");
    check(&format!("PUT {things}/a/status"), "update things/status");
    check(&format!("GET {things}/a"), "get things");
    check(&format!("GET {things}"), "list things");
    check(&format!("DELETE {things}/a"), "delete things");
    check(&format!("DELETE {things}?limit=1"), "deletecollection things");
    check("PUT /api/v1/namespaces/{ns}-a/finalize", "update namespaces/finalize");
    check("GET /api/v1/namespaces/{ns}-a", "get namespaces");
    check("GET /api/v1/namespaces/{ns}/configmaps/a", "get configmaps");
    check("GET /api/v1/namespaces?limit=1", "list namespaces");
    let apply = patch(&format!("PATCH {things}/a/scale"), "application/apply-patch+yaml");
    assert_eq!(said(&apply), "apply things/scale");
}

#[test]
fn names_and_numbers_do_not_tell_differences_apart() {
    let signature = |name: &str, number: u32| {
        let real = json!({ "status": 422, "body": { "message": format!("\"{name}\" is invalid: {number}") } });
        let simulated = json!({ "status": 422, "body": { "message": format!("\"{name}\" is wrong: {number}") } });
        let places = differences(&real, &simulated);
        Signature::of(&Step::new("POST /api/v1/a"), &Answers { real, simulated, places })
    };
    assert_eq!(signature("a", 1), signature("b", 22));
    assert_eq!(
        signature("a", 1).to_string(),
        "real 422, simulated 422; body.message: real `_ is invalid: _`, simulated `_ is wrong: _`"
    );
}
