//! Subresources of Pods and Namespaces that act instead of holding something: binding, eviction,
//! finalize.

use serde_json::{Value, json};

use super::options::{DeleteOptions, WriteOptions};
use super::write::{Expected, Write, read};
use super::{Call, Outcome, delete};
use crate::server::ApiServer;
use crate::store;
use crate::verbs::selectors;
use simcluster_model::codec::body;
use simcluster_model::error::{ApiError, Cause, Details, Names};
use simcluster_model::object;
use simcluster_model::time;

fn done() -> Outcome {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    });
    Outcome::Object(201, status)
}

/// POST of a Binding: puts a Pod on a Node.
pub(super) fn bind(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let options = WriteOptions::parse(call, "CreateOptions")?;
    let binding = body::parse(&call.body, &call.content_type, &call.resource)?.value;
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
    let now = time::format_seconds(server.clock().now());
    let transform = |existing: Option<&Value>| {
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
    let write = Write { server, call, options: &options };
    write.update(&call.name, &Expected::default(), &transform)?;
    Ok(done())
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
pub(super) fn evict(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let write_options = WriteOptions::parse(call, "CreateOptions")?;
    let eviction = body::parse(&call.body, &call.content_type, &call.resource)?.value;
    if object::name(&eviction) != call.name {
        let why = "name in URL does not match name in Eviction object";
        return Err(ApiError::bad_request(why));
    }
    let resource = &call.resource;
    let key = store::key(&call.namespace, &call.name);
    let stored = server.store().get(&resource.storage_key, &key);
    let pod = stored.ok_or_else(|| ApiError::not_found(resource.names(), &call.name))?;
    check_budgets(server, call, &pod)?;
    let mut options = DeleteOptions::parse(call, eviction.get("deleteOptions"))?;
    options.dry_run |= write_options.dry_run;
    delete::one(server, call, &call.name, &options)?;
    Ok(done())
}

fn check_budgets(server: &ApiServer, call: &Call, pod: &Value) -> Result<(), ApiError> {
    let budgets = server.store().in_namespace("policy/poddisruptionbudgets", &call.namespace);
    for budget in budgets {
        let number = |path: &str| object::at_path(&budget, path).and_then(Value::as_i64);
        let selector = object::at_path(&budget, "spec.selector");
        let covers = selector.is_some_and(|selector| selectors::selects(selector, pod));
        if covers && number("status.disruptionsAllowed").unwrap_or_default() <= 0 {
            let message = format!(
                "The disruption budget {} needs {} healthy pods and has {} currently",
                object::name(&budget),
                number("status.desiredHealthy").unwrap_or_default(),
                number("status.currentHealthy").unwrap_or_default(),
            );
            let why = "Cannot evict pod as it would violate the pod's disruption budget.";
            return Err(ApiError::new(429, "TooManyRequests", why).with_details(Details {
                causes: vec![Cause {
                    reason: "DisruptionBudget".to_owned(),
                    message,
                    ..Cause::default()
                }],
                ..Details::default()
            }));
        }
    }
    Ok(())
}

/// PUT of a Namespace's `/finalize`: sets `spec.finalizers` and nothing else.
pub(super) fn finalize(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let options = WriteOptions::parse(call, "UpdateOptions")?;
    let given = body::parse(&call.body, &call.content_type, &call.resource)?.value;
    let finalizers = object::at_path(&given, "spec.finalizers").cloned();
    let version = object::resource_version(&given).to_owned();
    let transform = |existing: Option<&Value>| {
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
    let write = Write { server, call, options: &options };
    let (code, object) = write.update(&call.name, &Expected::default(), &transform)?;
    Ok(Outcome::Object(code, object))
}

/// GET of what only a Node could answer.
pub(super) fn log(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let resource = &call.resource;
    let key = store::key(&call.namespace, &call.name);
    let stored = server.store().get(&resource.storage_key, &key);
    let stored = stored.ok_or_else(|| ApiError::not_found(resource.names(), &call.name))?;
    let pod = read(resource, &stored);
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
        _ => Err(ApiError::unsupported("logs: simulated Pods run no program that could write any")),
    }
}
