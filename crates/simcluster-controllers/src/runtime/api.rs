//! The API of one kind, typed for its controller and untyped below.
//!
//! kube's client and watcher are generic over the kind, and so is all of serde that they call. For a
//! dozen kinds that was a third of what this crate compiles. Here they are compiled once, for [`Raw`],
//! and a kind costs one conversion each way.

use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::marker::PhantomData;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{DynamicResourceScope, Request, request};
use kube::{Client, Error, Resource};
use serde::de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// An object of any kind as JSON, without the managed fields: no controller looks at them, they are
/// nearly half of an object, and an update that names none keeps those that are there.
#[derive(Debug, Clone)]
pub(crate) struct Raw {
    /// Only the version, which is all that kube's watcher asks for.
    meta: ObjectMeta,
    value: Value,
}

impl Raw {
    fn new(value: Value) -> Self {
        let version = Some(simcluster_model::object::resource_version(&value).to_owned());
        Self { meta: ObjectMeta { resource_version: version, ..ObjectMeta::default() }, value }
    }

    /// The object as its type.
    pub(crate) fn typed<K: DeserializeOwned>(self) -> Result<K, Error> {
        serde_json::from_value(self.value).map_err(Error::SerdeError)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields { of: Part::Object }).map(Value::Object).map(Self::new)
    }
}

/// What is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Object,
    Metadata,
}

/// Reads the fields of an object or of its metadata.
struct Fields {
    of: Part,
}

impl<'de> DeserializeSeed<'de> for Fields {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fields {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut read = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let value = match (self.of, name.as_str()) {
                (Part::Object, "metadata") => {
                    Value::Object(fields.next_value_seed(Self { of: Part::Metadata })?)
                }
                (Part::Metadata, "managedFields") => {
                    fields.next_value::<IgnoredAny>()?;
                    continue;
                }
                _ => fields.next_value()?,
            };
            read.insert(name, value);
        }
        Ok(read)
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl Resource for Raw {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(kind: &ApiResource) -> Cow<'_, str> {
        kind.kind.as_str().into()
    }

    fn group(kind: &ApiResource) -> Cow<'_, str> {
        kind.group.as_str().into()
    }

    fn version(kind: &ApiResource) -> Cow<'_, str> {
        kind.version.as_str().into()
    }

    fn api_version(kind: &ApiResource) -> Cow<'_, str> {
        kind.api_version.as_str().into()
    }

    fn plural(kind: &ApiResource) -> Cow<'_, str> {
        kind.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

/// What a controller has to know of an object that it wrote. Answers show the whole object, of which a
/// watch will tell, too: reading it twice would be a tenth of all that controllers do.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Written {
    pub(crate) metadata: WrittenMetadata,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WrittenMetadata {
    pub(crate) name: String,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
}

/// The API of a built-in kind; the methods that write answer only what was [`Written`].
pub(crate) struct Api<K> {
    raw: kube::Api<Raw>,
    client: Client,
    kind: PhantomData<fn() -> K>,
}

impl<K: Resource<DynamicType = ()>> Api<K> {
    /// All objects of the kind.
    pub(crate) fn all(client: Client) -> Self {
        let raw = kube::Api::all_with(client.clone(), &ApiResource::erase::<K>(&()));
        Self { raw, client, kind: PhantomData }
    }

    /// The objects of the kind in a namespace.
    pub(crate) fn namespaced(client: Client, namespace: &str) -> Self
    where
        K: Resource<Scope = NamespaceResourceScope>,
    {
        let kind = ApiResource::erase::<K>(&());
        let raw = kube::Api::namespaced_with(client.clone(), namespace, &kind);
        Self { raw, client, kind: PhantomData }
    }

    /// The same, untyped.
    pub(crate) fn into_raw(self) -> kube::Api<Raw> {
        self.raw
    }
}

impl<K: Serialize + DeserializeOwned> Api<K> {
    pub(crate) async fn get(&self, name: &str) -> Result<K, Error> {
        self.raw.get(name).await?.typed()
    }

    pub(crate) async fn get_opt(&self, name: &str) -> Result<Option<K>, Error> {
        self.raw.get_opt(name).await?.map(Raw::typed).transpose()
    }

    pub(crate) async fn list(&self, params: &ListParams) -> Result<Vec<K>, Error> {
        self.raw.list(params).await?.items.into_iter().map(Raw::typed).collect()
    }

    pub(crate) async fn create(&self, params: &PostParams, object: &K) -> Result<Written, Error> {
        self.send(self.request().create(params, text(object)?)).await
    }

    pub(crate) async fn replace(
        &self,
        name: &str,
        params: &PostParams,
        object: &K,
    ) -> Result<Written, Error> {
        self.send(self.request().replace(name, params, text(object)?)).await
    }

    pub(crate) async fn replace_status(
        &self,
        name: &str,
        params: &PostParams,
        object: &K,
    ) -> Result<Written, Error> {
        self.replace_subresource("status", name, params, object).await
    }

    pub(crate) async fn replace_subresource(
        &self,
        subresource: &str,
        name: &str,
        params: &PostParams,
        object: &K,
    ) -> Result<Written, Error> {
        let request = self.request();
        self.send(request.replace_subresource(subresource, name, params, text(object)?)).await
    }

    /// Posts an object of another kind to a subresource that answers a `Status`.
    pub(crate) async fn create_subresource(
        &self,
        subresource: &str,
        name: &str,
        params: &PostParams,
        object: &impl Serialize,
    ) -> Result<(), Error> {
        let request = self.request();
        let answer: Result<IgnoredAny, Error> =
            self.send(request.create_subresource(subresource, name, params, text(object)?)).await;
        answer.map(drop)
    }

    pub(crate) async fn patch(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<Value>,
    ) -> Result<Written, Error> {
        self.send(self.request().patch(name, params, patch)).await
    }

    pub(crate) async fn patch_status(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<Value>,
    ) -> Result<Written, Error> {
        self.send(self.request().patch_subresource("status", name, params, patch)).await
    }

    pub(crate) async fn delete(&self, name: &str, params: &DeleteParams) -> Result<(), Error> {
        self.raw.delete(name, params).await.map(drop)
    }

    fn request(&self) -> Request {
        Request::new(self.raw.resource_url())
    }

    async fn send<T: DeserializeOwned>(
        &self,
        request: Result<Prepared, request::Error>,
    ) -> Result<T, Error> {
        self.client.request(request.map_err(Error::BuildRequest)?).await
    }
}

/// A request as kube prepares it.
type Prepared = http::Request<Vec<u8>>;

fn text<K: Serialize>(object: &K) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(object).map_err(Error::SerdeError)
}
