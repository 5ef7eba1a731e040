//! The record that stays when an object is gone.

use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, api::PostParams};
use thiserror::Error;

use super::{
    backoff::fingerprint,
    error::{ErrorClass, RequestError},
    key::Key,
    ownership::FIELD_MANAGER,
    requests::send,
};

/// Label of every record, for finding them.
pub const SOURCE_LABEL: &str = "audit.bootcamp.local/source";
/// Annotation with the UID of the object that a record is about.
pub const UID_ANNOTATION: &str = "audit.bootcamp.local/uid";
/// Longest name of an object.
const NAME_LENGTH_MAX: usize = 253;

/// An object that is being deleted, as a clean-up sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deleted {
    /// Which object.
    pub key: Key,
    /// Its identity.
    pub uid: String,
    /// When its deletion was asked for.
    pub deleted_at: Timestamp,
    /// What the record says of it.
    pub data: std::collections::BTreeMap<String, String>,
}

/// How a clean-up ended well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cleaned {
    /// Everything is in its place.
    Done,
    /// The record could not be kept in the cluster; here is why. It is in the log.
    LoggedOnly(String),
}

/// Why a clean-up has to be tried again.
#[derive(Debug, Error)]
pub enum CleanUpError {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// It took too long.
    #[error("not finished in time")]
    TimedOut,
    /// Something outside of Kubernetes failed.
    #[error("{0}")]
    Other(String),
}

impl CleanUpError {
    /// What the failure means for the next attempt.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Request(error) => error.class(),
            Self::TimedOut | Self::Other(_) => ErrorClass::Transient,
        }
    }

    /// How long the server asked us to wait, if it did.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Request(error) => error.retry_after(),
            Self::TimedOut | Self::Other(_) => None,
        }
    }
}

/// What has to be done before an object may go. May be called again for the same object, whenever
/// it failed or the operator stopped half-way.
pub trait CleanUp: Send + Sync {
    /// Cleans up after `object`.
    fn clean_up<'a>(&'a self, object: &'a Deleted) -> BoxFuture<'a, Result<Cleaned, CleanUpError>>;
}

/// The default clean-up: writes a ConfigMap that says what was deleted.
pub struct AuditRecord {
    client: Client,
    /// Takes the records of namespaces that are being deleted themselves.
    operator_namespace: Option<String>,
}

impl AuditRecord {
    /// Writes records beside the deleted object or, where that is impossible, into
    /// `operator_namespace`.
    #[must_use]
    pub fn new(client: Client, operator_namespace: Option<String>) -> Self {
        Self { client, operator_namespace }
    }

    async fn write(&self, object: &Deleted) -> Result<Cleaned, CleanUpError> {
        let beside = name_of(&object.key.name, object.deleted_at);
        let Err(error) = self.create(object, &object.key.namespace, beside).await else {
            return Ok(Cleaned::Done);
        };
        if !error.is_namespace_terminating() {
            return Err(error.into());
        }
        let elsewhere = self.operator_namespace.as_deref();
        let Some(namespace) = elsewhere.filter(|namespace| *namespace != object.key.namespace)
        else {
            return Ok(logged_only(object, &error));
        };
        let subject = format!("{}-{}", object.key.namespace, object.key.name);
        match self.create(object, namespace, name_of(&subject, object.deleted_at)).await {
            Ok(()) => Ok(Cleaned::Done),
            // Going away or gone: no attempt later can help.
            Err(error) if error.is_namespace_terminating() || error.is_not_found() => {
                Ok(logged_only(object, &error))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Creates the record. One of the same object that is there already will do; one of another
    /// object with the same name makes this one carry its UID in the name.
    async fn create(
        &self,
        object: &Deleted,
        namespace: &str,
        name: String,
    ) -> Result<(), RequestError> {
        let mut name = name;
        loop {
            let record = record(object, namespace, &name);
            let Err(error) = self.post(&record, namespace, &name).await else {
                return Ok(());
            };
            if !error.is_already_exists() {
                return Err(error);
            }
            let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
            let request = format!("get ConfigMap {namespace}/{name}");
            let existing = send(request, api.get(&name)).await?;
            let uid = existing.metadata.annotations.unwrap_or_default().remove(UID_ANNOTATION);
            if uid.as_deref() == Some(object.uid.as_str()) {
                return Ok(());
            }
            let with_uid = format!("{name}-{:08x}", fingerprint(&object.uid) >> 32);
            if with_uid.len() > NAME_LENGTH_MAX || name.ends_with(&uid_suffix(object)) {
                return Err(error);
            }
            name = with_uid;
        }
    }

    async fn post(
        &self,
        record: &ConfigMap,
        namespace: &str,
        name: &str,
    ) -> Result<(), RequestError> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        let params =
            PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
        let request = format!("create ConfigMap {namespace}/{name}");
        send(request, api.create(&params, record)).await.map(|_created| ())
    }
}

impl CleanUp for AuditRecord {
    fn clean_up<'a>(&'a self, object: &'a Deleted) -> BoxFuture<'a, Result<Cleaned, CleanUpError>> {
        Box::pin(self.write(object))
    }
}

fn uid_suffix(object: &Deleted) -> String {
    format!("-{:08x}", fingerprint(&object.uid) >> 32)
}

fn logged_only(object: &Deleted, error: &RequestError) -> Cleaned {
    tracing::warn!(
        target: "audit", app = %object.key, uid = %object.uid, record = ?object.data, %error,
        "the record of a deletion is in this line only"
    );
    Cleaned::LoggedOnly(error.to_string())
}

/// The name of a record: always the same for the same deletion, and never too long.
fn name_of(subject: &str, deleted_at: Timestamp) -> String {
    let name = format!("audit-deleted-{subject}-{}", deleted_at.as_second());
    if name.len() <= NAME_LENGTH_MAX {
        return name;
    }
    let hash = format!("{:016x}", fingerprint(subject));
    let tail = format!("-{hash}-{}", deleted_at.as_second());
    let cut: String = name.chars().take(NAME_LENGTH_MAX - tail.len()).collect();
    format!("{}{tail}", cut.trim_end_matches(['-', '.']))
}

fn record(object: &Deleted, namespace: &str, name: &str) -> ConfigMap {
    let mut record = ConfigMap { data: Some(object.data.clone()), ..ConfigMap::default() };
    record.metadata.name = Some(name.to_owned());
    record.metadata.namespace = Some(namespace.to_owned());
    record.metadata.labels = Some([(SOURCE_LABEL.to_owned(), FIELD_MANAGER.to_owned())].into());
    record.metadata.annotations = Some([(UID_ANNOTATION.to_owned(), object.uid.clone())].into());
    record
}
