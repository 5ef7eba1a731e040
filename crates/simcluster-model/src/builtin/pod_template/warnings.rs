//! What Pods and their templates may have but should not (`pkg/api/pod/warnings.go`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::overlaps;
use crate::builtin::addresses::ip_warning;
use crate::builtin::quantity::fraction_warning;
use crate::builtin::value::{at, int, items, text};
use crate::names;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Warnings about a Pod (`path` is empty) or a template (`path` is where it stands).
pub(in crate::builtin) fn warnings(pod: &Value, path: &str) -> Vec<String> {
    let spec = at(pod, &["spec"]).unwrap_or(&Value::Null);
    let under = if path.is_empty() { String::new() } else { format!("{path}.") };
    let here = format!("{under}spec");
    let meta = format!("{under}metadata.annotations");
    let mut found = Vec::new();
    node_labels(spec, &here, &mut found);
    annotations(pod, &meta, &mut found);
    volumes(spec, &here, &mut found);
    repetitions(spec, &here, &mut found);
    if let Some(overhead) = at(spec, &["overhead"]) {
        fractions(overhead, &format!("{here}.overhead"), &mut found);
    }
    if at(spec, &["securityContext", "seccompProfile"]).is_none() {
        let key = "seccomp.security.alpha.kubernetes.io/pod";
        seccomp(pod, key, &meta, &mut found);
    }
    for (container, field) in containers(spec, &here) {
        container_annotations(pod, container, !path.is_empty(), &meta, &mut found);
        for list in ["limits", "requests"] {
            if let Some(amounts) = at(container, &["resources", list]) {
                amount(amounts, "memory", &format!("{field}.resources.{list}"), &mut found);
            }
        }
        for list in ["limits", "requests"] {
            if let Some(amounts) = at(container, &["resources", list]) {
                let field = format!("{field}.resources.{list}");
                amount(amounts, "ephemeral-storage", &field, &mut found);
            }
        }
        env(items(container, &["env"]), &format!("{field}.env"), &mut found);
    }
    ports(spec, &here, &mut found);
    if int(spec, &["terminationGracePeriodSeconds"]).is_some_and(|seconds| seconds < 0) {
        found.push(format!(
            "{here}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be \
             treated as 1"
        ));
    }
    pod_affinity(spec, &here, &mut found);
    for (index, server) in items(spec, &["dnsConfig", "nameservers"]).iter().enumerate() {
        let field = format!("{here}.dnsConfig.nameservers[{index}]");
        found.extend(ip_warning(&field, server.as_str().unwrap_or_default()));
    }
    for (index, alias) in items(spec, &["hostAliases"]).iter().enumerate() {
        found.extend(ip_warning(&format!("{here}.hostAliases[{index}].ip"), text(alias, &["ip"])));
    }
    found
}

/// All containers with their paths, in the order in which the server visits them.
fn containers<'a>(spec: &'a Value, here: &str) -> Vec<(&'a Value, String)> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let of = |list| items(spec, &[list]).iter().enumerate().map(move |one| (list, one));
    let all = lists.into_iter().flat_map(of);
    all.map(|(list, (index, one))| (one, format!("{here}.{list}[{index}]"))).collect()
}

/// What became of a label of Nodes (`pkg/api/node/util.go`).
fn deprecated_label(key: &str) -> Option<&'static str> {
    Some(match key {
        "beta.kubernetes.io/arch" => "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
        "beta.kubernetes.io/os" => "deprecated since v1.14; use \"kubernetes.io/os\" instead",
        "failure-domain.beta.kubernetes.io/region" => {
            "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"
        }
        "failure-domain.beta.kubernetes.io/zone" => {
            "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"
        }
        "beta.kubernetes.io/instance-type" => {
            "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"
        }
        "app.kubernetes.io/created-by" => "deprecated since v1.9",
        "scheduler.alpha.kubernetes.io/preferAvoidPods" => {
            "deprecated since v1.22; use Taints and Tolerations instead"
        }
        "node-role.kubernetes.io/master" => "use \"node-role.kubernetes.io/control-plane\" instead",
        _ => return None,
    })
}

fn node_labels(spec: &Value, here: &str, found: &mut Vec<String>) {
    let selector = at(spec, &["nodeSelector"]).and_then(Value::as_object).into_iter().flatten();
    for (key, _) in selector {
        if let Some(why) = deprecated_label(key) {
            found.push(format!("{here}.nodeSelector[{key}]: {why}"));
        }
    }
    let affinity = format!("{here}.affinity.nodeAffinity");
    let terms = items(spec, &["affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms"]);
    for (index, term) in terms.iter().enumerate() {
        let field = format!("{affinity}.{REQUIRED}.nodeSelectorTerms[{index}]");
        node_term(term, false, &field, found);
    }
    let preferred = items(spec, &["affinity", "nodeAffinity", PREFERRED]);
    for (index, one) in preferred.iter().enumerate() {
        let field = format!("{affinity}.{PREFERRED}[{index}].preference");
        node_term(at(one, &["preference"]).unwrap_or(&Value::Null), true, &field, found);
    }
    for (index, constraint) in items(spec, &["topologySpreadConstraints"]).iter().enumerate() {
        let field = format!("{here}.topologySpreadConstraints[{index}]");
        let key = text(constraint, &["topologyKey"]);
        if let Some(why) = deprecated_label(key) {
            found.push(format!("{field}.topologyKey: {key} is {why}"));
        }
        null_selector(constraint, &field, found);
    }
}

/// Warnings about the labels of Nodes in a term of a selector.
pub(in crate::builtin) fn node_term(
    term: &Value,
    with_values: bool,
    field: &str,
    found: &mut Vec<String>,
) {
    for (index, expression) in items(term, &["matchExpressions"]).iter().enumerate() {
        let field = format!("{field}.matchExpressions[{index}]");
        let key = text(expression, &["key"]);
        if let Some(why) = deprecated_label(key) {
            found.push(format!("{field}.key: {key} is {why}"));
        }
        let values = items(expression, &["values"]).iter().enumerate();
        for (position, value) in values.filter(|_| with_values) {
            let value = value.as_str().unwrap_or_default();
            for why in names::label_value(value) {
                found.push(format!("{field}.values[{position}]: {value} is invalid, {why}"));
            }
        }
    }
}

fn null_selector(of: &Value, field: &str, found: &mut Vec<String>) {
    if at(of, &["labelSelector"]).is_none() {
        let why = "a null labelSelector results in matching no pod";
        found.push(format!("{field}.labelSelector: {why}"));
    }
}

fn pod_affinity(spec: &Value, here: &str, found: &mut Vec<String>) {
    for kind in ["podAffinity", "podAntiAffinity"] {
        let list = REQUIRED;
        for (index, term) in items(spec, &["affinity", kind, list]).iter().enumerate() {
            null_selector(term, &format!("{here}.affinity.{kind}.{list}[{index}]"), found);
        }
        let list = PREFERRED;
        for (index, one) in items(spec, &["affinity", kind, list]).iter().enumerate() {
            let field = format!("{here}.affinity.{kind}.{list}[{index}].podAffinityTerm");
            null_selector(at(one, &["podAffinityTerm"]).unwrap_or(&Value::Null), &field, found);
        }
    }
}

fn annotation<'a>(pod: &'a Value, key: &str) -> Option<&'a str> {
    at(pod, &["metadata", "annotations", key]).and_then(Value::as_str)
}

fn annotations(pod: &Value, meta: &str, found: &mut Vec<String>) {
    for (key, why) in [
        (
            "scheduler.alpha.kubernetes.io/critical-pod",
            "non-functional in v1.16+; use the \"priorityClassName\" field instead",
        ),
        (
            "security.alpha.kubernetes.io/sysctls",
            "non-functional in v1.11+; use the \"sysctls\" field instead",
        ),
        (
            "security.alpha.kubernetes.io/unsafe-sysctls",
            "non-functional in v1.11+; use the \"sysctls\" field instead",
        ),
    ] {
        if annotation(pod, key).is_some() {
            found.push(format!("{meta}[{key}]: {why}"));
        }
    }
}

fn seccomp(pod: &Value, key: &str, meta: &str, found: &mut Vec<String>) {
    if annotation(pod, key).is_some() {
        let why = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
        found.push(format!("{meta}[{key}]: {why}"));
    }
}

fn container_annotations(
    pod: &Value,
    container: &Value,
    is_template: bool,
    meta: &str,
    found: &mut Vec<String>,
) {
    let name = text(container, &["name"]);
    if at(container, &["securityContext", "seccompProfile"]).is_none() {
        let key = format!("container.seccomp.security.alpha.kubernetes.io/{name}");
        seccomp(pod, &key, meta, found);
    }
    if !is_template || at(container, &["securityContext", "appArmorProfile"]).is_some() {
        return;
    }
    let key = format!("container.apparmor.security.beta.kubernetes.io/{name}");
    let Some(value) = annotation(pod, &key) else { return };
    let profile = at(pod, &["spec", "securityContext", "appArmorProfile"]);
    let same = profile.is_some_and(|profile| {
        let kind = text(profile, &["type"]);
        match value {
            "unconfined" => kind == "Unconfined",
            "runtime/default" => kind == "RuntimeDefault",
            other => other.strip_prefix("localhost/").is_some_and(|local| {
                kind == "Localhost" && local == text(profile, &["localhostProfile"])
            }),
        }
    });
    if !same {
        let why = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
        found.push(format!("{meta}[{key}]: {why}"));
    }
}

fn volumes(spec: &Value, here: &str, found: &mut Vec<String>) {
    const DEPRECATED: [(&str, &str); 7] = [
        ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
        ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
        ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
        ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
        ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
        ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ];
    const LATER: [(&str, &str); 2] = [
        ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
        ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ];
    let volumes = items(spec, &["volumes"]);
    for (index, volume) in volumes.iter().enumerate() {
        let field = format!("{here}.volumes[{index}]");
        let say = |list: &[(&str, &str)], found: &mut Vec<String>| {
            for (kind, why) in list.iter().filter(|(kind, _)| at(volume, &[kind]).is_some()) {
                // One kind is named otherwise in the path than in the object.
                let shown = if *kind == "storageos" { "storageOS" } else { kind };
                found.push(format!("{field}.{shown}: {why}"));
            }
        };
        say(&DEPRECATED, found);
        if let Some(claim) = at(volume, &["ephemeral", "volumeClaimTemplate", "spec"]) {
            let field = format!("{field}.ephemeral.volumeClaimTemplate.spec");
            found.extend(claim_warnings(claim, &field));
        }
        say(&LATER, found);
    }
    overlaps::warnings(volumes, found);
}

/// Warnings about the spec of a volume claim.
pub(in crate::builtin) fn claim_warnings(claim: &Value, field: &str) -> Vec<String> {
    let mut found = Vec::new();
    for list in ["requests", "limits"] {
        if let Some(amounts) = at(claim, &["resources", list]) {
            amount(amounts, "storage", &format!("{field}.resources.{list}"), &mut found);
        }
    }
    found
}

fn fractions(amounts: &Value, field: &str, found: &mut Vec<String>) {
    for name in ["memory", "ephemeral-storage"] {
        amount(amounts, name, field, found);
    }
}

fn amount(amounts: &Value, name: &str, field: &str, found: &mut Vec<String>) {
    found.extend(fraction_warning(&format!("{field}[{name}]"), text(amounts, &[name])));
}

fn repetitions(spec: &Value, here: &str, found: &mut Vec<String>) {
    for (list, key) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
        let mut seen = BTreeSet::new();
        for (index, one) in items(spec, &[list]).iter().enumerate() {
            let value = text(one, &[key]);
            if !seen.insert(value) {
                found.push(format!("{here}.{list}[{index}].{key}: duplicate {key} {value:?}"));
            }
        }
    }
    for (index, one) in items(spec, &["imagePullSecrets"]).iter().enumerate() {
        if text(one, &["name"]).is_empty() {
            found.push(format!("{here}.imagePullSecrets[{index}].name: invalid empty name \"\""));
        }
    }
}

fn env(list: &[Value], field: &str, found: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for (index, variable) in list.iter().enumerate() {
        let name = text(variable, &["name"]);
        if seen.insert(name) {
            continue;
        }
        // The former value may go on in the new one.
        let reference = format!("$({name})");
        let value = text(variable, &["value"]);
        if at(variable, &["valueFrom"]).is_some()
            || value == reference
            || !value.contains(&reference)
        {
            found.push(format!(
                "{field}[{index}]: hides previous definition of {name:?}, which may be dropped when using \
                 apply"
            ));
        }
    }
}

fn ports(spec: &Value, here: &str, found: &mut Vec<String>) {
    let containers = containers(spec, here);
    let all: Vec<(&Value, String)> = containers
        .iter()
        .flat_map(|(container, field)| {
            let list = items(container, &["ports"]).iter().enumerate();
            list.map(move |(index, port)| (port, format!("{field}.ports[{index}]")))
        })
        .collect();
    for (number, (port, field)) in all.iter().enumerate() {
        let host = |port: &Value| int(port, &["hostPort"]).unwrap_or_default();
        let of = |port: &Value| int(port, &["containerPort"]).unwrap_or_default();
        let [name, protocol, ip] = ["name", "protocol", "hostIP"].map(|key| text(port, &[key]));
        if !ip.is_empty() && host(port) == 0 {
            found.push(format!(
                "{field}: hostIP set without hostPort: {{Name:{name} HostPort:0 ContainerPort:{} \
                 Protocol:{protocol} HostIP:{ip}}}",
                of(port)
            ));
        }
        let before = all.iter().take(number);
        let same = before
            .filter(|(other, _)| of(other) == of(port) && text(other, &["protocol"]) == protocol);
        for (other, where_) in same {
            let other_ip = text(other, &["hostIP"]);
            let how = if ip == other_ip && host(port) == host(other) {
                "duplicate"
            } else if host(port) == 0 || host(other) == 0 {
                "overlapping"
            } else if host(port) == host(other) && ip.is_empty() != other_ip.is_empty() {
                "dangerously ambiguous"
            } else {
                continue;
            };
            found.push(format!("{field}: {how} port definition with {where_}"));
        }
    }
    let mut named: BTreeMap<&str, &str> = BTreeMap::new();
    for (port, field) in &all {
        let name = text(port, &["name"]);
        match named.get(name) {
            _ if name.is_empty() => {}
            Some(other) => found.push(format!(
                "{field}: duplicate port name {name:?} with {other}, services and probes that select ports by \
                 name will use {other}"
            )),
            None => {
                named.insert(name, field);
            }
        }
    }
}
