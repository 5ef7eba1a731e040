//! The Pods that a template makes: what is wrong with them.

mod affinity;
mod container;
mod dns;
mod overlaps;
pub(super) mod resources;
mod warnings;

pub(super) use self::affinity::node_selector;
pub(super) use self::warnings::{claim_warnings, node_term, warnings};
mod scheduling;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use self::container::Surrounding;
use crate::builtin::check::Faults;
use crate::builtin::value::{at, int, items, text};
use crate::names;

/// A template, such as a Deployment's.
pub(super) fn validate(template: &Value, path: &str, faults: &mut Faults) {
    faults.labels(&format!("{path}.labels"), at(template, &["metadata", "labels"]));
    let annotations = at(template, &["metadata", "annotations"]);
    faults.annotations(&format!("{path}.annotations"), annotations);
    spec(at(template, &["spec"]).unwrap_or(&Value::Null), &format!("{path}.spec"), faults);
    if !items(template, &["spec", "ephemeralContainers"]).is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        faults.forbidden(format!("{path}.spec.ephemeralContainers"), why);
    }
}

pub(super) fn spec(spec: &Value, path: &str, faults: &mut Faults) {
    let volumes = volumes(items(spec, &["volumes"]), &format!("{path}.volumes"), faults);
    let grace_period = int(spec, &["terminationGracePeriodSeconds"]).unwrap_or_default();
    let around = Surrounding { volumes, grace_period };
    let regular = items(spec, &["containers"]);
    container::containers(regular, &format!("{path}.containers"), &around, faults);
    let init = items(spec, &["initContainers"]);
    let init_path = format!("{path}.initContainers");
    container::init_containers(init, regular, &init_path, &around, faults);
    host_network_ports(spec, path, faults);
    let policy = text(spec, &["restartPolicy"]);
    faults.one_of(format!("{path}.restartPolicy"), policy, &["Always", "OnFailure", "Never"]);
    let policy = text(spec, &["dnsPolicy"]);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    faults.one_of(format!("{path}.dnsPolicy"), policy, &policies);
    faults.labels(&format!("{path}.nodeSelector"), at(spec, &["nodeSelector"]));
    if let Some(context) = at(spec, &["securityContext"]) {
        security(context, &format!("{path}.securityContext"), faults);
    }
    if let Some(affinity) = at(spec, &["affinity"]) {
        affinity::validate(affinity, &format!("{path}.affinity"), faults);
    }
    dns::validate(spec, path, faults);
    for field in ["serviceAccountName", "nodeName", "priorityClassName"] {
        let name = text(spec, &[field]);
        if !name.is_empty() {
            faults.texts(&format!("{path}.{field}"), name, names::dns1123_subdomain(name));
        }
    }
    if let Some(seconds) = int(spec, &["activeDeadlineSeconds"]) {
        for why in names::in_range(seconds, 1, i64::from(i32::MAX)) {
            faults.invalid(format!("{path}.activeDeadlineSeconds"), &json!(seconds), &why);
        }
    }
    for field in ["hostname", "subdomain"] {
        let name = text(spec, &[field]);
        if !name.is_empty() {
            faults.texts(&format!("{path}.{field}"), name, names::dns1123_label(name));
        }
    }
    scheduling::tolerations(items(spec, &["tolerations"]), &format!("{path}.tolerations"), faults);
    let constraints = "topologySpreadConstraints";
    scheduling::spread(items(spec, &[constraints]), &format!("{path}.{constraints}"), faults);
}

/// The ids of a Pod's security context.
fn security(context: &Value, path: &str, faults: &mut Faults) {
    let given = ["fsGroup", "runAsUser", "runAsGroup"].into_iter();
    let mut ids: Vec<(String, Option<i64>)> =
        given.map(|field| (format!("{path}.{field}"), int(context, &[field]))).collect();
    let groups = items(context, &["supplementalGroups"]).iter().enumerate();
    ids.extend(
        groups.map(|(index, id)| (format!("{path}.supplementalGroups[{index}]"), id.as_i64())),
    );
    for (field, id) in ids {
        container::id(&field, id, faults);
    }
}

/// Containers on the host's network use its ports.
fn host_network_ports(spec: &Value, path: &str, faults: &mut Faults) {
    if at(spec, &["hostNetwork"]) != Some(&Value::Bool(true)) {
        return;
    }
    for list in ["containers", "initContainers"] {
        for (index, container) in items(spec, &[list]).iter().enumerate() {
            for (position, port) in items(container, &["ports"]).iter().enumerate() {
                let (own, host) = (int(port, &["containerPort"]), int(port, &["hostPort"]));
                if host != own {
                    let field = format!("{path}.{list}[{index}].ports[{position}].hostPort");
                    let value = json!(host.unwrap_or_default());
                    faults.invalid(
                        field,
                        &value,
                        "must match `containerPort` when `hostNetwork` is true",
                    );
                }
            }
        }
    }
}

/// The volumes; returns the names of the good ones.
fn volumes<'a>(list: &'a [Value], path: &str, faults: &mut Faults) -> BTreeSet<&'a str> {
    let mut good = BTreeSet::new();
    for (index, volume) in list.iter().enumerate() {
        let here = format!("{path}[{index}]");
        let mut wrong = Faults::default();
        volume_source(volume, &here, &mut wrong);
        let name = text(volume, &["name"]);
        let field = format!("{here}.name");
        if name.is_empty() {
            wrong.required(field.as_str(), "");
        } else {
            wrong.texts(&field, name, names::dns1123_label(name));
        }
        if good.contains(name) {
            wrong.duplicate(field, &json!(name));
        }
        if wrong.is_empty() {
            good.insert(name);
        } else {
            faults.extend(wrong.0);
        }
    }
    good
}

fn volume_source(volume: &Value, path: &str, faults: &mut Faults) {
    // In the order in which the server looks at them.
    const KINDS: [&str; 10] = [
        "emptyDir",
        "hostPath",
        "secret",
        "nfs",
        "persistentVolumeClaim",
        "downwardAPI",
        "configMap",
        "projected",
        "csi",
        "ephemeral",
    ];
    let mut count = 0;
    for kind in KINDS {
        let Some(source) = at(volume, &[kind]) else { continue };
        let here = format!("{path}.{kind}");
        count += 1;
        if count > 1 {
            faults.forbidden(here, "may not specify more than 1 volume type");
            continue;
        }
        let needed = match kind {
            "hostPath" => "path",
            "secret" => "secretName",
            "persistentVolumeClaim" => "claimName",
            "configMap" => "name",
            _ => continue,
        };
        if text(source, &[needed]).is_empty() {
            faults.required(format!("{here}.{needed}"), "");
        }
    }
    let others = volume
        .as_object()
        .is_some_and(|map| map.keys().any(|key| key != "name" && !KINDS.contains(&key.as_str())));
    if count == 0 && !others {
        faults.required(path, "must specify a volume type");
    }
}
