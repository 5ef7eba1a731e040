//! Ingresses.

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::builtin::addresses;
use crate::builtin::cells::{View, or};
use crate::builtin::check::Faults;
use crate::builtin::kind::{Generation, Kind};
use crate::builtin::value::{at, int, items, text};
use crate::field::FieldError;
use crate::names;

/// `ingresses`.
pub(super) static KIND: Kind = Kind {
    generation: Generation::Spec,
    status_subresource: true,
    validate,
    validate_update: Some(|ingress, _| ingress_spec(ingress)),
    validate_status: addresses::validate_balancer,
    // Where Ingresses have been kept since before they had their name.
    registry_path: Some("ingress"),
    warnings,
    status_warnings: addresses::balancer_warnings,
    cells,
    ..Kind::new("networking.k8s.io", "ingresses")
};

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

fn validate(ingress: &Value) -> Vec<FieldError> {
    let mut faults = Faults(ingress_spec(ingress));
    let annotation = at(ingress, &["metadata", "annotations", CLASS_ANNOTATION]);
    let class = at(ingress, &["spec", "ingressClassName"]);
    if let (Some(annotation), Some(class)) = (annotation, class)
        && annotation != class
    {
        let field = format!("annotations.{CLASS_ANNOTATION}");
        faults.invalid(field, annotation, "must match `ingressClassName` when both are specified");
    }
    faults.0
}

fn ingress_spec(ingress: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let rules = items(ingress, &["spec", "rules"]);
    let default = at(ingress, &["spec", "defaultBackend"]);
    if rules.is_empty() && default.is_none() {
        let value = at(ingress, &["spec", "rules"]).unwrap_or(&Value::Null);
        faults.invalid("spec", value, "either `defaultBackend` or `rules` must be specified");
    }
    if let Some(default) = default {
        backend(default, "spec.defaultBackend", &mut faults);
    }
    for (index, rule) in rules.iter().enumerate() {
        let here = format!("spec.rules[{index}]");
        host(text(rule, &["host"]), &format!("{here}.host"), &mut faults);
        if at(rule, &["http"]).is_some() {
            let paths = items(rule, &["http", "paths"]);
            if paths.is_empty() {
                faults.required(format!("{here}.http.paths"), "");
            }
            for (position, one) in paths.iter().enumerate() {
                path(one, &format!("{here}.http.paths[{position}]"), &mut faults);
            }
        }
    }
    for (index, tls) in items(ingress, &["spec", "tls"]).iter().enumerate() {
        let here = format!("spec.tls[{index}]");
        for (position, name) in items(tls, &["hosts"]).iter().enumerate() {
            let name = name.as_str().unwrap_or_default();
            faults.texts(&format!("{here}.hosts[{position}]"), name, host_texts(name));
        }
        let secret = text(tls, &["secretName"]);
        if !secret.is_empty() {
            let field = format!("{here}.secretName");
            faults.texts(&field, secret, names::dns1123_subdomain(secret));
        }
    }
    if let Some(class) = at(ingress, &["spec", "ingressClassName"]).and_then(Value::as_str) {
        faults.texts("spec.ingressClassName", class, names::dns1123_subdomain(class));
    }
    faults.0
}

fn host_texts(host: &str) -> Vec<String> {
    if host.contains('*') {
        names::wildcard_subdomain(host)
    } else {
        names::dns1123_subdomain(host)
    }
}

fn host(host: &str, field: &str, faults: &mut Faults) {
    if host.is_empty() {
        return;
    }
    if host.parse::<IpAddr>().is_ok() {
        faults.invalid(field, &json!(host), "must be a DNS name, not an IP address");
    }
    faults.texts(field, host, host_texts(host));
}

fn path(entry: &Value, here: &str, faults: &mut Faults) {
    let kinds = ["Exact", "ImplementationSpecific", "Prefix"];
    let Some(kind) = at(entry, &["pathType"]).and_then(Value::as_str) else {
        faults.required(format!("{here}.pathType"), "pathType must be specified");
        return;
    };
    let path = text(entry, &["path"]);
    let field = format!("{here}.path");
    let strict = matches!(kind, "Exact" | "Prefix");
    if !kinds.contains(&kind) {
        let supported: Vec<String> = kinds.iter().map(|one| (*one).to_owned()).collect();
        let field = format!("{here}.pathType");
        faults.add(FieldError::not_supported(field, &json!(kind), &supported));
    } else if !path.starts_with('/') && (strict || !path.is_empty()) {
        faults.invalid(field.as_str(), &json!(path), "must be an absolute path");
    }
    if strict && !path.is_empty() {
        for part in ["//", "/./", "/../", "%2f", "%2F"] {
            if path.contains(part) {
                faults.invalid(field.as_str(), &json!(path), &format!("must not contain '{part}'"));
            }
        }
        for end in ["/..", "/."] {
            if path.ends_with(end) {
                faults.invalid(field.as_str(), &json!(path), &format!("cannot end with '{end}'"));
            }
        }
    }
    let backend_field = format!("{here}.backend");
    backend(at(entry, &["backend"]).unwrap_or(&Value::Null), &backend_field, faults);
}

fn backend(backend: &Value, here: &str, faults: &mut Faults) {
    let nothing = json!("");
    let service = match (at(backend, &["service"]), at(backend, &["resource"])) {
        (Some(_), Some(_)) => {
            faults.invalid(here, &nothing, "cannot set both resource and service backends");
            return;
        }
        (None, Some(resource)) => {
            for field in ["kind", "name"] {
                if text(resource, &[field]).is_empty() {
                    faults.required(format!("{here}.resource.{field}"), "");
                }
            }
            return;
        }
        (None, None) => {
            faults.invalid(here, &nothing, "resource or service backend is required");
            return;
        }
        (Some(service), None) => service,
    };
    let name = text(service, &["name"]);
    let field = format!("{here}.service.name");
    if name.is_empty() {
        faults.required(field, "");
    } else {
        faults.texts(&field, name, names::dns1123_label(name));
    }
    let port_name = text(service, &["port", "name"]);
    match int(service, &["port", "number"]).unwrap_or_default() {
        0 if port_name.is_empty() => faults.required(here, "port name or number is required"),
        0 => {
            let field = format!("{here}.service.port.name");
            faults.texts(&field, port_name, names::port_name(port_name));
        }
        _ if !port_name.is_empty() => {
            faults.invalid(here, &nothing, "cannot set both port name & port number");
        }
        number => {
            for why in names::port_number(number) {
                faults.invalid(format!("{here}.service.port.number"), &json!(number), &why);
            }
        }
    }
}

/// Hosts shown before the rest is only counted.
const HOSTS_MAX: usize = 3;

fn cells(view: View<'_>) -> Vec<Value> {
    let rules = view.list("/spec/rules");
    let hosts: Vec<&str> = rules
        .iter()
        .map(|rule| text(rule, &["host"]))
        .filter(|host| !host.is_empty())
        .take(HOSTS_MAX)
        .collect();
    let mut shown = or(&hosts.join(","), "*").to_owned();
    if hosts.len() == HOSTS_MAX && rules.len() > HOSTS_MAX {
        shown = format!("{shown} + {} more...", rules.len() - HOSTS_MAX);
    }
    let addresses: Vec<String> = addresses::of_balancer(view).into_iter().collect();
    let ports = if view.list("/spec/tls").is_empty() { "80" } else { "80, 443" };
    view.named(vec![
        json!(or(view.str("/spec/ingressClassName"), "<none>")),
        json!(shown),
        json!(addresses.join(",")),
        json!(ports),
        view.age(),
    ])
}

fn warnings(ingress: &Value, old: Option<&Value>) -> Vec<String> {
    let annotated = at(ingress, &["metadata", "annotations", CLASS_ANNOTATION]).is_some();
    let old_way = annotated && at(ingress, &["spec", "ingressClassName"]).is_none();
    let warning = (old.is_none() && old_way).then(|| {
        format!(
            "annotation {CLASS_ANNOTATION:?} is deprecated, please use 'spec.ingressClassName' instead"
        )
    });
    warning.into_iter().collect()
}
