//! Carries out the operations of a plan, one request each, and notes what came of it.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions},
    core::DynamicObject,
};
use serde_json::{Value, json};

use crate::{
    api::simpleapp::FINALIZER,
    kernel::{
        audit::{CleanUpError, Cleaned, Deleted},
        error::{ErrorClass, RequestError},
        events::{Event, Severity},
        finalizer,
        key::Key,
        ownership::{Child, FIELD_MANAGER},
        requests::send,
    },
};

use super::{
    children::selector_text,
    observed::{App, ChildKind, Refusal},
    plan::Operation,
    pods::PodView,
    reconcile::{Pass, ReconcileError},
};

/// Pods that are looked at to find out why an app does not start. The first page is telling enough.
const PODS_MAX: u32 = 500;
/// The resourceVersion of an apply that may only create: the server compares it with that of an
/// object that exists, finds no object with it, and answers 409.
const NO_OBJECT_YET: &str = "1";
/// How long one attempt at a clean-up may take.
const CLEAN_UP_TIMEOUT: Duration = Duration::from_mins(2);

impl Pass<'_> {
    pub(super) async fn execute(&mut self, operation: Operation) -> Result<(), ReconcileError> {
        match operation {
            Operation::AddFinalizer => self.add_finalizer().await,
            Operation::Apply { kind, uid, child } => self.apply(kind, uid, child).await,
            Operation::TakePort { kind, uid, resource_version, path, port } => {
                let change = match port {
                    Some(port) => json!({"op": "replace", "path": path, "value": port}),
                    None => json!({"op": "remove", "path": path}),
                };
                self.take_port(kind, &uid, &resource_version, change).await
            }
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
            Err(ReconcileError::Request(error)) if error.is_not_found() => {
                // It went without us. The watch will tell so; until then it needs nothing.
                let mut gone = (*self.observed.app).clone();
                gone.finalizers.clear();
                self.ctx.apps.removed(&gone.key, &gone.uid);
                self.observed.app = Arc::new(gone);
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Sends a JSON patch whose tests say what we saw.
    pub(super) async fn patch_app(
        &mut self,
        request: String,
        patch: Value,
        status: bool,
    ) -> Result<(), ReconcileError> {
        let key = self.observed.app.key.clone();
        let api = self.ctx.apps_api(&key.namespace);
        let (params, patch) = json_patch(patch);
        let answer = if status {
            send(request, api.patch_status(&key.name, &params, &patch)).await
        } else {
            send(request, api.patch(&key.name, &params, &patch)).await
        };
        let failed = if status { ReconcileError::Status } else { ReconcileError::Request };
        let object = answer.map_err(failed)?;
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
                tracing::info!(?kind, "{done} a child");
                self.changes.push(format!("{done} {kind:?}"));
                self.wrote(kind, &object);
                self.observed.applied.insert(kind);
                Ok(())
            }
            Err(error)
                if error.class() == ErrorClass::Refused && !error.is_namespace_terminating() =>
            {
                tracing::warn!(%error, "the server refuses a child");
                let status = error.status();
                let refusal = Refusal {
                    reason: status.map(|status| status.reason.clone()).unwrap_or_default(),
                    message: status.map(|status| status.message.clone()).unwrap_or_default(),
                };
                self.observed.refused.insert(kind, refusal);
                self.must_plan_anew = true;
                Ok(())
            }
            Err(error) => Err(self.trouble(kind, error)),
        }
    }

    /// Changes one port of a child that is as it was when that was decided.
    async fn take_port(
        &mut self,
        kind: ChildKind,
        uid: &str,
        resource_version: &str,
        change: Value,
    ) -> Result<(), ReconcileError> {
        let key = self.observed.app.key.clone();
        let (params, patch) = json_patch(json!([
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "test", "path": "/metadata/resourceVersion", "value": resource_version},
            change,
        ]));
        let api = self.ctx.api(kind, &key.namespace);
        let request = format!("take the port of {kind:?} {key}");
        match send(request, api.patch(&key.name, &params, &patch)).await {
            Ok(object) => {
                self.wrote(kind, &object);
                Ok(())
            }
            Err(error) => Err(self.trouble(kind, error)),
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
                tracing::info!(?kind, "deleted a child");
                self.changes.push(format!("deleted {kind:?}"));
                let remains = answer.left().filter(|o| o.metadata.deletion_timestamp.is_some());
                self.forget(kind, &uid, remains.as_ref());
                Ok(())
            }
            Err(error) if error.is_not_found() => {
                self.forget(kind, &uid, None);
                Ok(())
            }
            Err(error) => Err(self.trouble(kind, error)),
        }
    }

    /// Notes what went wrong with a child, unless it was only that we saw an older state.
    fn trouble(&mut self, kind: ChildKind, error: RequestError) -> ReconcileError {
        if error.class() == ErrorClass::Transient {
            self.observed.trouble = Some((kind, error.message()));
        }
        ReconcileError::Request(error)
    }

    /// Notes a child as the answer to a write shows it.
    fn wrote(&mut self, kind: ChildKind, object: &DynamicObject) {
        let child = self.ctx.cache(kind).wrote(Child::of(object));
        self.observed.children.insert(kind, child);
    }

    /// Notes that a child is gone or, if the server returned it, going.
    fn forget(&mut self, kind: ChildKind, uid: &str, remains: Option<&DynamicObject>) {
        if let Some(object) = remains {
            self.wrote(kind, object);
        } else {
            self.ctx.cache(kind).removed(&self.observed.app.key, uid);
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
        let attempt = self.ctx.clean_up.clean_up(&deleted);
        let outcome = tokio::time::timeout(CLEAN_UP_TIMEOUT, attempt).await;
        let error = match outcome.unwrap_or(Err(CleanUpError::TimedOut)) {
            Ok(Cleaned::Done) => return Ok(()),
            Ok(Cleaned::LoggedOnly(why)) => {
                let note = format!(
                    "The record of the deletion of SimpleApp {} is in the operator's log only: {why}",
                    deleted.key
                );
                let warning = warning("AuditLoggedOnly", note);
                // No event about the app can be made where its record cannot.
                let events = self.ctx.events.publish(namespace_reference(&deleted.key), warning);
                events.await;
                return Ok(());
            }
            Err(error) => error,
        };
        let left = deadline.duration_since(self.ctx.clock.now());
        if left > SignedDuration::ZERO {
            return Err(ReconcileError::CleanUp { error, left: left.unsigned_abs() });
        }
        tracing::error!(%error, "let go without a clean-up: it took too long");
        let note = format!("Let go without a clean-up, which failed for too long: {error}");
        self.publish(warning("CleanupTimeout", note)).await;
        Ok(())
    }
}

/// A JSON patch of ours, and the parameters that say so.
fn json_patch(operations: Value) -> (PatchParams, Patch<()>) {
    let patch = serde_json::from_value(operations).expect("our patches are JSON patches");
    let params =
        PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
    (params, Patch::Json(patch))
}

fn warning(reason: &'static str, note: String) -> Event {
    Event { severity: Severity::Warning, reason, action: "CleanUp", note }
}

/// The namespace as an object. Events about what has no namespace lie in `default`.
fn namespace_reference(key: &Key) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Namespace".to_owned()),
        name: Some(key.namespace.clone()),
        ..ObjectReference::default()
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
