//! The rules of custom resources and definitions on create and update.

use serde_json::{Value, json};

use super::{create, definition, established, things, update};
use crate::field::FieldError;
use crate::object;
use crate::registry;
use crate::resource::Resource;

fn thing(version: &str, rest: Value) -> Value {
    let mut thing = json!({
        "apiVersion": format!("example.com/{version}"), "kind": "Thing", "metadata": { "name": "a" },
    });
    thing.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    thing
}

/// A version with a status subresource and a scale, in which everything is allowed.
fn open() -> Resource {
    let scale = json!({
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    });
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    things(&json!([{
        "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema },
        "subresources": { "status": {}, "scale": scale },
    }]))
    .remove(0)
}

fn refused(answer: Result<Value, crate::error::ApiError>) -> String {
    answer.unwrap_err().message
}

#[test]
fn status_is_written_through_its_own_endpoint_only() {
    let resource = open();
    let (stored, _) =
        create(&resource, thing("v1", json!({ "spec": { "a": 1 }, "status": { "b": 1 } })))
            .unwrap();
    assert_eq!(stored.get("status"), None);
    let both = thing("v1", json!({ "spec": { "a": 2 }, "status": { "b": 2 } }));
    let main = update(&resource, "", &stored, both.clone()).unwrap();
    assert_eq!((main.get("spec"), main.get("status")), (Some(&json!({ "a": 2 })), None));
    assert!(resource.strategy.generation_changes(&main, &stored));
    let mut labelled = both;
    labelled["metadata"]["labels"] = json!({ "x": "y" });
    let status = update(&resource, "status", &stored, labelled).unwrap();
    assert_eq!(status["spec"], json!({ "a": 1 }));
    assert_eq!(status["status"], json!({ "b": 2 }));
    assert_eq!(status["metadata"].get("labels"), None);
    assert!(!resource.strategy.generation_changes(&status, &stored));
    let without = update(&resource, "status", &status, thing("v1", json!({}))).unwrap();
    assert_eq!(without.get("status"), None);
}

#[test]
fn what_the_scale_reads_must_be_a_count() {
    let resource = open();
    for (spec, expected) in [
        (
            json!({ "replicas": "three" }),
            ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: three is of the type string, \
             expected int64",
        ),
        (
            json!({ "replicas": -2 }),
            ".spec.replicas: Invalid value: -2: should be a non-negative integer",
        ),
        (
            json!({ "replicas": 2_147_483_648_i64 }),
            ".spec.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647",
        ),
    ] {
        let answer = create(&resource, thing("v1", json!({ "spec": spec })));
        let expected = format!("Thing.example.com \"a\" is invalid: {expected}");
        assert_eq!(refused(answer.map(|(object, _)| object)), expected);
    }
    let (stored, _) = create(&resource, thing("v1", json!({}))).unwrap();
    let selector = thing("v1", json!({ "status": { "selector": 1 } }));
    assert_eq!(
        refused(update(&resource, "status", &stored, selector)),
        "Thing.example.com \"a\" is invalid: .status.selector: Invalid value: \"\": .status.selector \
         accessor error: 1 is of the type int64, expected string"
    );
}

#[test]
fn faults_of_metadata_block_rules() {
    let schema = json!({
        "type": "object", "properties": { "n": { "type": "integer" } },
        "x-kubernetes-validations": [{ "rule": "self.n > 1" }],
    });
    let resource = things(&json!([
        { "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } },
    ]))
    .remove(0);
    let object = thing("v1", json!({ "n": 0 }));
    let texts = |metadata: Vec<FieldError>| {
        let faults = resource.strategy.create_faults(&resource, &object, metadata);
        faults.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(texts(Vec::new()), ["<nil>: Invalid value: failed rule: self.n > 1"]);
    let missing = FieldError::required("metadata.name", "name or generateName is required");
    let faults = texts(vec![missing]);
    assert_eq!(faults.len(), 2);
    assert!(
        faults[1].starts_with("<nil>: Invalid value: null: some validation rules were not checked")
    );
}

#[test]
fn version_and_kind_must_be_those_of_the_path() {
    let resource = open();
    let answer = |body: Value| refused(create(&resource, body).map(|(object, _)| object));
    assert_eq!(
        answer(thing("v9", json!({}))),
        "the API version in the data (example.com/v9) does not match the expected API version \
         (example.com/v1)"
    );
    assert_eq!(
        answer(thing("v1", json!({ "kind": "Gadget" }))),
        "Gadget.example.com \"a\" is invalid: kind: Invalid value: \"Gadget\": must be Thing"
    );
    assert_eq!(
        answer(thing("v1", json!({ "metadata": { "labels": 1 } }))),
        "Thing in version \"v1\" cannot be handled as a Thing: json: cannot unmarshal number into Go \
         struct field ObjectMeta.labels of type map[string]string"
    );
}

#[test]
fn without_conversion_only_the_version_changes() {
    let version = |name: &str, field: &str| {
        let fields = json!({ field: { "type": "string", "default": "d" } });
        let spec = json!({ "type": "object", "default": {}, "properties": fields });
        let schema = json!({ "type": "object", "properties": { "spec": spec } });
        json!({
            "name": name, "served": true, "storage": name == "v1", "schema": { "openAPIV3Schema": schema },
        })
    };
    let both = things(&json!([version("v1", "a"), version("v2", "b")]));
    let [v1, v2] = both.as_slice() else { panic!("two versions are served") };
    // What the storage version does not know is lost, and its defaults are the ones that count.
    let (read, _) = create(v2, thing("v2", json!({ "spec": { "b": "1" } }))).unwrap();
    assert_eq!(read["apiVersion"], json!("example.com/v2"));
    assert_eq!(read["spec"], json!({}));
    let stored = v1.strategy.encode_stored(v1, thing("v1", json!({ "spec": {} })));
    assert_eq!(v1.strategy.decode_stored(v1, stored)["spec"], json!({ "a": "d" }));
}

#[test]
fn selectable_fields_compare_as_text() {
    let fields = json!({
        "size": { "type": "string" }, "count": { "type": "integer" }, "on": { "type": "boolean" },
    });
    let spec = json!({ "type": "object", "properties": fields });
    let schema = json!({ "type": "object", "properties": { "spec": spec } });
    let paths = json!([{ "jsonPath": ".spec.size" }, { "jsonPath": ".spec.count" }, { "jsonPath": ".spec.on" }]);
    let resource = things(&json!([{
        "name": "v1", "served": true, "storage": true, "selectableFields": paths,
        "schema": { "openAPIV3Schema": schema },
    }]))
    .remove(0);
    let object = thing("v1", json!({ "spec": { "count": 3, "on": true } }));
    let label = |name: &str| resource.strategy.field_label(&resource, &object, name);
    assert_eq!(label("spec.count").as_deref(), Some("3"));
    assert_eq!(label("spec.on").as_deref(), Some("true"));
    assert_eq!(label("spec.size").as_deref(), Some(""));
    assert_eq!(label("spec.nope"), None);
}

fn definitions() -> Resource {
    let all = registry::built_in();
    let found = all.iter().find(|resource| resource.plural == "customresourcedefinitions");
    Resource::clone(found.unwrap())
}

fn version(name: &str, storage: bool) -> Value {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({ "name": name, "served": true, "storage": storage, "schema": { "openAPIV3Schema": schema } })
}

#[test]
fn a_new_definition_is_not_established() {
    let crd = definition(&json!([version("v1", true)]));
    let (stored, _) = create(&definitions(), crd).unwrap();
    assert_eq!(
        stored["status"],
        json!({
            "conditions": null, "acceptedNames": { "plural": "", "kind": "" }, "storedVersions": ["v1"],
        })
    );
    assert_eq!(stored["spec"]["names"]["listKind"], json!("ThingList"));
    assert_eq!(stored["spec"]["conversion"], json!({ "strategy": "None" }));
}

#[test]
fn versions_that_objects_are_stored_in_may_not_go() {
    let resource = definitions();
    let (old, _) = create(&resource, definition(&json!([version("v1", true)]))).unwrap();
    let answer = update(&resource, "", &old, definition(&json!([version("v2", true)])));
    assert!(refused(answer).contains(
        "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a \
         storage version"
    ));
    let both = definition(&json!([version("v1", false), version("v2", true)]));
    let new = update(&resource, "", &old, both).unwrap();
    assert_eq!(new["status"]["storedVersions"], json!(["v1", "v2"]));
    let mut shrunk = new.clone();
    shrunk["status"]["storedVersions"] = json!(["v2"]);
    let main = update(&resource, "", &new, shrunk.clone()).unwrap();
    assert_eq!(main["status"]["storedVersions"], json!(["v1", "v2"]));
    let status = update(&resource, "status", &new, shrunk).unwrap();
    assert_eq!(status["status"]["storedVersions"], json!(["v2"]));
}

#[test]
fn what_storage_depends_on_may_not_change() {
    let resource = definitions();
    let (stored, _) = create(&resource, definition(&json!([version("v1", true)]))).unwrap();
    let mut old = stored.clone();
    let status = established(stored)["status"].clone();
    for (key, value) in status.as_object().unwrap() {
        object::put(object::child(&mut old, "status"), key, value.clone());
    }
    for (path, value, field) in [
        ("spec.scope", "Cluster", "spec.scope"),
        ("spec.group", "x.example.com", "spec.group"),
        ("spec.names.plural", "others", "spec.names.plural"),
        ("spec.names.kind", "Other", "spec.names.kind"),
    ] {
        let mut new = old.clone();
        object::set_path(&mut new, path, json!(value));
        let message = refused(update(&resource, "", &old, new));
        let fault = format!("{field}: Invalid value: \"{value}\": field is immutable");
        assert!(message.contains(&fault), "{message}");
    }
    let mut new = old.clone();
    object::set_path(&mut new, "spec.names.shortNames", json!(["th"]));
    assert!(update(&resource, "", &old, new).is_ok());
}
