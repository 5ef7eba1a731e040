//! Reading and writing the common fields of objects held as JSON.

use serde_json::{Map, Value};

/// `metadata` as a map; empty if the object has none.
#[must_use]
pub fn metadata(object: &Value) -> &Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    object.get("metadata").and_then(Value::as_object).unwrap_or(&EMPTY)
}

/// The value as a map to write to; anything else is replaced by an empty one.
pub fn as_map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("made an object just above")
}

/// Sets one key of an object.
pub fn put(object: &mut Value, key: &str, value: Value) {
    as_map(object).insert(key.to_owned(), value);
}

/// The value of one key to write to, null if it was not there.
pub fn child<'a>(object: &'a mut Value, key: &str) -> &'a mut Value {
    as_map(object).entry(key).or_insert(Value::Null)
}

/// `metadata` as a map to write to; made if the object has none.
pub fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    as_map(child(object, "metadata"))
}

/// A string below `metadata`; empty if it is not there.
#[must_use]
pub fn meta_str<'a>(object: &'a Value, field: &str) -> &'a str {
    metadata(object).get(field).and_then(Value::as_str).unwrap_or_default()
}

/// `metadata.name`.
#[must_use]
pub fn name(object: &Value) -> &str {
    meta_str(object, "name")
}

/// `metadata.namespace`; empty for cluster-scoped objects.
#[must_use]
pub fn namespace(object: &Value) -> &str {
    meta_str(object, "namespace")
}

/// `metadata.uid`.
#[must_use]
pub fn uid(object: &Value) -> &str {
    meta_str(object, "uid")
}

/// `metadata.resourceVersion`.
#[must_use]
pub fn resource_version(object: &Value) -> &str {
    meta_str(object, "resourceVersion")
}

/// Sets `metadata.resourceVersion`.
pub fn set_resource_version(object: &mut Value, revision: u64) {
    metadata_mut(object).insert("resourceVersion".to_owned(), Value::from(revision.to_string()));
}

/// `metadata.generation`; 0 if it is not there.
#[must_use]
pub fn generation(object: &Value) -> i64 {
    metadata(object).get("generation").and_then(Value::as_i64).unwrap_or_default()
}

/// Whether `metadata.deletionTimestamp` is set.
#[must_use]
pub fn is_deleting(object: &Value) -> bool {
    metadata(object).get("deletionTimestamp").is_some_and(|time| !time.is_null())
}

/// The strings of a list below `metadata`, such as `finalizers`.
pub fn meta_list<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    metadata(object)
        .get(field)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// The value at a dotted path with an optional leading dot (`.spec.replicas`), as CRDs write them.
#[must_use]
pub fn at_path<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.trim_start_matches('.').split('.').try_fold(object, |node, key| node.get(key))
}

/// Sets the value at a dotted path, making the objects on the way.
pub fn set_path(object: &mut Value, path: &str, value: Value) {
    let mut node = object;
    for key in path.trim_start_matches('.').split('.') {
        node = child(node, key);
    }
    *node = value;
}

/// Whether two objects differ in nothing but one field.
#[must_use]
pub fn same_but(a: &Value, b: &Value, field: &str) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return a == b };
    let is_other = |(name, _): &(&String, &Value)| *name != field;
    a.iter().filter(is_other).eq(b.iter().filter(is_other))
}
