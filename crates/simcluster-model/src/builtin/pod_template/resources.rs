//! Amounts of resources that Pods ask for.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::builtin::quantity::Quantity;
use crate::builtin::value::{at, items, text};

/// Amounts by name of the resource, such as `cpu`.
pub(in crate::builtin) type Amounts = BTreeMap<String, Quantity>;

/// The amounts of a resource list.
pub(in crate::builtin) fn amounts(list: Option<&Value>) -> Amounts {
    let list = list.and_then(Value::as_object).into_iter().flatten();
    let amount = |(name, value): (&String, &Value)| {
        let quantity = Quantity::parse(value.as_str()?).ok()?;
        Some((name.clone(), quantity))
    };
    list.filter_map(amount).collect()
}

/// What a Pod asks for as a whole; `list` is `requests` or `limits`. Init containers run one after the
/// other, before the others; those that restart always stay beside them.
pub(in crate::builtin) fn of_pod(pod: &Value, list: &str) -> Amounts {
    let of = |container: &Value| amounts(at(container, &["resources", list]));
    let mut total = Amounts::new();
    for container in items(pod, &["spec", "containers"]) {
        add(&mut total, &of(container));
    }
    let (mut sidecars, mut most) = (Amounts::new(), Amounts::new());
    for container in items(pod, &["spec", "initContainers"]) {
        let own = of(container);
        if text(container, &["restartPolicy"]) == "Always" {
            add(&mut total, &own);
            add(&mut sidecars, &own);
            raise(&mut most, &sidecars);
        } else {
            let mut now = own;
            add(&mut now, &sidecars);
            raise(&mut most, &now);
        }
    }
    raise(&mut total, &most);
    for (name, amount) in amounts(at(pod, &["spec", "resources", list])) {
        if matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-") {
            total.insert(name, amount);
        }
    }
    total
}

/// Adds amounts to others.
pub(in crate::builtin) fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = total.get(name).map_or(*amount, |known| known.plus(*amount));
        total.insert(name.clone(), sum);
    }
}

/// Raises amounts to others that are larger.
fn raise(total: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        if total.get(name).is_none_or(|known| known.nanos() < amount.nanos()) {
            total.insert(name.clone(), *amount);
        }
    }
}
