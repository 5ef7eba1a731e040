//! Ingress classes.

use serde_json::{Value, json};

use crate::builtin::cells::View;
use crate::builtin::check::Faults;
use crate::builtin::defaults::{Fields, inner, set};
use crate::builtin::kind::{Generation, Kind};
use crate::builtin::value::{at, text};
use crate::field::FieldError;
use crate::names;
use crate::object;

/// `ingressclasses`.
pub(super) static KIND: Kind = Kind {
    generation: Generation::Spec,
    default,
    validate,
    validate_update: Some(validate_update),
    cells,
    ..Kind::new("networking.k8s.io", "ingressclasses")
};

fn default(class: &mut Fields) {
    let spec = inner(class, "spec");
    if let Some(Value::Object(parameters)) = spec.get_mut("parameters") {
        set(parameters, "scope", || json!("Cluster"));
    }
}

fn validate(class: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let controller = text(class, &["spec", "controller"]);
    let field = "spec.controller";
    if controller.len() > 250 {
        faults.add(FieldError::too_long(field, 250));
    }
    match controller.split_once('/') {
        _ if controller.is_empty() => faults.required(field, ""),
        Some((host, path)) if !host.is_empty() && !path.is_empty() => {
            faults.texts(field, host, names::dns1123_subdomain(host));
        }
        _ => {
            let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            faults.invalid(field, &json!(controller), why);
        }
    }
    faults.0
}

fn validate_update(class: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let controller = |one| at(one, &["spec", "controller"]);
    faults.immutable("spec.controller", controller(class), controller(old));
    faults.extend(validate(class));
    faults.0
}

fn cells(view: View<'_>) -> Vec<Value> {
    let default = object::metadata(view.object)
        .get("annotations")
        .and_then(|all| all.get("ingressclass.kubernetes.io/is-default-class"))
        .and_then(Value::as_str)
        == Some("true");
    let name = object::name(view.object);
    let name = if default { format!("{name} (default)") } else { name.to_owned() };
    let parameters = view.object.pointer("/spec/parameters").map_or_else(
        || "<none>".to_owned(),
        |parameters| {
            let kind = text(parameters, &["kind"]);
            let group = text(parameters, &["apiGroup"]);
            let dot = if group.is_empty() { "" } else { "." };
            format!("{kind}{dot}{group}/{}", text(parameters, &["name"]))
        },
    );
    vec![json!(name), view.text("/spec/controller"), json!(parameters), view.age()]
}
