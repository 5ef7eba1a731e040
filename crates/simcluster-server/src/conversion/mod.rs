//! Objects in other versions than the one in which they are stored.
//!
//! Versions of built-in kinds, and of custom ones without a webhook, differ by what the kind's strategy
//! says. A webhook is asked whenever an object crosses the border of the storage, and by whoever needs
//! another version: the caches of the versions (`cache`), admission, and field management (`versions`).

mod cache;
mod fault;
mod versions;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

pub(crate) use self::cache::VersionCaches;
pub(crate) use self::fault::{Undecodable, unreadable_list};
pub(crate) use self::versions::with_versions;
use crate::lifecycle::DEFINITIONS;
use crate::server::ApiServer;
use crate::webhook::Address;
use simcluster_model::crd::{ConversionWebhook, conversion_failed, conversion_webhook};
use simcluster_model::error::ApiError;
use simcluster_model::object;
use simcluster_model::resource::Resource;
use simcluster_model::schema::prune;

/// How long a webhook may take; no definition can change it.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The fields of an object of which nothing but its type is said.
const TYPE_FIELDS: usize = 2;

impl ApiServer {
    /// The webhook that converts the objects of a resource, if one does.
    pub(crate) fn conversion_webhook(&self, resource: &Resource) -> Option<ConversionWebhook> {
        if !resource.custom {
            return None;
        }
        let name = format!("{}.{}", resource.plural, resource.group);
        conversion_webhook(&*self.get(DEFINITIONS, "", &name)?)
    }

    /// The webhook that must be asked for an object in another version.
    fn webhook_for(
        &self,
        resource: &Resource,
        object: &Value,
        to: &str,
    ) -> Option<ConversionWebhook> {
        if api_version(object) == to { None } else { self.conversion_webhook(resource) }
    }

    /// A stored object as the version of a resource shows it.
    pub(crate) async fn decode(
        &self,
        resource: &Resource,
        stored: &Arc<Value>,
    ) -> Result<Arc<Value>, Undecodable> {
        if resource.shows_what_is_stored() {
            return Ok(Arc::clone(stored));
        }
        let wanted = resource.api_version();
        let Some(webhook) = self.webhook_for(resource, stored, &wanted) else {
            return Ok(Arc::new(resource.strategy.decode_stored(resource, Value::clone(stored))));
        };
        let own = in_version(resource, api_version(stored));
        let mut decoded = own.strategy.decode_stored(&own, Value::clone(stored));
        // The storage keeps it beside the object.
        let revision = object::metadata_mut(&mut decoded).remove("resourceVersion");
        let converted = self.ask_for(&webhook, decoded, &wanted).await;
        let mut converted = converted.map_err(|why| Undecodable::new(resource, stored, why))?;
        prune(&mut converted, &resource.schema);
        put_revision(&mut converted, revision);
        Ok(Arc::new(converted))
    }

    /// An object of a resource as it is stored.
    pub(crate) async fn encode(
        &self,
        resource: &Resource,
        mut object: Value,
    ) -> Result<Value, ApiError> {
        let wanted = in_version(resource, &resource.storage_version).api_version();
        if let Some(webhook) = self.webhook_for(resource, &object, &wanted) {
            let revision = object::metadata_mut(&mut object).remove("resourceVersion");
            let converted = self.ask_for(&webhook, object, &wanted).await;
            object = converted.map_err(ApiError::raw)?;
            put_revision(&mut object, revision);
        }
        Ok(resource.strategy.encode_stored(resource, object))
    }

    /// An object in the version of another resource that stores the same objects, as those see it who
    /// are neither clients nor storage: nothing is pruned. What is no object of the resource itself (a
    /// `Scale`) has no versions.
    pub(crate) async fn in_version_of(
        &self,
        from: &Resource,
        to: &Resource,
        object: Value,
    ) -> Result<Value, String> {
        let own = object.get("kind").and_then(Value::as_str) == Some(&from.kind);
        let wanted = to.api_version();
        if !own || api_version(&object) == wanted {
            return Ok(object);
        }
        match self.webhook_for(to, &object, &wanted) {
            Some(webhook) => self.ask_for(&webhook, object, &wanted).await,
            None => Ok(relabelled(from, to, object)),
        }
    }

    /// Asks a webhook for an object in another version.
    async fn ask_for(
        &self,
        webhook: &ConversionWebhook,
        mut object: Value,
        to: &str,
    ) -> Result<Value, String> {
        if object.as_object().is_some_and(|map| map.len() == TYPE_FIELDS) {
            // There is nothing to convert, so the real server does not ask either.
            object::put(&mut object, "apiVersion", Value::from(to));
            return Ok(object);
        }
        let uid = self.new_uid();
        let review = webhook.review(&uid, &object, to);
        let address = Address::parse(&webhook.client_config);
        let answered = self.call_webhook(&address, TIMEOUT, TIMEOUT, &review).await;
        let answered = answered.map_err(|why| conversion_failed(&object, &why))?;
        webhook.converted(&uid, &object, to, &answered)
    }
}

/// An object in another version without a webhook.
fn relabelled(from: &Resource, to: &Resource, mut object: Value) -> Value {
    if !to.custom {
        return to.strategy.decode_stored(to, from.strategy.encode_stored(from, object));
    }
    object::put(&mut object, "apiVersion", Value::from(to.api_version()));
    object
}

fn api_version(object: &Value) -> &str {
    object.get("apiVersion").and_then(Value::as_str).unwrap_or_default()
}

/// The same resource in another version, given with or without its group: its strategy knows the
/// schemas of all.
fn in_version(resource: &Resource, version: &str) -> Resource {
    let version = version.rsplit('/').next().unwrap_or_default().to_owned();
    Resource { version, ..Resource::clone(resource) }
}

fn put_revision(object: &mut Value, revision: Option<Value>) {
    if let Some(revision) = revision {
        object::metadata_mut(object).insert("resourceVersion".to_owned(), revision);
    }
}
