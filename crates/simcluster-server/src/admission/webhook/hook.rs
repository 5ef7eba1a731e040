//! Webhooks as their configurations describe them, and whom a write is sent to.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::admission::{Attributes, NAMESPACES, Operation};
use crate::server::ApiServer;
use crate::store;
use crate::verbs::selects;
use crate::webhook::Address;
use simcluster_model::error::{ApiError, Names};
use simcluster_model::object;
use simcluster_model::resource::Resource;
use simcluster_model::schema::Condition;

/// One webhook of a configuration.
#[derive(Debug)]
pub(super) struct Hook {
    pub(super) name: String,
    /// Tells it from all others.
    pub(super) id: String,
    pub(super) address: Address,
    pub(super) timeout: Duration,
    pub(super) ignores_failures: bool,
    /// Whether it is asked again after others changed the object.
    pub(super) reinvoked_if_needed: bool,
    /// The first version of reviews that the server knows, too.
    pub(super) review_version: String,
    rules: Vec<Value>,
    takes_equivalents: bool,
    namespace_selector: Value,
    object_selector: Value,
    conditions: Vec<Condition>,
}

impl Hook {
    /// All webhooks of a configuration, in its order.
    pub(super) fn all(configuration: &Value) -> Vec<Self> {
        let hooks = configuration.get("webhooks").and_then(Value::as_array);
        let named = |(index, hook)| Self::parse(object::name(configuration), index, hook);
        hooks.into_iter().flatten().enumerate().map(named).collect()
    }

    fn parse(configuration: &str, index: usize, hook: &Value) -> Self {
        let text = |key: &str| hook.get(key).and_then(Value::as_str).unwrap_or_default();
        let list = |key: &str| hook.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        let selector = |key: &str| hook.get(key).cloned().unwrap_or_default();
        let seconds = hook.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(10);
        let conditions = list("matchConditions");
        let conditions = conditions.iter().filter_map(|one| {
            let text = one.get("expression").and_then(Value::as_str)?.trim();
            // What does not compile is refused when the configuration is written.
            Condition::compile(text).ok()
        });
        let versions = list("admissionReviewVersions");
        let known = versions.iter().filter_map(Value::as_str);
        let known = known.into_iter().find(|version| matches!(*version, "v1" | "v1beta1"));
        Self {
            name: text("name").to_owned(),
            id: format!("{configuration}/{}/{index}", text("name")),
            address: Address::parse(hook.get("clientConfig").unwrap_or(&Value::Null)),
            timeout: Duration::from_secs(seconds),
            ignores_failures: text("failurePolicy") == "Ignore",
            reinvoked_if_needed: text("reinvocationPolicy") == "IfNeeded",
            review_version: known.unwrap_or("v1").to_owned(),
            rules: list("rules"),
            takes_equivalents: text("matchPolicy") != "Exact",
            namespace_selector: selector("namespaceSelector"),
            object_selector: selector("objectSelector"),
            conditions: conditions.collect(),
        }
    }

    /// The resource in whose version the webhook is asked about a write, if it is asked at all; its
    /// conditions are not looked at yet.
    pub(super) fn matches(
        &self,
        server: &ApiServer,
        attributes: &Attributes,
    ) -> Result<Option<Arc<Resource>>, ApiError> {
        let in_namespace = self.selects_namespace(server, attributes);
        if matches!(in_namespace, Ok(false)) || !self.selects_object(attributes) {
            return Ok(None);
        }
        let Some(resource) = self.resource(server, attributes) else { return Ok(None) };
        in_namespace.map(|_| Some(resource))
    }

    fn resource(&self, server: &ApiServer, attributes: &Attributes) -> Option<Arc<Resource>> {
        let matches = |rule: &Value, resource| rule_matches(rule, attributes, resource);
        let own = &attributes.resource;
        if self.rules.iter().any(|rule| matches(rule, own)) {
            return Some(Arc::clone(own));
        }
        if !self.takes_equivalents {
            return None;
        }
        let others = server.resources();
        let is_other = |one: &&Arc<Resource>| one.storage_key == own.storage_key && !same(one, own);
        let equivalents: Vec<&Arc<Resource>> = others.iter().filter(is_other).collect();
        let first =
            |rule| equivalents.iter().find(|one| matches(rule, one)).map(|one| (*one).clone());
        self.rules.iter().find_map(first)
    }

    fn selects_namespace(
        &self,
        server: &ApiServer,
        attributes: &Attributes,
    ) -> Result<bool, ApiError> {
        let is_namespace = attributes.resource.storage_key == NAMESPACES;
        let nothing = selects_everything(&self.namespace_selector);
        if nothing || (attributes.namespace.is_empty() && !is_namespace) {
            return Ok(true);
        }
        if is_namespace
            && attributes.subresource.is_empty()
            && attributes.operation != Operation::Delete
        {
            let object = attributes.object.as_ref().unwrap_or(&Value::Null);
            return Ok(selects(&self.namespace_selector, object));
        }
        let name = &attributes.namespace;
        let Some(namespace) = server.store().get(NAMESPACES, &store::key("", name)) else {
            let names = Names { group: "", plural: "namespaces", kind: "Namespace" };
            return Err(ApiError::not_found(names, name));
        };
        Ok(selects(&self.namespace_selector, &namespace))
    }

    fn selects_object(&self, attributes: &Attributes) -> bool {
        let selected = |object: &Value| selects(&self.object_selector, object);
        selects_everything(&self.object_selector)
            || attributes.object.as_ref().is_some_and(selected)
            || attributes.old_object.as_deref().is_some_and(selected)
    }

    /// Whether all conditions hold; an error is the text of those that cannot be evaluated.
    pub(super) fn conditions_hold(
        &self,
        object: &Value,
        old: &Value,
        request: &Value,
    ) -> Result<bool, String> {
        let mut faults: Vec<String> = Vec::new();
        for condition in &self.conditions {
            match condition.holds(object, old, request) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(why) if faults.contains(&why) => {}
                Err(why) => faults.push(why),
            }
        }
        match faults.as_slice() {
            [] => Ok(true),
            _ if self.ignores_failures => Ok(false),
            [one] => Err(one.clone()),
            many => Err(format!("[{}]", many.join(", "))),
        }
    }

    /// Whether there are conditions to look at.
    pub(super) fn has_conditions(&self) -> bool {
        !self.conditions.is_empty()
    }
}

fn same(one: &Resource, other: &Resource) -> bool {
    one.group == other.group && one.version == other.version
}

fn selects_everything(selector: &Value) -> bool {
    let empty = |key: &str| {
        selector.get(key).is_none_or(|part| match part {
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        })
    };
    empty("matchLabels") && empty("matchExpressions")
}

/// Whether a rule names a write on a resource (row AD10).
fn rule_matches(rule: &Value, attributes: &Attributes, resource: &Resource) -> bool {
    let list = |key: &str| {
        rule.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    };
    let names = |key: &str, wanted: &str| list(key).any(|one| one == "*" || one == wanted);
    let namespaced = !attributes.namespace.is_empty() && resource.storage_key != NAMESPACES;
    let in_scope = match rule.get("scope").and_then(Value::as_str) {
        Some("Namespaced") => namespaced,
        Some("Cluster") => !namespaced,
        _ => true,
    };
    in_scope
        && names("operations", attributes.operation.as_str())
        && names("apiGroups", &resource.group)
        && names("apiVersions", &resource.version)
        && list("resources").any(|one| {
            let (plural, below) = one.split_once('/').unwrap_or((one, ""));
            (plural == "*" || plural == resource.plural)
                && (below == "*" || below == attributes.subresource)
        })
}
