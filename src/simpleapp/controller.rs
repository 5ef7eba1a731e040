//! Wires the watches to the reconcile.

use std::{collections::BTreeSet, future::Future, sync::Arc};

use futures::{
    StreamExt,
    stream::{self, BoxStream},
};

use crate::kernel::{
    cache::{Cache, Change},
    ownership::Child,
    watch::{Heard, watch},
    work::{Limits, Trigger, drive},
};

use super::{
    observed::App,
    reconcile::{Context, reconcile},
};

/// Runs the controller over `namespaces` (all if empty) until `shutdown`.
pub async fn run(
    ctx: Arc<Context>,
    namespaces: &[String],
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) {
    let scopes: Vec<Option<&str>> = if namespaces.is_empty() {
        vec![None]
    } else {
        // Two watches of one namespace would disturb each other's lists.
        let namespaces: BTreeSet<&str> = namespaces.iter().map(String::as_str).collect();
        namespaces.into_iter().map(Some).collect()
    };
    let streams: Vec<BoxStream<'static, Heard>> =
        scopes.into_iter().flat_map(|scope| watches(&ctx, scope)).collect();
    let mut to_list = streams.len();
    let triggers = stream::select_all(streams).map(move |heard| match heard {
        Heard::Trigger(trigger) => vec![trigger],
        Heard::Listed => {
            to_list -= 1;
            if to_list == 0 { vec![Trigger::Synced] } else { Vec::new() }
        }
    });
    let triggers = triggers.flat_map(stream::iter);
    drive(triggers, |key| reconcile(key, ctx.clone()), limits, shutdown).await;
}

fn watches(ctx: &Arc<Context>, namespace: Option<&str>) -> Vec<BoxStream<'static, Heard>> {
    let client = &ctx.client;
    let apps =
        watch(client.clone(), &App::resource(), namespace, ctx.apps.clone(), App::of, app_trigger);
    let children = ctx.children.iter().map(|(kind, cache)| {
        let apps = ctx.apps.clone();
        let trigger = move |change: &Change<Child>| child_trigger(&apps, change);
        watch(client.clone(), &kind.resource(), namespace, cache.clone(), Child::of, trigger)
    });
    std::iter::once(apps).chain(children).collect()
}

/// An app is looked at when its spec changed, its deletion was asked for or its finalizers changed;
/// not when its status (ours) or its labels did.
fn app_trigger(change: &Change<App>) -> Option<Trigger> {
    let Some(new) = &change.new else {
        return change.old.as_ref().map(|old| Trigger::Gone(old.key.clone()));
    };
    let facts = |app: &App| {
        (app.uid.clone(), app.generation, app.deleted_at.is_some(), app.finalizers.clone())
    };
    let is_same = change.old.as_ref().is_some_and(|old| facts(old) == facts(new));
    (!is_same).then(|| Trigger::Look(new.key.clone()))
}

/// A child has the name of its app. So does a stranger that stands in its way: when that goes, the
/// app is looked at too.
fn child_trigger(apps: &Cache<App>, change: &Change<Child>) -> Option<Trigger> {
    let key = &change.new.as_ref().or(change.old.as_ref())?.key;
    apps.get(key).map(|app| Trigger::Look(app.key.clone()))
}
