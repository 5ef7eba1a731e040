//! `ConfigMap`s.

use serde_json::{Value, json};

use super::secret::{MAX_SIZE, decoded_length, drop_empty, entries, frozen, thaw};
use crate::builtin::check::Faults;
use crate::builtin::kind::Kind;
use crate::builtin::value::at;
use crate::field::FieldError;
use crate::names;

/// `configmaps`.
pub(super) static KIND: Kind = Kind {
    // An empty `data` is the default.
    frozen: &["binaryData"],
    prepare_for_create: |map| drop_empty(map, KIND.frozen),
    prepare_for_update: |_, _, map, old| thaw(map, old, KIND.frozen),
    validate,
    validate_update: Some(validate_update),
    cells: |view| {
        view.named(vec![json!(view.size("/data") + view.size("/binaryData")), view.age()])
    },
    ..Kind::new("", "configmaps")
};

fn validate(object: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let binary = at(object, &["binaryData"]).and_then(Value::as_object);
    let mut size = 0;
    for (key, value) in entries(object, "data") {
        let field = format!("data[{key}]");
        faults.texts(&field, key, names::config_key(key));
        if binary.is_some_and(|binary| binary.contains_key(key)) {
            faults.invalid(field, &json!(key), "duplicate of key present in binaryData");
        }
        size += value.len();
    }
    for (key, value) in entries(object, "binaryData") {
        faults.texts(&format!("binaryData[{key}]"), key, names::config_key(key));
        size += decoded_length(value);
    }
    if size > MAX_SIZE {
        // The path of the whole object, as the server prints it.
        faults.add(FieldError::too_long("[]", u64::try_from(MAX_SIZE).unwrap_or(u64::MAX)));
    }
    faults.0
}

fn validate_update(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = frozen(object, old, &["data", "binaryData"]);
    faults.extend(validate(object));
    faults.0
}
