#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "tests"
)]

mod definitions;
mod lifecycle;
mod recorded;
mod strategy;

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Resource, resources};
use crate::allocation::ServiceAllocator;
use crate::error::ApiError;
use crate::field::FieldError;
use crate::object;
use crate::resource::Surroundings;

/// A definition as it is when its names are accepted and it is established.
fn established(mut crd: Value) -> Value {
    let kind = crd["spec"]["names"]["kind"].as_str().unwrap().to_owned();
    let names = object::child(object::child(&mut crd, "spec"), "names");
    object::put(names, "listKind", json!(format!("{kind}List")));
    object::put(names, "singular", json!(kind.to_lowercase()));
    let names = names.clone();
    let conditions = json!([
        { "type": "NamesAccepted", "status": "True" },
        { "type": "Established", "status": "True" },
    ]);
    object::put(&mut crd, "status", json!({ "acceptedNames": names, "conditions": conditions }));
    crd
}

/// A definition of `things.example.com` with these versions.
fn definition(versions: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "versions": versions,
            "names": { "plural": "things", "kind": "Thing" },
        },
    })
}

/// The resources of `things.example.com` with these versions.
fn things(versions: &Value) -> Vec<Resource> {
    resources(&established(definition(versions)))
}

/// What a create answers, as far as it depends on the body alone, and the unknown fields.
fn create(resource: &Resource, body: Value) -> Result<(Value, Vec<String>), ApiError> {
    let decoded = resource.strategy.decode(resource, body)?;
    if let Some(refused) = decoded.refused {
        return Err(refused);
    }
    let mut object = decoded.object;
    resource.strategy.default(resource, &mut object);
    let mut random = || 0;
    let mut around = Surroundings {
        now: jiff::Timestamp::UNIX_EPOCH,
        random: &mut random,
        stored: &|_| Vec::<Arc<Value>>::new(),
        get: &|_, _, _| None,
        requester: &|| Value::Null,
        reservation: &mut ServiceAllocator::default().reservation(false),
        allocates: true,
    };
    resource.strategy.prepare_for_create(resource, &mut object, &mut around)?;
    let faults = resource.strategy.create_faults(resource, &object, Vec::new());
    refuse(resource, &object, &faults)?;
    let stored = resource.strategy.encode_stored(resource, object);
    Ok((resource.strategy.decode_stored(resource, stored), decoded.unknown))
}

/// What an update of `old` answers.
fn update(
    resource: &Resource,
    subresource: &str,
    old: &Value,
    body: Value,
) -> Result<Value, ApiError> {
    let mut object = resource.strategy.decode(resource, body)?.object;
    resource.strategy.default(resource, &mut object);
    resource.strategy.prepare_for_update(resource, subresource, &mut object, old);
    let verdict = resource.strategy.update_verdict(resource, subresource, &object, old, Vec::new());
    refuse(resource, &object, &verdict.faults)?;
    Ok(object)
}

fn refuse(resource: &Resource, object: &Value, faults: &[FieldError]) -> Result<(), ApiError> {
    if faults.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(resource.names(), object::name(object), faults))
}
