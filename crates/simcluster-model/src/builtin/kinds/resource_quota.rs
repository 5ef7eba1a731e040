//! Resource quotas.

use serde_json::{Value, json};

use crate::builtin::cells::View;
use crate::builtin::check::Faults;
use crate::builtin::kind::Kind;
use crate::builtin::quantity::Quantity;
use crate::builtin::value::{at, text};
use crate::field::FieldError;
use crate::names;

/// `resourcequotas`.
pub(super) static KIND: Kind = Kind {
    status_subresource: true,
    returns_deleted_object: true,
    validate,
    warnings,
    cells,
    ..Kind::new("", "resourcequotas")
};

fn validate(quota: &Value) -> Vec<FieldError> {
    const COUNTED: [&str; 19] = [
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "persistentvolumeclaims",
        "configmaps",
        "services.nodeports",
        "services.loadbalancers",
    ];
    let mut faults = Faults::default();
    let hard = at(quota, &["spec", "hard"]).and_then(Value::as_object).into_iter().flatten();
    for (name, amount) in hard {
        let field = format!("spec.hard[{name}]");
        let wrong = names::qualified_name(name);
        let pages = name.starts_with("hugepages-") || name.starts_with("requests.hugepages-");
        if !wrong.is_empty() {
            faults.texts(&field, name, wrong);
        } else if !name.contains('/') && !COUNTED.contains(&name.as_str()) && !pages {
            if name != "storage" {
                let why = "must be a standard resource type or fully qualified";
                faults.invalid(field.as_str(), &json!(name), why);
            }
            faults.invalid(field.as_str(), &json!(name), "must be a standard resource for quota");
        }
        let amount = amount.as_str().unwrap_or_default();
        if Quantity::parse(amount).is_ok_and(|amount| amount.nanos() < 0) {
            faults.invalid(field, &json!(amount), "must be greater than or equal to 0");
        }
    }
    faults.0
}

fn cells(view: View<'_>) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    let hard = view.object.pointer("/status/hard").and_then(Value::as_object);
    for (name, hard) in hard.into_iter().flatten() {
        let used = view.object.pointer("/status/used").and_then(|used| used.get(name));
        let used = used.and_then(Value::as_str).unwrap_or("0");
        let text = format!("{name}: {used}/{}", hard.as_str().unwrap_or_default());
        if name.starts_with("limits.") { limits.push(text) } else { requests.push(text) }
    }
    view.named(vec![json!(requests.join(", ")), json!(limits.join(", ")), view.age()])
}

fn warnings(quota: &Value, old: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    if old.is_some() {
        return found;
    }
    let hard = |name: &str| {
        let amount = text(quota, &["spec", "hard", name]);
        Quantity::parse(amount).ok().map(|parsed| (parsed.nanos(), amount))
    };
    for name in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let mut request = format!("requests.{name}");
        if hard(&request).is_none() && matches!(name, "cpu" | "memory") {
            name.clone_into(&mut request);
        }
        let limit = format!("limits.{name}");
        if let (Some((least, requested)), Some((most, limited))) = (hard(&request), hard(&limit))
            && least > most
        {
            found.push(format!(
                "ResourceQuota {request} ({requested}) should be less than {limit} ({limited})"
            ));
        }
    }
    found
}
