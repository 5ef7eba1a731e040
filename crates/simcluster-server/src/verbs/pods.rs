//! Subresources of Pods and Namespaces that act instead of holding something: binding, eviction,
//! finalize.

use std::sync::Arc;

use serde_json::{Value, json};

use super::options::{DeleteOptions, WriteOptions, is_true};
use super::write::{Expected, Facet, Write, read};
use super::{Call, Outcome, decode, delete, meta, objects};
use crate::admission::{Attributes, ObjectKind, Operation};
use crate::server::ApiServer;
use crate::store;
use crate::verbs::selectors;
use simcluster_model::builtin::{BINDING, EVICTION};
use simcluster_model::error::{ApiError, Cause, Details, Names};
use simcluster_model::fieldmanager::Versions;
use simcluster_model::object;
use simcluster_model::time;

/// Storage key of `PodDisruptionBudgets`.
const BUDGETS: &str = "policy/poddisruptionbudgets";

fn done() -> Outcome {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    });
    Outcome::made(201, status)
}

/// POST of a Binding: puts a Pod on a Node.
pub(super) async fn bind(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let options = WriteOptions::parse(call, "CreateOptions")?;
    let mut binding = decode::beside(call, &options, &BINDING)?;
    meta::fill_namespace(&call.resource, &call.namespace, &mut binding)?;
    if object::name(&binding) != call.name {
        return Err(ApiError::bad_request("name in URL does not match name in Binding object"));
    }
    let text = |path: &str| {
        object::at_path(&binding, path).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let kind = text("target.kind");
    if !matches!(kind.as_str(), "" | "Node") {
        let supported = r#"supported values: "Node", "<empty>""#;
        let kind = json!(kind);
        return Err(ApiError::raw(format!("target.kind: Unsupported value: {kind}: {supported}")));
    }
    let node = text("target.name");
    if node.is_empty() {
        return Err(ApiError::raw("target.name: Required value"));
    }
    admit(server, call, &options, binding, ObjectKind::new("", "v1", "Binding")).await?;
    let now = time::format_seconds(server.clock().now());
    let transform = |existing: Option<&Value>, _: &dyn Versions| {
        let mut pod = existing.cloned().unwrap_or_default();
        let bound = object::at_path(&pod, "spec.nodeName").and_then(Value::as_str);
        if let Some(bound) = bound.filter(|name| !name.is_empty()) {
            let names = Names { group: "", plural: "pods/binding", kind: "Pod" };
            let why = format!("pod {} is already assigned to node {}", call.name, json!(bound));
            return Err(ApiError::conflict(names, &call.name, &why));
        }
        object::set_path(&mut pod, "spec.nodeName", json!(node));
        set_scheduled(&mut pod, &now);
        Ok(pod)
    };
    let write = Write { facet: Facet::Admitted, ..Write::new(server, call, &options) };
    write.update(&call.name, &Expected::default(), &transform).await?;
    Ok(done())
}

/// Both halves of admission of what is posted to a subresource and not stored.
pub(super) async fn admit(
    server: &ApiServer,
    call: &Call,
    options: &WriteOptions,
    object: Value,
    kind: ObjectKind,
) -> Result<(), ApiError> {
    let mut attributes = Attributes::of(call, Operation::Create, &call.name);
    attributes.kind = kind;
    attributes.object = Some(object);
    attributes.options = options.to_json(call, Operation::Create);
    attributes.dry_run = options.dry_run;
    let chain = server.admission();
    chain.admit(server, &mut attributes).await?;
    chain.validate(server, &attributes).await
}

fn set_scheduled(pod: &mut Value, now: &str) {
    let condition = json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
    });
    let conditions = object::child(object::child(pod, "status"), "conditions");
    let mut list: Vec<Value> = conditions.as_array().cloned().unwrap_or_default();
    list.retain(|one| one.get("type") != condition.get("type"));
    list.push(condition);
    *conditions = Value::Array(list);
}

/// POST of an Eviction: deletes a Pod if its disruption budget allows it.
pub(super) async fn evict(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let write_options = WriteOptions::parse(call, "CreateOptions")?;
    let mut eviction = decode::beside(call, &write_options, &EVICTION)?;
    meta::fill_namespace(&call.resource, &call.namespace, &mut eviction)?;
    if object::name(&eviction) != call.name {
        let why = "name in URL does not match name in Eviction object";
        return Err(ApiError::bad_request(why));
    }
    let mut options = DeleteOptions::parse(call, eviction.get("deleteOptions"))?;
    let kind = ObjectKind::new("policy", "v1", "Eviction");
    admit(server, call, &write_options, eviction, kind).await?;
    // Admission is asked about evictions of missing Pods, too.
    let pod = stored(server, call)?;
    options.dry_run |= write_options.dry_run;
    take_disruption(server, call, &pod, options.dry_run)?;
    delete::one(server, call, &call.name, &options, None).await?;
    Ok(done())
}

/// Takes one disruption from the budget that covers a Pod, or refuses the eviction.
fn take_disruption(
    server: &ApiServer,
    call: &Call,
    pod: &Value,
    dry_run: bool,
) -> Result<(), ApiError> {
    if may_always_go(pod) {
        return Ok(());
    }
    loop {
        let covers = |budget: &Arc<Value>| {
            let selector = object::at_path(budget, "spec.selector");
            selector.is_some_and(|selector| selectors::selects(selector, pod))
        };
        let mut budgets = server.store().in_namespace(BUDGETS, &call.namespace);
        budgets.retain(covers);
        let budget = match budgets.as_slice() {
            [] => return Ok(()),
            [one] => one,
            _ => {
                let why = "This pod has more than one PodDisruptionBudget, which the eviction \
                           subresource does not support.";
                return Err(ApiError::raw(why));
            }
        };
        if unhealthy_may_go(budget, pod) {
            return Ok(());
        }
        let left = check_budget(budget)?;
        if dry_run {
            return Ok(());
        }
        let mut changed = Value::clone(budget);
        object::set_path(&mut changed, "status.disruptionsAllowed", json!(left));
        let disrupted = object::child(object::child(&mut changed, "status"), "disruptedPods");
        object::put(disrupted, &call.name, json!(time::format_seconds(server.clock().now())));
        let key = store::key(&call.namespace, object::name(budget));
        let mut store = server.store();
        if store.is_current(BUDGETS, &key, budget) {
            store.put(BUDGETS, &key, changed);
            return Ok(());
        }
    }
}

/// Pods that do not run (any more) are nobody's loss.
fn may_always_go(pod: &Value) -> bool {
    let phase = object::at_path(pod, "status.phase").and_then(Value::as_str);
    object::is_deleting(pod) || matches!(phase, Some("Succeeded" | "Failed" | "Pending"))
}

/// Pods that are not ready may go if the others are enough, or if the budget says so.
fn unhealthy_may_go(budget: &Value, pod: &Value) -> bool {
    let conditions = object::at_path(pod, "status.conditions").and_then(Value::as_array);
    let ready = conditions.into_iter().flatten().any(|one| {
        one.get("type") == Some(&json!("Ready")) && one.get("status") == Some(&json!("True"))
    });
    let policy = object::at_path(budget, "spec.unhealthyPodEvictionPolicy").and_then(Value::as_str);
    let (healthy, desired) = (count(budget, "currentHealthy"), count(budget, "desiredHealthy"));
    !ready && (policy == Some("AlwaysAllow") || (healthy >= desired && desired > 0))
}

fn count(budget: &Value, field: &str) -> i64 {
    let path = format!("status.{field}");
    object::at_path(budget, &path).and_then(Value::as_i64).unwrap_or_default()
}

/// The disruptions that a budget has left after one more; 429 if it has none.
fn check_budget(budget: &Value) -> Result<i64, ApiError> {
    let name = object::name(budget);
    let refused = |message: String, retry: Option<u32>| {
        let why = "Cannot evict pod as it would violate the pod's disruption budget.";
        let reason = "DisruptionBudget".to_owned();
        ApiError::new(429, "TooManyRequests", why).with_details(Details {
            causes: vec![Cause { reason, message, ..Cause::default() }],
            retry_after_seconds: retry,
            ..Details::default()
        })
    };
    if count(budget, "observedGeneration") < object::generation(budget) {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(refused(why, Some(10)));
    }
    let allowed = count(budget, "disruptionsAllowed");
    if allowed > 0 {
        return Ok(allowed - 1);
    }
    let (healthy, desired) = (count(budget, "currentHealthy"), count(budget, "desiredHealthy"));
    let why = format!(
        "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    );
    Err(refused(why, None))
}

/// PUT of a Namespace's `/finalize`: sets `spec.finalizers` and nothing else.
pub(super) async fn finalize(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let options = WriteOptions::parse(call, "UpdateOptions")?;
    let given = decode::request_body(call, &options)?;
    objects::check_name(&given, &call.name)?;
    let finalizers = object::at_path(&given, "spec.finalizers").cloned();
    let version = object::resource_version(&given).to_owned();
    let transform = |existing: Option<&Value>, _: &dyn Versions| {
        let mut namespace = existing.cloned().unwrap_or_default();
        let spec = object::as_map(object::child(&mut namespace, "spec"));
        match finalizers.clone().filter(|list| list.as_array().is_some_and(|l| !l.is_empty())) {
            Some(list) => spec.insert("finalizers".to_owned(), list),
            None => spec.remove("finalizers"),
        };
        if !version.is_empty() {
            object::metadata_mut(&mut namespace)
                .insert("resourceVersion".to_owned(), json!(version));
        }
        Ok(namespace)
    };
    let write = Write::new(server, call, &options);
    let (code, object) = write.update(&call.name, &Expected::default(), &transform).await?;
    Ok(Outcome::Object(code, object))
}

/// Why Pods have no logs.
const NO_LOGS: &str = "logs: simulated Pods run no program that could write any";

/// GET of a log, which only a Node could answer.
pub(super) fn log(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let pod = read(&call.resource, &*stored(server, call)?);
    let containers = object::at_path(&pod, "spec.containers").and_then(Value::as_array);
    let names: Vec<&str> = containers
        .into_iter()
        .flatten()
        .filter_map(|container| container.get("name").and_then(Value::as_str))
        .collect();
    match call.param("container").unwrap_or_default() {
        "" if names.len() > 1 => Err(ApiError::bad_request(format!(
            "a container name must be specified for pod {}, choose one of: [{}]",
            call.name,
            names.join(" ")
        ))),
        name if !name.is_empty() && !names.contains(&name) => Err(ApiError::bad_request(format!(
            "container {name} is not valid for pod {}",
            call.name
        ))),
        // kubectl asks again, each second, after any error of a log that it follows: such a log is as
        // empty as what was written into it, and a warning tells why.
        _ if call.param("follow").is_some_and(is_true) => {
            call.warnings.add(ApiError::unsupported(NO_LOGS).message);
            Ok(Outcome::Text(String::new()))
        }
        _ => Err(ApiError::unsupported(NO_LOGS)),
    }
}

/// A connection to what runs in a Pod, on a Node or behind a Service: nothing does.
pub(super) fn connect(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    stored(server, call)?;
    Err(ApiError::unsupported(match call.subresource.as_str() {
        "attach" => "attach: simulated Pods run no program that could be attached to",
        "exec" => "exec: simulated Pods run no system in which a command could run",
        "portforward" => "port-forward: simulated Pods run no program that could listen on a port",
        _ => "proxies: no program listens behind simulated Pods, Services and Nodes",
    }))
}

/// The object that a call is about.
pub(super) fn stored(server: &ApiServer, call: &Call) -> Result<Arc<Value>, ApiError> {
    let resource = &call.resource;
    let key = store::key(&call.namespace, &call.name);
    let stored = server.store().get(&resource.storage_key, &key);
    stored.ok_or_else(|| ApiError::not_found(resource.names(), &call.name))
}
