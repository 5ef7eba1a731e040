//! Admission: what is asked about a write before it is stored, and may change it.
//!
//! A chain of plugins, in the order of a real server: the built-in rules, the plugins of whoever
//! started the server, then the webhooks that configurations name, and at last the quotas. The store is
//! never locked while one of them is asked, so that they can take their time.

mod attributes;
mod builtin;
mod certificates;
mod limits;
mod pod_security;
mod quota;
mod webhook;

use std::fmt;
use std::future::ready;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

pub use self::attributes::{Attributes, ObjectKind, Operation};
use crate::server::ApiServer;
use simcluster_model::error::ApiError;
use simcluster_model::fieldmanager;
use simcluster_model::object;

pub(crate) use self::builtin::NAMESPACES;
pub(crate) use self::quota::after_write as count_quotas;

/// Somebody who is asked about writes. Every plugin is asked twice: first to change the object, then,
/// when all have changed it and it was found valid, to accept or refuse it.
pub trait Plugin: Send + Sync + fmt::Debug {
    /// What it is called, as in `--disable-admission-plugins`.
    fn name(&self) -> &str;

    /// Whether it has anything to say about a write.
    fn handles(&self, attributes: &Attributes) -> bool;

    /// Whether it may change any field, those that only the server writes among them.
    fn changes_anything(&self, _server: &ApiServer) -> bool {
        true
    }

    /// Changes the object of a write (it has none if it is a deletion), or refuses it.
    fn admit<'a>(
        &'a self,
        _server: &'a ApiServer,
        _attributes: &'a mut Attributes,
    ) -> BoxFuture<'a, Result<(), ApiError>> {
        Box::pin(ready(Ok(())))
    }

    /// Accepts or refuses a write that is otherwise ready to be stored.
    fn validate<'a>(
        &'a self,
        _server: &'a ApiServer,
        _attributes: &'a Attributes,
    ) -> BoxFuture<'a, Result<(), ApiError>> {
        Box::pin(ready(Ok(())))
    }
}

/// The plugins of a server, in the order in which they are asked.
#[derive(Debug, Clone)]
pub(crate) struct Chain(Vec<Arc<dyn Plugin>>);

impl Chain {
    /// What a real server has on by default, as far as its kinds are served.
    pub(crate) fn standard() -> Self {
        Self(builtin::plugins())
    }

    /// Adds a plugin before the webhooks.
    pub(crate) fn add(&mut self, plugin: Arc<dyn Plugin>) {
        let webhooks = self.0.iter().position(|one| one.name() == webhook::MUTATING);
        self.0.insert(webhooks.unwrap_or(self.0.len()), plugin);
    }

    /// Takes a plugin out; whether it was there.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|one| one.name() != name);
        self.0.len() < before
    }

    /// Asks all plugins to change the object; once more those that allow it, if a later one changed
    /// what an earlier one had seen.
    pub(crate) async fn admit(
        &self,
        server: &ApiServer,
        attributes: &mut Attributes,
    ) -> Result<(), ApiError> {
        // Most often nobody is there who could spoil them, so they need not be copied.
        let untrusted = |plugin: &Arc<dyn Plugin>| {
            plugin.handles(attributes) && plugin.changes_anything(server)
        };
        let before = if self.0.iter().any(untrusted) {
            attributes.object.as_ref().map(managed_fields)
        } else {
            None
        };
        self.admit_once(server, attributes).await?;
        if attributes.reinvocation.is_wanted() {
            attributes.reinvocation.begin();
            self.admit_once(server, attributes).await?;
        }
        restore_managed_fields(attributes, before);
        Ok(())
    }

    async fn admit_once(
        &self,
        server: &ApiServer,
        attributes: &mut Attributes,
    ) -> Result<(), ApiError> {
        for plugin in &self.0 {
            if plugin.handles(attributes) {
                plugin.admit(server, attributes).await?;
            }
        }
        Ok(())
    }

    /// Asks all plugins to accept the write.
    pub(crate) async fn validate(
        &self,
        server: &ApiServer,
        attributes: &Attributes,
    ) -> Result<(), ApiError> {
        for plugin in &self.0 {
            if plugin.handles(attributes) {
                plugin.validate(server, attributes).await?;
            }
        }
        Ok(())
    }
}

fn managed_fields(object: &Value) -> Option<Value> {
    object::metadata(object).get("managedFields").cloned()
}

/// Puts managedFields back that a plugin spoilt (row AD17).
#[expect(clippy::option_option, reason = "whether it was looked at, and whether it was there")]
fn restore_managed_fields(attributes: &mut Attributes, before: Option<Option<Value>>) {
    let (Some(before), Some(object)) = (before, &mut attributes.object) else { return };
    let after = managed_fields(object);
    if after == before {
        return;
    }
    let Err(why) = fieldmanager::check_managed_fields(after.as_ref()) else { return };
    let metadata = object::metadata_mut(object);
    match before {
        Some(before) => metadata.insert("managedFields".to_owned(), before),
        None => metadata.remove("managedFields"),
    };
    attributes.warnings.add(format!(
        ".metadata.managedFields was in an invalid state after admission; this could be caused by an \
         outdated mutating admission controller; please fix your requests: {why}"
    ));
}
