//! What all controllers share: stores filled by list and watch, a work queue with one worker,
//! events, and the tasks that drive them.
//!
//! Nothing here polls and nothing depends on hash order. A settled cluster leaves no timer behind
//! except deadlines that a controller asked for.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use k8s_openapi::NamespaceResourceScope;
use kube::{Client, Resource};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use simcluster_clock::Clock;

pub(crate) mod api;
pub(crate) mod informer;
pub(crate) mod own_writes;
pub(crate) mod queue;
pub(crate) mod recorder;
pub(crate) mod selectors;
pub(crate) mod store;

pub(crate) use api::{Api, Raw, Written};
pub(crate) use informer::Informer;
pub(crate) use own_writes::OwnWrites;
pub(crate) use queue::{Next, Queue};
pub(crate) use recorder::Recorder;
pub(crate) use selectors::Selectors;
pub(crate) use store::Store;

/// What the names of built-in objects need no dynamic type for.
pub(crate) trait Object: Resource<DynamicType = ()> + Clone + Send + Sync + 'static {}
impl<K: Resource<DynamicType = ()> + Clone + Send + Sync + 'static> Object for K {}

/// Namespace and name of an object; the namespace is empty for cluster-scoped kinds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    /// The key of an object of this namespace and name.
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The key of an object.
    pub(crate) fn of<K: Resource>(object: &K) -> Self {
        let meta = object.meta();
        Self {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
        }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// What a controller acts with: a client under its own user, the time and its events.
pub(crate) struct Hands {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) recorder: Recorder,
}

impl Hands {
    /// The objects of a kind in a namespace.
    pub(crate) fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }
}

/// Why a pass over one object failed; it is logged and tried again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A request failed. kube's error texts already hold their source.
    #[error("{doing}: {error}")]
    Request {
        /// What was being done.
        doing: &'static str,
        /// The client's error.
        error: Box<kube::Error>,
    },
    /// Something that the object asks for is not there.
    #[error("{0}")]
    Missing(String),
    /// The body of a pass panicked.
    #[error("panicked: {0}")]
    Panic(String),
}

/// Names what was being done when a request failed.
pub(crate) trait Doing<T> {
    /// Turns a client error into a [`Failure`].
    fn doing(self, what: &'static str) -> Result<T, Failure>;
}

impl<T> Doing<T> for Result<T, kube::Error> {
    fn doing(self, what: &'static str) -> Result<T, Failure> {
        self.map_err(|error| Failure::Request { doing: what, error: Box::new(error) })
    }
}

/// The `Status` of a refused request.
pub(crate) fn status_of(error: &kube::Error) -> Option<&kube::core::Status> {
    if let kube::Error::Api(status) = error { Some(status) } else { None }
}

/// What became of a write to an object that somebody else may have written or deleted meanwhile: if so
/// nothing, and there will be another pass.
pub(crate) fn unless_overtaken<T>(
    result: Result<T, kube::Error>,
) -> Result<Option<T>, kube::Error> {
    match result {
        Ok(written) => Ok(Some(written)),
        Err(error)
            if status_of(&error)
                .is_some_and(|status| status.is_not_found() || status.is_conflict()) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Whether the server refused new content because the namespace is going away.
pub(crate) fn namespace_is_terminating(error: &kube::Error) -> bool {
    status_of(error).and_then(|status| status.details.as_ref()).is_some_and(|details| {
        details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
    })
}

/// The message of a refusal as the server wrote it, without what the client adds.
pub(crate) fn message_of(error: &kube::Error) -> String {
    status_of(error).map_or_else(|| error.to_string(), |status| status.message.clone())
}

/// The work that the controllers have before them at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Passes that run or are queued, and events that are not written yet.
    pub busy: usize,
    /// When the next timer (a deadline, a delay of a Pod's life, a retry) is due.
    pub next: Option<Instant>,
}

impl Work {
    fn and(self, other: Self) -> Self {
        let next = match (self.next, other.next) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        Self { busy: self.busy + other.busy, next }
    }
}

/// A controller: one pass over one key at a time.
pub(crate) trait Reconcile: Send + Sync + 'static {
    /// Name for the log.
    const NAME: &'static str;
    /// What the queue holds.
    type Key: Ord + Clone + std::fmt::Debug + Send + Sync + 'static;

    /// Waits until passes may begin: all caches are filled.
    fn ready(&self) -> impl Future<Output = ()> + Send;

    /// One pass over a key.
    fn reconcile(&self, key: Self::Key) -> impl Future<Output = Result<Next, Failure>> + Send;
}

/// Something that can say what work it holds.
pub(crate) trait Load: Send + Sync {
    /// The work held now.
    fn work(&self) -> Work;
}

/// The running tasks of a set of controllers.
pub(crate) struct Tasks {
    stop: watch::Sender<bool>,
    handles: Vec<JoinHandle<()>>,
    loads: Vec<Arc<dyn Load>>,
    event_times: recorder::Times,
}

impl Tasks {
    pub(crate) fn new() -> Self {
        Self {
            stop: watch::Sender::new(false),
            handles: Vec::new(),
            loads: Vec::new(),
            event_times: recorder::Times::default(),
        }
    }

    /// Runs a future until it ends or until stopped; it is dropped at an await when stopped.
    pub(crate) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        let mut stop = self.stop.subscribe();
        self.handles.push(tokio::spawn(async move {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => {}
                () = task => {}
            }
        }));
    }

    /// What all recorders name their events from.
    pub(crate) fn event_times(&self) -> recorder::Times {
        self.event_times.clone()
    }

    /// Counts the work of `load` in [`Tasks::work`].
    pub(crate) fn watch_load(&mut self, load: Arc<dyn Load>) {
        self.loads.push(load);
    }

    /// Runs the one worker of a controller's queue once its caches are filled. A pass that has begun is
    /// finished when the tasks are stopped.
    pub(crate) fn run<C: Reconcile>(&mut self, controller: C, queue: Arc<Queue<C::Key>>) {
        let load: Arc<dyn Load> = Arc::<Queue<C::Key>>::clone(&queue);
        self.watch_load(load);
        let mut stop = self.stop.subscribe();
        self.handles.push(tokio::spawn(async move {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = controller.ready() => {}
            }
            loop {
                let key = tokio::select! {
                    biased;
                    _ = stop.wait_for(|stop| *stop) => return,
                    next = queue.next() => next,
                };
                let pass = AssertUnwindSafe(controller.reconcile(key.clone()));
                let result = pass
                    .catch_unwind()
                    .await
                    .unwrap_or_else(|panic| Err(Failure::Panic(panic_text(panic.as_ref()))));
                if let Err(failure) = &result {
                    tracing::debug!(controller = C::NAME, ?key, %failure, "will try again");
                }
                queue.done(key, result.map_err(drop));
            }
        }));
    }

    /// The work of all controllers.
    pub(crate) fn work(&self) -> Work {
        self.loads.iter().fold(Work::default(), |sum, load| sum.and(load.work()))
    }

    /// Ends all tasks and waits until they have ended.
    pub(crate) async fn stop(&mut self) {
        self.stop.send_replace(true);
        for handle in self.handles.drain(..) {
            // A task that panicked outside of a pass is gone already.
            let _ended = handle.await;
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        for handle in &self.handles {
            handle.abort();
        }
    }
}

/// A task that ends when this is dropped.
pub(crate) struct Aborting(JoinHandle<()>);

impl Aborting {
    /// Runs a future on the current runtime.
    pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(task))
    }
}

impl Drop for Aborting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no text".to_owned())
}

#[cfg(test)]
mod tests;
