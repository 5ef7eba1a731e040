//! What a reconcile sees: the app, its children and, if somebody looked, its pods.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service, networking::v1::Ingress};
use kube::core::{ApiResource, DynamicObject};
use serde::Serialize;

use crate::{
    api::simpleapp::{FINALIZER, SimpleApp, SimpleAppSpec, SimpleAppStatus},
    kernel::{cache::Cached, key::Key, ownership::Child},
};

use super::pods::PodView;

/// The kinds of children, in the order in which they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ChildKind {
    /// Runs the pods.
    Deployment,
    /// Reaches the pods.
    Service,
    /// Reaches the Service from outside.
    Ingress,
}

impl ChildKind {
    /// All kinds, in the order in which they are made.
    pub const ALL: [Self; 3] = [Self::Deployment, Self::Service, Self::Ingress];

    /// The kind as the API server knows it.
    #[must_use]
    pub fn resource(self) -> ApiResource {
        match self {
            Self::Deployment => ApiResource::erase::<Deployment>(&()),
            Self::Service => ApiResource::erase::<Service>(&()),
            Self::Ingress => ApiResource::erase::<Ingress>(&()),
        }
    }
}

/// A `SimpleApp` as we found it. The spec may be one that does not fit its type.
#[derive(Debug, Clone, PartialEq)]
pub struct App {
    /// Which app.
    pub key: Key,
    /// Its identity.
    pub uid: String,
    /// Its version.
    pub resource_version: String,
    /// How often its spec changed.
    pub generation: i64,
    /// When its deletion was asked for, if it was.
    pub deleted_at: Option<Timestamp>,
    /// Who wants to be asked before it goes.
    pub finalizers: Vec<String>,
    /// What is asked for, or why that cannot be read.
    pub spec: Result<SimpleAppSpec, String>,
    /// What we said of it last.
    pub status: SimpleAppStatus,
}

impl App {
    /// What we need of the object. A status that cannot be read counts as none, and is replaced.
    #[must_use]
    pub fn of(object: &DynamicObject) -> Self {
        let metadata = &object.metadata;
        let spec = object.data.get("spec").cloned().ok_or_else(|| "spec: is missing".to_owned());
        let spec = spec.and_then(|spec| {
            serde_json::from_value(spec).map_err(|error| format!("spec: {error}"))
        });
        let status = object.data.get("status").cloned();
        Self {
            key: Key::of(metadata),
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            deleted_at: metadata.deletion_timestamp.as_ref().map(|time| time.0),
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
            spec,
            status: status
                .and_then(|status| serde_json::from_value(status).ok())
                .unwrap_or_default(),
        }
    }

    /// Whether our finalizer is on it.
    #[must_use]
    pub fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|entry| entry == FINALIZER)
    }

    /// The kind as the API server knows it.
    #[must_use]
    pub fn resource() -> ApiResource {
        ApiResource::erase::<SimpleApp>(&())
    }
}

impl Cached for App {
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

/// Why the server would not have a child as we want it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The server's reason: `Forbidden`, `Invalid`.
    pub reason: String,
    /// The server's words.
    pub message: String,
}

/// Everything that decisions are made from.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The app.
    pub app: Arc<App>,
    /// The objects that have the names of its children, whoever they belong to.
    pub children: BTreeMap<ChildKind, Arc<Child>>,
    /// The app's pods; `None`: nobody looked.
    pub pods: Option<Vec<PodView>>,
    /// What was applied in this reconcile, and is not applied again in it.
    pub applied: BTreeSet<ChildKind>,
    /// What the server refused in this reconcile.
    pub refused: BTreeMap<ChildKind, Refusal>,
    /// What kept this reconcile from bringing a child into shape, if it is worth another attempt.
    pub trouble: Option<(ChildKind, String)>,
}

impl Observed {
    /// An app and its children, before anything was done.
    #[must_use]
    pub fn new(app: Arc<App>, children: BTreeMap<ChildKind, Arc<Child>>) -> Self {
        Self {
            app,
            children,
            pods: None,
            applied: BTreeSet::new(),
            refused: BTreeMap::new(),
            trouble: None,
        }
    }

    /// The child of this kind, if there is one and it is ours.
    #[must_use]
    pub fn ours(&self, kind: ChildKind) -> Option<&Child> {
        let child = self.children.get(&kind)?;
        child.is_controlled_by(&self.app.uid).then_some(child)
    }
}
