//! Tests of field management: forms recorded from a real server, and laws that hold for any object.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;

use super::path::PathElement;
use super::set::FieldSet;
use super::*;

static WIDGETS: LazyLock<Resource> = LazyLock::new(|| {
    let definition = json!({
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "plural": "widgets", "kind": "Widget", "listKind": "WidgetList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                    },
                },
                "schema": { "openAPIV3Schema": widget_schema() },
            }],
        },
        "status": {
            "acceptedNames": { "plural": "widgets", "kind": "Widget", "listKind": "WidgetList" },
            "conditions": [{ "type": "Established", "status": "True" }],
        },
    });
    crate::crd::resources(&definition).pop().unwrap()
});

fn widget_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "replicas": { "type": "integer", "default": 1 },
                    "size": { "type": "string" },
                    "note": { "type": "string", "nullable": true },
                    "tags": {
                        "type": "array", "items": { "type": "string" },
                        "x-kubernetes-list-type": "set",
                    },
                    "parts": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "properties": {
                                "name": { "type": "string" },
                                "count": { "type": "integer", "default": 1 },
                            },
                        },
                    },
                    "words": { "type": "array", "items": { "type": "string" } },
                    "limits": {
                        "type": "object",
                        "additionalProperties": { "x-kubernetes-int-or-string": true },
                    },
                    "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                },
            },
            "status": {
                "type": "object",
                "properties": { "replicas": { "type": "integer" }, "phase": { "type": "string" } },
            },
        },
    })
}

fn widget(spec: Value) -> Value {
    let mut widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": "a" },
    });
    if !spec.is_null() {
        widget["spec"] = spec;
    }
    widget
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

/// A write of a widget.
fn by<'a>(manager: &'a str, subresource: &'a str, now: Timestamp) -> Writing<'a> {
    Writing { resource: &WIDGETS, versions: &OneVersion, manager, subresource, now }
}

/// A stored object: what a server adds when it creates one.
fn stored(mut object: Value) -> Value {
    object["metadata"]["uid"] = json!("5f0c6e1e-7a57-4f0d-9c3f-0d9a3f5d2f11");
    object
}

fn created(manager: &str, spec: Value) -> Value {
    let mut object = widget(spec);
    WIDGETS.strategy.default(&WIDGETS, &mut object);
    record_update(&by(manager, "", at(0)), None, &mut object);
    stored(object)
}

fn updated(live: &Value, manager: &str, subresource: &str, change: impl Fn(&mut Value)) -> Value {
    let mut object = live.clone();
    change(&mut object);
    record_update(&by(manager, subresource, at(60)), Some(live), &mut object);
    object
}

fn applied(live: Option<&Value>, manager: &str, spec: Value) -> Result<Value, ApiError> {
    apply(&by(manager, "", at(120)), live, &widget(spec), false).map(stored)
}

fn forced(live: &Value, manager: &str, spec: Value) -> Value {
    apply(&by(manager, "", at(120)), Some(live), &widget(spec), true).unwrap()
}

/// `manager/operation[/subresource] = fieldsV1`, with a `*` for entries without a time.
#[track_caller]
fn check_entries(object: &Value, expected: &[(&str, Value)]) {
    let found: Vec<(String, Value)> = entries_of(object)
        .iter()
        .map(|entry| {
            let text = |key: &str| entry[key].as_str().unwrap_or_default();
            let mut who = format!("{}/{}", text("manager"), text("operation"));
            if !text("subresource").is_empty() {
                who = format!("{who}/{}", text("subresource"));
            }
            if entry.get("time").is_none() {
                who.push('*');
            }
            assert_eq!(text("fieldsType"), "FieldsV1");
            (who, entry["fieldsV1"].clone())
        })
        .collect();
    let expected: Vec<(String, Value)> =
        expected.iter().map(|(who, fields)| ((*who).to_owned(), fields.clone())).collect();
    assert_eq!(found, expected);
}

#[test]
fn an_update_owns_containers_and_defaults() {
    let object = created(
        "up",
        json!({
            "parts": [{ "name": "x", "count": 2 }], "tags": ["t", "u"], "words": ["a"],
            "limits": { "cpu": 1 }, "note": null,
            "free": { "any": { "thing": [1, { "k": null }] }, "empty": {} },
        }),
    );
    let fields = json!({ "f:spec": {
        ".": {},
        "f:free": { ".": {}, "f:any": { ".": {}, "f:thing": {} }, "f:empty": {} },
        "f:limits": { ".": {}, "f:cpu": {} },
        "f:note": {},
        "f:parts": { ".": {}, "k:{\"name\":\"x\"}": { ".": {}, "f:count": {}, "f:name": {} } },
        "f:replicas": {},
        "f:tags": { ".": {}, "v:\"t\"": {}, "v:\"u\"": {} },
        "f:words": {},
    } });
    check_entries(&object, &[("up/Update", fields)]);
}

#[test]
fn an_apply_owns_what_it_names() {
    let spec = json!({
        "parts": [{ "name": "x" }], "tags": ["t"], "limits": { "cpu": 1 }, "note": null,
        "free": { "any": { "thing": [1] }, "empty": {} },
    });
    let object = applied(None, "m1", spec).unwrap();
    let fields = json!({ "f:spec": {
        "f:free": { "f:any": { ".": {}, "f:thing": {} }, "f:empty": {} },
        "f:limits": { "f:cpu": {} },
        "f:note": {},
        "f:parts": { "k:{\"name\":\"x\"}": { ".": {}, "f:name": {} } },
        "f:tags": { "v:\"t\"": {} },
    } });
    check_entries(&object, &[("m1/Apply", fields)]);
    assert_eq!(object["spec"]["replicas"], 1);
    assert_eq!(object["spec"]["parts"], json!([{ "name": "x", "count": 1 }]));
}

#[test]
fn shared_ownership_has_no_time() {
    let live = created("up", json!({ "replicas": 2, "size": "S" }));
    let object = applied(Some(&live), "m2", json!({ "replicas": 2 })).unwrap();
    check_entries(
        &object,
        &[
            ("m2/Apply*", json!({ "f:spec": { "f:replicas": {} } })),
            ("up/Update", json!({ "f:spec": { ".": {}, "f:replicas": {}, "f:size": {} } })),
        ],
    );
}

#[test]
fn a_body_without_fields_makes_no_entry() {
    let live = applied(None, "m1", json!({ "size": "S" })).unwrap();
    assert_eq!(applied(Some(&live), "m4", Value::Null).unwrap(), live);
}

#[test]
fn force_leaves_the_container_to_its_owner() {
    let live = created("up", json!({ "replicas": 2, "size": "S" }));
    let object = forced(&live, "m3", json!({ "replicas": 4, "size": "M" }));
    check_entries(
        &object,
        &[
            ("m3/Apply", json!({ "f:spec": { "f:replicas": {}, "f:size": {} } })),
            ("up/Update", json!({ "f:spec": {} })),
        ],
    );
}

#[track_caller]
fn check_conflict(result: Result<Value, ApiError>, message: &str, fields: &[&str]) {
    let error = result.unwrap_err();
    assert_eq!((error.code, error.reason), (409, "Conflict"));
    assert_eq!(error.message, message);
    let details = error.details.unwrap();
    let found: Vec<&str> = details.causes.iter().map(|cause| cause.field.as_str()).collect();
    assert_eq!(found, fields);
    assert!(details.name.is_empty() && details.kind.is_empty());
}

#[test]
fn conflicts_name_managers_and_fields() {
    let live = created("up", json!({ "replicas": 2, "size": "S" }));
    check_conflict(
        applied(Some(&live), "m2", json!({ "replicas": 3 })),
        "Apply failed with 1 conflict: conflict with \"up\" using example.com/v1: .spec.replicas",
        &[".spec.replicas"],
    );
    let live = applied(Some(&live), "zed", json!({ "limits": { "cpu": 1 } })).unwrap();
    check_conflict(
        applied(Some(&live), "m2", json!({ "replicas": 3, "size": "M", "limits": { "cpu": 2 } })),
        "Apply failed with 3 conflicts: conflicts with \"up\" using example.com/v1:\n\
         - .spec.replicas\n- .spec.size\nconflicts with \"zed\":\n- .spec.limits.cpu",
        &[".spec.replicas", ".spec.size", ".spec.limits.cpu"],
    );
}

#[test]
fn a_dropped_field_goes_unless_somebody_else_owns_it() {
    let live = applied(None, "m1", json!({ "size": "S", "note": "x", "parts": [{ "name": "x" }] }))
        .unwrap();
    let live = applied(Some(&live), "m2", json!({ "size": "S" })).unwrap();
    let object = applied(Some(&live), "m1", json!({})).unwrap();
    assert_eq!(object["spec"], json!({ "size": "S", "replicas": 1 }));
}

#[test]
fn lists_keep_the_others_and_take_the_configurations_order() {
    let live = applied(None, "m1", json!({ "tags": ["b"], "parts": [{ "name": "b" }] })).unwrap();
    let live =
        applied(Some(&live), "m2", json!({ "tags": ["a"], "parts": [{ "name": "a" }] })).unwrap();
    assert_eq!(live["spec"]["tags"], json!(["b", "a"]));
    let spec =
        json!({ "tags": ["c", "b"], "parts": [{ "name": "c" }, { "name": "b", "count": 5 }] });
    let object = applied(Some(&live), "m2", spec).unwrap();
    assert_eq!(object["spec"]["tags"], json!(["c", "b"]));
    assert_eq!(
        object["spec"]["parts"],
        json!([{ "name": "c", "count": 1 }, { "name": "b", "count": 5 }])
    );
}

#[test]
fn clearing_the_entries_ends_tracking_until_the_next_apply() {
    let live = applied(None, "m1", json!({ "size": "S" })).unwrap();
    let live = updated(&live, "up", "", |object| {
        object["metadata"]["managedFields"] = json!([{}]);
    });
    check_entries(&live, &[]);
    let live = updated(&live, "up", "", |object| object["spec"]["note"] = json!("n"));
    check_entries(&live, &[]);
    let object = applied(Some(&live), "m2", json!({ "size": "S" })).unwrap();
    check_entries(
        &object,
        &[
            ("m2/Apply*", json!({ "f:spec": { "f:size": {} } })),
            (
                "before-first-apply/Update",
                json!({ "f:spec": { ".": {}, "f:note": {}, "f:replicas": {}, "f:size": {} } }),
            ),
        ],
    );
}

#[test]
fn unreadable_entries_of_a_client_do_not_count() {
    let live = created("up", json!({ "size": "S" }));
    let sent = json!([{ "manager": "x", "operation": "Nope", "apiVersion": "v1" }]);
    let object = updated(&live, "up", "", |object| {
        object["metadata"]["managedFields"] = sent.clone();
    });
    assert_eq!(object, live);
}

#[test]
fn the_oldest_updates_are_merged() {
    let mut live = created("b00", json!({}));
    for number in 1..=12 {
        let mut object = live.clone();
        object["spec"]["limits"][format!("l{number:02}")] = json!(number);
        let manager = format!("b{number:02}");
        record_update(&by(&manager, "", at(number * 2)), Some(&live), &mut object);
        live = object;
    }
    let entries = entries_of(&live);
    assert_eq!(entries.len(), 10);
    assert_eq!(entries[0]["manager"], "ancient-changes");
    assert_eq!(
        entries[0]["fieldsV1"],
        json!({ "f:spec": {
            ".": {},
            "f:limits": { ".": {}, "f:l01": {}, "f:l02": {}, "f:l03": {} },
            "f:replicas": {},
        } })
    );
}

#[test]
fn status_and_scale_have_entries_of_their_own() {
    let live = created("boot", json!({ "replicas": 2 }));
    let live = updated(&live, "ctl", "status", |object| {
        object["status"] = json!({ "phase": "Up" });
        object["spec"]["size"] = json!("ignored");
    });
    let live = updated(&live, "sc", "scale", |object| object["spec"]["replicas"] = json!(4));
    check_entries(
        &live,
        &[
            ("sc/Update/scale*", json!({ "f:spec": { "f:replicas": {} } })),
            ("boot/Update", json!({ "f:spec": {} })),
            ("ctl/Update/status", json!({ "f:status": { ".": {}, "f:phase": {} } })),
        ],
    );
    let scale = json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": { "name": "a" },
        "spec": { "replicas": 5 },
    });
    check_conflict(
        apply(&by("as", "scale", at(0)), Some(&live), &scale, false),
        "Apply failed with 1 conflict: conflict with \"sc\" with subresource \"scale\" using \
         autoscaling/v1: .spec.replicas",
        &[".spec.replicas"],
    );
    let error = apply(&by("as", "scale", at(0)), Some(&live), &scale, true).unwrap_err();
    assert_eq!(
        error,
        ApiError::raw(
            "failed to convert new object (/a; autoscaling/v1, Kind=Scale) to proper version: \
             request to convert CR to an invalid group/version: autoscaling/v1"
        )
    );
}

#[test]
fn kubectl_takes_over_what_client_side_apply_wrote() {
    let last = json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": { "annotations": {}, "name": "a", "namespace": "n" },
        "spec": { "replicas": 2, "size": "S" },
    });
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let mut object = widget(json!({ "replicas": 2, "size": "S" }));
    object["metadata"]["annotations"] = json!({ annotation: format!("{last}\n") });
    record_update(&by("kubectl-client-side-apply", "", at(0)), None, &mut object);
    let live = stored(object);
    let change = json!({ "replicas": 3 });
    assert!(applied(Some(&live), "other", change.clone()).is_err());
    let object = applied(Some(&live), "kubectl", change).unwrap();
    assert_eq!(
        object["metadata"]["annotations"][annotation],
        "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"a\"},\
         \"spec\":{\"replicas\":3}}\n"
    );
    check_conflict(
        applied(Some(&object), "kubectl", json!({ "replicas": 3, "size": "M" })),
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using \
         example.com/v1: .spec.size",
        &[".spec.size"],
    );
}

#[track_caller]
fn check_refused(config: &Value, code: u16, message: &str) {
    let error = apply(&by("m1", "", at(0)), None, config, false).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (code, message));
}

#[test]
fn what_a_configuration_may_not_be() {
    let typed = "failed to create typed patch object (/a; example.com/v1, Kind=Widget): ";
    for (spec, fault) in [
        (json!({ "foo": 1 }), ".spec.foo: field not declared in schema"),
        (
            json!({ "size": 1 }),
            ".spec.size: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (json!({ "parts": { "a": 1 } }), ".spec.parts: expected list, got &{map[a:1]}"),
        (
            json!({ "parts": [{ "name": "x" }, { "name": "x" }] }),
            ".spec.parts: duplicate entries for key [name=\"x\"]",
        ),
        (json!({ "tags": ["x", "x"] }), ".spec.tags: duplicate entries for key [=\"x\"]"),
        (
            json!({ "parts": [{ "count": 1 }] }),
            ".spec.parts: element 0: associative list with keys has an element that omits all key \
             fields [\"name\"] (and doesn't have default values for any key fields)",
        ),
        (json!({ "replicas": "x" }), ".spec.replicas: expected numeric (int or float), got string"),
    ] {
        check_refused(&widget(spec), 500, &format!("{typed}{fault}"));
    }
    let mut other = widget(Value::Null);
    other["apiVersion"] = json!("example.com/v2");
    check_refused(&other, 400, "invalid object type: example.com/v2, Kind=Widget");
    check_refused(&Value::Null, 400, "invalid object type: /, Kind=");
    let mut with_entries = widget(Value::Null);
    with_entries["metadata"]["managedFields"] = json!([]);
    check_refused(&with_entries, 400, "metadata.managedFields must be nil");
}

#[test]
fn built_in_kinds_start_as_go_structs() {
    let resources = crate::registry::built_in();
    let deployments = resources.iter().find(|one| one.plural == "deployments").unwrap();
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "d" },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "a": "b" } },
            "template": {
                "metadata": { "labels": { "a": "b" } },
                "spec": { "containers": [{ "name": "c", "image": "i" }] },
            },
        },
    });
    object = crate::builtin::decode_typed(object, &deployments.schema, "").unwrap().object;
    let writing = Writing { resource: deployments, ..by("m", "", at(0)) };
    record_update(&writing, None, &mut object);
    let item = json!({ ".": {}, "f:image": {}, "f:name": {}, "f:resources": {} });
    let fields = json!({ "f:spec": {
        "f:replicas": {},
        "f:selector": {},
        "f:template": {
            "f:metadata": { "f:labels": { ".": {}, "f:a": {} } },
            "f:spec": { "f:containers": { "k:{\"name\":\"c\"}": item } },
        },
    } });
    check_entries(&object, &[("m/Update", fields)]);
}

#[test]
fn times_alone_are_no_change() {
    let live = created("up", json!({ "size": "S" }));
    let mut object = live.clone();
    object["metadata"]["managedFields"][0]["time"] = json!("2001-01-01T00:00:00Z");
    ignore_time_changes(&live, &mut object);
    assert_eq!(object, live);
    object["metadata"]["managedFields"][0]["time"] = json!("2001-01-01T00:00:00Z");
    object["spec"]["size"] = json!("M");
    ignore_time_changes(&live, &mut object);
    assert_eq!(object["metadata"]["managedFields"][0]["time"], "2001-01-01T00:00:00Z");
}

fn step() -> impl Strategy<Value = PathElement> {
    prop_oneof![
        "[ab]".prop_map(|name| PathElement::field(&name)),
        (0..2_i64).prop_map(|number| PathElement::Value(super::path::Literal(json!(number)))),
        "[x-z]".prop_map(|name| PathElement::Key(vec![(
            "name".to_owned(),
            super::path::Literal(json!(name))
        )])),
    ]
}

fn set() -> impl Strategy<Value = FieldSet> {
    let path = proptest::collection::vec(step(), 1..4);
    proptest::collection::vec(path, 0..8).prop_map(|paths| {
        let mut set = FieldSet::default();
        for path in &paths {
            set.insert(path);
        }
        set
    })
}

fn spec() -> impl Strategy<Value = Value> {
    let tags = proptest::sample::subsequence(vec!["a", "b", "c"], 0..=3);
    let parts = proptest::sample::subsequence(vec!["x", "y", "z"], 0..=3);
    (
        proptest::option::of(0..3),
        proptest::option::of("[SM]"),
        proptest::option::of(tags),
        proptest::option::of(parts.prop_flat_map(|names| {
            proptest::collection::vec(proptest::option::of(1..3), names.len())
                .prop_map(move |counts| part_list(&names, &counts))
        })),
        proptest::option::of(proptest::collection::btree_map("[ab]", 0..2, 0..2)),
    )
        .prop_map(|(replicas, size, tags, parts, limits)| {
            let fields = [
                ("replicas", replicas.map(|value| json!(value))),
                ("size", size.map(|value| json!(value))),
                ("tags", tags.map(|value| json!(value))),
                ("parts", parts),
                ("limits", limits.map(|value| json!(value))),
            ];
            let given =
                fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            Value::Object(given.collect())
        })
}

fn part_list(names: &[&str], counts: &[Option<i32>]) -> Value {
    let parts = names.iter().zip(counts).map(|(name, count)| match count {
        Some(count) => json!({ "name": name, "count": count }),
        None => json!({ "name": name }),
    });
    parts.collect()
}

proptest! {
    #[test]
    fn sets_obey_the_laws_of_sets(a in set(), b in set(), c in set()) {
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.union(&b).union(&c), a.union(&b.union(&c)));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
        prop_assert!(a.difference(&b).intersection(&b).is_empty());
        prop_assert!(a.intersection(&b).is_subset(&a));
        prop_assert_eq!(a.is_subset(&b), a.difference(&b).is_empty());
        let mut trees = a.clone();
        trees.subtract_trees(&b);
        prop_assert!(trees.is_subset(&a.difference(&b)));
    }

    #[test]
    fn encoding_is_reversible(a in set()) {
        prop_assert_eq!(FieldSet::decode(&a.encode()), Ok(a));
    }

    #[test]
    fn applying_twice_changes_nothing_more(base in spec(), config in spec()) {
        let live = created("up", base);
        let once = forced(&live, "m", config.clone());
        prop_assert_eq!(forced(&once, "m", config), once);
    }

    #[test]
    fn giving_up_restores_what_nobody_else_has(base in spec(), config in spec()) {
        let live = applied(None, "base", base.clone()).unwrap();
        // Only what is new: nothing of `base` changes its value or its place.
        let Ok(more) = applied(Some(&live), "m", config) else { return Ok(()) };
        let again = applied(Some(&more), "m", json!({})).unwrap();
        let back = forced(&again, "base", base);
        prop_assert_eq!(&back["spec"]["size"], &live["spec"]["size"]);
        prop_assert_eq!(&back["spec"]["limits"], &live["spec"]["limits"]);
        prop_assert_eq!(&back["spec"]["replicas"], &live["spec"]["replicas"]);
    }

    #[test]
    fn an_update_that_changes_nothing_leaves_the_object_alone(base in spec(), config in spec()) {
        let live = forced(&created("up", base), "m", config);
        prop_assert_eq!(updated(&live, "x", "", |_| {}), live);
    }

    #[test]
    fn the_last_writer_owns_what_it_changed(base in spec(), next in spec()) {
        let live = created("up", base);
        let object = updated(&live, "x", "", |object| {
            object["spec"] = next.clone();
            WIDGETS.strategy.default(&WIDGETS, object);
        });
        let owned = Managed::decode(entries_of(&object)).unwrap();
        let node = Node::root(&WIDGETS.schema);
        let comparison = compare::compare(node, &live, &object);
        for (_, entry) in owned.iter() {
            prop_assert!(entry.fields.intersection(&comparison.removed).is_empty());
            if entry.writer.manager != "x" {
                prop_assert!(entry.fields.intersection(&comparison.set_by_new()).is_empty());
            }
        }
    }
}
