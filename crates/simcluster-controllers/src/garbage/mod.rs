//! The garbage collector: objects whose owners are all gone go too; owners that are deleted in the
//! foreground wait for their dependents; orphaned dependents lose their reference.
//!
//! It watches the metadata of every kind that can be deleted, built in or from a CRD.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Api;
use kube::api::{
    DeleteParams, DynamicObject, Patch, PatchParams, Preconditions, PropagationPolicy,
};
use kube::core::{ApiResource, PartialObjectMeta};
use kube::runtime::watcher;
use serde_json::json;

use self::graph::{Graph, GroupKind, Node, Owner, Verdict, Way, kind_of};
use super::kinds::{self, Kind};
use super::runtime::queue::retry_delay;
use super::runtime::recorder::{Note, Severity};
use super::runtime::{
    Aborting, Doing, Failure, Hands, Informer, Key, Next, Queue, Reconcile, Store, status_of,
};
use super::{Informers, MANAGER};
use simcluster_model::metadata::{FOREGROUND, ORPHAN};

mod graph;
#[cfg(test)]
mod tests;

/// The metadata of an object of any kind.
type Meta = PartialObjectMeta<DynamicObject>;

/// What the queue holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Task {
    /// A CRD came, changed or went.
    Definition(Key),
    /// Look at the object of a UID.
    Object(String),
}

/// The collector's hands and memory.
pub(crate) struct Controller {
    hands: Hands,
    definitions: Arc<Store<CustomResourceDefinition>>,
    queue: Arc<Queue<Task>>,
    graph: Arc<Mutex<Graph>>,
    watched: Mutex<BTreeMap<GroupKind, Watched>>,
    /// The version of each object (by UID) that was acted upon and whose successor is not seen yet.
    acted: Mutex<BTreeMap<String, Option<String>>>,
}

/// A kind that is being watched.
struct Watched {
    kind: Kind,
    store: Arc<Store<Meta>>,
    /// The name of its CRD, if it has one.
    definition: Option<Key>,
    _informer: Aborting,
}

impl Controller {
    /// Hooks the collector to the informers.
    pub(crate) fn wire(hands: Hands, informers: &mut Informers) -> (Self, Arc<Queue<Task>>) {
        let queue = Arc::new(Queue::new());
        let to = Arc::clone(&queue);
        informers.definitions.on_change(&queue, move |change| {
            if let Some(definition) = change.states().last() {
                to.add(Task::Definition(Key::of(definition.as_ref())));
            }
        });
        let controller = Self {
            hands,
            definitions: Arc::clone(&informers.definitions.store),
            queue: Arc::clone(&queue),
            graph: Arc::default(),
            watched: Mutex::default(),
            acted: Mutex::default(),
        };
        (controller, queue)
    }

    fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn acted(&self) -> MutexGuard<'_, BTreeMap<String, Option<String>>> {
        self.acted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watched(&self) -> MutexGuard<'_, BTreeMap<GroupKind, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to watch a kind.
    fn watch(&self, kind: Kind, definition: Option<Key>) {
        let group_kind = (kind.resource.group.clone(), kind.resource.kind.clone());
        let mut watched = self.watched();
        if watched.get(&group_kind).is_some_and(|known| known.kind == kind) {
            return;
        }
        let mut informer: Informer<Meta> = Informer::new();
        let (graph, queue) = (Arc::clone(&self.graph), Arc::clone(&self.queue));
        let of_kind = group_kind.clone();
        informer.on_change(&self.queue, move |change| {
            let mut graph = graph.lock().unwrap_or_else(PoisonError::into_inner);
            let uid = change.states().last().and_then(|object| object.metadata.uid.clone());
            let look = match (change.new, change.old) {
                (Some(new), _) => graph
                    .observe(&Node { kind: of_kind.clone(), meta: Arc::new(new.metadata.clone()) }),
                (None, Some(old)) => graph.remove(old.metadata.uid.as_deref().unwrap_or_default()),
                (None, None) => return,
            };
            for uid in look {
                queue.add(Task::Object(uid));
            }
            // What was done about it shows now.
            queue.let_go(&Task::Object(uid.unwrap_or_default()));
        });
        let store = Arc::clone(&informer.store);
        let api = Api::all_with(self.hands.client.clone(), &kind.resource);
        let informer = Aborting::spawn(informer.run(api, watcher::Config::default()));
        watched.insert(group_kind, Watched { kind, store, definition, _informer: informer });
        drop(watched);
        // Objects may wait for an owner's kind to become known.
        self.queue.let_all_go();
    }

    /// Watches what a CRD defines, or stops to.
    fn follow_definition(&self, key: &Key) {
        let kind = self.definitions.get(key).as_deref().and_then(defined_kind);
        match kind {
            Some(kind) => self.watch(kind, Some(key.clone())),
            None => self.unwatch(key),
        }
    }

    fn unwatch(&self, definition: &Key) {
        let mut stores = Vec::new();
        self.watched().retain(|_, watched| {
            let ends = watched.definition.as_ref() == Some(definition);
            if ends {
                stores.push(Arc::clone(&watched.store));
            }
            !ends
        });
        for object in stores.iter().flat_map(|store| store.all()) {
            let uid = object.metadata.uid.as_deref().unwrap_or_default();
            for uid in self.graph().remove(uid) {
                self.queue.add(Task::Object(uid));
            }
            self.queue.let_go(&Task::Object(uid.to_owned()));
        }
    }

    async fn look_at(&self, uid: &str) -> Result<Next, Failure> {
        let Some(node) = self.graph().get(uid).cloned() else {
            self.acted().remove(uid);
            return Ok(Next::Done);
        };
        if self.acted().get(uid) == Some(&node.meta.resource_version) {
            return Ok(Next::Wait);
        }
        let Some(kind) = self.watched().get(&node.kind).map(|watched| watched.kind.clone()) else {
            return Ok(Next::Done);
        };
        let mut owners = BTreeMap::new();
        if !node.is_deleting() {
            for reference in node.owners() {
                match self.owner(&node, &kind, reference).await? {
                    Lookup::Found(owner) => owners.insert(reference.uid.clone(), owner),
                    // Its kind may come with a CRD.
                    Lookup::UnknownKind => return Ok(Next::Wait),
                    // An object of the whole cluster cannot belong to one of a namespace.
                    Lookup::OutOfReach => return Ok(Next::Done),
                };
            }
        }
        let verdict = self.graph().judge(&node, &owners);
        if verdict == Verdict::Keep {
            self.acted().remove(uid);
            return Ok(Next::Done);
        }
        self.carry_out(&kind, &node, verdict).await?;
        self.acted().insert(uid.to_owned(), node.meta.resource_version.clone());
        // Once more when the watch shows what has become of it.
        Ok(Next::Wait)
    }

    async fn owner(
        &self,
        node: &Node,
        kind: &Kind,
        reference: &OwnerReference,
    ) -> Result<Lookup, Failure> {
        let (known, is_across) = {
            let graph = self.graph();
            (graph.owner(node, reference), graph.is_across_namespaces(node, reference))
        };
        if let Some(owner) = known {
            return Ok(Lookup::Found(owner));
        }
        let owner_kind = self.watched().get(&kind_of(reference)).map(|one| one.kind.clone());
        let Some(owner_kind) = owner_kind else { return Ok(Lookup::UnknownKind) };
        if is_across {
            self.report_across(node, kind, reference);
        }
        if owner_kind.namespaced && !kind.namespaced {
            return Ok(Lookup::OutOfReach);
        }
        let api = self.api(&owner_kind, node.namespace());
        let owner = match api.get(&reference.name).await {
            Ok(owner) if owner.metadata.uid.as_ref() == Some(&reference.uid) => {
                let node = Node { kind: kind_of(reference), meta: Arc::new(owner.metadata) };
                if node.waits_for_dependents() { Owner::Waiting } else { Owner::Solid }
            }
            Ok(_) => Owner::Absent,
            Err(error) if status_of(&error).is_some_and(kube::core::Status::is_not_found) => {
                Owner::Absent
            }
            Err(error) => return Err(error).doing("look up an owner"),
        };
        Ok(Lookup::Found(owner))
    }

    fn report_across(&self, node: &Node, kind: &Kind, reference: &OwnerReference) {
        let OwnerReference { api_version, kind: owner_kind, name, uid, .. } = reference;
        let namespace = node.namespace();
        let message = format!(
            "ownerRef [{api_version}/{owner_kind}, namespace: {namespace}, name: {name}, uid: {uid}] \
             does not exist in namespace {namespace:?}"
        );
        let object = ObjectReference {
            api_version: Some(kind.resource.api_version.clone()),
            kind: Some(kind.resource.kind.clone()),
            namespace: node.meta.namespace.clone(),
            name: node.meta.name.clone(),
            uid: node.meta.uid.clone(),
            ..ObjectReference::default()
        };
        let reason = "OwnerRefInvalidNamespace".to_owned();
        self.hands.recorder.note(Note { object, severity: Severity::Warning, reason, message });
    }

    async fn carry_out(&self, kind: &Kind, node: &Node, verdict: Verdict) -> Result<(), Failure> {
        match verdict {
            Verdict::Keep => Ok(()),
            Verdict::Release => self.drop_finalizer(kind, node, FOREGROUND).await,
            Verdict::SetFree(dependents) => {
                for dependent in dependents {
                    let kind = self.watched().get(&dependent.kind).map(|one| one.kind.clone());
                    if let Some(kind) = kind {
                        self.drop_owners(&kind, &dependent, &[node.uid().to_owned()]).await?;
                    }
                }
                self.drop_finalizer(kind, node, ORPHAN).await
            }
            Verdict::DropOwners(uids) => self.drop_owners(kind, node, &uids).await,
            Verdict::DeleteInForeground { unblock } => {
                if unblock {
                    self.patch(kind, node, |node| {
                        let mut references: Vec<OwnerReference> = node.owners().cloned().collect();
                        for reference in &mut references {
                            reference.block_owner_deletion = Some(false);
                        }
                        Some(json!({ "ownerReferences": references }))
                    })
                    .await?;
                }
                self.delete(kind, node, PropagationPolicy::Foreground).await
            }
            Verdict::Delete(way) => {
                let policy = match way {
                    Way::Background => PropagationPolicy::Background,
                    Way::Foreground => PropagationPolicy::Foreground,
                    Way::Orphan => PropagationPolicy::Orphan,
                };
                self.delete(kind, node, policy).await
            }
        }
    }

    async fn drop_finalizer(&self, kind: &Kind, node: &Node, name: &str) -> Result<(), Failure> {
        self.patch(kind, node, |node| {
            let finalizers: Vec<&String> =
                node.meta.finalizers.iter().flatten().filter(|one| *one != name).collect();
            node.has_finalizer(name).then(|| json!({ "finalizers": finalizers }))
        })
        .await
    }

    async fn drop_owners(&self, kind: &Kind, node: &Node, uids: &[String]) -> Result<(), Failure> {
        self.patch(kind, node, |node| {
            let is_lost = |reference: &&OwnerReference| uids.contains(&reference.uid);
            let kept: Vec<&OwnerReference> =
                node.owners().filter(|reference| !is_lost(reference)).collect();
            let has_lost = node.owners().any(|reference| is_lost(&reference));
            has_lost.then(|| json!({ "ownerReferences": kept }))
        })
        .await
    }

    /// Patches the metadata of exactly this version of an object; if it has moved on, once more of the
    /// version that it has now. `change` says what to write, if anything.
    async fn patch(
        &self,
        kind: &Kind,
        node: &Node,
        change: impl Fn(&Node) -> Option<serde_json::Value> + Send + Sync,
    ) -> Result<(), Failure> {
        let api = self.api(kind, node.namespace());
        let mut node = node.clone();
        let mut is_second_try = false;
        loop {
            let Some(mut metadata) = change(&node) else { return Ok(()) };
            simcluster_model::object::put(&mut metadata, "uid", json!(node.meta.uid));
            simcluster_model::object::put(
                &mut metadata,
                "resourceVersion",
                json!(node.meta.resource_version),
            );
            let patch = Patch::Merge(json!({ "metadata": metadata }));
            let params =
                PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
            let Err(error) = api.patch(node.name(), &params, &patch).await else { return Ok(()) };
            let status = status_of(&error);
            if status.is_some_and(kube::core::Status::is_not_found) {
                return Ok(());
            }
            if is_second_try || !status.is_some_and(kube::core::Status::is_conflict) {
                return Err(error).doing("patch owner references or finalizers");
            }
            is_second_try = true;
            match self.fresh(&api, &node).await? {
                Some(fresh) => node = fresh,
                None => return Ok(()),
            }
        }
    }

    /// Deletes exactly this version of an object; if it has moved on but its owners have not, the version
    /// that it has now.
    async fn delete(
        &self,
        kind: &Kind,
        node: &Node,
        policy: PropagationPolicy,
    ) -> Result<(), Failure> {
        let api = self.api(kind, node.namespace());
        let mut node = node.clone();
        let mut is_second_try = false;
        loop {
            let params = DeleteParams {
                propagation_policy: Some(policy.clone()),
                preconditions: Some(Preconditions {
                    uid: node.meta.uid.clone(),
                    resource_version: node.meta.resource_version.clone(),
                }),
                ..DeleteParams::default()
            };
            let Err(error) = api.delete(node.name(), &params).await else { return Ok(()) };
            let status = status_of(&error);
            if status.is_some_and(kube::core::Status::is_not_found) {
                return Ok(());
            }
            if is_second_try || !status.is_some_and(kube::core::Status::is_conflict) {
                return Err(error).doing("delete a dependent");
            }
            is_second_try = true;
            match self.fresh(&api, &node).await? {
                Some(fresh) if fresh.meta.owner_references == node.meta.owner_references => {
                    node = fresh;
                }
                // The watch will tell of what it has become.
                Some(_) | None => return Ok(()),
            }
        }
    }

    /// The object as it is now; `None` if it is gone or another.
    async fn fresh(&self, api: &Api<Meta>, node: &Node) -> Result<Option<Node>, Failure> {
        let found = api.get_opt(node.name()).await.doing("read an object anew")?;
        let found = found.filter(|found| found.metadata.uid == node.meta.uid);
        Ok(found.map(|found| Node { kind: node.kind.clone(), meta: Arc::new(found.metadata) }))
    }

    fn api(&self, kind: &Kind, namespace: &str) -> Api<Meta> {
        if kind.namespaced {
            Api::namespaced_with(self.hands.client.clone(), namespace, &kind.resource)
        } else {
            Api::all_with(self.hands.client.clone(), &kind.resource)
        }
    }
}

impl Reconcile for Controller {
    const NAME: &'static str = "garbage collector";
    type Key = Task;

    async fn ready(&self) {
        self.definitions.synced().await;
        for definition in self.definitions.all() {
            self.follow_definition(&Key::of(definition.as_ref()));
        }
        let mut failures = 0;
        let kinds = loop {
            match kinds::served(&self.hands.client).await {
                Ok(kinds) => break kinds,
                Err(error) => tracing::debug!(%error, "discovery failed, will try again"),
            }
            tokio::time::sleep(retry_delay(failures)).await;
            failures = failures.saturating_add(1);
        };
        for kind in kinds.into_iter().filter(|kind| !is_ignored(&kind.resource)) {
            let group_kind = (kind.resource.group.clone(), kind.resource.kind.clone());
            if !self.watched().contains_key(&group_kind) {
                self.watch(kind, None);
            }
        }
        let stores: Vec<Arc<Store<Meta>>> =
            self.watched().values().map(|watched| Arc::clone(&watched.store)).collect();
        for store in stores {
            store.synced().await;
        }
    }

    async fn reconcile(&self, task: Task) -> Result<Next, Failure> {
        match task {
            Task::Definition(key) => {
                self.follow_definition(&key);
                Ok(Next::Done)
            }
            Task::Object(uid) => self.look_at(&uid).await,
        }
    }
}

/// What a look-up of an owner found.
enum Lookup {
    Found(Owner),
    UnknownKind,
    OutOfReach,
}

/// Events come and go by themselves, and there are many.
fn is_ignored(resource: &ApiResource) -> bool {
    resource.kind == "Event" && matches!(resource.group.as_str(), "" | "events.k8s.io")
}

/// The kind that an established CRD serves.
fn defined_kind(definition: &CustomResourceDefinition) -> Option<Kind> {
    let conditions = definition.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|one| one.type_ == "Established" && one.status == "True")?;
    let spec = &definition.spec;
    let served = || spec.versions.iter().filter(|version| version.served);
    let version = served().find(|version| version.storage).or_else(|| served().next())?;
    Some(Kind {
        resource: ApiResource {
            group: spec.group.clone(),
            version: version.name.clone(),
            api_version: format!("{}/{}", spec.group, version.name),
            kind: spec.names.kind.clone(),
            plural: spec.names.plural.clone(),
        },
        namespaced: spec.scope == "Namespaced",
        has_delete_collection: true,
    })
}
