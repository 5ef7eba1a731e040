//! The resources that a server serves, found by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use simcluster_model::registry;
use simcluster_model::resource::Resource;

/// All served resources: built-in ones first, then those of CRDs by group, version and plural.
#[derive(Debug)]
pub struct Resources {
    all: Vec<Arc<Resource>>,
    by_plural: BTreeMap<String, Vec<Arc<Resource>>>,
    by_storage: BTreeMap<String, Arc<Resource>>,
}

impl Resources {
    /// The built-in resources and these.
    pub fn with_custom<'a>(custom: impl IntoIterator<Item = &'a Arc<Resource>>) -> Self {
        let mut resources =
            Self { all: Vec::new(), by_plural: BTreeMap::new(), by_storage: BTreeMap::new() };
        for resource in registry::built_in().iter().chain(custom) {
            resources.all.push(Arc::clone(resource));
            let kin = resources.by_plural.entry(resource.plural.clone()).or_default();
            kin.push(Arc::clone(resource));
            let stored = resources.by_storage.entry(resource.storage_key.clone());
            let stored = stored.or_insert_with(|| Arc::clone(resource));
            if resource.version == resource.storage_version {
                *stored = Arc::clone(resource);
            }
        }
        resources
    }

    /// The resources of a group and plural, in all versions.
    pub fn kin<'a>(
        &'a self,
        group: &'a str,
        plural: &str,
    ) -> impl Iterator<Item = &'a Arc<Resource>> + Clone {
        let all = self.by_plural.get(plural).map(Vec::as_slice).unwrap_or_default();
        all.iter().filter(move |one| one.group == group)
    }

    /// The resource that a path names.
    #[must_use]
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        let all = self.by_plural.get(plural)?;
        all.iter().find(|one| one.group == group && one.version == version)
    }

    /// A served resource that keeps its objects under a storage key, in the stored version if that is
    /// served.
    #[must_use]
    pub fn find_stored(&self, storage_key: &str) -> Option<&Arc<Resource>> {
        self.by_storage.get(storage_key)
    }

    /// All of them, in order.
    #[must_use]
    pub fn all(&self) -> &[Arc<Resource>] {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_what_a_look_at_each_finds() {
        let resources = Resources::with_custom([]);
        for one in resources.all() {
            let same =
                |other: &&Arc<Resource>| other.group == one.group && other.plural == one.plural;
            let scanned: Vec<_> = resources.all().iter().filter(same).collect();
            let kin: Vec<_> = resources.kin(&one.group, &one.plural).collect();
            assert_eq!(kin.len(), scanned.len());
            assert!(kin.iter().zip(&scanned).all(|(one, other)| Arc::ptr_eq(one, other)));
            let found = resources.find(&one.group, &one.version, &one.plural);
            assert!(found.is_some_and(|found| Arc::ptr_eq(found, one)), "{one:?}");
            let stored = resources.find_stored(&one.storage_key);
            assert!(stored.is_some_and(|found| found.storage_key == one.storage_key), "{one:?}");
        }
        assert!(resources.find("", "v2", "pods").is_none());
    }
}
