//! Webhooks that change what is written.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use super::hook::Hook;
use super::review::{self, Versioned};
use super::{Failure, Hooks, invocation, is_exempt};
use crate::admission::{Attributes, Plugin};
use crate::server::ApiServer;
use simcluster_model::codec::json;
use simcluster_model::error::ApiError;
use simcluster_model::field::FieldError;
use simcluster_model::golang;
use simcluster_model::object;
use simcluster_model::patch;
use simcluster_model::resource::Resource;

/// The plugin's name.
pub(in crate::admission) const NAME: &str = "MutatingAdmissionWebhook";

const CONFIGURATIONS: &str = "admissionregistration.k8s.io/mutatingwebhookconfigurations";

/// Asks webhooks one after the other.
#[derive(Debug, Default)]
pub(super) struct Mutating {
    hooks: Hooks,
}

impl Plugin for Mutating {
    fn name(&self) -> &'static str {
        NAME
    }

    fn handles(&self, attributes: &Attributes) -> bool {
        !is_exempt(attributes)
    }

    fn changes_anything(&self, server: &ApiServer) -> bool {
        !self.hooks.present(server, CONFIGURATIONS).is_empty()
    }

    fn admit<'a>(
        &'a self,
        server: &'a ApiServer,
        attributes: &'a mut Attributes,
    ) -> BoxFuture<'a, Result<(), ApiError>> {
        Box::pin(async move {
            let hooks = self.hooks.present(server, CONFIGURATIONS);
            if hooks.is_empty() {
                return Ok(());
            }
            if attributes.reinvocation.second && attributes.reinvocation.left != attributes.object {
                // Another plugin changed the object in its second round.
                attributes.reinvocation.changed();
            }
            for hook in hooks.iter() {
                self::hook(server, hook, attributes).await?;
            }
            attributes.reinvocation.left.clone_from(&attributes.object);
            Ok(())
        })
    }
}

/// Asks one webhook, if the write concerns it.
async fn hook(
    server: &ApiServer,
    hook: &Hook,
    attributes: &mut Attributes,
) -> Result<(), ApiError> {
    let Some(resource) = invocation(server, hook, attributes).await? else { return Ok(()) };
    let reinvocation = &attributes.reinvocation;
    if reinvocation.second && !reinvocation.again.contains(&hook.id) {
        return Ok(());
    }
    let outcome = call(server, hook, attributes, &resource).await;
    if matches!(outcome, Ok(true)) {
        attributes.reinvocation.changed();
        attributes.reinvocation.wanted = true;
    }
    if hook.reinvoked_if_needed {
        attributes.reinvocation.asked.insert(hook.id.clone());
    }
    outcome.err().and_then(|failure| failure.error(hook)).map_or(Ok(()), Err)
}

/// Asks one webhook and makes the changes that it wants; whether there were any.
async fn call(
    server: &ApiServer,
    hook: &Hook,
    attributes: &mut Attributes,
    resource: &Arc<Resource>,
) -> Result<bool, Failure> {
    let versioned = Versioned::of(server, attributes, resource).await;
    let versioned = versioned.map_err(Failure::Refused)?;
    let answer = review::ask(server, hook, attributes, resource, &versioned, true).await?;
    if answer.patch.is_empty() {
        return Ok(false);
    }
    let patch = decode_patch(&answer.patch).map_err(|why| {
        Failure::Call(format!("received undecodable patch in webhook response: {why}"))
    })?;
    if patch.as_array().is_some_and(Vec::is_empty) {
        return Ok(false);
    }
    let internal = |why: &str| Failure::Refused(ApiError::internal(why));
    if attributes.object.is_none() {
        let name = &hook.name;
        return Err(internal(&format!(
            "admission webhook {name:?} attempted to modify the object, which is not supported for \
             this operation"
        )));
    }
    let patched = patch::json_patch(&versioned.object, &patch, false)
        .map_err(|why| internal(&why.to_string()))?;
    let object = typed(attributes, resource, patched).map_err(Failure::Refused)?;
    let changed = object != versioned.object;
    let converted = server.in_version_of(resource, &attributes.resource, object).await;
    attributes.object = Some(converted.map_err(|why| internal(&why))?);
    Ok(changed)
}

/// A custom object must stay of its kind and version (row AD03).
fn check_type(resource: &Resource, object: &Value) -> Result<(), ApiError> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (kind, version, wanted) = (text("kind"), text("apiVersion"), resource.api_version());
    if kind.is_empty() {
        let shown = golang::json(object);
        return Err(ApiError::internal(&format!("Object 'Kind' is missing in '{shown}'")));
    }
    if version.is_empty() {
        return Err(ApiError::raw(format!(
            "/, Kind={kind} is unstructured and is not suitable for converting to \"{wanted}\""
        )));
    }
    if version != wanted {
        return Err(ApiError::raw(format!(
            "request to convert CR from an invalid group/version: {version}"
        )));
    }
    if kind == resource.kind {
        return Ok(());
    }
    let why = format!("must be {}", resource.kind);
    let fault = FieldError::invalid("kind", &Value::from(kind), &why);
    Err(ApiError::invalid_kind(&resource.group, kind, object::name(object), &[fault]))
}

/// Reads a patch; what its operations are is looked at when they are done.
fn decode_patch(text: &[u8]) -> Result<Value, String> {
    let patch = json::parse(text)?.value;
    let (wrong, wanted) = match &patch {
        Value::Null => return Ok(patch),
        Value::Array(operations) => {
            let is_wrong = |one: &&Value| !one.is_object() && !one.is_null();
            match operations.iter().find(is_wrong) {
                Some(wrong) => (wrong, "Operation"),
                None => return Ok(patch),
            }
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            (&patch, "Patch")
        }
    };
    let found = golang::json_type_name(wrong);
    Err(format!("json: cannot unmarshal {found} into Go value of type jsonpatch.{wanted}"))
}

/// What a patched object becomes when it is decoded, with its defaults.
fn typed(attributes: &Attributes, resource: &Resource, object: Value) -> Result<Value, ApiError> {
    if attributes.kind.kind != resource.kind {
        return Ok(object);
    }
    let mut object = if resource.custom {
        check_type(resource, &object)?;
        object
    } else {
        let decoded = simcluster_model::builtin::decode_typed(object, &resource.schema, "");
        decoded.map_err(|why| ApiError::internal(&why))?.object
    };
    resource.strategy.default(resource, &mut object);
    Ok(object)
}
