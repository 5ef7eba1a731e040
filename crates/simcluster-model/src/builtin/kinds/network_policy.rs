//! Network policies.

use serde_json::{Value, json};

use crate::builtin::addresses::cidr_warning;
use crate::builtin::cells::selector_text;
use crate::builtin::check::Faults;
use crate::builtin::defaults::{Fields, inner, set};
use crate::builtin::kind::{Generation, Kind};
use crate::builtin::selector::label_selector;
use crate::builtin::value::{at, int, items, objects_mut, text};
use crate::field::FieldError;
use crate::names;

/// `networkpolicies`.
pub(super) static KIND: Kind = Kind {
    generation: Generation::Spec,
    default,
    validate,
    warnings,
    cells: |view| {
        view.named(vec![json!(selector_text(view.object.pointer("/spec/podSelector"))), view.age()])
    },
    ..Kind::new("networking.k8s.io", "networkpolicies")
};

fn default(policy: &mut Fields) {
    let spec = inner(policy, "spec");
    for direction in ["ingress", "egress"] {
        for rule in objects_mut(spec.get_mut(direction)) {
            for port in objects_mut(rule.get_mut("ports")) {
                set(port, "protocol", || json!("TCP"));
            }
        }
    }
    default_types(spec);
}

fn default_types(spec: &mut Fields) {
    let filled =
        |list: Option<&Value>| list.and_then(Value::as_array).is_some_and(|one| !one.is_empty());
    if !filled(spec.get("policyTypes")) {
        let egress = filled(spec.get("egress"));
        let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        spec.insert("policyTypes".to_owned(), types);
    }
}

fn validate(policy: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    if let Some(selector) = at(policy, &["spec", "podSelector"]) {
        label_selector(selector, "spec.podSelector", &mut faults);
    }
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in items(policy, &["spec", direction]).iter().enumerate() {
            let here = format!("spec.{direction}[{index}]");
            for (position, port) in items(rule, &["ports"]).iter().enumerate() {
                policy_port(port, &format!("{here}.ports[{position}]"), &mut faults);
            }
            for (position, peer) in items(rule, &[peers]).iter().enumerate() {
                policy_peer(peer, &format!("{here}.{peers}[{position}]"), &mut faults);
            }
        }
    }
    for (index, kind) in items(policy, &["spec", "policyTypes"]).iter().enumerate() {
        let kind = kind.as_str().unwrap_or_default();
        faults.one_of(format!("spec.policyTypes[{index}]"), kind, &["Ingress", "Egress"]);
    }
    faults.0
}

fn policy_port(port: &Value, here: &str, faults: &mut Faults) {
    let protocol = text(port, &["protocol"]);
    faults.one_of(format!("{here}.protocol"), protocol, &["TCP", "UDP", "SCTP"]);
    let number = at(port, &["port"]);
    if number.is_some() {
        faults.port(&format!("{here}.port"), number);
    }
    let Some(end) = int(port, &["endPort"]) else { return };
    let field = format!("{here}.endPort");
    match number {
        None => {
            let why = "may not be specified when `port` is not specified";
            faults.invalid(field, &json!(end), why);
        }
        Some(Value::String(_)) => {
            faults.invalid(field, &json!(end), "may not be specified when `port` is non-numeric");
        }
        Some(number) => {
            if end < number.as_i64().unwrap_or_default() {
                faults.invalid(
                    field.as_str(),
                    &json!(end),
                    "must be greater than or equal to `port`",
                );
            }
            for why in names::port_number(end) {
                faults.invalid(field.as_str(), &json!(end), &why);
            }
        }
    }
}

fn policy_peer(peer: &Value, here: &str, faults: &mut Faults) {
    let mut count = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if let Some(selector) = at(peer, &[field]) {
            count += 1;
            label_selector(selector, &format!("{here}.{field}"), faults);
        }
    }
    let block = at(peer, &["ipBlock"]);
    if let Some(block) = block {
        let cidr = text(block, &["cidr"]);
        let field = format!("{here}.ipBlock.cidr");
        if cidr.is_empty() {
            faults.required(field, "");
        } else {
            faults.texts(&field, cidr, names::cidr(cidr));
        }
    }
    if count == 0 && block.is_none() {
        faults.required(here, "must specify a peer");
    } else if count > 0 && block.is_some() {
        faults.forbidden(here, "may not specify both ipBlock and another peer");
    }
}

fn warnings(policy: &Value, _old: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in items(policy, &["spec", direction]).iter().enumerate() {
            for (position, peer) in items(rule, &[peers]).iter().enumerate() {
                let here = format!("spec.{direction}[{index}].{peers}[{position}].ipBlock");
                let cidr = text(peer, &["ipBlock", "cidr"]);
                found.extend(cidr_warning(&format!("{here}.cidr"), cidr));
                for (number, except) in items(peer, &["ipBlock", "except"]).iter().enumerate() {
                    let field = format!("{here}.except[{number}]");
                    found.extend(cidr_warning(&field, except.as_str().unwrap_or_default()));
                }
            }
        }
    }
    found
}
