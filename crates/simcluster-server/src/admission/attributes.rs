//! What admission knows of a write.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::NAMESPACES;
use super::webhook::Reinvocation;
use crate::auth::User;
use crate::verbs::{Call, Warnings};
use simcluster_model::error::ApiError;
use simcluster_model::golang;
use simcluster_model::object;
use simcluster_model::resource::Resource;

/// What a write does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Makes an object (or posts a subresource, such as an eviction).
    Create,
    /// Changes an object.
    Update,
    /// Deletes an object.
    Delete,
}

impl Operation {
    /// The operation as an `AdmissionReview` names it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// Group, version and kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectKind {
    /// API group; empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
}

impl ObjectKind {
    /// The kind of a name.
    #[must_use]
    pub fn new(group: &str, version: &str, kind: &str) -> Self {
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }
}

/// A write as admission sees it.
#[derive(Debug)]
pub struct Attributes {
    /// What it does.
    pub operation: Operation,
    /// Who asks for it.
    pub user: User,
    /// The resource, in the version that was asked for.
    pub resource: Arc<Resource>,
    /// The subresource; empty for the object itself.
    pub subresource: String,
    /// What the object is: of `/scale`, `/binding` and `/eviction` not the resource's own kind.
    pub kind: ObjectKind,
    /// The namespace; of a Namespace its own name; empty at the cluster scope.
    pub namespace: String,
    /// The name; empty where the server makes it, and for the objects of a deletecollection.
    pub name: String,
    /// The object as it is to be; a deletion has none.
    pub object: Option<Value>,
    /// The object as it is; a create has none.
    pub old_object: Option<Arc<Value>>,
    /// `CreateOptions`, `UpdateOptions` or `DeleteOptions`.
    pub options: Value,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// Texts for `Warning` headers.
    pub warnings: Warnings,
    /// Until when the client waits, if it says so.
    pub(crate) deadline: Option<Instant>,
    /// Which webhooks are to be asked again.
    pub(crate) reinvocation: Reinvocation,
}

impl Attributes {
    /// What a request says by itself: the objects and options are to be added.
    pub(crate) fn of(call: &Call, operation: Operation, name: &str) -> Self {
        let resource = Arc::clone(&call.resource);
        let is_namespace = resource.storage_key == NAMESPACES;
        Self {
            operation,
            user: call.user.clone(),
            kind: ObjectKind::new(&resource.group, &resource.version, &resource.kind),
            resource,
            subresource: call.subresource.clone(),
            namespace: if is_namespace { name } else { call.namespace.as_str() }.to_owned(),
            name: name.to_owned(),
            object: None,
            old_object: None,
            options: Value::Null,
            dry_run: false,
            warnings: call.warnings.clone(),
            deadline: call.param("timeout").and_then(deadline),
            reinvocation: Reinvocation::default(),
        }
    }

    /// Whether this is about objects of a built-in kind themselves, not about a subresource.
    #[must_use]
    pub fn is_of(&self, group: &str, plural: &str) -> bool {
        let resource = &self.resource;
        self.subresource.is_empty() && resource.group == group && resource.plural == plural
    }

    /// What errors call the object: a name that is not known yet by its prefix.
    #[must_use]
    pub fn shown_name(&self) -> &str {
        let given = |field| self.object.as_ref().map(|object| object::meta_str(object, field));
        let candidates = [Some(self.name.as_str()), given("name"), given("generateName")];
        candidates.into_iter().flatten().find(|name| !name.is_empty()).unwrap_or("Unknown")
    }

    /// The 403 of a plugin.
    #[must_use]
    pub fn forbidden(&self, why: &str) -> ApiError {
        ApiError::forbidden(self.resource.names(), self.shown_name(), why)
    }
}

/// When the time that a client gives a request is over. What is no time is no limit.
fn deadline(timeout: &str) -> Option<Instant> {
    let timeout = Duration::try_from(golang::duration(timeout)).ok()?;
    if timeout.is_zero() { None } else { Instant::now().checked_add(timeout) }
}
