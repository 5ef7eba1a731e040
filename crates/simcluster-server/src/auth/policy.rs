//! Roles and bindings, compiled: which rules a user has somewhere, without looking at those of others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::User;
use super::rbac::GROUP;
use simcluster_model::object;

/// What the bindings of one namespace grant, or those of the whole cluster.
#[derive(Debug, Default)]
pub struct Scope {
    bindings: Vec<Binding>,
    /// Positions of the bindings that name a user (service accounts by their full names).
    by_user: BTreeMap<String, Vec<usize>>,
    /// Positions of the bindings that name a group.
    by_group: BTreeMap<String, Vec<usize>>,
}

/// A binding and what it grants.
#[derive(Debug)]
pub(super) struct Binding {
    object: Arc<Value>,
    namespace: String,
    /// The rules of its role, or why there are none.
    pub(super) rules: Result<Arc<[Value]>, String>,
}

/// Where a scope finds the roles that its bindings name.
#[derive(Clone, Copy)]
pub struct Roles<'a> {
    /// A Role by namespace and name, or a `ClusterRole` (the namespace is empty then).
    pub get: &'a dyn Fn(&str, &str) -> Option<Arc<Value>>,
    /// All `ClusterRole`s, for those that are made of others.
    pub cluster: &'a dyn Fn() -> Vec<Arc<Value>>,
}

impl std::fmt::Debug for Roles<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Roles")
    }
}

impl Scope {
    /// The scope of a namespace's bindings; of `ClusterRoleBinding`s if the namespace is empty.
    #[must_use]
    pub fn compile(namespace: &str, bindings: Vec<Arc<Value>>, roles: Roles<'_>) -> Self {
        let mut scope = Self::default();
        let mut known = BTreeMap::new();
        for (position, object) in bindings.into_iter().enumerate() {
            for subject in subjects(&object) {
                let name = text(subject, "name");
                match text(subject, "kind") {
                    "User" => add(&mut scope.by_user, name, position),
                    "Group" => add(&mut scope.by_group, name, position),
                    "ServiceAccount" => {
                        if let Some(full) = account(subject, namespace) {
                            add(&mut scope.by_user, &full, position);
                        }
                    }
                    _ => {}
                }
            }
            let reference = object.get("roleRef").unwrap_or(&Value::Null);
            let is_role = text(reference, "kind") == "Role";
            let place = if is_role { namespace } else { "" };
            let role = (is_role, text(reference, "name").to_owned());
            let rules = known.entry(role).or_insert_with_key(|(_, name)| {
                let plural = if is_role { "role" } else { "clusterrole" };
                let role = (roles.get)(place, name);
                let role = role.ok_or_else(|| format!("{plural}.{GROUP} \"{name}\" not found"))?;
                Ok(rules_in(&role, roles))
            });
            let rules: Result<Arc<[Value]>, String> = rules.clone();
            scope.bindings.push(Binding { object, namespace: namespace.to_owned(), rules });
        }
        scope
    }

    /// The bindings that name the user or one of his groups, in their order.
    pub(super) fn of(&self, user: &User) -> impl Iterator<Item = &Binding> {
        let groups = user.groups.iter().filter_map(|group| self.by_group.get(group));
        let positions = self.by_user.get(&user.name).into_iter().chain(groups).flatten();
        let positions: BTreeSet<usize> = positions.copied().collect();
        positions.into_iter().filter_map(|position| self.bindings.get(position))
    }
}

fn add(index: &mut BTreeMap<String, Vec<usize>>, name: &str, position: usize) {
    index.entry(name.to_owned()).or_default().push(position);
}

impl Binding {
    /// The binding as reasons name it: `ClusterRoleBinding "b" of ClusterRole "r" to User "u"`.
    pub(super) fn source(&self, user: &User) -> String {
        let reference = self.object.get("roleRef").unwrap_or(&Value::Null);
        let (kind, role) = (text(reference, "kind"), text(reference, "name"));
        let name = object::name(&self.object);
        let subject = subjects(&self.object).find_map(|one| self.names(one, user));
        let subject = subject.unwrap_or_default();
        if self.namespace.is_empty() {
            return format!("ClusterRoleBinding \"{name}\" of ClusterRole \"{role}\" to {subject}");
        }
        let namespace = &self.namespace;
        format!("RoleBinding \"{name}/{namespace}\" of {kind} \"{role}\" to {subject}")
    }

    /// A subject as reasons name it, if it is the user.
    fn names(&self, subject: &Value, user: &User) -> Option<String> {
        let name = text(subject, "name");
        match text(subject, "kind") {
            "User" if name == user.name => Some(format!("User \"{name}\"")),
            "Group" if user.groups.iter().any(|group| group == name) => {
                Some(format!("Group \"{name}\""))
            }
            "ServiceAccount" => {
                let full = account(subject, &self.namespace)?;
                let (_, rest) = full.split_once("serviceaccount:")?;
                let (namespace, name) = rest.split_once(':')?;
                (full == user.name).then(|| format!("ServiceAccount \"{name}/{namespace}\""))
            }
            _ => None,
        }
    }
}

fn subjects(binding: &Value) -> impl Iterator<Item = &Value> {
    binding.get("subjects").and_then(Value::as_array).into_iter().flatten()
}

/// The user name of a service account that a binding in a namespace names.
fn account(subject: &Value, namespace: &str) -> Option<String> {
    let own = text(subject, "namespace");
    let namespace = if own.is_empty() { namespace } else { own };
    let name = text(subject, "name");
    (!namespace.is_empty()).then(|| format!("system:serviceaccount:{namespace}:{name}"))
}

/// The rules of a role, those that it aggregates included.
pub(super) fn rules_in(role: &Arc<Value>, roles: Roles<'_>) -> Arc<[Value]> {
    let own = |role: &Value| role.get("rules").and_then(Value::as_array).cloned();
    if role.get("aggregationRule").is_none() {
        return own(role).unwrap_or_default().into();
    }
    let all = (roles.cluster)();
    let mut seen = BTreeSet::from([object::name(role).to_owned()]);
    let mut rules = Vec::new();
    let mut queue = vec![Arc::clone(role)];
    while let Some(role) = queue.pop() {
        rules.extend(own(&role).into_iter().flatten());
        for other in &all {
            if aggregates(&role, other) && seen.insert(object::name(other).to_owned()) {
                queue.push(Arc::clone(other));
            }
        }
    }
    rules.into()
}

/// Whether a cluster role's aggregation rule selects another one (by labels).
fn aggregates(role: &Value, other: &Value) -> bool {
    let labels = object::metadata(other).get("labels");
    let selectors = role
        .get("aggregationRule")
        .and_then(|rule| rule.get("clusterRoleSelectors"))
        .and_then(Value::as_array);
    selectors.into_iter().flatten().any(|selector| {
        let wanted = selector.get("matchLabels").and_then(Value::as_object);
        wanted.is_some_and(|wanted| {
            wanted.iter().all(|(key, value)| labels.and_then(|all| all.get(key)) == Some(value))
        })
    })
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}
