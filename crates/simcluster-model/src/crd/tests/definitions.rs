//! Definitions and what kube-apiserver v1.37.2 said of them.
//!
//! The faults are compared as sets, because the real server ranges over maps. Left out are faults with
//! the estimated cost of rules, which is not counted here, and with the words of Go's regexp package.

use serde_json::{Value, json};

use super::create;
use crate::registry;
use crate::resource::Resource;

fn kind_of_definitions() -> Resource {
    let all = registry::built_in();
    let found = all.iter().find(|resource| resource.plural == "customresourcedefinitions");
    Resource::clone(found.unwrap())
}

#[test]
fn faults_are_those_of_a_real_server() {
    let resource = kind_of_definitions();
    let records: Vec<Value> = serde_json::from_str(include_str!("definitions.json")).unwrap();
    for record in records {
        let body = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": record["name"] }, "spec": record["spec"],
        });
        let mut faults = Vec::new();
        if let Err(error) = create(&resource, body) {
            assert_eq!(error.code, 422, "{} {}", error.message, record["spec"]);
            let causes = error.details.unwrap().causes;
            faults.extend(causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)));
        }
        faults.sort();
        assert_eq!(json!(faults), record["faults"], "{}", record["spec"]);
    }
}

#[test]
fn rules_that_cannot_be_evaluated_are_refused_loudly() {
    let rule = json!([{ "rule": "self.l.transformList(i, v, v * 2).size() == 3" }]);
    let schema = json!({
        "type": "object", "x-kubernetes-validations": rule,
        "properties": { "l": { "type": "array", "maxItems": 3, "items": { "type": "integer" } } },
    });
    let versions = json!([
        { "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } },
    ]);
    let error = create(&kind_of_definitions(), super::definition(&versions)).unwrap_err();
    assert_eq!(error.code, 501);
}

#[test]
fn warnings() {
    let fields = json!({
        "a": { "type": "string", "format": "nope" },
        "b": { "type": "string", "format": "date-time" },
        "c": {
            "type": "array", "x-kubernetes-list-type": "set",
            "items": { "type": "object", "x-kubernetes-map-type": "atomic" },
        },
    });
    let schema = json!({ "type": "object", "properties": fields });
    let versions = json!([{ "name": "v1", "schema": { "openAPIV3Schema": schema } }]);
    let resource = kind_of_definitions();
    let crd = super::definition(&versions);
    assert_eq!(
        resource.strategy.warnings(&resource, "", &crd, None),
        [
            "unrecognized format \"nope\"",
            "x-kubernetes-list-type: set for items of type \"object\" is not supported by server-side \
             apply or CEL validation rules",
        ]
    );
    assert_eq!(resource.strategy.warnings(&resource, "", &crd, Some(&crd)), Vec::<String>::new());
}
