//! A patched object as the errors of the real server show it.
//!
//! Go writes the fields of an object in the order in which its types declare them. A patch opens the
//! containers on its way, which are maps then and come out in the order of their keys; what it does not
//! touch stays as it was.

use std::collections::BTreeMap;

use serde_json::Value;

use super::json::steps;
use crate::codec::declared::Type;
use crate::golang;

/// The containers that a patch has opened.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Opened(BTreeMap<String, Opened>);

/// What a JSON patch made of an object of a kind with this OpenAPI definition.
#[must_use]
pub fn by_json_patch(patched: &Value, patch: &Value, definition: Option<&str>) -> String {
    let mut opened = Opened::default();
    let operations = patch.as_array().into_iter().flatten();
    for path in operations.flat_map(|one| ["path", "from"].map(|key| one.get(key))).flatten() {
        let mut at = &mut opened;
        let mut on_the_way: Vec<String> = steps(path.as_str().unwrap_or_default()).collect();
        on_the_way.pop();
        for step in on_the_way {
            at = at.0.entry(step).or_default();
        }
    }
    text_of(patched, &opened, definition)
}

/// What a merge patch made of an object of a kind with this OpenAPI definition.
#[must_use]
pub fn by_merge_patch(patched: &Value, patch: &Value, definition: Option<&str>) -> String {
    text_of(patched, &opened_by_merge(patch), definition)
}

/// A strategic merge patch, which is shown instead of what it made: as Go prints it, and without what was
/// for the merge alone, which has gone while it merged.
#[must_use]
pub fn by_strategic_patch(patch: &Value) -> String {
    golang::plain(&without_directives(patch))
}

fn without_directives(patch: &Value) -> Value {
    let Value::Object(map) = patch else { return patch.clone() };
    let kept = map.iter().filter(|(key, _)| !key.starts_with('$'));
    let kept = kept.map(|(key, value)| (key.clone(), without_directives(value)));
    Value::Object(kept.collect())
}

fn opened_by_merge(patch: &Value) -> Opened {
    let members = patch.as_object().into_iter().flatten();
    let containers = members.filter(|(_, value)| value.is_object());
    Opened(containers.map(|(key, value)| (key.clone(), opened_by_merge(value))).collect())
}

fn text_of(patched: &Value, opened: &Opened, definition: Option<&str>) -> String {
    let mut out = String::new();
    write(patched, definition.map_or(Type::Other, Type::of_definition), Some(opened), &mut out);
    out
}

fn write(value: &Value, of: Type, opened: Option<&Opened>, out: &mut String) {
    let below = |key: &str| opened.and_then(|opened| opened.0.get(key));
    match value {
        Value::Object(map) => {
            let mut members = of.members(map);
            if opened.is_some() {
                members.sort_by_key(|(key, ..)| *key);
            }
            out.push('{');
            for (index, (key, value, of)) in members.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write(value, of, below(key), out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, of.item(), below(&index.to_string()), out);
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CONFIG_MAP: Option<&str> = Some("io.k8s.api.core.v1.ConfigMap");

    #[test]
    fn opened_containers_are_sorted_and_others_as_declared() {
        let patched = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": { "b": [], "a": "1" },
            "metadata": { "creationTimestamp": "t", "name": "a", "uid": "u", "namespace": "n" },
        });
        let patch = json!({ "data": { "b": [] } });
        assert_eq!(
            by_merge_patch(&patched, &patch, CONFIG_MAP),
            r#"{"apiVersion":"v1","data":{"a":"1","b":[]},"kind":"ConfigMap","metadata":{"name":"a","namespace":"n","uid":"u","creationTimestamp":"t"}}"#
        );
        let patch = json!([{ "op": "add", "path": "/metadata/name", "value": "a" }]);
        assert_eq!(
            by_json_patch(&patched, &patch, CONFIG_MAP),
            r#"{"apiVersion":"v1","data":{"a":"1","b":[]},"kind":"ConfigMap","metadata":{"creationTimestamp":"t","name":"a","namespace":"n","uid":"u"}}"#
        );
        assert_eq!(by_merge_patch(&patched, &json!({}), None), patched.to_string());
    }

    #[test]
    fn lists_and_inlined_fields_are_declared_too() {
        let pod = "io.k8s.api.core.v1.Pod";
        let patched = json!({ "spec": { "containers": [{ "image": "i", "name": "c" }] } });
        let text = r#"{"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
        assert_eq!(by_merge_patch(&patched, &json!({}), Some(pod)), text);
    }
}
