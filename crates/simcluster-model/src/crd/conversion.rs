//! Conversion webhooks: what is asked, and what may be answered
//! (`apiextensions-apiserver`, `pkg/apiserver/conversion/webhook_converter.go`).

use serde_json::{Map, Value, json};

use super::text;
use crate::golang;
use crate::metadata;
use crate::object::{at_path, name, namespace, uid};

const GROUP: &str = "apiextensions.k8s.io";

/// The metadata that a webhook may change.
const FREE: [&str; 2] = ["labels", "annotations"];

/// How a definition has its objects converted.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversionWebhook {
    /// Its `clientConfig`.
    pub client_config: Value,
    /// The first version of reviews that the server knows, too.
    review_version: String,
}

/// The webhook that converts the objects of a definition; nothing if none does.
#[must_use]
pub fn conversion_webhook(crd: &Value) -> Option<ConversionWebhook> {
    let conversion = at_path(crd, "spec.conversion")?;
    if text(conversion, "strategy") != "Webhook" {
        return None;
    }
    let versions = at_path(conversion, "webhook.conversionReviewVersions");
    let versions = versions.and_then(Value::as_array).into_iter().flatten();
    let mut known =
        versions.filter_map(Value::as_str).filter(|one| matches!(*one, "v1" | "v1beta1"));
    Some(ConversionWebhook {
        client_config: at_path(conversion, "webhook.clientConfig").cloned().unwrap_or_default(),
        review_version: known.next()?.to_owned(),
    })
}

impl ConversionWebhook {
    /// The review that asks for an object in another version. The real server asks for one object at a
    /// time: what it reads from its storage it reads one by one (row CV03).
    #[must_use]
    pub fn review(&self, review_uid: &str, object: &Value, api_version: &str) -> Value {
        json!({
            "kind": "ConversionReview",
            "apiVersion": self.api_version(),
            "request": {
                "uid": review_uid, "desiredAPIVersion": api_version, "objects": [object],
            },
            "response": { "uid": "", "convertedObjects": null, "result": { "metadata": {} } },
        })
    }

    fn api_version(&self) -> String {
        format!("{GROUP}/{}", self.review_version)
    }

    /// The converted object of an answered review. Of its metadata only labels and annotations are the
    /// webhook's.
    ///
    /// # Errors
    /// The text of what is wrong with the answer.
    pub fn converted(
        &self,
        review_uid: &str,
        object: &Value,
        api_version: &str,
        answered: &Value,
    ) -> Result<Value, String> {
        let of = kind_of(object);
        let failed = |why: String| format!("conversion webhook for {of} failed: {why}");
        let converted = self.objects(review_uid, answered).map_err(failed)?;
        let [converted] = converted else {
            let count = converted.len();
            return Err(format!(
                "conversion webhook for {of} returned {count} objects, expected 1"
            ));
        };
        check_object(converted)?;
        let at_index = |why: &str, expected: &str, received: &str| {
            Err(format!(
                "conversion webhook for {of} returned invalid object at index 0: invalid {why} \
                 (expected {expected}, received {received})"
            ))
        };
        let version = text(converted, "apiVersion");
        if version != api_version {
            return at_index("groupVersion", api_version, &version);
        }
        let (kind, found) = (text(object, "kind"), text(converted, "kind"));
        if kind != found {
            return at_index("kind", &kind, &found);
        }
        check_identity(object, converted)
            .map_err(|why| format!("conversion webhook for {of} returned invalid object: {why}"))?;
        let metadata = kept_metadata(object, converted).map_err(|why| {
            format!("conversion webhook for {of} returned invalid metadata: {why}")
        })?;
        let mut converted = converted.clone();
        crate::object::put(&mut converted, "metadata", metadata);
        Ok(converted)
    }

    /// The objects of an answer that is one to what was asked.
    fn objects<'a>(&self, review_uid: &str, answered: &'a Value) -> Result<&'a [Value], String> {
        let checked = self.review_version == "v1";
        let (version, kind) = (text(answered, "apiVersion"), text(answered, "kind"));
        if checked && (version != self.api_version() || kind != "ConversionReview") {
            let version = if version.is_empty() { "/" } else { &version };
            return Err(format!(
                "expected webhook response of {}, Kind=ConversionReview, got {version}, Kind={kind}",
                self.api_version()
            ));
        }
        let response = answered.get("response").filter(|response| !response.is_null());
        let response = response.ok_or("no response provided")?;
        let found = text(response, "uid");
        if checked && found != review_uid {
            return Err(format!(
                "expected response.uid={}, got {}",
                golang::quote(review_uid),
                golang::quote(&found)
            ));
        }
        let result = response.get("result").unwrap_or(&Value::Null);
        let status = text(result, "status");
        if status != "Success" {
            return Err(match text(result, "message") {
                message if message.is_empty() => {
                    format!("response.result.status was '{status}', not 'Success'")
                }
                message => message,
            });
        }
        let objects = response.get("convertedObjects").and_then(Value::as_array);
        Ok(objects.map(Vec::as_slice).unwrap_or_default())
    }
}

/// The text of a call that failed.
#[must_use]
pub fn conversion_failed(object: &Value, why: &str) -> String {
    format!("conversion webhook for {} failed: {why}", kind_of(object))
}

/// Version and kind as Go prints them.
fn kind_of(object: &Value) -> String {
    format!("{}, Kind={}", text(object, "apiVersion"), text(object, "kind"))
}

/// What cannot be read as an object at all.
fn check_object(converted: &Value) -> Result<(), String> {
    if !converted.is_object() {
        let found = golang::json_type_name(converted);
        return Err(format!(
            "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        ));
    }
    if text(converted, "kind").is_empty() {
        return Err(format!("Object 'Kind' is missing in '{converted}'"));
    }
    Ok(())
}

/// An object stays the same one.
fn check_identity(object: &Value, converted: &Value) -> Result<(), String> {
    for (what, old, new) in [
        ("name", name(object), name(converted)),
        ("namespace", namespace(object), namespace(converted)),
        ("UID", uid(object), uid(converted)),
    ] {
        if old != new {
            return Err(format!("must have the same {what}: {old} != {new}"));
        }
    }
    Ok(())
}

/// The metadata of the object, with the labels and annotations of the converted one.
fn kept_metadata(object: &Value, converted: &Value) -> Result<Value, String> {
    let answered = converted.get("metadata").ok_or("missing metadata in converted object")?;
    let answered = answered.as_object().ok_or_else(|| {
        format!("invalid metadata of type {} in converted object", go_type(answered))
    })?;
    let mut kept = crate::object::metadata(object).clone();
    for field in FREE {
        match answered.get(field).filter(|value| !value.is_null()) {
            None => {
                kept.remove(field);
            }
            Some(Value::Object(new)) => {
                check_texts(field, kept.get(field).and_then(Value::as_object), new)?;
                kept.insert(field.to_owned(), Value::Object(new.clone()));
            }
            Some(other) => {
                let found = go_type(other);
                return Err(format!(
                    "invalid metadata.{field} of type {found} in converted object"
                ));
            }
        }
    }
    Ok(Value::Object(kept))
}

/// Labels or annotations that are new must be good ones.
fn check_texts(
    field: &str,
    old: Option<&Map<String, Value>>,
    new: &Map<String, Value>,
) -> Result<(), String> {
    if let Some((key, value)) = new.iter().find(|(_, value)| !value.is_string()) {
        let found = go_type(value);
        return Err(format!(
            "metadata.{field}[{key}] must be a string, but is {found} in converted object"
        ));
    }
    if old.is_some_and(|old| old == new) {
        return Ok(());
    }
    let new = Value::Object(new.clone());
    let faults = if field == "labels" {
        metadata::label_faults("metadata.labels", Some(&new))
    } else {
        metadata::annotation_faults("metadata.annotation", Some(&new))
    };
    let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
    match texts.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}

/// What Go calls the type of a decoded value.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
