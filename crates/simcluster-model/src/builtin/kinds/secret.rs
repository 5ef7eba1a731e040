//! Secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::builtin::check::Faults;
use crate::builtin::defaults::{Fields, inner, set};
use crate::builtin::kind::Kind;
use crate::builtin::value::{at, flag, text};
use crate::field::FieldError;
use crate::names;
use crate::object;

/// `secrets`.
pub(super) static KIND: Kind = Kind {
    default,
    frozen: &["data"],
    prepare_for_create: |secret| drop_empty(secret, KIND.frozen),
    prepare_for_update: |_, _, secret, old| thaw(secret, old, KIND.frozen),
    validate,
    validate_update: Some(validate_update),
    warnings,
    cells: |view| view.named(vec![view.text("/type"), json!(view.size("/data")), view.age()]),
    field_labels: &[("type", &["type"])],
    ..Kind::new("", "secrets")
};

/// Most bytes of all values together.
pub(super) const MAX_SIZE: usize = 1024 * 1024;

const FROZEN: &str = "field is immutable when `immutable` is set";

/// `stringData` is for writing only: it goes into `data`, also when a patch brings it.
fn default(fields: &mut Fields) {
    set(fields, "type", || json!("Opaque"));
    if let Some(Value::Object(plain)) = fields.remove("stringData") {
        let data = inner(fields, "data");
        for (key, value) in plain {
            let bytes = value.as_str().unwrap_or_default();
            data.insert(key, json!(STANDARD.encode(bytes)));
        }
    }
}

fn validate(object: &Value) -> Vec<FieldError> {
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
        faults.invalid(format!("data[{key}]"), &json!("<validate contents redacted>"), why);
    }
    Vec::new()
}

fn validate_update(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    faults.immutable("type", at(object, &["type"]), at(old, &["type"]));
    faults.extend(frozen(object, old, &["data"]).0);
    faults.extend(validate(object));
    faults.0
}

/// Empty fields say nothing in an object that may change.
pub(super) fn thaw(object: &mut Value, old: &Value, fields: &[&str]) {
    if !flag(old, &["immutable"]) {
        drop_empty(object, fields);
    }
}

/// Drops fields that are empty.
pub(super) fn drop_empty(object: &mut Value, fields: &[&str]) {
    let object = object::as_map(object);
    for field in fields {
        if object.get(*field) == Some(&json!({})) {
            object.remove(*field);
        }
    }
}

pub(super) fn frozen(object: &Value, old: &Value, fields: &[&str]) -> Faults {
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

pub(super) fn entries<'a>(
    object: &'a Value,
    field: &str,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let map = at(object, &[field]).and_then(Value::as_object).into_iter().flatten();
    map.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

pub(super) fn decoded_length(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

fn warnings(secret: &Value, _old: Option<&Value>) -> Vec<String> {
    let is_tls = text(secret, &["type"]) == "kubernetes.io/tls";
    is_tls.then(|| key_pair_fault(secret)).flatten().into_iter().collect()
}

/// Why a certificate and a key are no pair (Go's `tls.X509KeyPair`), as far as their armour shows it.
fn key_pair_fault(secret: &Value) -> Option<String> {
    let blocks = |key: &str| {
        let bytes = STANDARD.decode(text(secret, &["data", key])).unwrap_or_default();
        pem_types(&String::from_utf8_lossy(&bytes))
    };
    let certificate = blocks("tls.crt");
    if !certificate.iter().any(|one| one == "CERTIFICATE") {
        return Some(match certificate.as_slice() {
            [] => "tls: failed to find any PEM data in certificate input".to_owned(),
            [one] if one.ends_with("PRIVATE KEY") => {
                "tls: failed to find certificate PEM data in certificate input, but did find a private key; \
                 PEM inputs may have been switched"
                    .to_owned()
            }
            others => format!(
                "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM \
                 blocks of the following types: [{}]",
                others.join(" ")
            ),
        });
    }
    let key = blocks("tls.key");
    if key.iter().any(|one| one == "PRIVATE KEY" || one.ends_with(" PRIVATE KEY")) {
        return None;
    }
    Some(match key.as_slice() {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        [one] if one == "CERTIFICATE" => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        others => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after \
             skipping PEM blocks of the following types: [{}]",
            others.join(" ")
        ),
    })
}

/// What the blocks of a PEM file say that they are.
fn pem_types(pem: &str) -> Vec<String> {
    let mut types = Vec::new();
    let mut rest = pem;
    while let Some((_, after)) = rest.split_once("-----BEGIN ") {
        rest = after;
        let Some((kind, body)) = after.split_once("-----") else { break };
        if body.contains(&format!("-----END {kind}-----")) {
            types.push(kind.to_owned());
        }
    }
    types
}
