//! Defaults. A real server has one function for each Go type that needs one and calls it wherever the
//! type occurs; so does this module, walking the schema, for types that occur in several kinds. What only
//! one kind has, its own file fills.

use serde_json::{Map, Value, json};

use super::kind::Kind;
use crate::builtin::quantity::Quantity;
use crate::builtin::value::is_unset;
use crate::schema::{Presence, Schema};

pub(super) type Fields = Map<String, Value>;

/// Fills the defaults of an object and of everything in it.
pub(super) fn fill(kind: &Kind, object: &mut Value, schema: &Schema) {
    if let Some(fields) = object.as_object_mut() {
        (kind.default)(fields);
    }
    walk(object, schema);
}

/// From the outside in, as the server does: an outer default may depend on what the client left out.
fn walk(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(map) => {
            if let Some(values) = &schema.additional_properties {
                map.values_mut().for_each(|one| walk(one, values));
                return;
            }
            let type_name = schema.go.as_deref().map_or("", |go| go.type_name.as_str());
            default_type(type_name, map);
            for (name, field) in &schema.properties {
                match map.get_mut(name) {
                    Some(Value::Null) | None => {
                        // What Go does not print, it has anyway: an empty text, zero.
                        let go = field.go.as_deref();
                        let unseen = go.is_some_and(|go| go.presence == Presence::NonEmpty);
                        let zero =
                            |one: &Value| one.as_str() == Some("") || one.as_i64() == Some(0);
                        let says = |one: &&Value| !(one.is_object() || unseen && zero(one));
                        let declared = field.default.as_ref().filter(says);
                        if let Some(default) = declared {
                            map.insert(name.clone(), default.clone());
                        }
                    }
                    Some(child) => walk(child, field),
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = &schema.items {
                for one in list {
                    walk(one, items);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Sets a field that is absent, null or an empty string.
pub(super) fn set(fields: &mut Fields, name: &str, value: impl FnOnce() -> Value) {
    if is_unset(fields.get(name)) {
        fields.insert(name.to_owned(), value());
    }
}

pub(super) fn field_text<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A field as a map to write to; made if it is not there.
pub(super) fn inner<'a>(fields: &'a mut Fields, name: &str) -> &'a mut Fields {
    crate::object::as_map(fields.entry(name).or_insert(Value::Null))
}

fn default_type(type_name: &str, fields: &mut Fields) {
    match type_name {
        "v1.PodSpec" => pod_spec(fields),
        "v1.Container" | "v1.EphemeralContainer" => container(fields),
        "v1.Volume" => volume(fields),
        "v1.Probe" => probe(fields),
        "v1.HTTPGetAction" => {
            set(fields, "path", || json!("/"));
            set(fields, "scheme", || json!("HTTP"));
        }
        "v1.SecretVolumeSource"
        | "v1.ConfigMapVolumeSource"
        | "v1.DownwardAPIVolumeSource"
        | "v1.ProjectedVolumeSource" => set(fields, "defaultMode", || json!(0o644)),
        "v1.ServiceAccountTokenProjection" => set(fields, "expirationSeconds", || json!(3600)),
        "v1.HostPathVolumeSource" => {
            fields.entry("type").or_insert_with(|| json!(""));
        }
        "v1.ObjectFieldSelector" => set(fields, "apiVersion", || json!("v1")),
        "v1.PersistentVolumeClaim" => set(inner(fields, "status"), "phase", || json!("Pending")),
        "v1.PersistentVolumeClaimSpec" => set(fields, "volumeMode", || json!("Filesystem")),
        _ => {}
    }
}

fn pod_spec(spec: &mut Fields) {
    let legacy = field_text(spec, "serviceAccount").to_owned();
    if !legacy.is_empty() {
        set(spec, "serviceAccountName", || json!(legacy));
    }
    match field_text(spec, "serviceAccountName").to_owned() {
        name if name.is_empty() => {
            spec.remove("serviceAccount");
        }
        name => {
            spec.insert("serviceAccount".to_owned(), json!(name));
        }
    }
    set(spec, "dnsPolicy", || json!("ClusterFirst"));
    set(spec, "restartPolicy", || json!("Always"));
    set(spec, "securityContext", || json!({}));
    set(spec, "terminationGracePeriodSeconds", || json!(30));
    set(spec, "schedulerName", || json!("default-scheduler"));
}

fn container(fields: &mut Fields) {
    let policy =
        if image_tag(field_text(fields, "image")) == "latest" { "Always" } else { "IfNotPresent" };
    set(fields, "imagePullPolicy", || json!(policy));
    set(fields, "terminationMessagePath", || json!("/dev/termination-log"));
    set(fields, "terminationMessagePolicy", || json!("File"));
    if let Some(Value::Object(resources)) = fields.get_mut("resources") {
        for list in ["limits", "requests"] {
            if let Some(Value::Object(amounts)) = resources.get_mut(list) {
                amounts.values_mut().for_each(round_up_to_milli);
            }
        }
    }
}

/// Amounts of resources finer than a thousandth are rounded up.
fn round_up_to_milli(amount: &mut Value) {
    if let Some(Ok(parsed)) = amount.as_str().map(Quantity::parse) {
        *amount = json!(parsed.rounded_up_to_milli().canonical());
    }
}

/// The tag of an image: `latest` if there is neither tag nor digest; empty if the reference is not one.
fn image_tag(image: &str) -> &str {
    let (name, digest) =
        image.split_once('@').map_or((image, None), |(name, one)| (name, Some(one)));
    let (path, last) = name.rsplit_once('/').map_or(("", name), |(path, last)| (path, last));
    let (last, tag) = last.split_once(':').map_or((last, None), |(last, tag)| (last, Some(tag)));
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    let spaced = |c: char| c.is_whitespace();
    if last.is_empty() || !last.chars().all(allowed) || path.contains(spaced) {
        return "";
    }
    match tag {
        Some(tag) => tag,
        None if digest.is_some() => "",
        None => "latest",
    }
}

fn volume(fields: &mut Fields) {
    if fields.keys().all(|key| key == "name") {
        fields.insert("emptyDir".to_owned(), json!({}));
    }
    if let Some(Value::Object(image)) = fields.get_mut("image") {
        let latest = image_tag(field_text(image, "reference")) == "latest";
        set(image, "pullPolicy", || json!(if latest { "Always" } else { "IfNotPresent" }));
    }
}

fn probe(fields: &mut Fields) {
    let values = [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ];
    for (name, value) in values {
        if fields.get(name).and_then(Value::as_i64).unwrap_or_default() == 0 {
            fields.insert(name.to_owned(), json!(value));
        }
    }
}
