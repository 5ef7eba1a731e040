//! JSON patch (RFC 6902), as the server's library does it. It differs from the RFC: a missing member
//! counts as null (`test` of null passes, `replace` adds, `copy` copies null), indexes may be
//! negative, and what stands before the first slash of a path is ignored.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::PatchError;
use crate::codec::nesting::{DEPTH_MAX, depth};
use crate::golang;

const OPERATIONS_MAX: usize = 10_000;

/// What the `copy` operations of one patch may add to the document, in bytes of JSON.
const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;

/// The document after all operations of the patch. Who does not ask for unknown fields (`strict` is
/// false) does not have the types of fields checked either, until an operation needs them.
pub fn json_patch(document: &Value, patch: &Value, strict: bool) -> Result<Value, PatchError> {
    let operations = decode(patch, strict)?;
    let mut document = document.clone();
    let mut copied_bytes = 0;
    for operation in &operations {
        operation.apply(&mut document, &mut copied_bytes).map_err(PatchError::Rejected)?;
    }
    Ok(document)
}

/// What strict decoding says of a patch, and warnings: keys that stand twice in an operation, fields of
/// operations that JSON patch does not know, and keys that stand twice in what an operation puts into
/// the object. `duplicates` are the paths of keys in the patch, such as `[0].value.a`.
#[must_use]
pub fn notes(patch: &Value, duplicates: &[String]) -> Vec<String> {
    let items = patch.as_array().map(Vec::as_slice).unwrap_or_default();
    let known = |name: &str| ["op", "path", "from", "value"].contains(&name);
    let fields = items.iter().enumerate().flat_map(|(index, item)| {
        let names = item.as_object().into_iter().flat_map(Map::keys);
        names.map(move |name| (index, name))
    });
    let unknown: Vec<String> = fields
        .filter(|(_, name)| !known(name))
        .map(|(index, name)| format!("[{index}].{name}"))
        .collect();
    let twice = duplicates.iter().filter(|path| !unknown.contains(path));
    let mut notes: Vec<String> =
        twice.map(|path| format!("json patch duplicate field \"{path}\"")).collect();
    notes.extend(unknown.iter().map(|path| format!("json patch unknown field \"{path}\"")));
    for (index, item) in items.iter().enumerate() {
        let value = format!("[{index}].value");
        let Some(target) = item.get("path").and_then(Value::as_str) else { continue };
        if !matches!(item.get("op").and_then(Value::as_str), Some("add" | "replace")) {
            continue;
        }
        let target = target.trim_start_matches('/').replace('/', ".");
        let below = duplicates.iter().filter_map(|path| path.strip_prefix(&value));
        notes.extend(below.map(|rest| format!("duplicate field \"{target}{rest}\"")));
    }
    notes
}

struct Operation<'a>(Cow<'a, Map<String, Value>>);

fn decode(patch: &Value, strict: bool) -> Result<Vec<Operation<'_>>, PatchError> {
    let stage = if strict { "error decoding patch: " } else { "" };
    let malformed = |value: &Value, target: &str| {
        let found = golang::json_type_name(value);
        PatchError::Malformed(format!("{stage}json: cannot unmarshal {found} into Go {target}"))
    };
    let (list_type, item_type) = if strict {
        ("value of type []handlers.jsonPatchOp", "value of type handlers.jsonPatchOp")
    } else {
        ("value of type jsonpatch.Patch", "value of type jsonpatch.Operation")
    };
    let items = match patch {
        Value::Array(items) => items.as_slice(),
        Value::Null => &[],
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            return Err(malformed(patch, list_type));
        }
    };
    let mut operations = Vec::with_capacity(items.len());
    for item in items {
        let fields = match item {
            Value::Object(fields) => Cow::Borrowed(fields),
            Value::Null => Cow::Owned(Map::new()),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(malformed(item, item_type));
            }
        };
        // In the order of the text, as most clients write it: by name.
        for name in ["from", "op", "path"].into_iter().filter(|_| strict) {
            if let Some(value) = fields.get(name).filter(|it| !it.is_string() && !it.is_null()) {
                let target = format!("struct field jsonPatchOp.{name} of type string");
                return Err(malformed(value, &target));
            }
        }
        operations.push(Operation(fields));
    }
    if operations.len() > OPERATIONS_MAX {
        let count = operations.len();
        return Err(PatchError::TooManyOperations { count, max: OPERATIONS_MAX });
    }
    Ok(operations)
}

impl Operation<'_> {
    fn text(&self, name: &str) -> Result<&str, String> {
        self.0
            .get(name)
            .and_then(Value::as_str)
            .ok_or_else(|| format!("operation missing {name} field: missing value"))
    }

    fn value(&self) -> Value {
        self.0.get("value").cloned().unwrap_or(Value::Null)
    }

    fn apply(&self, document: &mut Value, copied_bytes: &mut usize) -> Result<(), String> {
        match self.text("op").unwrap_or("unknown") {
            "add" => add(document, self.text("path")?, self.value()),
            "remove" => {
                let path = self.text("path")?;
                let fault =
                    |why| format!("error in remove for path: '{path}': {why}: missing value");
                remove(document, path).map(drop).map_err(fault)
            }
            "replace" => replace(document, self.text("path")?, self.value()),
            "move" => {
                let value = remove(document, self.text("from")?)?;
                add(document, self.text("path")?, value)
            }
            "test" => self.test(document),
            "copy" => {
                let (container, key) = find(document, self.text("from")?)?;
                let value = get(container, &key)?.clone();
                count_copy(&value, copied_bytes)?;
                add(document, self.text("path")?, value)
            }
            other => Err(format!("Unexpected kind: {other}")),
        }
    }

    fn test(&self, document: &mut Value) -> Result<(), String> {
        let path = self.text("path")?;
        let expected = self.value();
        let found = if path.is_empty() {
            &*document
        } else {
            let (container, key) = find(document, path)?;
            get(container, &key)?
        };
        if *found == expected {
            Ok(())
        } else {
            Err(format!("testing value {path} failed: test failed"))
        }
    }
}

/// Refuses a copy with which the patch copies too much.
fn count_copy(value: &Value, copied_bytes: &mut usize) -> Result<(), String> {
    *copied_bytes += value.to_string().len();
    if *copied_bytes <= COPIED_BYTES_MAX {
        return Ok(());
    }
    Err(format!(
        "Unable to complete the copy, the accumulated size increase of copy is {copied_bytes}, \
         exceeding the limit {COPIED_BYTES_MAX}"
    ))
}

/// Refuses to put a value where the document would be nested too deeply.
fn check_depth(path: &str, value: &Value) -> Result<(), String> {
    let steps = path.split('/').skip(1).count();
    if steps + depth(value) <= DEPTH_MAX { Ok(()) } else { Err("exceeded max depth".to_owned()) }
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    check_depth(path, &value)?;
    match find(document, path)? {
        (Value::Object(map), key) => {
            map.insert(key, value);
        }
        (Value::Array(items), key) if key == "-" => items.push(value),
        (Value::Array(items), key) => {
            let index = index(&key, items.len() + 1)?;
            items.insert(index, value);
        }
        _ => return Err(missing(path)),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<Value, String> {
    match find(document, path)? {
        (Value::Object(map), key) => {
            map.remove(&key).ok_or_else(|| format!("Unable to remove nonexistent key: {key}"))
        }
        (Value::Array(items), key) => {
            let index = index(&key, items.len())?;
            Ok(items.remove(index))
        }
        _ => Err(missing(path)),
    }
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    check_depth(path, &value)?;
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err("replace operation value must be object or array".to_owned());
        }
        *document = value;
        return Ok(());
    }
    match find(document, path)? {
        (Value::Object(map), key) => {
            map.insert(key, value);
        }
        (Value::Array(items), key) => {
            let index = index(&key, items.len())?;
            if let Some(item) = items.get_mut(index) {
                *item = value;
            }
        }
        _ => return Err(missing(path)),
    }
    Ok(())
}

/// The container that a path ends in, and the key in it.
fn find<'a>(document: &'a mut Value, path: &str) -> Result<(&'a mut Value, String), String> {
    let mut steps = steps(path);
    let mut key = steps.next().ok_or_else(|| missing(path))?;
    let mut container = document;
    for next in steps {
        container = match container {
            Value::Object(map) => map.get_mut(&key),
            Value::Array(items) => {
                let index = index(&key, items.len()).map_err(|_| missing(path))?;
                items.get_mut(index)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        }
        .filter(|value| value.is_object() || value.is_array())
        .ok_or_else(|| missing(path))?;
        key = next;
    }
    Ok((container, key))
}

/// The value of a key; null for a member that is not there.
fn get<'a>(container: &'a Value, key: &str) -> Result<&'a Value, String> {
    match container {
        Value::Object(map) => Ok(map.get(key).unwrap_or(&Value::Null)),
        Value::Array(items) => {
            let index = index(key, items.len())?;
            items.get(index).ok_or_else(|| format!("Unable to access invalid index: {key}"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Err(format!("doc is missing key: {key}"))
        }
    }
}

/// An index below `length`; negative ones count from the end.
fn index(key: &str, length: usize) -> Result<usize, String> {
    let number: i64 =
        key.parse().map_err(|_| format!("value was not a proper array index: '{key}'"))?;
    let distance = usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX);
    let index = if number < 0 { length.checked_sub(distance) } else { Some(distance) };
    index.filter(|index| *index < length).ok_or_else(|| {
        format!("Unable to access invalid index: {number}: invalid index referenced")
    })
}

fn missing(path: &str) -> String {
    format!("operation does not apply: doc is missing path: \"{path}\": missing value")
}

/// The keys of a JSON pointer.
pub(crate) fn steps(path: &str) -> impl Iterator<Item = String> + '_ {
    path.split('/').skip(1).map(unescape)
}

fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}
