//! The rules of custom resources (`apiextensions-apiserver`, `pkg/registry/customresource`).

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::{embedded, metadata};
use crate::error::ApiError;
use crate::field::{FieldError, Verdict};
use crate::object::{self, as_map, at_path, put};
use crate::resource::{
    Convert, Decode, Decoded, FieldLabels, Lifecycle, Resource, ScalePaths, Show, Surroundings,
    Validate,
};
use crate::schema::{
    Schema, Validation, fill_defaults, numbers, prune, prune_nulls, prune_unknown,
};

/// The largest count that a scale subresource takes.
const REPLICAS_MAX: i64 = 2_147_483_647;

/// The strategy of one version of a custom resource.
#[derive(Debug, Clone)]
pub struct CustomStrategy {
    /// Whether the version has the status subresource.
    status: bool,
    /// Schemas of all versions, for objects that are stored in another one.
    schemas: Arc<BTreeMap<String, Arc<Schema>>>,
}

impl CustomStrategy {
    pub(super) fn new(status: bool, schemas: Arc<BTreeMap<String, Arc<Schema>>>) -> Self {
        Self { status, schemas }
    }

    /// The schema of the version that an object says it is of.
    fn schema_of(&self, object: &Value) -> Option<&Schema> {
        let api_version = object.get("apiVersion").and_then(Value::as_str)?;
        let version = api_version.rsplit('/').next()?;
        self.schemas.get(version).map(|schema| &**schema)
    }

    /// The schema by which fields of an object of another version are unknown. A version that does not
    /// exist knows none.
    fn schema_of_same_kind(&self, resource: &Resource, object: &Value) -> Option<&Schema> {
        static NOTHING: LazyLock<Schema> = LazyLock::new(Schema::default);
        let (group, _) = object.get("apiVersion")?.as_str()?.split_once('/')?;
        let same = group == resource.group && object.get("kind")?.as_str()? == resource.kind;
        same.then(|| self.schema_of(object).unwrap_or(&NOTHING))
    }
}

/// The 400 of a body that cannot be read as the kind.
fn not_handled_as(resource: &Resource, object: &Value) -> impl Fn(&str) -> ApiError + use<> {
    let field = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let version = field("apiVersion").rsplit('/').next().unwrap_or_default();
    let begin = format!("{} in version \"{version}\" cannot be handled as a", field("kind"));
    let kind = resource.kind.clone();
    move |why: &str| ApiError::bad_request(format!("{begin} {kind}: {why}"))
}

/// Why an object is none of the resource.
fn of_another_type(resource: &Resource, object: &Value) -> Option<ApiError> {
    let expected = resource.api_version();
    let field = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (field("apiVersion"), field("kind"));
    if api_version != expected {
        return Some(ApiError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version \
             ({expected})"
        )));
    }
    (kind != resource.kind).then(|| {
        let fault =
            FieldError::invalid("kind", &json!(kind), &format!("must be {}", resource.kind));
        ApiError::invalid_kind(&resource.group, kind, object::name(object), &[fault])
    })
}

impl Decode for CustomStrategy {
    fn decode(&self, resource: &Resource, body: Value) -> Result<Decoded, ApiError> {
        let mut object = body;
        normalise(&mut object, resource.scale.as_ref());
        let refused = of_another_type(resource, &object);
        let not_handled = not_handled_as(resource, &object);
        let mut unknown = Vec::new();
        let found = as_map(&mut object).remove("metadata");
        if let Some(found) = found {
            let decoded = metadata::decode(found, "metadata").map_err(|why| not_handled(&why))?;
            unknown.extend(decoded.unknown);
            put(&mut object, "metadata", decoded.object);
        }
        if refused.is_some() {
            if let Some(schema) = self.schema_of_same_kind(resource, &object) {
                unknown.extend(prune_unknown(&mut object, schema));
            }
            return Ok(Decoded { object, unknown, refused });
        }
        unknown.extend(prune_unknown(&mut object, &resource.schema));
        prune_nulls(&mut object, &resource.schema);
        let below = embedded::coerce(&mut object, &resource.schema);
        unknown.extend(below.map_err(|why| not_handled(&why))?);
        Ok(Decoded { object, unknown, refused })
    }

    fn default(&self, resource: &Resource, object: &mut Value) {
        fill_defaults(object, &resource.schema);
    }
}

impl Convert for CustomStrategy {
    fn encode_stored(&self, resource: &Resource, object: Value) -> Value {
        let mut object = object;
        if resource.version != resource.storage_version {
            let stored = format!("{}/{}", resource.group, resource.storage_version);
            put(&mut object, "apiVersion", json!(stored));
            if let Some(schema) = self.schemas.get(&resource.storage_version) {
                prune(&mut object, schema);
            }
        }
        object
    }

    fn decode_stored(&self, resource: &Resource, object: Value) -> Value {
        let mut object = object;
        if let Some(schema) = self.schema_of(&object) {
            prune(&mut object, schema);
            fill_defaults(&mut object, schema);
        }
        metadata::tidy(&mut object);
        let wanted = resource.api_version();
        if object.get("apiVersion").and_then(Value::as_str) != Some(&wanted) {
            put(&mut object, "apiVersion", json!(wanted));
            prune(&mut object, &resource.schema);
        }
        object
    }
}

impl Lifecycle for CustomStrategy {
    fn prepare_for_create(
        &self,
        _resource: &Resource,
        object: &mut Value,
        _around: &mut Surroundings<'_>,
    ) -> Result<(), ApiError> {
        if self.status {
            as_map(object).remove("status");
        }
        Ok(())
    }

    fn prepare_for_update(
        &self,
        _resource: &Resource,
        subresource: &str,
        object: &mut Value,
        old: &Value,
    ) {
        if subresource == "status" {
            let status = as_map(object).remove("status");
            let managed_fields = object::metadata_mut(object).remove("managedFields");
            *object = old.clone();
            set(object::metadata_mut(object), "managedFields", managed_fields);
            set(as_map(object), "status", status);
        } else if self.status {
            set(as_map(object), "status", old.get("status").cloned());
        }
    }

    fn generation_changes(&self, object: &Value, old: &Value) -> bool {
        let counted = |key: &&String| *key != "metadata" && !(self.status && *key == "status");
        let fields = |value: &Value| {
            let keys = value.as_object().into_iter().flat_map(|map| map.keys());
            keys.filter(counted).count()
        };
        let changed = object
            .as_object()
            .into_iter()
            .flatten()
            .any(|(key, value)| counted(&key) && old.get(key) != Some(value));
        changed || fields(object) != fields(old)
    }
}

impl Validate for CustomStrategy {
    fn create_faults(
        &self,
        resource: &Resource,
        object: &Value,
        metadata: Vec<FieldError>,
    ) -> Vec<FieldError> {
        let validation = Validation { object, old: None, schema: &resource.schema };
        let mut faults = metadata;
        faults.extend(validation.values());
        scale_faults(object, resource.scale.as_ref(), true, &mut faults);
        faults.extend(embedded::faults(object, &resource.schema));
        faults.extend(validation.lists());
        validation.rules(&mut faults);
        faults
    }

    fn update_verdict(
        &self,
        resource: &Resource,
        subresource: &str,
        object: &Value,
        old: &Value,
        metadata: Vec<FieldError>,
    ) -> Verdict {
        let validation = Validation { object, old: Some(old), schema: &resource.schema };
        let mut faults = metadata;
        let only_status = subresource == "status";
        if only_status {
            faults.extend(validation.status_values());
        } else {
            faults.extend(validation.values());
        }
        scale_faults(object, resource.scale.as_ref(), !only_status, &mut faults);
        if !only_status {
            faults.extend(embedded::faults(object, &resource.schema));
        }
        faults.extend(validation.lists());
        let forgiven = validation.rules(&mut faults);
        Verdict { faults, forgiven }
    }
}

impl FieldLabels for CustomStrategy {
    fn field_label(&self, resource: &Resource, object: &Value, label: &str) -> Option<String> {
        if !resource.selectable_fields.iter().any(|field| field == label) {
            return None;
        }
        Some(match at_path(object, label) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        })
    }
}

impl Show for CustomStrategy {}

fn set(map: &mut serde_json::Map<String, Value>, key: &str, value: Option<Value>) {
    match value {
        Some(value) => {
            map.insert(key.to_owned(), value);
        }
        None => {
            map.remove(key);
        }
    }
}

/// Brings numbers into the server's form, but for the counts of the scale subresource: the server looks
/// at these before it writes the object down, and refuses `2.0`.
fn normalise(object: &mut Value, scale: Option<&ScalePaths>) {
    let paths = scale.map(|scale| [&scale.spec_replicas, &scale.status_replicas]);
    let floats: Vec<(&String, Value)> = paths
        .into_iter()
        .flatten()
        .filter_map(|path| Some((path, at_path(object, path)?.clone())))
        .filter(|(_, count)| count.is_f64())
        .collect();
    numbers::normalise(object);
    for (path, count) in floats {
        object::set_path(object, path, count);
    }
}

/// Faults of what the scale subresource reads, reported under the path as the definition writes it.
fn scale_faults(
    object: &Value,
    scale: Option<&ScalePaths>,
    spec: bool,
    faults: &mut Vec<FieldError>,
) {
    let Some(scale) = scale else { return };
    let counts = [(spec, &scale.spec_replicas), (true, &scale.status_replicas)];
    for (_, path) in counts.into_iter().filter(|(wanted, _)| *wanted) {
        let count = match find(object, path) {
            Found::Nothing => continue,
            Found::Value(Value::Number(number)) if number.is_i64() => {
                number.as_i64().unwrap_or_default()
            }
            Found::Value(other) => {
                let why = accessor_error(path, other, "int64");
                faults.push(FieldError::invalid(path.as_str(), &json!(0), &why));
                continue;
            }
            Found::Blocked(why) => {
                faults.push(FieldError::invalid(path.as_str(), &json!(0), &why));
                continue;
            }
        };
        let why = if count < 0 {
            "should be a non-negative integer".to_owned()
        } else if count > REPLICAS_MAX {
            format!("should be less than or equal to {REPLICAS_MAX}")
        } else {
            continue;
        };
        faults.push(FieldError::invalid(path.as_str(), &json!(count), &why));
    }
    let Some(path) = &scale.label_selector else { return };
    let why = match find(object, path) {
        Found::Nothing | Found::Value(Value::String(_)) => return,
        Found::Value(other) => accessor_error(path, other, "string"),
        Found::Blocked(why) => why,
    };
    faults.push(FieldError::invalid(path.as_str(), &json!(""), &why));
}

/// What stands at a path.
enum Found<'a> {
    Nothing,
    Value(&'a Value),
    /// A value on the way is no object; the text of the server's error.
    Blocked(String),
}

fn find<'a>(object: &'a Value, path: &str) -> Found<'a> {
    let mut node = object;
    let mut seen = String::new();
    for key in path.strip_prefix('.').unwrap_or(path).split('.') {
        if node.is_null() {
            return Found::Nothing;
        }
        seen = format!("{seen}.{key}");
        let Some(map) = node.as_object() else {
            return Found::Blocked(accessor_error(&seen, node, "map[string]interface{}"));
        };
        let Some(value) = map.get(key) else { return Found::Nothing };
        node = value;
    }
    Found::Value(node)
}

fn accessor_error(path: &str, value: &Value, expected: &str) -> String {
    let path = path.strip_prefix('.').unwrap_or(path);
    let (shown, kind) = match value {
        Value::Null => ("<nil>".to_owned(), "<nil>"),
        Value::Bool(flag) => (flag.to_string(), "bool"),
        Value::Number(number) if number.is_i64() => (number.to_string(), "int64"),
        Value::Number(number) => {
            (numbers::go_float(number.as_f64().unwrap_or_default()), "float64")
        }
        Value::String(text) => (text.clone(), "string"),
        Value::Array(_) => (go_value(value), "[]interface {}"),
        Value::Object(_) => (go_value(value), "map[string]interface {}"),
    };
    format!(".{path} accessor error: {shown} is of the type {kind}, expected {expected}")
}

/// A value as Go's `%v` prints it.
fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) if number.is_i64() => number.to_string(),
        Value::Number(number) => numbers::go_float(number.as_f64().unwrap_or_default()),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_value).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let items: Vec<String> =
                map.iter().map(|(key, value)| format!("{key}:{}", go_value(value))).collect();
            format!("map[{}]", items.join(" "))
        }
    }
}
