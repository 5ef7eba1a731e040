//! Validation of `ConfigMap`s and Secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::check::Faults;
use super::value::{at, flag, text};
use crate::field::FieldError;
use crate::names;

/// Most bytes of all values together.
const MAX_SIZE: usize = 1024 * 1024;
const FROZEN: &str = "field is immutable when `immutable` is set";

pub(super) fn config_map(object: &Value) -> Vec<FieldError> {
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

pub(super) fn config_map_update(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = frozen(object, old, &["data", "binaryData"]);
    faults.extend(config_map(object));
    faults.0
}

pub(super) fn secret(object: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let mut size = 0;
    for (key, value) in entries(object, "data") {
        faults.texts(&format!("data[{key}]"), key, names::config_key(key));
        size += decoded_length(value);
    }
    if size > MAX_SIZE {
        faults.add(FieldError::too_long("data", u64::try_from(MAX_SIZE).unwrap_or(u64::MAX)));
    }
    let has = |key: &str| at(object, &["data", key]).is_some();
    let missing: Vec<&str> = match text(object, &["type"]) {
        "kubernetes.io/service-account-token" => {
            let account = "kubernetes.io/service-account.name";
            if text(object, &["metadata", "annotations", account]).is_empty() {
                faults.required(format!("metadata.annotations[{account}]"), "");
            }
            return faults.0;
        }
        "kubernetes.io/dockercfg" => docker(object, ".dockercfg", &mut faults),
        "kubernetes.io/dockerconfigjson" => docker(object, ".dockerconfigjson", &mut faults),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            vec!["username", "password"]
        }
        "kubernetes.io/ssh-auth" if text(object, &["data", "ssh-privatekey"]).is_empty() => {
            vec!["ssh-privatekey"]
        }
        "kubernetes.io/tls" => ["tls.crt", "tls.key"].into_iter().filter(|key| !has(key)).collect(),
        _ => Vec::new(),
    };
    for key in missing {
        faults.required(format!("data[{key}]"), "");
    }
    faults.0
}

/// A file of registry credentials must be there and be JSON.
fn docker<'a>(object: &Value, key: &'a str, faults: &mut Faults) -> Vec<&'a str> {
    let Some(value) = at(object, &["data", key]).and_then(Value::as_str) else { return vec![key] };
    let bytes = STANDARD.decode(value).unwrap_or_default();
    if serde_json::from_slice::<Map<String, Value>>(&bytes).is_err() {
        let why = if bytes.is_empty() {
            "unexpected end of JSON input"
        } else {
            "invalid character in the value"
        };
        faults.invalid(format!("data[{key}]"), &json!("<secret contents redacted>"), why);
    }
    Vec::new()
}

pub(super) fn secret_update(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    faults.immutable("type", at(object, &["type"]), at(old, &["type"]));
    faults.extend(frozen(object, old, &["data"]).0);
    faults.extend(secret(object));
    faults.0
}

fn frozen(object: &Value, old: &Value, fields: &[&str]) -> Faults {
    let mut faults = Faults::default();
    if flag(old, &["immutable"]) {
        if !flag(object, &["immutable"]) {
            faults.forbidden("immutable", FROZEN);
        }
        for field in fields {
            if at(object, &[field]) != at(old, &[field]) {
                faults.forbidden(*field, FROZEN);
            }
        }
    }
    faults
}

fn entries<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let map = at(object, &[field]).and_then(Value::as_object).into_iter().flatten();
    map.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

fn decoded_length(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}
