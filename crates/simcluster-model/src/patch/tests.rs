//! Tests of patches: answers recorded from a real server, and laws that hold for any document.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::schema::Schema;

fn patched(document: &Value, patch: &Value) -> Result<Value, PatchError> {
    json_patch(document, patch, true)
}

#[test]
fn json_patch_applies_in_order() {
    let patch = json!([
        { "op": "test", "path": "/a", "value": 1 },
        { "op": "add", "path": "/list/-", "value": "c" },
        { "op": "remove", "path": "/list/0" },
        { "op": "copy", "from": "/list/0", "path": "/copied" },
        { "op": "move", "from": "/a", "path": "/x~1y" },
        { "op": "replace", "path": "/list/-1", "value": "z" },
    ]);
    let document = json!({ "a": 1, "list": ["a", "b"] });
    let expected = json!({ "x/y": 1, "list": ["b", "z"], "copied": "b" });
    assert_eq!(patched(&document, &patch), Ok(expected));
}

#[test]
fn json_patch_takes_a_missing_member_for_null() {
    let document = json!({ "a": {} });
    for operation in [
        json!({ "op": "test", "path": "/a/b", "value": null }),
        json!({ "op": "test", "path": "/a/b" }),
    ] {
        assert_eq!(patched(&document, &json!([operation])), Ok(document.clone()));
    }
    let replaced = patched(&document, &json!([{ "op": "replace", "path": "/b", "value": 1 }]));
    assert_eq!(replaced, Ok(json!({ "a": {}, "b": 1 })));
    let ignored = patched(&document, &json!([{ "op": "add", "path": "zip/b", "value": 1 }]));
    assert_eq!(ignored, Ok(json!({ "a": {}, "b": 1 })));
}

#[test]
fn json_patch_copies_no_more_than_3_mebibytes() {
    let copies = |count: usize| {
        let copy = |index| json!({ "op": "copy", "from": "/a", "path": format!("/a{index}") });
        Value::Array((0..count).map(copy).collect())
    };
    let document = json!({ "a": "x".repeat(700_000) });
    assert!(patched(&document, &copies(4)).is_ok());
    assert!(matches!(patched(&document, &copies(5)), Err(PatchError::Rejected(_))));
    let double = |index| json!({ "op": "copy", "from": "/a", "path": format!("/a/{index}") });
    let refused = patched(&json!({ "a": { "c": 1 } }), &(0..60).map(double).collect());
    assert!(matches!(refused, Err(PatchError::Rejected(_))));
}

#[test]
fn json_patch_builds_nothing_that_is_nested_too_deeply() {
    let nested = (1..100).fold(json!([]), |inner, _| json!([inner]));
    let add = |steps: usize| {
        let path = format!("/a{}", "/0".repeat(steps));
        patched(&json!({ "a": nested }), &json!([{ "op": "add", "path": path, "value": nested }]))
    };
    assert!(add(26).is_ok());
    assert!(matches!(add(27), Err(PatchError::Rejected(_))));
    let deeper = json!([
        { "op": "copy", "from": "/a", "path": "/b" },
        { "op": "move", "from": "/a", "path": format!("/b{}", "/0".repeat(30)) },
    ]);
    assert!(matches!(patched(&json!({ "a": nested }), &deeper), Err(PatchError::Rejected(_))));
}

#[test]
fn json_patch_rejects_what_does_not_apply() {
    for operation in [
        json!({ "op": "test", "path": "/a", "value": 2 }),
        json!({ "op": "test", "path": "/no/b", "value": null }),
        json!({ "op": "remove", "path": "/no" }),
        json!({ "op": "replace", "path": "/no/no", "value": 1 }),
        json!({ "op": "fly", "path": "/a" }),
        json!({ "op": "add", "path": "/list/9", "value": 1 }),
        json!({ "op": "add", "path": "/list/x", "value": 1 }),
        json!({ "op": "replace", "path": "", "value": 1 }),
        json!({ "op": "remove", "path": "" }),
        json!({}),
        Value::Null,
    ] {
        let error = patched(&json!({ "a": 1, "list": [] }), &json!([operation])).unwrap_err();
        assert!(matches!(error, PatchError::Rejected(_)), "{operation}: {error:?}");
        let answer = ApiError::from(error);
        assert_eq!(
            (answer.code, answer.message.as_str()),
            (422, "the server rejected our request due to an error in our request")
        );
    }
}

#[track_caller]
fn check_error(result: Result<Value, PatchError>, code: u16, message: &str) {
    let answer = ApiError::from(result.unwrap_err());
    assert_eq!((answer.code, answer.message.as_str()), (code, message));
}

#[test]
fn json_patch_of_a_wrong_form() {
    check_error(
        patched(&json!({}), &json!({})),
        400,
        "error decoding patch: json: cannot unmarshal object into Go value of type \
         []handlers.jsonPatchOp",
    );
    check_error(
        patched(&json!({}), &json!(["x"])),
        400,
        "error decoding patch: json: cannot unmarshal string into Go value of type \
         handlers.jsonPatchOp",
    );
    check_error(
        patched(&json!({}), &json!([{ "op": 1 }])),
        400,
        "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of \
         type string",
    );
    check_error(
        patched(&json!({}), &Value::Array(vec![json!({}); 10_001])),
        413,
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001",
    );
    let unknown = notes(&json!([{ "op": "add" }, { "zip": 1 }]), &[]);
    assert_eq!(unknown, ["json patch unknown field \"[1].zip\""]);
}

#[test]
fn merge_patch_cuts_nulls_from_what_is_new() {
    let document = json!({ "a": { "b": 1, "c": [1] }, "d": 1 });
    let patch = json!({
        "a": { "b": null, "c": [{ "x": null }], "n": { "m": null } }, "d": { "e": [{ "f": null }] },
    });
    let expected = json!({ "a": { "c": [{}], "n": {} }, "d": { "e": [{}] } });
    assert_eq!(merge_patch(&document, &patch), Ok(expected));
    check_error(
        merge_patch(&document, &json!([])),
        400,
        "error decoding patch: json: cannot unmarshal array into Go value of type \
         map[string]interface {}",
    );
    check_error(merge_patch(&document, &Value::Null), 400, "Invalid JSON Patch");
}

fn deployment_schema() -> Arc<Schema> {
    let resources = crate::registry::built_in();
    Arc::clone(&resources.iter().find(|one| one.plural == "deployments").unwrap().schema)
}

fn pod(spec: &Value) -> Value {
    json!({ "spec": { "template": { "spec": spec } } })
}

fn strategic(document: &Value, patch: &Value) -> Result<Value, PatchError> {
    strategic_merge(document, patch, &deployment_schema())
}

#[test]
fn strategic_merge_merges_lists_by_key() {
    let document = pod(&json!({ "containers": [
        {
            "name": "c1", "image": "i1", "args": ["x"], "ports": [{ "containerPort": 80 }],
            "env": [{ "name": "A", "value": "1" }, { "name": "B", "value": "2" }],
        },
        { "name": "c2", "image": "i2" },
    ] }));
    let patch = pod(&json!({ "containers": [
        { "name": "c2", "image": "i3" },
        { "name": "c3", "image": "i4" },
        {
            "name": "c1", "args": ["y"], "ports": [{ "containerPort": 81 }],
            "env": [{ "name": "B", "value": "3" }, { "name": "C", "value": "4" }],
        },
    ] }));
    let expected = pod(&json!({ "containers": [
        { "name": "c2", "image": "i3" },
        { "name": "c3", "image": "i4" },
        {
            "name": "c1", "image": "i1", "args": ["y"],
            "ports": [{ "containerPort": 81 }, { "containerPort": 80 }],
            "env": [
                { "name": "A", "value": "1" }, { "name": "B", "value": "3" },
                { "name": "C", "value": "4" },
            ],
        },
    ] }));
    assert_eq!(strategic(&document, &patch), Ok(expected));
}

#[test]
fn strategic_merge_obeys_directives() {
    let mut document = pod(&json!({
        "containers": [
            { "name": "c2" }, { "name": "c3" },
            { "name": "c1", "env": [{ "name": "A", "value": "1" }] },
        ],
        "volumes": [{ "name": "v", "emptyDir": {} }],
        "nodeSelector": { "a": "b" },
    }));
    document["metadata"] = json!({ "finalizers": ["x.io/a", "x.io/b"] });
    let mut patch = pod(&json!({
        "$setElementOrder/containers": [{ "name": "c3" }, { "name": "c1" }],
        "containers": [
            { "name": "c2", "$patch": "delete" },
            { "name": "c1", "env": [{ "$patch": "replace" }, { "name": "Z", "value": "z" }] },
        ],
        "volumes": [{ "name": "v", "$retainKeys": ["name", "configMap"], "configMap": { "name": "x" } }],
        "nodeSelector": { "$patch": "replace", "n": "m" },
    }));
    patch["metadata"] = json!({
        "$deleteFromPrimitiveList/finalizers": ["x.io/b"], "finalizers": ["x.io/c"],
    });
    let mut expected = pod(&json!({
        "containers": [{ "name": "c3" }, { "name": "c1", "env": [{ "name": "Z", "value": "z" }] }],
        "volumes": [{ "name": "v", "configMap": { "name": "x" } }],
        "nodeSelector": { "n": "m" },
    }));
    expected["metadata"] = json!({ "finalizers": ["x.io/c", "x.io/a"] });
    assert_eq!(strategic(&document, &patch), Ok(expected));
}

#[test]
fn strategic_merge_says_what_is_wrong() {
    let document = pod(&json!({ "containers": [{ "name": "c1" }] }));
    for (patch, code, message) in [
        (
            pod(&json!({ "containers": [{ "image": "noname" }] })),
            500,
            "map: map[image:noname] does not contain declared merge key: name",
        ),
        (
            pod(&json!({ "containers": [{ "name": "c1", "$patch": "fly" }] })),
            500,
            "unknown patch type: fly in map: map[$patch:fly name:c1]",
        ),
        (
            json!({ "spec": { "$retainKeys": ["x"], "replicas": 1 } }),
            400,
            "invalid patch format of retainKeys",
        ),
        (
            pod(&json!({ "$setElementOrder/nope": [1] })),
            500,
            "unable to find api field in struct PodSpec for the json field \"nope\"",
        ),
        (
            json!({ "spec": { "replicas": "x" } }),
            422,
            " \"\" is invalid: patch: Invalid value: \"map[spec:map[replicas:x]]\": unrecognized type: int32",
        ),
        (
            json!({ "metadata": { "labels": 3 } }),
            422,
            " \"\" is invalid: patch: Invalid value: \"map[metadata:map[labels:3]]\": cannot restore map from int64",
        ),
        (
            json!({ "metadata": { "labels": { "k": 3 } } }),
            422,
            " \"\" is invalid: patch: Invalid value: \"map[metadata:map[labels:map[k:3]]]\": cannot convert int64 to string",
        ),
    ] {
        check_error(strategic(&document, &patch), code, message);
    }
    assert_eq!(strategic(&document, &Value::Null), Ok(document));
}

/// Documents without nulls: merge patches cannot make any.
fn document(depth: u32) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![any::<bool>().prop_map(Value::from), (0..3).prop_map(Value::from)];
    leaf.prop_recursive(depth, 16, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map("[abc]", inner, 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    proptest::collection::btree_map("[abc]", document(3), 0..3)
        .prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

/// The smallest merge patch from one document to another.
fn difference(from: &Value, to: &Value) -> Value {
    let (Some(old), Some(new)) = (from.as_object(), to.as_object()) else { return to.clone() };
    let removed =
        old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let changed =
        new.iter().filter(|(key, value)| old.get(*key) != Some(value)).map(|(key, value)| {
            (key.clone(), old.get(key).map_or(value.clone(), |old| difference(old, value)))
        });
    Value::Object(removed.chain(changed).collect())
}

proptest! {
    #[test]
    fn a_merge_patch_leads_to_its_target(from in object(), to in object()) {
        let patch = difference(&from, &to);
        prop_assert_eq!(merge_patch(&from, &patch), Ok(to));
    }

    #[test]
    fn a_merge_patch_applied_twice_changes_nothing_more(from in object(), patch in object()) {
        let once = merge_patch(&from, &patch).unwrap();
        prop_assert_eq!(merge_patch(&once, &patch), Ok(once));
    }

    #[test]
    fn a_json_patch_can_be_undone(from in object(), key in "[abc]", value in document(2)) {
        let path = format!("/{key}");
        let undo = match from.get(&key) {
            Some(old) => json!([{ "op": "replace", "path": path, "value": old }]),
            None => json!([{ "op": "remove", "path": path }]),
        };
        let change = json!([{ "op": "add", "path": path, "value": value }]);
        let changed = json_patch(&from, &change, true).unwrap();
        prop_assert_eq!(changed.get(&key), Some(&value));
        prop_assert_eq!(json_patch(&changed, &undo, true), Ok(from));
    }
}
