//! Stored objects that cannot be read in a version, as the real server's storage reports them
//! (`k8s.io/apiserver/pkg/storage/etcd3/corrupt_obj_deleter.go`).

use serde_json::Value;

use crate::store;
use simcluster_model::error::{ApiError, Cause, Details};
use simcluster_model::object;
use simcluster_model::resource::Resource;

/// Why a stored object cannot be read in a version.
#[derive(Debug, Clone)]
pub(crate) struct Undecodable {
    /// Its key in the storage, without the prefix of all keys.
    key: String,
    revision: String,
    why: String,
}

impl Undecodable {
    pub(super) fn new(resource: &Resource, stored: &Value, why: String) -> Self {
        let key = store::key(object::namespace(stored), object::name(stored));
        Self {
            key: format!("/{}/{}/{key}", resource.group, resource.plural),
            revision: object::resource_version(stored).to_owned(),
            why,
        }
    }

    fn fault(&self) -> String {
        format!("object not decodable revision={}: {}", self.revision, self.why)
    }

    fn storage_error(&self, key: &str) -> String {
        let fault = self.fault();
        format!(
            "StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, \
             AdditionalErrorMsg: {fault}"
        )
    }

    /// The answer to a get or a delete.
    pub(crate) fn of_read(&self) -> ApiError {
        ApiError::internal(&self.storage_error(&self.key))
    }

    /// The answer to a write.
    pub(crate) fn of_write(&self) -> ApiError {
        ApiError::raw(self.fault())
    }
}

/// The answer to a list of which some objects cannot be read.
pub(crate) fn unreadable_list(resource: &Resource, faults: &[Undecodable]) -> ApiError {
    let causes: Vec<Cause> = faults
        .iter()
        .map(|fault| {
            let key = format!("/registry{}", fault.key);
            Cause {
                reason: "UnexpectedServerResponse".to_owned(),
                message: fault.storage_error(&key),
                field: key,
            }
        })
        .collect();
    let first = causes.first().map(|cause| cause.message.as_str()).unwrap_or_default();
    let more = match causes.len() {
        0 | 1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    let (plural, group) = (&resource.plural, &resource.group);
    let message =
        format!("failed to read one or more {plural}.{group} from the storage: {first}{more}");
    ApiError::new(500, "StorageReadError", message).with_details(Details {
        name: "list".to_owned(),
        group: group.clone(),
        kind: plural.clone(),
        causes,
        ..Details::default()
    })
}
