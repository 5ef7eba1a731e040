//! Faults of the schema of a version (`ValidateCustomResourceDefinitionOpenAPISchema` and what comes
//! before it).

use serde_json::{Value, json};

use super::{default_faults, go_form, list, selectable, structural, text, texts};
use crate::field::FieldError;
use crate::schema::check_rule;

/// Keywords that may stand at the root of a schema with a status subresource, with the names that Go
/// has for them.
const AT_ROOT: [(&str, &str); 22] = [
    ("description", "Description"),
    ("type", "Type"),
    ("format", "Format"),
    ("title", "Title"),
    ("maximum", "Maximum"),
    ("exclusiveMaximum", "ExclusiveMaximum"),
    ("minimum", "Minimum"),
    ("exclusiveMinimum", "ExclusiveMinimum"),
    ("maxLength", "MaxLength"),
    ("minLength", "MinLength"),
    ("pattern", "Pattern"),
    ("maxItems", "MaxItems"),
    ("minItems", "MinItems"),
    ("uniqueItems", "UniqueItems"),
    ("multipleOf", "MultipleOf"),
    ("required", "Required"),
    ("items", "Items"),
    ("properties", "Properties"),
    ("externalDocs", "ExternalDocs"),
    ("example", "Example"),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields"),
    ("x-kubernetes-validations", "XValidations"),
];

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// All faults of a version's schema. `status` says that the version has the status subresource.
pub(super) fn all(schema: &Value, path: &str, status: bool) -> Vec<FieldError> {
    let mut faults = Vec::new();
    if status {
        faults.extend(root_fault(schema, path));
    }
    if flag(schema, "nullable") {
        let why = "nullable cannot be true at the root";
        faults.push(FieldError::forbidden(format!("{path}.nullable"), why));
    }
    let unreadable = structural::unreadable(schema);
    let mut rules_can_be_checked = false;
    if unreadable.is_none() {
        let structural_faults = structural::faults(schema, path);
        if structural_faults.is_empty() {
            let default_faults = default_faults::all(schema, path);
            rules_can_be_checked = default_faults.is_empty();
            faults.extend(default_faults);
        } else {
            faults.extend(structural_faults);
        }
    }
    let mut found = Found { check_rules: rules_can_be_checked, ..Found::default() };
    let context =
        Context { defaults: Ok(()), inside_meta: false, uncorrelatable: None, root: true };
    node_faults(schema, path, &context, &mut found);
    faults.extend(found.schema);
    faults.extend(found.rules);
    if faults.is_empty()
        && let Some(why) = unreadable
    {
        faults.push(FieldError::invalid(path, &json!(""), &why));
    }
    faults
}

fn root_fault(schema: &Value, path: &str) -> Option<FieldError> {
    let kind = text(schema, "type");
    if !kind.is_empty() && kind != "object" {
        let why = "only \"object\" is allowed as the type at the root of the schema if the status \
                   subresource is enabled";
        return Some(FieldError::invalid(format!("{path}.type"), &json!(kind), why));
    }
    let stray = schema.as_object().into_iter().flatten().any(|(key, value)| {
        let empty = match value {
            Value::Null | Value::Bool(false) => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(_) | Value::Bool(true) | Value::Number(_) => false,
        };
        !empty && !AT_ROOT.iter().any(|(known, _)| known == key)
    });
    stray.then(|| {
        let names: Vec<&str> = AT_ROOT.iter().map(|(_, name)| *name).collect();
        let why = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is \
             enabled",
            names.join(" ")
        );
        go_form::invalid(path, &go_form::schema_props(schema), &why)
    })
}

fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or_default()
}

/// What holds for a node because of where it stands.
#[derive(Clone)]
struct Context {
    /// Whether defaults may be set; if not, why.
    defaults: Result<(), String>,
    inside_meta: bool,
    /// The first node on the way whose parts cannot be matched with old ones.
    uncorrelatable: Option<String>,
    root: bool,
}

impl Context {
    fn below(&self) -> Self {
        Self { root: false, ..self.clone() }
    }

    fn uncorrelatable_at(mut self, path: &str) -> Self {
        self.uncorrelatable.get_or_insert_with(|| path.to_owned());
        self
    }
}

/// Faults found so far; those of rules come last.
#[derive(Default)]
struct Found {
    schema: Vec<FieldError>,
    rules: Vec<FieldError>,
    check_rules: bool,
}

fn node_faults(schema: &Value, path: &str, context: &Context, found: &mut Found) {
    let before = found.schema.len();
    keyword_faults(schema, path, context, &mut found.schema);
    children(schema, path, context, found);
    type_keyword_faults(schema, path, &mut found.schema);
    list_keyword_faults(schema, path, &mut found.schema);
    map_list_faults(schema, path, &mut found.schema);
    rule_form_faults(schema, path, &mut found.schema);
    if found.check_rules && found.schema.len() == before {
        rule_faults(schema, path, context, &mut found.rules);
    }
}

fn keyword_faults(schema: &Value, path: &str, context: &Context, faults: &mut Vec<FieldError>) {
    let kind = text(schema, "type");
    if !kind.is_empty() && !TYPES.contains(&kind.as_str()) {
        let types = TYPES.map(str::to_owned);
        faults.push(FieldError::not_supported(format!("{path}.type"), &json!(kind), &types));
    }
    if schema.get("default").is_some_and(|value| !value.is_null())
        && let Err(why) = &context.defaults
    {
        let why = format!("must not be set {why}");
        faults.push(FieldError::forbidden(format!("{path}.default"), &why));
    }
    let mut forbid = |key: &str, why: &str| {
        faults.push(FieldError::forbidden(format!("{path}.{key}"), why));
    };
    for key in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"]
    {
        let given = schema.get(key).is_some_and(|value| match value {
            Value::Null => false,
            Value::String(text) => !text.is_empty(),
            Value::Object(map) => !map.is_empty() || key == "additionalItems",
            Value::Array(_) | Value::Bool(_) | Value::Number(_) => true,
        });
        if given {
            forbid(key, &format!("{key} is not supported"));
        }
    }
    if kind == "null" {
        forbid("type", "type cannot be set to null, use nullable as an alternative");
    }
    if schema.get("items").and_then(Value::as_array).is_some_and(|items| !items.is_empty()) {
        forbid("items", "items must be a schema object and not an array");
    }
    if context.inside_meta && flag(schema, "x-kubernetes-embedded-resource") {
        let why = "must not be used inside of resource meta";
        forbid("x-kubernetes-embedded-resource", why);
    }
    if flag(schema, "uniqueItems") {
        let why =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        forbid("uniqueItems", why);
    }
    let additional = schema.get("additionalProperties").filter(|value| !value.is_null());
    let has_properties = properties(schema).next().is_some();
    if has_properties && additional.is_some_and(|value| value.as_bool() != Some(true)) {
        let why = "additionalProperties and properties are mutual exclusive";
        forbid("additionalProperties", why);
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn children(schema: &Value, path: &str, context: &Context, found: &mut Found) {
    let object = |key: &str| schema.get(key).filter(|value| value.is_object());
    if let Some(additional) = object("additionalProperties") {
        let mut below = context.below();
        if context.inside_meta {
            let why = "inside additionalProperties applying to object metadata";
            below.defaults = Err(why.to_owned());
        }
        node_faults(additional, &format!("{path}.additionalProperties"), &below, found);
    }
    let resource = context.root || flag(schema, "x-kubernetes-embedded-resource");
    for (name, field) in properties(schema) {
        let mut below = context.below();
        if resource && matches!(name.as_str(), "metadata" | "apiVersion" | "kind") {
            below.inside_meta = true;
            if context.root {
                below.defaults = Err(format!("in top-level {name}"));
            }
        }
        node_faults(field, &format!("{path}.properties[{name}]"), &below, found);
    }
    // Rules in branches are not checked: they are forbidden there.
    let check_rules = std::mem::take(&mut found.check_rules);
    if let Some(not) = object("not") {
        node_faults(not, &format!("{path}.not"), &context.below(), found);
    }
    for key in ["allOf", "oneOf", "anyOf"] {
        for (index, branch) in list(schema, key).enumerate() {
            node_faults(branch, &format!("{path}.{key}[{index}]"), &context.below(), found);
        }
    }
    found.check_rules = check_rules;
    let is_map_list = text(schema, "x-kubernetes-list-type") == "map";
    let below = if is_map_list { context.below() } else { context.below().uncorrelatable_at(path) };
    if let Some(items) = object("items") {
        node_faults(items, &format!("{path}.items"), &below, found);
    }
    for (index, items) in list(schema, "items").enumerate() {
        node_faults(items, &format!("{path}.items[{index}]"), &below, found);
    }
}

fn type_keyword_faults(schema: &Value, path: &str, faults: &mut Vec<FieldError>) {
    let preserve = "x-kubernetes-preserve-unknown-fields";
    if schema.get(preserve).and_then(Value::as_bool) == Some(false) {
        let field = format!("{path}.{preserve}");
        faults.push(FieldError::invalid(field, &json!(false), "must be true or undefined"));
    }
    let map_type = text(schema, "x-kubernetes-map-type");
    if !map_type.is_empty() {
        wrong_type(schema, "object", "x-kubernetes-map-type", path, faults);
        choice(path, "x-kubernetes-map-type", &map_type, &["atomic", "granular"], faults);
    }
}

/// A keyword that needs a type of the node.
fn wrong_type(
    schema: &Value,
    wanted: &str,
    keyword: &str,
    path: &str,
    faults: &mut Vec<FieldError>,
) -> bool {
    let kind = text(schema, "type");
    let why = format!("must be {wanted} if {keyword} is specified");
    let field = format!("{path}.type");
    if kind == wanted {
        return false;
    }
    faults.push(if kind.is_empty() {
        FieldError::required(field, &why)
    } else {
        FieldError::invalid(field, &json!(kind), &why)
    });
    true
}

fn choice(path: &str, key: &str, value: &str, choices: &[&str], faults: &mut Vec<FieldError>) {
    if !choices.contains(&value) {
        let choices: Vec<String> = choices.iter().map(|one| (*one).to_owned()).collect();
        faults.push(FieldError::not_supported(format!("{path}.{key}"), &json!(value), &choices));
    }
}

fn list_keyword_faults(schema: &Value, path: &str, faults: &mut Vec<FieldError>) {
    const KEY: &str = "x-kubernetes-list-type";
    let list_type = text(schema, KEY);
    let keys = texts(schema, "x-kubernetes-list-map-keys");
    if !list_type.is_empty() {
        let wrong = wrong_type(schema, "array", KEY, path, faults);
        let items = schema.get("items").filter(|items| items.is_object());
        if !wrong
            && list_type == "set"
            && let Some(items) = items
        {
            let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
            let inner = text(items, KEY);
            let shown = items.get(KEY).cloned().unwrap_or(Value::Null);
            let map_type = text(items, "x-kubernetes-map-type");
            match text(items, "type").as_str() {
                "array" if !inner.is_empty() && inner != "atomic" => {
                    let field = format!("{path}.items.{KEY}");
                    faults.push(FieldError::invalid(field, &shown, why));
                }
                "object" if map_type != "atomic" => {
                    let field = format!("{path}.items.x-kubernetes-map-type");
                    faults.push(FieldError::invalid(field, &shown, why));
                }
                _ => {}
            }
        }
        choice(path, KEY, &list_type, &["atomic", "set", "map"], faults);
    }
    if !keys.is_empty() && list_type != "map" {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        let field = format!("{path}.{KEY}");
        faults.push(if list_type.is_empty() {
            FieldError::required(field, why)
        } else {
            FieldError::invalid(field, &json!(list_type), why)
        });
    }
}

fn map_list_faults(schema: &Value, path: &str, faults: &mut Vec<FieldError>) {
    const KEYS: &str = "x-kubernetes-list-map-keys";
    let list_type = text(schema, "x-kubernetes-list-type");
    let keys = texts(schema, KEYS);
    let items = schema.get("items").filter(|items| items.is_object());
    if list_type == "map" {
        if keys.is_empty() {
            let why = "must not be empty if x-kubernetes-list-type is map";
            faults.push(FieldError::required(format!("{path}.{KEYS}"), why));
        }
        match items {
            None => {
                let why = "must have a schema if x-kubernetes-list-type is map";
                faults.push(FieldError::required(format!("{path}.items"), why));
            }
            Some(items) if text(items, "type") != "object" => {
                let why = "must be object if parent array's x-kubernetes-list-type is map";
                let kind = json!(text(items, "type"));
                faults.push(FieldError::invalid(format!("{path}.items.type"), &kind, why));
            }
            Some(items) => map_key_faults(items, &keys, path, faults),
        }
    }
    let Some(items) = items.filter(|_| matches!(list_type.as_str(), "set" | "map")) else { return };
    if flag(items, "nullable") {
        let why = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        faults.push(FieldError::forbidden(format!("{path}.items.nullable"), &why));
    }
    if list_type != "map" {
        return;
    }
    let required = texts(items, "required");
    for key in &keys {
        let Some((_, field)) = properties(items).find(|(name, _)| *name == key) else { continue };
        let place = format!("{path}.items.properties[{key}]");
        let default = field.get("default").is_some_and(|value| !value.is_null());
        if !required.contains(key) && !default {
            let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or \
                       be a required property";
            faults.push(FieldError::required(format!("{place}.default"), why));
        }
        if flag(field, "nullable") {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            faults.push(FieldError::forbidden(format!("{place}.nullable"), why));
        }
    }
}

fn map_key_faults(items: &Value, keys: &[String], path: &str, faults: &mut Vec<FieldError>) {
    let field = format!("{path}.x-kubernetes-list-map-keys");
    for (index, key) in keys.iter().enumerate() {
        if let Some((_, property)) = properties(items).find(|(name, _)| *name == key) {
            if matches!(text(property, "type").as_str(), "array" | "object") {
                let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let place = format!("{path}.items.properties[{key}].type");
                let kind = json!(text(items, "type"));
                faults.push(FieldError::invalid(place, &kind, why));
            }
        } else {
            let why = "entries must all be names of item properties";
            faults.push(FieldError::invalid(&*field, &json!(keys), why));
        }
        if keys.iter().take(index).any(|earlier| earlier == key) {
            let why = "must not contain duplicate entries";
            faults.push(FieldError::invalid(&*field, &json!(keys), why));
        }
    }
}

/// Faults of rules that can be seen without compiling them.
fn rule_form_faults(schema: &Value, path: &str, faults: &mut Vec<FieldError>) {
    let has_breaks = |text: &str| text.contains(['\n', '\r']);
    for (index, rule) in list(schema, "x-kubernetes-validations").enumerate() {
        let place = format!("{path}.x-kubernetes-validations[{index}]");
        let (text_of_rule, message) = (text(rule, "rule"), text(rule, "message"));
        let (rule_line, message_line) = (text_of_rule.trim(), message.trim());
        if rule_line.is_empty() {
            faults.push(FieldError::required(format!("{place}.rule"), "rule is not specified"));
        } else if !message.is_empty() && message_line.is_empty() {
            let why = "must be non-empty if specified";
            faults.push(FieldError::invalid(format!("{place}.message"), &json!(message), why));
        } else if has_breaks(message_line) {
            let why = "must not contain line breaks";
            faults.push(FieldError::invalid(format!("{place}.message"), &json!(message), why));
        } else if has_breaks(rule_line) && message_line.is_empty() {
            let why = "message must be specified if rule contains line breaks";
            faults.push(FieldError::required(format!("{place}.message"), why));
        }
        let expression = text(rule, "messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let why = "messageExpression must be non-empty if specified";
            faults.push(FieldError::required(format!("{place}.messageExpression"), why));
        }
        let reason = text(rule, "reason");
        if !reason.is_empty() {
            choice(&place, "reason", &reason, &REASONS, faults);
        }
        field_path_faults(schema, &text(rule, "fieldPath"), &place, faults);
    }
}

fn field_path_faults(schema: &Value, field_path: &str, place: &str, faults: &mut Vec<FieldError>) {
    if field_path.is_empty() {
        return;
    }
    let mut wrong = |why: &str| {
        let field = format!("{place}.fieldPath");
        faults.push(FieldError::invalid(field, &json!(field_path), why));
    };
    if field_path.trim().is_empty() {
        wrong("must be non-empty if specified");
    }
    if field_path.contains(['\n', '\r']) {
        wrong("must not contain line breaks");
    }
    if selectable::follow(field_path, schema, true).is_err() {
        wrong("must be a valid path");
    }
}

/// Faults of rules that only their compilation shows.
fn rule_faults(schema: &Value, path: &str, context: &Context, faults: &mut Vec<FieldError>) {
    for (index, rule) in list(schema, "x-kubernetes-validations").enumerate() {
        let place = format!("{path}.x-kubernetes-validations[{index}]");
        let check = check_rule(rule, schema, context.root);
        let printed = || go_form::rule(rule);
        if let Some(why) = &check.rule_error {
            faults.push(go_form::invalid(&format!("{place}.rule"), &printed(), why));
        }
        if let Some(why) = &check.message_error {
            faults.push(go_form::invalid(&format!("{place}.messageExpression"), &printed(), why));
        }
        let optional = rule.get("optionalOldSelf").filter(|value| !value.is_null());
        if check.uses_old_self {
            if let Some(path) = &context.uncorrelatable {
                let why = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {path}"
                );
                let rule = json!(text(rule, "rule"));
                faults.push(FieldError::invalid(format!("{place}.rule"), &rule, &why));
            }
        } else if let Some(optional) = optional {
            let why = "may not be set if oldSelf is not used in rule";
            faults.push(FieldError::invalid(format!("{place}.optionalOldSelf"), optional, why));
        }
    }
}
