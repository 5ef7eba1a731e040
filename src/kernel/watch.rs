//! Watches a kind and turns what happens into triggers.

use std::sync::Arc;

use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use kube::{
    Api, Client,
    core::{ApiResource, DynamicObject},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event},
    },
};

use super::{
    backoff::WatchBackoff,
    cache::{Cache, Cached, Change},
    work::Trigger,
};

/// Status code of a watch from a version that the server no longer has.
const EXPIRED: u16 = 410;

/// What a watch delivers: triggers, or word that the first list over a scope is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// Something happened.
    Trigger(Trigger),
    /// The first list is complete.
    Listed,
}

/// Watches `resource` in `namespace` (all if `None`), keeps `cache` up to date and says what
/// changed, as `triggers` sees it.
///
/// Objects come as [`DynamicObject`]s, for which nothing but the metadata has to be sound: an
/// object with a spec that does not fit its type stops nobody else.
pub fn watch<T: Cached + Send + Sync + 'static>(
    client: Client,
    resource: &ApiResource,
    namespace: Option<&str>,
    cache: Arc<Cache<T>>,
    parse: impl Fn(&DynamicObject) -> T + Send + 'static,
    triggers: impl Fn(&Change<T>) -> Option<Trigger> + Send + 'static,
) -> BoxStream<'static, Heard> {
    let kind = resource.kind.clone();
    let scope = namespace.unwrap_or_default().to_owned();
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, resource),
        None => Api::all_with(client, resource),
    };
    let mut listed = false;
    watcher::watcher(api, watcher::Config::default())
        .backoff(WatchBackoff::default())
        .filter_map(move |event| {
            let event = event.inspect_err(|error| log(&kind, error)).ok();
            futures::future::ready(event)
        })
        .flat_map(move |event| {
            let first = matches!(event, Event::InitDone) && !std::mem::replace(&mut listed, true);
            let changes = cache.absorb(&scope, map(event, &parse));
            let mut heard: Vec<Heard> =
                changes.iter().filter_map(&triggers).map(Heard::Trigger).collect();
            heard.extend(first.then_some(Heard::Listed));
            stream::iter(heard)
        })
        .boxed()
}

/// That history does not reach back far enough happens in the best of clusters: the kind is listed
/// anew, and nothing is lost.
fn log(kind: &str, error: &watcher::Error) {
    match error {
        watcher::Error::WatchError(status) if status.code == EXPIRED => {
            tracing::debug!(kind, %error, "a watch expired; listing anew");
        }
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == EXPIRED => {
            tracing::debug!(kind, %error, "a watch expired; listing anew");
        }
        watcher::Error::InitialListFailed(_)
        | watcher::Error::WatchStartFailed(_)
        | watcher::Error::WatchError(_)
        | watcher::Error::WatchFailed(_)
        | watcher::Error::NoResourceVersion => {
            tracing::warn!(kind, %error, "a watch failed and is opened again");
        }
    }
}

fn map<T>(event: Event<DynamicObject>, parse: impl Fn(&DynamicObject) -> T) -> Event<T> {
    match event {
        Event::Apply(object) => Event::Apply(parse(&object)),
        Event::Delete(object) => Event::Delete(parse(&object)),
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(parse(&object)),
        Event::InitDone => Event::InitDone,
    }
}
