//! `PodSecurity`: the standards that a namespace's labels demand of its Pods. Versions of the standards
//! are shown, but the latest one is always applied.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Attributes, NAMESPACES, Operation};
use crate::server::ApiServer;
use crate::store;
use simcluster_model::builtin::admission::pod_security::{Level, Violation, violations};
use simcluster_model::error::ApiError;
use simcluster_model::field::FieldError;
use simcluster_model::object;

const PREFIX: &str = "pod-security.kubernetes.io/";

/// A level with the version of it that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Standard {
    level: Level,
    version: String,
}

impl Standard {
    fn shown(&self) -> String {
        format!("{}:{}", self.level.as_str(), self.version)
    }
}

/// What a namespace demands, and what is wrong with its labels.
#[derive(Debug)]
struct Policy {
    enforce: Standard,
    warn: Standard,
    faults: Vec<FieldError>,
}

impl Policy {
    fn of(namespace: &Value) -> Self {
        let labels = object::metadata(namespace).get("labels");
        let label = |key: &str| labels?.get(format!("{PREFIX}{key}"))?.as_str();
        let mut faults = Vec::new();
        let mut fault = |key: &str, value: &str, why: &str| {
            let field = format!("metadata.labels[{PREFIX}{key}]");
            faults.push(FieldError::invalid(field, &Value::from(value), why));
        };
        let mut standard = |mode: &str, fallback: Level| {
            let level = label(mode).map_or(Level::Privileged, |name| {
                Level::parse(name).unwrap_or_else(|| {
                    fault(mode, name, "must be one of privileged, baseline, restricted");
                    fallback
                })
            });
            let key = format!("{mode}-version");
            let version = label(&key).unwrap_or("latest");
            if !is_version(version) {
                fault(&key, version, "must be \"latest\" or \"v1.x\"");
            }
            Standard { level, version: version.to_owned() }
        };
        let enforce = standard("enforce", Level::Restricted);
        standard("audit", Level::Privileged);
        let mut warn = standard("warn", Level::Privileged);
        let named = label("enforce").and_then(Level::parse).is_some();
        if label("warn").is_none() && named && enforce.level > warn.level {
            warn.level = enforce.level;
            if label("warn-version").is_none() {
                warn.version.clone_from(&enforce.version);
            }
        }
        Self { enforce, warn, faults }
    }
}

fn is_version(text: &str) -> bool {
    text == "latest"
        || text.strip_prefix("v1.").is_some_and(|minor| {
            minor.parse::<u32>().is_ok_and(|number| number.to_string() == minor)
        })
}

/// The Pod template of a kind that makes Pods.
fn template<'a>(attributes: &Attributes, object: &'a Value) -> Option<&'a Value> {
    let resource = &attributes.resource;
    let path = match (resource.group.as_str(), resource.plural.as_str()) {
        ("apps", "deployments" | "replicasets" | "statefulsets" | "daemonsets")
        | ("batch", "jobs")
        | ("", "replicationcontrollers") => "spec.template",
        ("batch", "cronjobs") => "spec.jobTemplate.spec.template",
        ("", "podtemplates") => "template",
        _ => return None,
    };
    object::at_path(object, path)
}

/// Whether Pods, what makes them, or the labels of a namespace are written.
pub(super) fn handles(attributes: &Attributes) -> bool {
    let Some(object) = &attributes.object else { return false };
    attributes.subresource.is_empty()
        && (attributes.is_of("", "pods")
            || attributes.resource.storage_key == NAMESPACES
            || template(attributes, object).is_some())
}

/// Refuses Pods that do too much, and warns of what will make such Pods.
pub(super) fn validate(server: &ApiServer, attributes: &Attributes) -> Result<(), ApiError> {
    let Some(object) = &attributes.object else { return Ok(()) };
    if attributes.resource.storage_key == NAMESPACES {
        return namespace(server, attributes, object);
    }
    let key = store::key("", &attributes.namespace);
    let Some(namespace) = server.store().get(NAMESPACES, &key) else { return Ok(()) };
    let policy = Policy::of(&namespace);
    let (pod, enforced) = match template(attributes, object) {
        Some(template) => (template, false),
        None => (object, true),
    };
    let same = attributes.old_object.as_deref().is_some_and(|old| !is_significant(object, old));
    if enforced && same {
        return Ok(());
    }
    if enforced {
        let found = violations(policy.enforce.level, pod);
        if !found.is_empty() {
            let shown = policy.enforce.shown();
            let details = details(&found);
            return Err(attributes.forbidden(&format!("violates PodSecurity {shown:?}: {details}")));
        }
    }
    let found = violations(policy.warn.level, pod);
    if !found.is_empty() {
        let (shown, details) = (policy.warn.shown(), details(&found));
        attributes.warnings.add(format!("would violate PodSecurity {shown:?}: {details}"));
    }
    Ok(())
}

fn details(found: &[Violation]) -> String {
    let one = |violation: &Violation| match violation.detail.as_str() {
        "" => violation.reason.clone(),
        detail => format!("{} ({detail})", violation.reason),
    };
    found.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Whether the containers changed in anything but their images' names and what else may change.
fn is_significant(pod: &Value, old: &Value) -> bool {
    let containers = |pod: &Value| {
        ["containers", "initContainers", "ephemeralContainers"]
            .map(|list| object::at_path(pod, &format!("spec.{list}")).cloned())
    };
    containers(pod) != containers(old)
}

/// A namespace whose labels are no policy is refused; Pods that a new policy would refuse are named.
fn namespace(
    server: &ApiServer,
    attributes: &Attributes,
    namespace: &Value,
) -> Result<(), ApiError> {
    let policy = Policy::of(namespace);
    let old = attributes.old_object.as_deref().map(Policy::of);
    let known = old.as_ref().is_some_and(|old| old.faults == policy.faults);
    if !policy.faults.is_empty() && !known {
        let names = attributes.resource.names();
        return Err(ApiError::invalid(names, &attributes.name, &policy.faults));
    }
    let Some(old) = old.filter(|_| attributes.operation == Operation::Update) else {
        return Ok(());
    };
    let relaxed =
        policy.enforce.version == old.enforce.version && policy.enforce.level <= old.enforce.level;
    if policy.enforce.level == Level::Privileged || relaxed {
        return Ok(());
    }
    warn_of_pods(server, attributes, &policy.enforce);
    Ok(())
}

fn warn_of_pods(server: &ApiServer, attributes: &Attributes, enforce: &Standard) {
    let name = &attributes.name;
    let mut bad: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pod in server.stored("/pods") {
        let found = violations(enforce.level, &pod);
        if object::namespace(&pod) == name && !found.is_empty() {
            let reasons: Vec<&str> = found.iter().map(|one| one.reason.as_str()).collect();
            bad.entry(reasons.join(", ")).or_default().push(object::name(&pod).to_owned());
        }
    }
    if bad.is_empty() {
        return;
    }
    let shown = enforce.shown();
    attributes.warnings.add(format!(
        "existing pods in namespace {name:?} violate the new PodSecurity enforce level {shown:?}"
    ));
    let mut texts: Vec<String> =
        bad.into_iter().map(|(reasons, pods)| who(&pods, &reasons)).collect();
    texts.sort();
    for text in texts {
        attributes.warnings.add(text);
    }
}

fn who(pods: &[String], reasons: &str) -> String {
    let first = pods.iter().min().map_or("", String::as_str);
    match pods.len() {
        1 => format!("{first}: {reasons}"),
        2 => format!("{first} (and 1 other pod): {reasons}"),
        count => format!("{first} (and {} other pods): {reasons}", count - 1),
    }
}
