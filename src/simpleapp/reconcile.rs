//! One pass over one app: observe, plan, execute, and again until there is nothing left to do;
//! then report. The plan decides; what is in here only carries out.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions},
    core::DynamicObject,
};
use serde_json::{Value, json};
use thiserror::Error;

use crate::{
    api::simpleapp::{FINALIZER, GROUP, KIND, VERSION},
    kernel::{
        audit::{CleanUp, CleanUpError, Cleaned, Deleted},
        cache::Cache,
        clock::Clock,
        error::{ErrorClass, RequestError},
        events::{Event, EventSink, Severity},
        finalizer,
        key::Key,
        ownership::{Child, FIELD_MANAGER},
        requests::send,
        work::Verdict,
    },
};

use super::{
    children::selector_text,
    observed::{App, ChildKind, Observed, Refusal},
    plan::{Operation, Plan, Settings, plan, settle},
    pods::PodView,
    validate::validate,
};

/// Plans that one reconcile may carry out: children, pods, and one to spare.
const ROUNDS_MAX: usize = 4;
/// Pods that are looked at to find out why an app does not start. The first page is telling enough.
const PODS_MAX: u32 = 500;
/// The resourceVersion of an apply that may only create: the server compares it with that of an
/// object that exists, finds no object with it, and answers 409.
const NO_OBJECT_YET: &str = "1";

/// What a reconcile works with.
pub struct Context {
    /// Talks to the API server. Must not retry by itself.
    pub client: Client,
    /// The apps.
    pub apps: Arc<Cache<App>>,
    /// Everything that has, or could have, the name of a child.
    pub children: BTreeMap<ChildKind, Arc<Cache<Child>>>,
    /// Wall clock.
    pub clock: Clock,
    /// Takes Events.
    pub events: Arc<dyn EventSink>,
    /// What happens before an app may go.
    pub clean_up: Arc<dyn CleanUp>,
    /// What plans are told.
    pub settings: Settings,
    /// Plans are logged, not carried out.
    pub dry_run: bool,
}

impl Context {
    /// A context with empty caches.
    #[must_use]
    pub fn new(
        client: Client,
        clock: Clock,
        events: Arc<dyn EventSink>,
        clean_up: Arc<dyn CleanUp>,
        settings: Settings,
    ) -> Self {
        let children = ChildKind::ALL.into_iter().map(|kind| (kind, Arc::default())).collect();
        let apps = Arc::default();
        Self { client, apps, children, clock, events, clean_up, settings, dry_run: false }
    }

    fn cache(&self, kind: ChildKind) -> &Cache<Child> {
        self.children.get(&kind).expect("there is a cache for every kind of child")
    }

    fn api(&self, kind: ChildKind, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &kind.resource())
    }

    fn apps_api(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &App::resource())
    }
}

/// Why a reconcile has to be tried again.
#[derive(Debug, Error)]
pub enum ReconcileError {
    /// A request failed.
    #[error(transparent)]
    Request(RequestError),
    /// The clean-up failed, and there is time for another attempt.
    #[error("clean-up: {error}")]
    CleanUp {
        /// What failed.
        error: CleanUpError,
        /// How long until the app is let go without it.
        left: Duration,
    },
    /// Operations kept coming after [`ROUNDS_MAX`] plans.
    #[error("a plan was not settled by carrying it out: {operations}")]
    Endless {
        /// The operations of the last plan.
        operations: String,
    },
}

impl ReconcileError {
    fn verdict(&self) -> Verdict {
        match self {
            Self::Request(error) => Verdict::Failed {
                class: error.class(),
                retry_after: error.retry_after(),
                at_most: None,
            },
            Self::CleanUp { error, left } => Verdict::Failed {
                class: error.class(),
                retry_after: error.retry_after(),
                at_most: Some(*left),
            },
            Self::Endless { .. } => {
                Verdict::Failed { class: ErrorClass::Bug, retry_after: None, at_most: None }
            }
        }
    }

    fn log(&self, key: &Key) {
        match self {
            Self::Request(error) if error.is_namespace_terminating() => {
                tracing::debug!(app = %key, error = %self, "the namespace is going");
            }
            Self::Request(error) if error.class() == ErrorClass::Conflict => {
                tracing::debug!(app = %key, error = %self, "something changed meanwhile; looking again");
            }
            Self::Request(_) | Self::CleanUp { .. } => {
                tracing::warn!(app = %key, error = %self, "will be tried again");
            }
            Self::Endless { .. } => tracing::error!(app = %key, error = %self, "gave up for now"),
        }
    }
}

/// Brings one app as far as it can be brought now.
pub async fn reconcile(key: Key, ctx: Arc<Context>) -> Verdict {
    let Some(app) = ctx.apps.get(&key) else {
        return Verdict::Done(None);
    };
    let mut pass = Pass { ctx: &ctx, observed: observe(app, &ctx), changes: Vec::new() };
    let outcome = pass.run().await;
    pass.report_changes().await;
    match outcome {
        Ok(requeue) => Verdict::Done(requeue),
        Err(error) => {
            error.log(&key);
            pass.report_pending().await;
            error.verdict()
        }
    }
}

fn observe(app: Arc<App>, ctx: &Context) -> Observed {
    let children =
        ctx.children.iter().filter_map(|(kind, cache)| Some((*kind, cache.get(&app.key)?)));
    let children = children.collect();
    Observed::new(app, children)
}

/// One reconcile while it goes on.
struct Pass<'a> {
    ctx: &'a Context,
    observed: Observed,
    /// What was done to children, for one Event.
    changes: Vec<String>,
}

impl Pass<'_> {
    async fn run(&mut self) -> Result<Option<Duration>, ReconcileError> {
        for _round in 0..ROUNDS_MAX {
            let plan = plan(&self.observed, self.ctx.settings, self.ctx.clock.now());
            if self.ctx.dry_run {
                tracing::info!(app = %self.observed.app.key, ?plan, "would do this");
                return Ok(plan.requeue);
            }
            if plan.operations.is_empty() {
                self.report(&plan).await?;
                return Ok(plan.requeue);
            }
            for operation in plan.operations {
                self.execute(operation).await?;
            }
        }
        let plan = plan(&self.observed, self.ctx.settings, self.ctx.clock.now());
        if plan.operations.is_empty() {
            self.report(&plan).await?;
            return Ok(plan.requeue);
        }
        Err(ReconcileError::Endless { operations: format!("{:?}", plan.operations) })
    }

    async fn execute(&mut self, operation: Operation) -> Result<(), ReconcileError> {
        match operation {
            Operation::AddFinalizer => self.add_finalizer().await,
            Operation::Apply { kind, uid, child } => self.apply(kind, uid, child).await,
            Operation::Delete { kind, uid, resource_version } => {
                self.delete(kind, uid, resource_version).await
            }
            Operation::ListPods => self.list_pods().await,
            Operation::CleanUp { deadline } => self.clean_up(deadline).await,
            Operation::RemoveFinalizer => self.remove_finalizer().await,
        }
    }

    async fn add_finalizer(&mut self) -> Result<(), ReconcileError> {
        let app = &self.observed.app;
        let patch = finalizer::add(&app.uid, &app.finalizers, FINALIZER);
        let request = format!("add the finalizer of SimpleApp {}", app.key);
        self.patch_app(request, patch, false).await
    }

    async fn remove_finalizer(&mut self) -> Result<(), ReconcileError> {
        let app = &self.observed.app;
        let Some(patch) = finalizer::remove(&app.uid, &app.finalizers, FINALIZER) else {
            return Ok(());
        };
        let request = format!("remove the finalizer of SimpleApp {}", app.key);
        match self.patch_app(request, patch, false).await {
            Err(ReconcileError::Request(error)) if error.is_not_found() => Ok(()),
            outcome => outcome,
        }
    }

    /// Sends a JSON patch whose tests say what we saw.
    async fn patch_app(
        &mut self,
        request: String,
        patch: Value,
        status: bool,
    ) -> Result<(), ReconcileError> {
        let key = self.observed.app.key.clone();
        let patch: json_patch::Patch =
            serde_json::from_value(patch).expect("our patches are JSON patches");
        let api = self.ctx.apps_api(&key.namespace);
        let params =
            PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
        let patch = Patch::Json::<()>(patch);
        let answer = if status {
            send(request, api.patch_status(&key.name, &params, &patch)).await
        } else {
            send(request, api.patch(&key.name, &params, &patch)).await
        };
        let object = answer.map_err(ReconcileError::Request)?;
        self.observed.app = self.ctx.apps.wrote(App::of(&object));
        Ok(())
    }

    async fn apply(
        &mut self,
        kind: ChildKind,
        uid: Option<String>,
        mut child: Value,
    ) -> Result<(), ReconcileError> {
        let key = self.observed.app.key.clone();
        let done = if uid.is_some() { "updated" } else { "created" };
        let (field, value) = match uid {
            // With these the server turns the request down if there is another object, or one.
            Some(uid) => ("uid", uid),
            None => ("resourceVersion", NO_OBJECT_YET.to_owned()),
        };
        let metadata = child.get_mut("metadata").and_then(Value::as_object_mut);
        metadata.expect("every child has metadata").insert(field.to_owned(), json!(value));
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let api = self.ctx.api(kind, &key.namespace);
        let request = format!("apply {kind:?} {key}");
        match send(request, api.patch(&key.name, &params, &Patch::Apply(&child))).await {
            Ok(object) => {
                let child = self.ctx.cache(kind).wrote(Child::of(&object));
                tracing::info!(app = %key, kind = ?kind, "{done} a child");
                self.changes.push(format!("{done} {kind:?}"));
                self.observed.children.insert(kind, child);
                self.observed.applied.insert(kind);
                Ok(())
            }
            Err(error)
                if error.class() == ErrorClass::Refused && !error.is_namespace_terminating() =>
            {
                tracing::warn!(app = %key, %error, "the server refuses a child");
                let status = error.status();
                let refusal = Refusal {
                    reason: status.map(|status| status.reason.clone()).unwrap_or_default(),
                    message: status.map(|status| status.message.clone()).unwrap_or_default(),
                };
                self.observed.refused.insert(kind, refusal);
                Ok(())
            }
            Err(error) => Err(ReconcileError::Request(error)),
        }
    }

    async fn delete(
        &mut self,
        kind: ChildKind,
        uid: String,
        resource_version: String,
    ) -> Result<(), ReconcileError> {
        let key = self.observed.app.key.clone();
        assert!(
            self.observed.ours(kind).is_some_and(|child| child.uid == uid),
            "only children of ours are deleted"
        );
        let preconditions =
            Preconditions { uid: Some(uid.clone()), resource_version: Some(resource_version) };
        let params = DeleteParams::background().preconditions(preconditions);
        let api = self.ctx.api(kind, &key.namespace);
        let request = format!("delete {kind:?} {key}");
        match send(request, api.delete(&key.name, &params)).await {
            Ok(answer) => {
                tracing::info!(app = %key, kind = ?kind, "deleted a child");
                self.changes.push(format!("deleted {kind:?}"));
                let remains = answer.left().filter(|o| o.metadata.deletion_timestamp.is_some());
                self.forget(kind, &uid, remains.as_ref());
                Ok(())
            }
            Err(error) if error.is_not_found() => {
                self.forget(kind, &uid, None);
                Ok(())
            }
            Err(error) => Err(ReconcileError::Request(error)),
        }
    }

    /// Notes that a child is gone or, if the server returned it, going.
    fn forget(&mut self, kind: ChildKind, uid: &str, remains: Option<&DynamicObject>) {
        let cache = self.ctx.cache(kind);
        if let Some(object) = remains {
            let child = cache.wrote(Child::of(object));
            self.observed.children.insert(kind, child);
        } else {
            cache.removed(&self.observed.app.key, uid);
            self.observed.children.remove(&kind);
        }
    }

    async fn list_pods(&mut self) -> Result<(), ReconcileError> {
        let key = &self.observed.app.key;
        let api: Api<Pod> = Api::namespaced(self.ctx.client.clone(), &key.namespace);
        let params = ListParams::default().labels(&selector_text(&key.name)).limit(PODS_MAX);
        let request = format!("list pods of SimpleApp {key}");
        let pods = send(request, api.list(&params)).await.map_err(ReconcileError::Request)?;
        self.observed.pods = Some(pods.items.iter().map(PodView::of).collect());
        Ok(())
    }

    async fn clean_up(&mut self, deadline: Timestamp) -> Result<(), ReconcileError> {
        let Some(deleted) = deleted(&self.observed.app) else {
            return Ok(());
        };
        let warning = match self.ctx.clean_up.clean_up(&deleted).await {
            Ok(Cleaned::Done) => return Ok(()),
            Ok(Cleaned::LoggedOnly(why)) => Event {
                severity: Severity::Warning,
                reason: "AuditLoggedOnly",
                action: "CleanUp",
                note: format!("The record of the deletion is in the operator's log only: {why}"),
            },
            Err(error) => {
                let left = deadline.duration_since(self.ctx.clock.now());
                if left > SignedDuration::ZERO {
                    return Err(ReconcileError::CleanUp { error, left: left.unsigned_abs() });
                }
                tracing::error!(app = %deleted.key, %error, "let go without a clean-up: it took too long");
                Event {
                    severity: Severity::Warning,
                    reason: "CleanupTimeout",
                    action: "CleanUp",
                    note: format!("Let go without a clean-up, which failed for too long: {error}"),
                }
            }
        };
        self.publish(warning).await;
        Ok(())
    }

    async fn report(&mut self, plan: &Plan) -> Result<(), ReconcileError> {
        if let Some(status) = &plan.status {
            let app = &self.observed.app;
            let phase = status.phase;
            if phase != app.status.phase {
                let text = status.message.as_deref();
                tracing::info!(app = %app.key, ?phase, text, "phase changed");
            }
            let value = serde_json::to_value(status).expect("a status is plain data");
            let patch = finalizer::status(&app.uid, &value);
            let request = format!("write the status of SimpleApp {}", app.key);
            self.patch_app(request, patch, true).await?;
        }
        for event in &plan.events {
            self.publish(event.clone()).await;
        }
        Ok(())
    }

    /// One Event for all that was done to children.
    async fn report_changes(&mut self) {
        if self.changes.is_empty() {
            return;
        }
        let mut note = std::mem::take(&mut self.changes).join(", ");
        if let Some(first) = note.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        let event = Event { severity: Severity::Normal, reason: "Applied", action: "Apply", note };
        self.publish(event).await;
    }

    /// After a failure on the way to the first Deployment: says at least that there is none yet.
    async fn report_pending(&mut self) {
        let app = &self.observed.app;
        let is_new = app.status.phase.is_none() && app.deleted_at.is_none();
        if !is_new
            || self.ctx.dry_run
            || self.observed.children.contains_key(&ChildKind::Deployment)
        {
            return;
        }
        let plan = settle(&self.observed, &validate(app), self.ctx.clock.now());
        if let Err(error) = self.report(&plan).await {
            tracing::debug!(%error, "the status could not be written either");
        }
    }

    async fn publish(&self, event: Event) {
        let app = &self.observed.app;
        let regarding = ObjectReference {
            api_version: Some(format!("{GROUP}/{VERSION}")),
            kind: Some(KIND.to_owned()),
            name: Some(app.key.name.clone()),
            namespace: Some(app.key.namespace.clone()),
            uid: Some(app.uid.clone()),
            ..ObjectReference::default()
        };
        self.ctx.events.publish(regarding, event).await;
    }
}

/// What the clean-up is told; `None` if nobody asked for the deletion.
fn deleted(app: &App) -> Option<Deleted> {
    let deleted_at = app.deleted_at?;
    let (image, replicas) = match &app.spec {
        Ok(spec) => (spec.image.clone(), spec.replicas.to_string()),
        Err(_) => ("unknown".to_owned(), "unknown".to_owned()),
    };
    let data = [
        ("deletedAt", deleted_at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
        ("finalReplicas", replicas),
        ("image", image),
        ("namespace", app.key.namespace.clone()),
        ("simpleApp", app.key.name.clone()),
    ];
    Some(Deleted {
        key: app.key.clone(),
        uid: app.uid.clone(),
        deleted_at,
        data: data.map(|(name, value)| (name.to_owned(), value)).into(),
    })
}
