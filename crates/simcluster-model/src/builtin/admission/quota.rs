//! What objects use of `ResourceQuotas`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::builtin::kinds::pod::quality_of_service;
use crate::builtin::pod_template::resources::{Amounts, add, amounts, of_pod};
use crate::builtin::quantity::Quantity;
use crate::builtin::value::{at, int, items, text};
use crate::object;

/// Kinds that are counted by their plain name, too.
const COUNTED: [&str; 6] = [
    "configmaps",
    "persistentvolumeclaims",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
];

/// Amounts of which every container must speak if a quota limits them.
const REQUIRED: [&str; 6] =
    ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

/// An object with the resource that it is of.
#[derive(Debug, Clone, Copy)]
pub struct Counted<'a> {
    /// API group.
    pub group: &'a str,
    /// Plural name.
    pub plural: &'a str,
    /// The object.
    pub object: &'a Value,
}

impl Counted<'_> {
    fn is(&self, plural: &str) -> bool {
        self.group.is_empty() && self.plural == plural
    }

    /// The name under which any kind can be counted.
    fn count_name(&self) -> String {
        match self.group {
            "" => format!("count/{}", self.plural),
            group => format!("count/{}.{group}", self.plural),
        }
    }

    fn usage(&self) -> Amounts {
        let mut usage = Amounts::from([(self.count_name(), Quantity::whole(1))]);
        if self.is("pods") {
            if !matches!(text(self.object, &["status", "phase"]), "Failed" | "Succeeded") {
                usage.insert("pods".to_owned(), Quantity::whole(1));
                let of = |list: &str| of_pod(self.object, list);
                usage.extend(compute(&of("requests"), &of("limits")));
            }
        } else if self.group.is_empty() && COUNTED.contains(&self.plural) {
            usage.insert(self.plural.to_owned(), Quantity::whole(1));
        }
        if self.is("services") {
            usage.extend(service(self.object));
        }
        usage
    }

    /// Whether a quota of this name counts objects of this resource.
    fn is_counted_by(&self, name: &str) -> bool {
        if name == self.count_name() {
            return true;
        }
        if !self.is("pods") {
            let services = ["services.nodeports", "services.loadbalancers"];
            let counted = self.group.is_empty() && COUNTED.contains(&self.plural);
            return (counted && name == self.plural)
                || (self.is("services") && services.contains(&name));
        }
        let compute = ["cpu", "memory", "ephemeral-storage"];
        let (prefix, rest) = name.split_once('.').unwrap_or(("", name));
        name == "pods"
            || compute.contains(&name)
            || name.starts_with("hugepages-")
            || (matches!(prefix, "requests" | "limits") && compute.contains(&rest))
            || (prefix == "requests" && (rest.starts_with("hugepages-") || rest.contains('/')))
    }

    /// Whether a quota's scopes hold for the object. Only Pods are in any.
    fn is_in_scope(&self, quota: &Value) -> bool {
        let plain = items(quota, &["spec", "scopes"]);
        let selected = items(quota, &["spec", "scopeSelector", "matchExpressions"]);
        let pod = self.is("pods");
        plain.iter().all(|scope| pod && in_scope(self.object, scope.as_str().unwrap_or_default()))
            && selected.iter().all(|one| pod && selects(self.object, one))
    }
}

fn in_scope(pod: &Value, scope: &str) -> bool {
    let ends = int(pod, &["spec", "activeDeadlineSeconds"]).is_some_and(|seconds| seconds >= 0);
    let best_effort = quality_of_service(pod) == "BestEffort";
    match scope {
        "Terminating" => ends,
        "NotTerminating" => !ends,
        "BestEffort" => best_effort,
        "NotBestEffort" => !best_effort,
        "PriorityClass" => !text(pod, &["spec", "priorityClassName"]).is_empty(),
        _ => false,
    }
}

fn selects(pod: &Value, expression: &Value) -> bool {
    let scope = text(expression, &["scopeName"]);
    if scope != "PriorityClass" {
        return in_scope(pod, scope);
    }
    let class = text(pod, &["spec", "priorityClassName"]);
    let listed = items(expression, &["values"]).iter().any(|one| one == class);
    match text(expression, &["operator"]) {
        "In" => !class.is_empty() && listed,
        "NotIn" => !listed,
        "Exists" => !class.is_empty(),
        "DoesNotExist" => class.is_empty(),
        _ => false,
    }
}

/// Requests and limits under the names of quotas.
fn compute(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut usage = Amounts::new();
    for (name, amount) in requests {
        match name.as_str() {
            "cpu" | "memory" | "ephemeral-storage" => {
                usage.insert(name.clone(), *amount);
                usage.insert(format!("requests.{name}"), *amount);
            }
            name if name.starts_with("hugepages-") => {
                usage.insert(name.to_owned(), *amount);
                usage.insert(format!("requests.{name}"), *amount);
            }
            name => {
                usage.insert(format!("requests.{name}"), *amount);
            }
        }
    }
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(amount) = limits.get(name) {
            usage.insert(format!("limits.{name}"), *amount);
        }
    }
    usage
}

fn service(service: &Value) -> Amounts {
    let ports = items(service, &["spec", "ports"]);
    let count = |number: usize| Quantity::whole(i64::try_from(number).unwrap_or(i64::MAX));
    let kind = text(service, &["spec", "type"]);
    let given = |port: &&Value| int(port, &["nodePort"]).unwrap_or_default() != 0;
    let allocates = at(service, &["spec", "allocateLoadBalancerNodePorts"]) != Some(&json!(false));
    let node_ports = match kind {
        "NodePort" => ports.len(),
        "LoadBalancer" if allocates => ports.len(),
        "LoadBalancer" => ports.iter().filter(given).count(),
        _ => 0,
    };
    let balancers = usize::from(kind == "LoadBalancer");
    Amounts::from([
        ("services.nodeports".to_owned(), count(node_ports)),
        ("services.loadbalancers".to_owned(), count(balancers)),
    ])
}

/// Charges a new or changed object to a quota. Answers the new `status.used` if that changes, or the
/// text of the refusal.
pub fn charge(
    quota: &Value,
    new: Counted<'_>,
    old: Option<Counted<'_>>,
) -> Result<Option<Value>, String> {
    let name = object::name(quota);
    let hard = amounts(at(quota, &["status", "hard"]));
    let used = amounts(at(quota, &["status", "used"]));
    let limited: Vec<&String> = hard.keys().filter(|one| new.is_counted_by(one)).collect();
    if limited.is_empty() || !new.is_in_scope(quota) {
        return Ok(None);
    }
    if new.is("pods") {
        check_required(&limited, new.object)
            .map_err(|why| format!("failed quota: {name}: {why}"))?;
    }
    if limited.iter().any(|one| !used.contains_key(*one)) {
        let names: Vec<&str> = limited.iter().map(|one| one.as_str()).collect();
        let names = names.join(",");
        return Err(format!("status unknown for quota: {name}, resources: {names}"));
    }
    let mut usage = new.usage();
    if let Some(old) = old.filter(|old| old.is_in_scope(quota)) {
        let before = old.usage();
        for (name, amount) in &mut usage {
            let less = before.get(name).map_or(*amount, |known| amount.minus(*known));
            *amount = if less.nanos() < 0 { Quantity::whole(0) } else { less };
        }
    }
    usage.retain(|name, amount| hard.contains_key(name) && amount.nanos() != 0);
    if usage.is_empty() {
        return Ok(None);
    }
    let mut total = used.clone();
    add(&mut total, &usage);
    let above = |name: &&String| {
        let limit = hard.get(*name).map(|one| one.nanos());
        total.get(*name).map(|one| one.nanos()) > limit
    };
    let exceeded: Vec<&String> = usage.keys().filter(above).collect();
    if exceeded.is_empty() {
        return Ok(Some(shown(&total)));
    }
    let list = |amounts: &Amounts| {
        let one = |name: &&String| Some(format!("{name}={}", amounts.get(*name)?.canonical()));
        exceeded.iter().filter_map(one).collect::<Vec<_>>().join(",")
    };
    Err(format!(
        "exceeded quota: {name}, requested: {}, used: {}, limited: {}",
        list(&usage),
        list(&used),
        list(&hard)
    ))
}

/// Every container must say what it wants of cpu and memory, if a quota limits that.
fn check_required(limited: &[&String], pod: &Value) -> Result<(), String> {
    if at(pod, &["spec", "resources"]).is_some() {
        return Ok(());
    }
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for list in ["containers", "initContainers"] {
        for container in items(pod, &["spec", list]) {
            let of = |list: &str| amounts(at(container, &["resources", list]));
            let said = compute(&of("requests"), &of("limits"));
            let silent = limited
                .iter()
                .filter(|one| REQUIRED.contains(&one.as_str()) && !said.contains_key(one.as_str()));
            for name in silent {
                missing.entry(name).or_default().insert(text(container, &["name"]));
            }
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let parts = missing.iter().map(|(name, containers)| {
        let containers: Vec<&str> = containers.iter().copied().collect();
        format!("{name} for: {}", containers.join(","))
    });
    Err(format!("must specify {}", parts.collect::<Vec<_>>().join("; ")))
}

/// The status of a quota over all objects of its namespace.
#[must_use]
pub fn status<'a>(quota: &Value, objects: impl Iterator<Item = Counted<'a>>) -> Value {
    let hard = amounts(at(quota, &["spec", "hard"]));
    let mut used: Amounts = hard.keys().map(|name| (name.clone(), Quantity::whole(0))).collect();
    for one in objects {
        if hard.keys().any(|name| one.is_counted_by(name)) && one.is_in_scope(quota) {
            let mut usage = one.usage();
            usage.retain(|name, _| hard.contains_key(name));
            add(&mut used, &usage);
        }
    }
    json!({ "hard": shown(&hard), "used": shown(&used) })
}

fn shown(amounts: &Amounts) -> Value {
    amounts.iter().map(|(name, amount)| (name.clone(), json!(amount.canonical()))).collect()
}
