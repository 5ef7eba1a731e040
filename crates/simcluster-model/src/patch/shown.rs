//! A patched object as the errors of the real server show it.
//!
//! Go writes the fields of an object in the order in which its types declare them. A patch opens the
//! containers on its way, which are maps then and come out in the order of their keys; what it does not
//! touch stays as it was.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::json::steps;
use crate::codec::protobuf::{self, Field};
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
    let kind = definition.map(|definition| format!("={definition}"));
    write(patched, kind.as_deref().unwrap_or_default(), Some(opened), &mut out);
    out
}

/// `kind` is a type as the field numbers name it: `=definition`, `[]item`, `{}value`, or nothing that
/// matters.
fn write(value: &Value, kind: &str, opened: Option<&Opened>, out: &mut String) {
    match value {
        Value::Object(map) => object(map, kind, opened, out),
        Value::Array(items) => {
            let item_kind = kind.strip_prefix("[]").unwrap_or_default();
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                let opened = opened.and_then(|opened| opened.0.get(&index.to_string()));
                write(item, item_kind, opened, out);
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string());
        }
    }
}

fn object(map: &Map<String, Value>, kind: &str, opened: Option<&Opened>, out: &mut String) {
    let fields = kind.strip_prefix('=').map(declared).unwrap_or_default();
    let place = |key: &str| fields.iter().position(|field| field.name() == key);
    let mut members: Vec<(&String, &Value)> = map.iter().collect();
    if opened.is_none() {
        // Stable, so what no type declares stays in the order of its keys.
        members.sort_by_key(|(key, _)| place(key).unwrap_or(usize::MAX));
    }
    out.push('{');
    for (index, (key, value)) in members.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(&Value::from(key.as_str()).to_string());
        out.push(':');
        let kind = match kind.strip_prefix("{}") {
            Some(kind) => kind,
            None => place(key).and_then(|at| fields.get(at)).map_or("", |field| field.kind()),
        };
        write(value, kind, opened.and_then(|opened| opened.0.get(key)), out);
    }
    out.push('}');
}

/// The fields of a definition, those of its inlined parts in their place.
fn declared(definition: &str) -> Vec<&'static Field> {
    let own = protobuf::fields(definition).iter();
    own.flat_map(|field| match field.kind().strip_prefix('=') {
        Some(inlined) if field.name().is_empty() => declared(inlined),
        _ => vec![field],
    })
    .collect()
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
