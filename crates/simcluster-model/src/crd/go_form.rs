//! Values of definitions as Go prints the internal types: JSON with the names of Go's fields, each of
//! which is always there.

use serde_json::Value;

use super::definition_faults::Common;
use super::{list, text};
use crate::field::{FieldError, FieldErrorKind};

/// `Invalid value: <text>: <why>` for a value that is printed already.
pub(super) fn invalid(field: &str, printed: &str, why: &str) -> FieldError {
    FieldError {
        kind: FieldErrorKind::Invalid,
        field: field.to_owned(),
        body: format!("Invalid value: {printed}: {why}"),
    }
}

/// One Go struct being printed.
#[derive(Default)]
struct Struct(Vec<String>);

impl Struct {
    fn put(mut self, name: &str, printed: impl Into<String>) -> Self {
        self.0.push(format!("{name:?}:{}", printed.into()));
        self
    }

    /// A string, empty if it is missing.
    fn string(self, name: &str, source: &Value, key: &str) -> Self {
        let printed = json(&Value::from(text(source, key)));
        self.put(name, printed)
    }

    fn flag(self, name: &str, source: &Value, key: &str) -> Self {
        let flag = source.get(key).and_then(Value::as_bool).unwrap_or_default();
        self.put(name, flag.to_string())
    }

    /// A pointer or a list: null if it is missing.
    fn any(self, name: &str, source: &Value, key: &str) -> Self {
        self.put(name, source.get(key).map_or_else(|| "null".to_owned(), json))
    }

    fn end(self) -> String {
        format!("{{{}}}", self.0.join(","))
    }
}

/// JSON as Go's encoder writes it: `<`, `>` and `&` are escaped.
fn json(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn optional(value: Option<&Value>, print: impl Fn(&Value) -> String) -> String {
    value.filter(|value| !value.is_null()).map_or_else(|| "null".to_owned(), print)
}

fn array(source: &Value, key: &str, print: impl Fn(&Value) -> String) -> String {
    match source.get(key).and_then(Value::as_array) {
        None => "null".to_owned(),
        Some(items) => {
            format!("[{}]", items.iter().map(print).collect::<Vec<_>>().join(","))
        }
    }
}

fn map(source: &Value, key: &str, print: impl Fn(&Value) -> String) -> String {
    match source.get(key).and_then(Value::as_object) {
        None => "null".to_owned(),
        Some(map) => {
            let entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{key:?}:{}", print(value))).collect();
            format!("{{{}}}", entries.join(","))
        }
    }
}

/// `[]CustomResourceDefinitionVersion`, without what all versions share.
pub(super) fn versions(versions: &[&Value], common: Common<'_>) -> String {
    if versions.is_empty() {
        return "null".to_owned();
    }
    let own = |version: &Value, shared: Option<&Value>, key: &str| {
        version.get(key).filter(|_| shared.is_none()).cloned().unwrap_or(Value::Null)
    };
    let printed: Vec<String> = versions
        .iter()
        .map(|version| {
            let schema = own(version, common.schema, "schema");
            let subresources = own(version, common.subresources, "subresources");
            let columns = own(version, common.columns, "additionalPrinterColumns");
            let selectable = own(version, common.selectable, "selectableFields");
            let holder = Value::Object(
                [("columns".to_owned(), columns), ("selectable".to_owned(), selectable)]
                    .into_iter()
                    .collect(),
            );
            Struct::default()
                .string("Name", version, "name")
                .flag("Served", version, "served")
                .flag("Storage", version, "storage")
                .flag("Deprecated", version, "deprecated")
                .any("DeprecationWarning", version, "deprecationWarning")
                .put(
                    "Schema",
                    optional(Some(&schema), |schema_holder| {
                        let inner = schema_holder.get("openAPIV3Schema");
                        Struct::default()
                            .put("OpenAPIV3Schema", optional(inner, schema_props))
                            .end()
                    }),
                )
                .put("Subresources", optional(Some(&subresources), subresources_form))
                .put("AdditionalPrinterColumns", array(&holder, "columns", column_form))
                .put(
                    "SelectableFields",
                    array(&holder, "selectable", |field| {
                        Struct::default().string("JSONPath", field, "jsonPath").end()
                    }),
                )
                .end()
        })
        .collect();
    format!("[{}]", printed.join(","))
}

fn subresources_form(source: &Value) -> String {
    Struct::default()
        .put("Status", optional(source.get("status"), |_| "{}".to_owned()))
        .put(
            "Scale",
            optional(source.get("scale"), |scale| {
                Struct::default()
                    .string("SpecReplicasPath", scale, "specReplicasPath")
                    .string("StatusReplicasPath", scale, "statusReplicasPath")
                    .any("LabelSelectorPath", scale, "labelSelectorPath")
                    .end()
            }),
        )
        .end()
}

fn column_form(column: &Value) -> String {
    let priority = column.get("priority").and_then(Value::as_i64).unwrap_or_default();
    Struct::default()
        .string("Name", column, "name")
        .string("Type", column, "type")
        .string("Format", column, "format")
        .string("Description", column, "description")
        .put("Priority", priority.to_string())
        .string("JSONPath", column, "jsonPath")
        .end()
}

/// A `ValidationRule`.
pub(super) fn rule(source: &Value) -> String {
    Struct::default()
        .string("Rule", source, "rule")
        .string("Message", source, "message")
        .string("MessageExpression", source, "messageExpression")
        .any("Reason", source, "reason")
        .string("FieldPath", source, "fieldPath")
        .any("OptionalOldSelf", source, "optionalOldSelf")
        .end()
}

/// `JSONSchemaProps`.
pub(super) fn schema_props(source: &Value) -> String {
    let nested = |key: &str| optional(source.get(key), schema_props);
    let schema_or_bool = |key: &str| {
        optional(source.get(key), |value| {
            let (allows, schema) = match value.as_bool() {
                Some(flag) => (flag, "null".to_owned()),
                None => (true, schema_props(value)),
            };
            Struct::default().put("Allows", allows.to_string()).put("Schema", schema).end()
        })
    };
    let items = optional(source.get("items"), |items| {
        let (schema, schemas) = if items.is_array() {
            ("null".to_owned(), array(source, "items", schema_props))
        } else {
            (schema_props(items), "null".to_owned())
        };
        Struct::default().put("Schema", schema).put("JSONSchemas", schemas).end()
    });
    Struct::default()
        .string("ID", source, "id")
        .string("Schema", source, "$schema")
        .any("Ref", source, "$ref")
        .string("Description", source, "description")
        .string("Type", source, "type")
        .flag("Nullable", source, "nullable")
        .string("Format", source, "format")
        .string("Title", source, "title")
        .any("Default", source, "default")
        .any("Maximum", source, "maximum")
        .flag("ExclusiveMaximum", source, "exclusiveMaximum")
        .any("Minimum", source, "minimum")
        .flag("ExclusiveMinimum", source, "exclusiveMinimum")
        .any("MaxLength", source, "maxLength")
        .any("MinLength", source, "minLength")
        .string("Pattern", source, "pattern")
        .any("MaxItems", source, "maxItems")
        .any("MinItems", source, "minItems")
        .flag("UniqueItems", source, "uniqueItems")
        .any("MultipleOf", source, "multipleOf")
        .any("Enum", source, "enum")
        .any("MaxProperties", source, "maxProperties")
        .any("MinProperties", source, "minProperties")
        .any("Required", source, "required")
        .put("Items", items)
        .put("AllOf", array(source, "allOf", schema_props))
        .put("OneOf", array(source, "oneOf", schema_props))
        .put("AnyOf", array(source, "anyOf", schema_props))
        .put("Not", nested("not"))
        .put("Properties", map(source, "properties", schema_props))
        .put("AdditionalProperties", schema_or_bool("additionalProperties"))
        .put("PatternProperties", map(source, "patternProperties", schema_props))
        .any("Dependencies", source, "dependencies")
        .put("AdditionalItems", schema_or_bool("additionalItems"))
        .put("Definitions", map(source, "definitions", schema_props))
        .any("ExternalDocs", source, "externalDocs")
        .any("Example", source, "example")
        .any("XPreserveUnknownFields", source, "x-kubernetes-preserve-unknown-fields")
        .flag("XEmbeddedResource", source, "x-kubernetes-embedded-resource")
        .flag("XIntOrString", source, "x-kubernetes-int-or-string")
        .any("XListMapKeys", source, "x-kubernetes-list-map-keys")
        .any("XListType", source, "x-kubernetes-list-type")
        .any("XMapType", source, "x-kubernetes-map-type")
        .put("XValidations", {
            let rules: Vec<String> = list(source, "x-kubernetes-validations").map(rule).collect();
            if rules.is_empty() { "null".to_owned() } else { format!("[{}]", rules.join(",")) }
        })
        .end()
}
