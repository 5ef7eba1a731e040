//! Who an object belongs to, and which of its fields are ours.
//!
//! The API server writes down for each field who applied it (`metadata.managedFields`). Reading
//! the values of *our* fields out of a live object gives what we once applied, if nothing changed:
//! a field that we no longer want is still in it, a field that somebody took from us is missing, a
//! value that drifted differs. So one comparison says whether there is anything to do.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::core::DynamicObject;
use serde_json::{Map, Value};

use super::{cache::Cached, key::Key};

/// Name under which we apply. Also the value of the `managed-by` label.
pub const FIELD_MANAGER: &str = "simpleapp-operator";

/// The controller of an object: the one owner that manages it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controller {
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// UID of the owner.
    pub uid: String,
}

/// What we keep of an object that is, or could be, a child of ours. The rest is not worth memory:
/// most objects of a cluster belong to others.
#[derive(Debug, Clone, PartialEq)]
pub struct Child {
    /// Which object.
    pub key: Key,
    /// Its identity.
    pub uid: String,
    /// Its version.
    pub resource_version: String,
    /// How often its spec changed.
    pub generation: i64,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Who manages it.
    pub controller: Option<Controller>,
    /// The fields that we applied, with their live values; `None` if we never applied any.
    pub owned: Option<Value>,
    /// Its status, if it has one and we applied it.
    pub status: Value,
    /// Named ports that others hold, usually none.
    pub foreign_ports: Vec<ForeignPort>,
}

/// A named port that an apply of ours does not remove, because others hold it, too.
///
/// Names are unique among the ports of a list, but applies merge them by number. So somebody who
/// changes the number of our port has made one of their own that bears its name, and the server
/// refuses ours beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignPort {
    /// Where it stands, as a JSON pointer.
    pub path: String,
    /// The container whose port it is; `None` for that of a Service.
    pub container: Option<String>,
    /// The port.
    pub entry: Value,
}

impl Child {
    /// What we keep of `object`.
    #[must_use]
    pub fn of(object: &DynamicObject) -> Self {
        let metadata = &object.metadata;
        let controller = metadata
            .owner_references
            .iter()
            .flatten()
            .find(|owner| owner.controller == Some(true))
            .map(|owner| Controller {
                kind: owner.kind.clone(),
                name: owner.name.clone(),
                uid: owner.uid.clone(),
            });
        // What nobody manages is no child of ours, and we take no port from it.
        let foreign_ports = controller.as_ref().map(|_| foreign_ports(object)).unwrap_or_default();
        let owned = owned_fields(object);
        let status = match (&owned, object.data.get("status")) {
            (Some(_), Some(status)) => status.clone(),
            (None, _) | (_, None) => Value::Null,
        };
        Self {
            key: Key::of(metadata),
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            deleting: metadata.deletion_timestamp.is_some(),
            controller,
            owned,
            status,
            foreign_ports,
        }
    }

    /// Whether the object with `uid` manages this one.
    #[must_use]
    pub fn is_controlled_by(&self, uid: &str) -> bool {
        !uid.is_empty() && self.controller.as_ref().is_some_and(|owner| owner.uid == uid)
    }
}

impl Cached for Child {
    fn key(&self) -> &Key {
        &self.key
    }
    fn uid(&self) -> &str {
        &self.uid
    }
    fn resource_version(&self) -> &str {
        &self.resource_version
    }
}

/// The fields of `object` that we applied, with their live values; `None` if we applied none.
fn owned_fields(object: &DynamicObject) -> Option<Value> {
    let entry = object.metadata.managed_fields.iter().flatten().find(|entry| is_ours(entry))?;
    let fields = entry.fields_v1.as_ref()?.0.as_object()?;
    // The document that field paths speak of, made of the two halves that `DynamicObject` splits.
    let mut document = Map::new();
    if let Some(metadata) = fields.get("f:metadata").and_then(Value::as_object) {
        let live = serde_json::to_value(&object.metadata).ok()?;
        document.insert("metadata".into(), extract(&live, metadata));
    }
    if let Some(rest) = extract(&object.data, fields).as_object() {
        document.extend(rest.clone());
    }
    Some(Value::Object(document))
}

/// The named ports that somebody else than our applies holds.
fn foreign_ports(object: &DynamicObject) -> Vec<ForeignPort> {
    let others = object.metadata.managed_fields.iter().flatten().filter(|entry| !is_ours(entry));
    let others: Vec<&Map<String, Value>> =
        others.filter_map(|entry| entry.fields_v1.as_ref()?.0.as_object()).collect();
    let containers =
        object.data.pointer("/spec/template/spec/containers").and_then(Value::as_array);
    let mut ports = held_ports(&object.data, "/spec/ports", None, &others);
    for (index, container) in containers.into_iter().flatten().enumerate() {
        let path = format!("/spec/template/spec/containers/{index}/ports");
        ports.extend(held_ports(&object.data, &path, Some(container), &others));
    }
    ports
}

/// The named ports of one list that one of `others` holds.
fn held_ports<'a>(
    document: &Value,
    path: &str,
    container: Option<&Value>,
    others: &[&'a Map<String, Value>],
) -> Vec<ForeignPort> {
    let list = |fields: &&'a Map<String, Value>| match container {
        None => field(fields, &["f:spec", "f:ports"]),
        Some(container) => {
            let containers = field(fields, &["f:spec", "f:template", "f:spec", "f:containers"])?;
            field(item(containers, container)?, &["f:ports"])
        }
    };
    let held: Vec<&Map<String, Value>> = others.iter().filter_map(list).collect();
    let ports = document.pointer(path).and_then(Value::as_array).into_iter().flatten();
    ports
        .enumerate()
        .filter(|(_, port)| port.get("name").is_some())
        .filter(|(_, port)| held.iter().any(|list| item(list, port).is_some()))
        .map(|(index, port)| ForeignPort {
            path: format!("{path}/{index}"),
            container: container
                .and_then(|container| container.get("name")?.as_str().map(str::to_owned)),
            entry: port.clone(),
        })
        .collect()
}

fn field<'a>(fields: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Map<String, Value>> {
    path.iter().try_fold(fields, |fields, step| fields.get(*step)?.as_object())
}

fn item<'a>(fields: &'a Map<String, Value>, item: &Value) -> Option<&'a Map<String, Value>> {
    fields.iter().find(|(path, _)| names_item(path, item))?.1.as_object()
}

fn is_ours(entry: &ManagedFieldsEntry) -> bool {
    entry.manager.as_deref() == Some(FIELD_MANAGER)
        && entry.operation.as_deref() == Some("Apply")
        && entry.subresource.as_deref().unwrap_or_default().is_empty()
}

/// The part of `live` that `fields` (in the notation of `fieldsV1`) names. Items of a list come in
/// their live order.
fn extract(live: &Value, fields: &Map<String, Value>) -> Value {
    if fields.is_empty() {
        return live.clone();
    }
    match live {
        Value::Object(map) => Value::Object(
            map.iter()
                .filter_map(|(name, value)| {
                    let inner = fields.get(&format!("f:{name}"))?.as_object()?;
                    Some((name.clone(), extract(value, inner)))
                })
                .collect(),
        ),
        Value::Array(items) => Value::Array(
            items
                .iter()
                .filter_map(|item| self::item(fields, item).map(|inner| extract(item, inner)))
                .collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => live.clone(),
    }
}

/// Whether the path element (`k:{"name":"app"}` or `v:"x"`) names this item of a list.
fn names_item(path: &str, item: &Value) -> bool {
    if let Some(keys) = path.strip_prefix("k:") {
        let Ok(Value::Object(keys)) = serde_json::from_str(keys) else {
            return false;
        };
        return keys.iter().all(|(name, value)| item.get(name) == Some(value));
    }
    path.strip_prefix("v:")
        .and_then(|value| serde_json::from_str::<Value>(value).ok())
        .is_some_and(|value| value == *item)
}
