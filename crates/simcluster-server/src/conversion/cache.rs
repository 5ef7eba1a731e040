//! What stands for the watch caches that a real server keeps, one for each version of a kind: objects
//! are converted once, on their own, soon after they were written, and lists and watches show what is
//! there already.
//!
//! A cache follows the changes of its kind in their order, so one object that cannot be converted keeps
//! it from all later ones: it is stuck, and gives up after half a minute.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Mutex as Turn;
use tokio::time::Instant;

use super::Undecodable;
use crate::server::ApiServer;
use crate::store::Change;
use simcluster_model::resource::Resource;

/// Converted objects that are kept.
const OBJECTS_MAX: usize = 10_000;

/// Changes that are taken from the store at once.
const BATCH: usize = 500;

/// How long a cache tries to read the same change before it begins anew
/// (`MaxInternalErrorRetryDuration` of the cacher's reflector).
const STUCK_MAX: Duration = Duration::from_secs(30);

/// The caches of all versions that a webhook makes.
#[derive(Debug, Default)]
pub(crate) struct VersionCaches(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    objects: BTreeMap<Id, Entry>,
    order: VecDeque<Id>,
    caches: BTreeMap<usize, Cache>,
}

/// Addresses of a stored object and of the resource in whose version it is kept.
type Id = (usize, usize);

/// A converted object, with what keeps the addresses from being used again.
#[derive(Debug)]
struct Entry {
    converted: Arc<Value>,
    _stored: Arc<Value>,
    _resource: Arc<Resource>,
}

/// How far the cache of a version has come.
#[derive(Debug)]
struct Cache {
    resource: Arc<Resource>,
    /// All changes up to this revision are in it; nothing is before it was filled.
    reached: Option<u64>,
    /// Held by who fills it.
    turn: Arc<Turn<()>>,
    /// Since when it cannot go on.
    stuck: Option<Instant>,
}

impl VersionCaches {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object in the version of a resource, if it is there.
    pub(crate) fn get(&self, resource: &Arc<Resource>, stored: &Arc<Value>) -> Option<Arc<Value>> {
        let kept = self.lock();
        kept.objects.get(&id(resource, stored)).map(|entry| Arc::clone(&entry.converted))
    }

    /// The revision up to which a cache has seen all changes.
    pub(crate) fn reached(&self, resource: &Arc<Resource>) -> u64 {
        self.lock().cache(resource).reached.unwrap_or_default()
    }

    /// Whether a cache has given up, and begins anew.
    pub(crate) fn gave_up(&self, resource: &Arc<Resource>) -> bool {
        self.lock().cache(resource).stuck.is_some_and(|since| since.elapsed() >= STUCK_MAX)
    }

    /// Notes that a cache cannot go on, or can again.
    pub(crate) fn set_stuck(&self, resource: &Arc<Resource>, stuck: bool) {
        let mut kept = self.lock();
        let cache = kept.cache(resource);
        cache.stuck = if stuck { cache.stuck.or_else(|| Some(Instant::now())) } else { None };
    }

    fn put(&self, resource: &Arc<Resource>, stored: &Arc<Value>, converted: &Arc<Value>) {
        let mut kept = self.lock();
        let id = id(resource, stored);
        let entry = Entry {
            converted: Arc::clone(converted),
            _stored: Arc::clone(stored),
            _resource: Arc::clone(resource),
        };
        if kept.objects.insert(id, entry).is_none() {
            kept.order.push_back(id);
        }
        while kept.objects.len() > OBJECTS_MAX
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.objects.remove(&oldest);
        }
    }
}

impl Kept {
    fn cache(&mut self, resource: &Arc<Resource>) -> &mut Cache {
        let address = Arc::as_ptr(resource).addr();
        self.caches.entry(address).or_insert_with(|| Cache {
            resource: Arc::clone(resource),
            reached: None,
            turn: Arc::default(),
            stuck: None,
        })
    }
}

fn id(resource: &Arc<Resource>, stored: &Arc<Value>) -> Id {
    (Arc::as_ptr(stored).addr(), Arc::as_ptr(resource).addr())
}

/// An object that a cache has still to convert.
struct Work {
    stored: Arc<Value>,
    /// What is deleted is read once more.
    deleted: bool,
    revision: u64,
}

impl ApiServer {
    /// The object in the version of a resource, out of its cache or converted for it.
    pub(crate) async fn cached(
        &self,
        resource: &Arc<Resource>,
        stored: &Arc<Value>,
    ) -> Result<Arc<Value>, Undecodable> {
        if let Some(known) = self.version_caches().get(resource, stored) {
            return Ok(known);
        }
        let converted = self.decode(resource, stored).await?;
        self.version_caches().put(resource, stored, &converted);
        Ok(converted)
    }

    /// Lets the caches of all versions of a kind take in what has changed, in a task of their own.
    pub(crate) fn follow_versions(self: &Arc<Self>, resource: &Resource) {
        if self.conversion_webhook(resource).is_none() {
            return;
        }
        let last = self.store().last_change([resource.storage_key.as_str()]);
        let served = self.served();
        for one in served.kin(&resource.group, &resource.plural) {
            let reached = self.version_caches().lock().cache(one).reached;
            if reached.is_none_or(|reached| reached < last) {
                tokio::spawn(follow(Arc::clone(self), Arc::clone(one)));
            }
        }
    }

    /// Forgets the caches of resources that are not served any more.
    pub(crate) fn forget_versions(&self) {
        let served = self.served();
        let is_served = |one: &Arc<Resource>| {
            let now = served.find(&one.group, &one.version, &one.plural);
            now.is_some_and(|now| Arc::ptr_eq(now, one))
        };
        self.version_caches().lock().caches.retain(|_, cache| is_served(&cache.resource));
    }

    /// What a cache has still to convert; if that is everything, the revision of that moment, too.
    fn work(&self, resource: &Resource, reached: Option<u64>) -> (Vec<Work>, Option<u64>) {
        let store = self.store();
        let key = &resource.storage_key;
        let changes = reached.and_then(|reached| store.changes_after(key, reached, BATCH).ok());
        let Some(changes) = changes else {
            let revision = store.revision();
            let all = store.all(key).into_iter();
            let all = all.map(|stored| Work { stored, deleted: false, revision });
            return (all.collect(), Some(revision));
        };
        let work = |change: Change| {
            let deleted = change.after.is_none();
            let stored = change.after.or(change.before)?;
            Some(Work { stored, deleted, revision: change.revision })
        };
        (changes.into_iter().filter_map(work).collect(), None)
    }
}

/// Fills the cache of a version until it has seen everything.
async fn follow(server: Arc<ApiServer>, resource: Arc<Resource>) {
    let caches = server.version_caches();
    let turn = Arc::clone(&caches.lock().cache(&resource).turn);
    let _turn = turn.lock().await;
    loop {
        let reached = caches.lock().cache(&resource).reached;
        let (work, head) = server.work(&resource, reached);
        if work.is_empty() && head.is_none() {
            return;
        }
        for Work { stored, deleted, revision } in work {
            let done = if deleted {
                server.decode(&resource, &stored).await.map(drop)
            } else {
                server.cached(&resource, &stored).await.map(drop)
            };
            caches.set_stuck(&resource, done.is_err());
            if done.is_err() {
                return;
            }
            if head.is_none() {
                caches.lock().cache(&resource).reached = Some(revision);
            }
        }
        if head.is_some() {
            caches.lock().cache(&resource).reached = head;
        }
    }
}
