//! Fills a store by list and watch and tells controllers what changed.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use futures::StreamExt;
use kube::runtime::watcher;
use kube::{Client, Resource};
use serde::de::DeserializeOwned;

use super::queue::retry_delay;
use super::selectors::Pairs;
use super::{Api, Key, Queue, Raw, Selectors, Store, Tasks};

/// How long one watch request may last, in seconds. Long, because each end is a timer that virtual time
/// would jump to, and the server may end it earlier.
const WATCH_SECONDS: u32 = 3600;

/// One change of an object: both sides are there for a modification, and at least one always.
pub(crate) struct Change<'a, K> {
    /// The object before.
    pub(crate) old: Option<&'a Arc<K>>,
    /// The object now.
    pub(crate) new: Option<&'a Arc<K>>,
}

impl<K> Change<'_, K> {
    /// The states of the object, old first.
    pub(crate) fn states(&self) -> impl Iterator<Item = &Arc<K>> {
        self.old.into_iter().chain(self.new)
    }
}

type Handler<K> = Box<dyn Fn(&Change<'_, K>) + Send + Sync>;

/// A store and those who want to hear of its changes.
pub(crate) struct Informer<K> {
    pub(crate) store: Arc<Store<K>>,
    handlers: Vec<Handler<K>>,
    /// Called when a list is complete.
    refilled: Vec<Box<dyn Fn() + Send + Sync>>,
}

impl<K> Informer<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// An informer of objects that are found by their keys only.
    pub(crate) fn new() -> Self {
        Self::indexed(|_| Vec::new())
    }

    /// An informer of objects that are found by groups, too; see [`Store::new`].
    pub(crate) fn indexed(index: fn(&K) -> Vec<String>) -> Self {
        let store = Arc::new(Store::new(index));
        Self { store, handlers: Vec::new(), refilled: Vec::new() }
    }

    /// Calls `handler` after each change, which is to add the keys of `queue` that the change concerns.
    /// When all has been listed anew, the keys that wait for caches get a pass: a list does not show
    /// what came and went in between.
    pub(crate) fn on_change<Q: Ord + Clone + Send + 'static>(
        &mut self,
        queue: &Arc<Queue<Q>>,
        handler: impl Fn(&Change<'_, K>) + Send + Sync + 'static,
    ) where
        Queue<Q>: Send + Sync,
    {
        let queue = Arc::clone(queue);
        self.handlers.push(Box::new(handler));
        self.refilled.push(Box::new(move || queue.let_all_go()));
    }

    /// Asks for a pass over each object that changes, and over those that are gone.
    pub(crate) fn enqueue_changed(&mut self, queue: &Arc<Queue<Key>>) {
        let to = Arc::clone(queue);
        self.on_change(queue, move |change| {
            if let Some(object) = change.states().last() {
                to.add(Key::of(object.as_ref()));
            }
        });
    }

    /// Asks for a pass over each object that changes, as long as it is there.
    pub(crate) fn enqueue_present(&mut self, queue: &Arc<Queue<Key>>) {
        let to = Arc::clone(queue);
        self.on_change(queue, move |change| {
            if let Some(object) = change.new {
                to.add(Key::of(object.as_ref()));
            }
        });
    }

    /// Asks for a pass over each object that changes, and keeps the labels that the objects select by.
    pub(crate) fn enqueue_selecting(
        &mut self,
        queue: &Arc<Queue<Key>>,
        labels: fn(&K) -> Option<&Pairs>,
    ) -> Arc<Selectors> {
        let selectors: Arc<Selectors> = Arc::default();
        let (to, kept) = (Arc::clone(queue), Arc::clone(&selectors));
        self.on_change(queue, move |change| {
            if let Some(object) = change.states().last() {
                let key = Key::of(object.as_ref());
                let old = change.old.and_then(|object| labels(object));
                kept.replace(&key, old, change.new.and_then(|object| labels(object)));
                to.add(key);
            }
        });
        selectors
    }

    /// Begins to list and watch all objects of the kind.
    pub(crate) fn start(self, client: &Client, config: watcher::Config, tasks: &mut Tasks)
    where
        K: Resource<DynamicType = ()>,
    {
        tasks.spawn(self.run(Api::<K>::all(client.clone()).into_raw(), config));
    }

    /// Lists and watches until dropped.
    pub(crate) async fn run(self, api: kube::Api<Raw>, config: watcher::Config) {
        let mut events = Box::pin(watcher::watcher(api, config.timeout(WATCH_SECONDS)));
        let mut listed = BTreeSet::new();
        let mut failures = 0;
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    // The watcher says that it begins to list before the server has answered.
                    if !matches!(event, watcher::Event::Init) {
                        failures = 0;
                    }
                    self.take(event, &mut listed);
                }
                Err(error) => {
                    tracing::debug!(%error, "watch failed, will try again");
                    tokio::time::sleep(retry_delay(failures)).await;
                    failures = failures.saturating_add(1);
                }
            }
        }
    }

    fn take(&self, event: watcher::Event<Raw>, listed: &mut BTreeSet<Key>) {
        match event {
            watcher::Event::Init => {
                listed.clear();
                self.store.begin_list();
            }
            watcher::Event::InitApply(object) => {
                if let Some(object) = typed::<K>(object) {
                    listed.insert(Key::of(&object));
                    self.apply(object);
                }
            }
            watcher::Event::InitDone => {
                for object in self.store.end_list(listed) {
                    self.delete(&object);
                }
                listed.clear();
                self.store.set_synced();
                for tell in &self.refilled {
                    tell();
                }
            }
            watcher::Event::Apply(object) => typed(object).into_iter().for_each(|o| self.apply(o)),
            watcher::Event::Delete(object) => typed(object).iter().for_each(|o| self.delete(o)),
        }
    }

    fn apply(&self, object: K) {
        let new = Arc::new(object);
        let old = self.store.insert(Arc::clone(&new));
        if let Some(old) = &old
            && old.meta().uid != new.meta().uid
        {
            self.tell(&Change { old: Some(old), new: None });
            self.tell(&Change { old: None, new: Some(&new) });
            return;
        }
        self.tell(&Change { old: old.as_ref(), new: Some(&new) });
    }

    fn delete(&self, last: &K) {
        if let Some(old) = self.store.remove(last) {
            self.tell(&Change { old: Some(&old), new: None });
        }
    }

    fn tell(&self, change: &Change<'_, K>) {
        for handler in &self.handlers {
            handler(change);
        }
    }
}

/// The object as its type. One that is no such object is as good as not there: the others go on.
fn typed<K: DeserializeOwned>(object: Raw) -> Option<K> {
    object.typed().inspect_err(|error| tracing::warn!(%error, "an object cannot be read")).ok()
}
