//! What holds for every object.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{object, with_fields};
use crate::schema::{Schema, fill_defaults, prune, validate};

/// A schema with something of everything.
fn schema() -> std::sync::Arc<Schema> {
    let item = json!({
        "type": "object", "required": ["a"],
        "properties": { "a": { "type": "string" }, "b": { "type": "integer", "default": 1 } },
    });
    with_fields(&json!({
        "a": { "type": "string", "default": "d" },
        "b": { "type": "integer", "nullable": true, "minimum": 0 },
        "c": item,
        "d": { "type": "array", "items": item },
        "e": { "type": "object", "additionalProperties": item },
        "f": { "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": { "a": item } },
        "g": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"],
            "items": item,
        },
    }))
}

/// Any JSON whose keys are often those of the schema.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..3).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map("[a-h]", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn pruning_twice_is_pruning_once(spec in any_json()) {
        let schema = schema();
        let mut once = object(&spec);
        prune(&mut once, &schema);
        let mut twice = once.clone();
        prop_assert_eq!(prune(&mut twice, &schema), Vec::<String>::new());
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn defaulting_twice_is_defaulting_once(spec in any_json()) {
        let schema = schema();
        let mut once = object(&spec);
        fill_defaults(&mut once, &schema);
        let mut twice = once.clone();
        fill_defaults(&mut twice, &schema);
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn a_valid_object_stays_valid(spec in any_json()) {
        let schema = schema();
        let mut valid = object(&spec);
        prune(&mut valid, &schema);
        fill_defaults(&mut valid, &schema);
        prop_assume!(validate(&valid, None, &schema).is_empty());
        prop_assert_eq!(validate(&valid, Some(&valid), &schema), vec![]);
        let mut again = valid.clone();
        prune(&mut again, &schema);
        fill_defaults(&mut again, &schema);
        prop_assert_eq!(&again, &valid);
    }

    #[test]
    fn whatever_it_was_before_may_stay(spec in any_json()) {
        let schema = schema();
        let mut before = object(&spec);
        // The server cannot match items of a map list without keys, so these may not stay.
        if let Some(spec) = before["spec"].as_object_mut() {
            spec.remove("g");
        }
        prop_assert_eq!(validate(&before, Some(&before), &schema), vec![]);
    }
}
