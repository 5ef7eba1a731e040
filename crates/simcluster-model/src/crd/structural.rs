//! Whether a schema is structural: every field has a type of its own outside of `allOf`, `anyOf`,
//! `oneOf` and `not` (`apiextensions-apiserver`, `pkg/apiserver/schema/{convert,validation,complete}.go`).

use serde_json::{Value, json};

use super::{list, text};
use crate::field::FieldError;
use crate::schema::go_regex;

/// Keywords that no schema may use.
const UNSUPPORTED: [(&str, &str); 7] = [
    ("id", "id"),
    ("$schema", "schema"),
    ("$ref", "$ref"),
    ("patternProperties", "patternProperties"),
    ("dependencies", "dependencies"),
    ("additionalItems", "additionalItems"),
    ("definitions", "definitions"),
];

/// Where a node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Why a schema cannot be read as a structural one at all.
pub(super) fn unreadable(schema: &Value) -> Option<String> {
    let unsupported = UNSUPPORTED.iter().find(|(key, _)| is_set(schema, key));
    if let Some((_, name)) = unsupported {
        return Some(format!("OpenAPIV3Schema '{name}' is not supported"));
    }
    let nested = ["not"].iter().filter_map(|key| object(schema, key));
    let lists = ["allOf", "anyOf", "oneOf"].iter().flat_map(|key| list(schema, key));
    if let Some(why) = nested.chain(lists).find_map(unreadable) {
        return Some(why);
    }
    let preserve = "x-kubernetes-preserve-unknown-fields";
    if schema.get(preserve).and_then(Value::as_bool) == Some(false) {
        return Some(format!("internal error: '{preserve}' must be true or undefined"));
    }
    if schema.get("items").is_some_and(Value::is_array) {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let children = object(schema, "items")
        .into_iter()
        .chain(properties.into_iter().flat_map(|map| map.values()))
        .chain(object(schema, "additionalProperties"));
    children.into_iter().find_map(unreadable)
}

/// All faults of a readable schema, sorted by their text.
pub(super) fn faults(schema: &Value, path: &str) -> Vec<FieldError> {
    let mut faults = Vec::new();
    invariants(schema, Level::Root, path, &mut faults);
    incomplete(schema, schema, path, path, &mut faults);
    faults.sort_by_key(ToString::to_string);
    faults
}

fn is_set(schema: &Value, key: &str) -> bool {
    schema.get(key).is_some_and(|value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(map) => !map.is_empty() || key == "additionalItems",
        Value::Array(_) | Value::Bool(_) | Value::Number(_) => true,
    })
}

fn object<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    schema.get(key).filter(|value| value.is_object())
}

fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or_default()
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn invariants(schema: &Value, level: Level, path: &str, faults: &mut Vec<FieldError>) {
    let kind = text(schema, "type");
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    let int_or_string = flag(schema, "x-kubernetes-int-or-string");
    let preserve = flag(schema, "x-kubernetes-preserve-unknown-fields");
    match object(schema, "items") {
        Some(items) => invariants(items, Level::Item, &format!("{path}.items"), faults),
        None if kind == "array" => {
            faults.push(FieldError::required(format!("{path}.items"), "must be specified"));
        }
        None => {}
    }
    for (name, field) in properties(schema) {
        invariants(field, Level::Field, &format!("{path}.properties[{name}]"), faults);
    }
    let additional = schema.get("additionalProperties").filter(|value| !value.is_null());
    if let Some(additional) = additional {
        let place = format!("{path}.additionalProperties");
        if level == Level::Root {
            faults.push(FieldError::forbidden(&*place, "must not be used at the root"));
        }
        if additional.is_object() {
            invariants(additional, Level::Field, &place, faults);
        }
    }
    if int_or_string {
        let why = "must be false if x-kubernetes-int-or-string is true";
        for key in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if flag(schema, key) {
                let field = format!("{path}.{key}");
                faults.push(FieldError::invalid(field, &json!(true), why));
            }
        }
    }
    value_validation(schema, path, is_either(schema), faults);
    type_faults(&kind, level, embedded, int_or_string || preserve, path, faults);
    if embedded && additional.is_some() {
        let why = "must not be used if x-kubernetes-embedded-resource is set";
        faults.push(FieldError::forbidden(format!("{path}.additionalProperties"), why));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        let why = "must be object at the root";
        faults.push(FieldError::invalid(format!("{path}.type"), &json!(kind), why));
    }
    meta_faults(schema, level, level == Level::Root || embedded, path, faults);
    if embedded && !preserve && properties(schema).next().is_none() {
        let why = "must not be empty if x-kubernetes-embedded-resource is true without \
                   x-kubernetes-preserve-unknown-fields";
        faults.push(FieldError::required(format!("{path}.properties"), why));
    }
}

fn type_faults(
    kind: &str,
    level: Level,
    embedded: bool,
    may_be_empty: bool,
    path: &str,
    faults: &mut Vec<FieldError>,
) {
    let field = format!("{path}.type");
    if embedded && kind != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        faults.push(if kind.is_empty() {
            FieldError::required(field, why)
        } else {
            FieldError::invalid(field, &json!(kind), why)
        });
    } else if kind.is_empty() && !may_be_empty {
        let why = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        faults.push(FieldError::required(field, why));
    }
}

/// Faults of what a schema says of `apiVersion`, `kind` and `metadata`.
fn meta_faults(
    schema: &Value,
    level: Level,
    is_resource: bool,
    path: &str,
    faults: &mut Vec<FieldError>,
) {
    let field =
        |name: &str| properties(schema).find(|(key, _)| *key == name).map(|(_, value)| value);
    let mut wrong_type = |name: &str, node: &Value, wanted: &str| {
        let kind = text(node, "type");
        if is_resource && kind != wanted {
            let field = format!("{path}.properties[{name}].type");
            faults.push(FieldError::invalid(field, &json!(kind), &format!("must be {wanted}")));
        }
    };
    for name in ["kind", "apiVersion"] {
        if let Some(node) = field(name) {
            wrong_type(name, node, "string");
        }
    }
    let Some(metadata) = field("metadata") else { return };
    wrong_type("metadata", metadata, "object");
    if level != Level::Root {
        return;
    }
    let allowed = metadata.as_object().into_iter().flatten().all(|(key, _)| match key.as_str() {
        "type" | "default" => true,
        "properties" => {
            properties(metadata).all(|(name, _)| matches!(name.as_str(), "name" | "generateName"))
        }
        _ => false,
    });
    if !allowed {
        let why = "must not specify anything other than name and generateName, but metadata is \
                   implicitly specified";
        faults.push(FieldError::forbidden(format!("{path}.properties[metadata]"), why));
    }
}

/// Whether the schema's `anyOf` only says "integer or string".
fn is_either(schema: &Value) -> bool {
    schema.get("anyOf") == Some(&json!([{ "type": "integer" }, { "type": "string" }]))
}

fn value_validation(schema: &Value, path: &str, skip_any_of: bool, faults: &mut Vec<FieldError>) {
    if !skip_any_of {
        for (index, branch) in list(schema, "anyOf").enumerate() {
            nested(branch, &format!("{path}.anyOf[{index}]"), false, faults);
        }
    }
    for (index, branch) in list(schema, "allOf").enumerate() {
        let skip = index == 0 && is_either(branch);
        nested(branch, &format!("{path}.allOf[{index}]"), skip, faults);
    }
    for (index, branch) in list(schema, "oneOf").enumerate() {
        nested(branch, &format!("{path}.oneOf[{index}]"), false, faults);
    }
    if let Some(not) = object(schema, "not") {
        nested(not, &format!("{path}.not"), false, faults);
    }
    let pattern = text(schema, "pattern");
    if let Err(why) = go_regex(&pattern) {
        let why = format!("must be a valid regular expression, but isn't: {why}");
        faults.push(FieldError::invalid(format!("{path}.pattern"), &json!(pattern), &why));
    }
}

/// Faults of a branch, which may only restrict values.
fn nested(schema: &Value, path: &str, skip_any_of: bool, faults: &mut Vec<FieldError>) {
    value_validation(schema, path, skip_any_of, faults);
    if let Some(items) = object(schema, "items") {
        nested(items, &format!("{path}.items"), false, faults);
    }
    for (name, field) in properties(schema) {
        nested(field, &format!("{path}.properties[{name}]"), false, faults);
    }
    let mut forbid = |key: &str, wanted: &str| {
        let why = format!("must be {wanted} to be structural");
        faults.push(FieldError::forbidden(format!("{path}.{key}"), &why));
    };
    let filled = |key: &str| match schema.get(key) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Bool(true) | Value::Number(_) | Value::Object(_)) => true,
    };
    for (key, wanted) in [
        ("type", "empty"),
        ("additionalProperties", "undefined"),
        ("default", "undefined"),
        ("title", "empty"),
        ("description", "empty"),
        ("nullable", "false"),
        ("x-kubernetes-preserve-unknown-fields", "false"),
        ("x-kubernetes-embedded-resource", "false"),
        ("x-kubernetes-int-or-string", "false"),
        ("x-kubernetes-list-map-keys", "empty"),
        ("x-kubernetes-list-type", "undefined"),
        ("x-kubernetes-map-type", "undefined"),
        ("x-kubernetes-validations", "empty"),
    ] {
        let given = match key {
            "default" => schema.get(key).is_some_and(|value| !value.is_null()),
            _ => filled(key),
        };
        if given {
            forbid(key, wanted);
        }
    }
    if properties(schema).any(|(name, _)| name == "metadata") {
        let why = "must not be specified in a nested context";
        faults.push(FieldError::forbidden(format!("{path}.properties[metadata]"), why));
    }
}

/// Faults of branches that restrict fields which the schema itself does not have.
fn incomplete(
    branch: &Value,
    schema: &Value,
    schema_path: &str,
    path: &str,
    faults: &mut Vec<FieldError>,
) {
    if let Some(not) = object(branch, "not") {
        incomplete_nested(not, Some(schema), schema_path, &format!("{path}.not"), faults);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for (index, inner) in list(branch, key).enumerate() {
            let path = format!("{path}.{key}[{index}]");
            incomplete_nested(inner, Some(schema), schema_path, &path, faults);
        }
    }
}

fn incomplete_nested(
    branch: &Value,
    schema: Option<&Value>,
    schema_path: &str,
    path: &str,
    faults: &mut Vec<FieldError>,
) {
    let Some(schema) = schema else {
        let why = format!("because it is defined in {path}");
        faults.push(FieldError::required(schema_path, &why));
        return;
    };
    incomplete(branch, schema, schema_path, path, faults);
    if let Some(items) = object(branch, "items") {
        let place = format!("{schema_path}.items");
        let path = format!("{path}.items");
        incomplete_nested(items, object(schema, "items"), &place, &path, faults);
    }
    for (name, field) in properties(branch) {
        let place = format!("{schema_path}.properties[{name}]");
        let path = format!("{path}.properties[{name}]");
        let known = properties(schema).find(|(key, _)| *key == name).map(|(_, node)| node);
        incomplete_nested(field, known, &place, &path, faults);
    }
}
