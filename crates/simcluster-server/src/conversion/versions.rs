//! The versions of a kind, for computations that cannot wait for a webhook: what they lack is asked for
//! between two attempts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::{api_version, relabelled};
use crate::lifecycle::DEFINITIONS;
use crate::server::ApiServer;
use simcluster_model::crd;
use simcluster_model::fieldmanager::{VersionFault, Versioned, Versions};
use simcluster_model::resource::Resource;

/// Computes something that needs objects in other versions. It is computed again as long as a webhook
/// has to be asked for one of them.
pub(crate) async fn with_versions<T>(
    server: &ApiServer,
    resource: &Resource,
    compute: impl Fn(&dyn Versions) -> T + Sync,
) -> T {
    let known = Known { server, resource, conversions: Mutex::default() };
    loop {
        let wanted = {
            let outcome = compute(&known);
            match known.wanted() {
                None => return outcome,
                Some(wanted) => wanted,
            }
        };
        let (object, to) = wanted;
        let converted = server.in_version_of(resource, &to, object).await;
        known.answer(converted);
    }
}

/// The conversions that were made so far; only the last one may still lack its answer.
struct Known<'a> {
    server: &'a ApiServer,
    resource: &'a Resource,
    conversions: Mutex<Vec<Conversion>>,
}

struct Conversion {
    object: Value,
    to: Arc<Resource>,
    answer: Option<Result<Value, String>>,
}

impl Known<'_> {
    fn lock(&self) -> MutexGuard<'_, Vec<Conversion>> {
        self.conversions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be converted to go on.
    fn wanted(&self) -> Option<(Value, Arc<Resource>)> {
        let conversions = self.lock();
        let last = conversions.last().filter(|last| last.answer.is_none())?;
        Some((last.object.clone(), Arc::clone(&last.to)))
    }

    fn answer(&self, answer: Result<Value, String>) {
        if let Some(last) = self.lock().last_mut() {
            last.answer = Some(answer);
        }
    }

    /// The resource of another version, be it served or not.
    fn version(&self, version: &str) -> Option<Arc<Resource>> {
        let key = &self.resource.storage_key;
        let is_it = |one: &&Arc<Resource>| one.storage_key == *key && one.api_version() == version;
        if let Some(served) = self.server.served().all().iter().find(is_it) {
            return Some(Arc::clone(served));
        }
        let (group, version) = version.split_once('/')?;
        if !self.resource.custom || group != self.resource.group {
            return None;
        }
        let name = format!("{}.{group}", self.resource.plural);
        let definition = self.server.get(DEFINITIONS, "", &name)?;
        crd::version(&definition, version).map(Arc::new)
    }
}

impl Versions for Known<'_> {
    fn convert(&self, object: &Value, version: &str) -> Result<Versioned, VersionFault> {
        let Some(to) = self.version(version) else {
            return Err(if self.resource.custom {
                let why = format!("request to convert CR to an invalid group/version: {version}");
                VersionFault::Failed(why)
            } else {
                VersionFault::Missing
            });
        };
        let versioned = |object: Value| Versioned { object, schema: Arc::clone(&to.schema) };
        if api_version(object) == version {
            return Ok(versioned(object.clone()));
        }
        if self.server.conversion_webhook(self.resource).is_none() {
            // An object on its way back is of another version than the resource.
            let from = self.version(api_version(object));
            let from = from.as_deref().unwrap_or(self.resource);
            return Ok(versioned(relabelled(from, &to, object.clone())));
        }
        let mut conversions = self.lock();
        let same = |known: &&Conversion| {
            known.object == *object && known.to.api_version() == to.api_version()
        };
        match conversions.iter().find(same).map(|known| known.answer.clone()) {
            Some(Some(Ok(converted))) => Ok(versioned(converted)),
            Some(Some(Err(why))) => Err(VersionFault::Failed(why)),
            Some(None) => Err(VersionFault::Unknown),
            None => {
                // Only one is asked for at a time.
                if conversions.last().is_none_or(|last| last.answer.is_some()) {
                    conversions.push(Conversion { object: object.clone(), to, answer: None });
                }
                Err(VersionFault::Unknown)
            }
        }
    }
}
