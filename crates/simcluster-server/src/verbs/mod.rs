//! What the server does with objects: create, get, list, watch, update, patch, delete,
//! deletecollection. Knows nothing of HTTP beyond the parsed request.

mod components;
mod decode;
mod delete;
mod idle;
mod meta;
mod objects;
mod options;
mod pods;
mod read;
mod scale;
mod selectors;
mod token;
mod watch;
mod write;

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::stream::BoxStream;
use serde_json::{Value, json};

use crate::auth::User;
use crate::gate::View;
use crate::server::ApiServer;
use crate::trace::Changed;
use simcluster_model::error::ApiError;
use simcluster_model::object;
use simcluster_model::resource::Resource;

pub(crate) use objects::posted;
pub(crate) use selectors::selects;
use write::read;

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read a collection.
    List,
    /// Follow a collection.
    Watch,
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH.
    Patch,
    /// DELETE of one object.
    Delete,
    /// DELETE of a collection.
    DeleteCollection,
}

impl Verb {
    /// The verb as RBAC and audit logs name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

impl ApiServer {
    /// Does what a parsed and authorised request asks for.
    pub async fn call(self: &Arc<Self>, verb: Verb, call: Call) -> Result<Outcome, ApiError> {
        if let Some(text) = &call.resource.deprecation_warning {
            call.warnings.add(text);
        }
        self.store().expire(&call.resource.storage_key);
        let resource = Arc::clone(&call.resource);
        // The first request makes the caches, each write goes into them.
        self.follow_versions(&resource);
        let outcome = self.dispatch(verb, call).await;
        self.follow_versions(&resource);
        outcome
    }

    async fn dispatch(self: &Arc<Self>, verb: Verb, call: Call) -> Result<Outcome, ApiError> {
        match call.subresource.as_str() {
            "" => self.call_main(verb, call).await,
            "status" | "approval" => match verb {
                Verb::Get => read::get(self, &call).await,
                Verb::Update => objects::update(self, &call).await,
                Verb::Patch => objects::patch(self, &call).await,
                Verb::List | Verb::Watch | Verb::Create | Verb::Delete | Verb::DeleteCollection => {
                    Err(not_supported(verb, &call))
                }
            },
            "scale" => match verb {
                Verb::Get => scale::get(self, &call).await,
                Verb::Update => scale::update(self, &call).await,
                Verb::Patch => scale::patch(self, &call).await,
                Verb::List | Verb::Watch | Verb::Create | Verb::Delete | Verb::DeleteCollection => {
                    Err(not_supported(verb, &call))
                }
            },
            other => match (verb, other) {
                (Verb::Create, "binding") => pods::bind(self, &call).await,
                (Verb::Create, "token") => token::request(self, &call).await,
                (Verb::Create, "eviction") => pods::evict(self, &call).await,
                (Verb::Update, "finalize") => pods::finalize(self, &call).await,
                (Verb::Get, "log") => pods::log(self, &call),
                (_, "attach" | "exec" | "portforward" | "proxy") => pods::connect(self, &call),
                _ => Err(ApiError::unsupported(&format!("{} of /{other}", verb.as_str()))),
            },
        }
    }

    /// Stores an object that the server itself brings along, as a POST by its admin would, but without
    /// admission.
    pub fn install(
        &self,
        group: &str,
        version: &str,
        plural: &str,
        mut object: Value,
    ) -> Result<(), ApiError> {
        let resource = self.find(group, version, plural).ok_or_else(ApiError::no_such_resource)?;
        object::put(&mut object, "kind", Value::from(resource.kind.as_str()));
        object::put(&mut object, "apiVersion", Value::from(resource.api_version()));
        let namespace = object::namespace(&object).to_owned();
        let call = Call {
            user: User::admin(),
            user_agent: "kube-apiserver".to_owned(),
            resource,
            namespace,
            name: String::new(),
            subresource: String::new(),
            query: Vec::new(),
            content_type: "application/json".to_owned(),
            body: Bytes::from(object.to_string()),
            warnings: Warnings::default(),
            view: View::HEAD,
            changed: Changed::default(),
        };
        objects::install(self, &call)
    }

    async fn call_main(self: &Arc<Self>, verb: Verb, call: Call) -> Result<Outcome, ApiError> {
        let is_component = call.resource.storage_key == components::KEY;
        match verb {
            Verb::Get if is_component => components::get(self, &call),
            Verb::List if is_component => components::list(self, &call),
            Verb::Get => read::get(self, &call).await,
            Verb::List => read::list(self, &call).await,
            Verb::Watch => watch::watch(self, call).await,
            Verb::Create => objects::create(self, &call).await,
            Verb::Update => objects::update(self, &call).await,
            Verb::Patch => objects::patch(self, &call).await,
            Verb::Delete => delete::delete(self, &call).await,
            Verb::DeleteCollection => delete::delete_collection(self, &call).await,
        }
    }
}

fn not_supported(verb: Verb, call: &Call) -> ApiError {
    if call.resource.custom {
        ApiError::method_not_supported(call.resource.names(), verb.as_str())
    } else {
        ApiError::method_not_allowed()
    }
}

/// One request on a resource, parsed and authorised.
#[derive(Debug)]
pub struct Call {
    /// Who asks.
    pub user: User,
    /// The `User-Agent` header, empty if there was none: names the field manager if nothing else does.
    pub user_agent: String,
    /// The resource, in the version asked for.
    pub resource: Arc<Resource>,
    /// Namespace of the path; empty for cluster-scoped resources and lists over all namespaces.
    pub namespace: String,
    /// Name of the path; empty for collections.
    pub name: String,
    /// Subresource of the path; empty for the main endpoint.
    pub subresource: String,
    /// Query parameters, decoded, in order.
    pub query: Vec<(String, String)>,
    /// Media type of the body without parameters; empty if the header is missing.
    pub content_type: String,
    /// The body as sent.
    pub body: Bytes,
    /// Texts for `Warning` headers; verbs add to it.
    pub warnings: Warnings,
    /// The state that it may read.
    pub view: View,
    /// Verbs note here that they changed something.
    pub changed: Changed,
}

impl Call {
    /// The first value of a query parameter.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All values of a query parameter.
    #[must_use]
    pub fn params(&self, name: &str) -> Vec<&str> {
        self.query.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
    }
}

/// Warnings collected during a request.
#[derive(Debug, Clone, Default)]
pub struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    /// Adds a text; equal texts are kept once.
    pub fn add(&self, text: impl Into<String>) {
        let text = text.into();
        let mut list = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !list.contains(&text) {
            list.push(text);
        }
    }

    /// The texts so far.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

/// What a verb answers; the HTTP layer turns it into the form that the client accepts.
pub enum Outcome {
    /// One object (or a `Status`, or a `Scale`), with the HTTP status code.
    Object(u16, Arc<Value>),
    /// A list.
    List(List),
    /// A text that is no object.
    Text(String),
    /// A stream of events; it ends when the watch ends.
    Watch(BoxStream<'static, WatchEvent>),
}

impl Outcome {
    /// An object that was made for the answer.
    pub(crate) fn made(code: u16, object: Value) -> Self {
        Self::Object(code, Arc::new(object))
    }
}

/// One event of a watch.
#[derive(Debug, Clone)]
pub struct WatchEvent {
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
    pub kind: &'static str,
    /// The object (a `Status` for `ERROR`).
    pub object: Shown,
}

/// A list as it was read; its items are made into what is shown only where they are shown.
#[derive(Debug, Clone)]
pub struct List {
    /// The resource, in the version asked for.
    pub resource: Arc<Resource>,
    /// The metadata of the list.
    pub metadata: Value,
    /// The objects as they are stored, or as they are shown.
    pub items: Vec<Arc<Value>>,
    /// Whether a webhook made them what is shown.
    pub converted: bool,
}

impl List {
    /// The whole list as an object.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let items: Vec<Value> = self.items.iter().map(|stored| self.item(stored)).collect();
        json!({
            "kind": self.resource.list_kind,
            "apiVersion": self.resource.api_version(),
            "metadata": self.metadata,
            "items": items,
        })
    }

    /// An object of the list as it is shown alone.
    #[must_use]
    pub fn object(&self, stored: &Value) -> Value {
        if self.converted { stored.clone() } else { read(&self.resource, stored) }
    }

    /// An item as the list shows it; those of built-in kinds do not repeat kind and version (row LI01).
    #[must_use]
    pub fn item(&self, stored: &Value) -> Value {
        let mut object = self.object(stored);
        if !self.resource.custom
            && let Some(map) = object.as_object_mut()
        {
            map.remove("kind");
            map.remove("apiVersion");
        }
        object
    }
}

/// The object of an event.
#[derive(Debug, Clone)]
pub enum Shown {
    /// A stored one in the version of a resource; with another revision than its own if it was deleted.
    Stored(Arc<Value>, Arc<Resource>, Option<u64>),
    /// One that was made for the event.
    Made(Value),
}

impl Shown {
    /// The object that clients see.
    #[must_use]
    pub fn into_value(self) -> Value {
        match self {
            Self::Made(object) => object,
            Self::Stored(stored, resource, revision) => {
                let mut object = read(&resource, &stored);
                if let Some(revision) = revision {
                    object::set_resource_version(&mut object, revision);
                }
                object
            }
        }
    }
}

impl std::ops::Deref for Shown {
    type Target = Value;

    /// The object with its names and labels, but as it is stored.
    fn deref(&self) -> &Value {
        match self {
            Self::Stored(stored, _, _) => stored,
            Self::Made(object) => object,
        }
    }
}
