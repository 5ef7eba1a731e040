//! Persistent volumes.

use serde_json::{Value, json};

use super::volume_claim::{access_modes, class_and_mode, or_unset, phase, positive, short_modes};
use crate::builtin::cells::View;
use crate::builtin::check::Faults;
use crate::builtin::defaults::{Fields, inner, set};
use crate::builtin::kind::Kind;
use crate::builtin::pod_template::{node_selector, node_term};
use crate::builtin::value::{at, items, text};
use crate::error::ApiError;
use crate::field::FieldError;
use crate::object;
use crate::resource::{Resource, Surroundings};
use crate::time::format_seconds;

/// Where the bytes can be, in the order in which the server looks.
const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

/// `persistentvolumes`.
pub(super) static KIND: Kind = Kind {
    status_subresource: true,
    returns_deleted_object: true,
    default,
    allocate_for_create,
    validate,
    validate_update: Some(validate_update),
    warnings,
    cells,
    ..Kind::new("", "persistentvolumes")
};

fn default(volume: &mut Fields) {
    let spec = inner(volume, "spec");
    set(spec, "persistentVolumeReclaimPolicy", || json!("Retain"));
    set(spec, "volumeMode", || json!("Filesystem"));
    set(inner(volume, "status"), "phase", || json!("Pending"));
}

#[expect(clippy::unnecessary_wraps, reason = "has the form of all kinds' rules")]
fn allocate_for_create(
    _resource: &Resource,
    volume: &mut Value,
    around: &mut Surroundings<'_>,
) -> Result<(), ApiError> {
    let now = format_seconds(around.now);
    object::put(volume, "status", json!({ "phase": "Pending", "lastPhaseTransitionTime": now }));
    Ok(())
}

fn validate(volume: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let spec = at(volume, &["spec"]).unwrap_or(&Value::Null);
    if items(spec, &["accessModes"]).is_empty() {
        faults.required("spec.accessModes", "");
    }
    access_modes(spec, &mut faults);
    capacity(spec, &mut faults);
    let policy = text(spec, &["persistentVolumeReclaimPolicy"]);
    let policies = ["Delete", "Recycle", "Retain"];
    faults.supported("spec.persistentVolumeReclaimPolicy", policy, &policies);
    if let Some(affinity) = at(spec, &["nodeAffinity"]) {
        if let Some(required) = at(affinity, &["required"]) {
            node_selector(required, "spec.nodeAffinity.required", &mut faults);
        } else {
            let why = "must specify required node constraints";
            faults.required("spec.nodeAffinity.required", why);
        }
    }
    let given = SOURCES.iter().filter(|source| at(spec, &[source]).is_some());
    for (count, source) in given.clone().enumerate() {
        let field = format!("spec.{source}");
        if count > 0 {
            faults.forbidden(field, "may not specify more than 1 volume type");
            continue;
        }
        let own = at(spec, &[source]).unwrap_or(&Value::Null);
        for name in required(source).iter().filter(|name| text(own, &[name]).is_empty()) {
            faults.required(format!("{field}.{name}"), "");
        }
    }
    if given.count() == 0 {
        faults.required("spec", "must specify a volume type");
    }
    if at(spec, &["local"]).is_some() && at(spec, &["nodeAffinity", "required"]).is_none() {
        faults.required("spec.nodeAffinity", "Local volume requires node affinity");
    }
    class_and_mode(spec, &mut faults);
    faults.0
}

/// What a source must say.
fn required(source: &str) -> &'static [&'static str] {
    match source {
        "hostPath" | "local" => &["path"],
        "nfs" => &["server", "path"],
        "csi" => &["driver", "volumeHandle"],
        _ => &[],
    }
}

fn capacity(spec: &Value, faults: &mut Faults) {
    let field = "spec.capacity";
    let amounts = at(spec, &["capacity"]).and_then(Value::as_object);
    let count = amounts.map_or(0, serde_json::Map::len);
    if count == 0 {
        faults.required(field, "");
    }
    if count != 1 || at(spec, &["capacity", "storage"]).is_none() {
        let shown = at(spec, &["capacity"]).unwrap_or(&Value::Null);
        faults.add(FieldError::not_supported(field, shown, &["storage".to_owned()]));
    }
    for (name, amount) in amounts.into_iter().flatten() {
        positive(amount.as_str().unwrap_or_default(), &format!("{field}[{name}]"), faults);
    }
}

fn validate_update(volume: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults(validate(volume));
    let differs = |source: &&&str| at(volume, &["spec", source]) != at(old, &["spec", source]);
    if SOURCES.iter().find(differs).is_some() {
        let why = "spec.persistentvolumesource is immutable after creation";
        faults.forbidden("spec.persistentvolumesource", why);
    }
    let mode = |one| at(one, &["spec", "volumeMode"]);
    faults.immutable("volumeMode", mode(volume), mode(old));
    faults.0
}

fn warnings(volume: &Value, _old: Option<&Value>) -> Vec<String> {
    const REMOVED: [(&str, &str, &str); 6] = [
        ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
        (
            "photonPersistentDisk",
            "photonPersistentDisk",
            "deprecated in v1.11, non-functional in v1.16+",
        ),
        ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
        ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
        ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ];
    let spec = at(volume, &["spec"]).unwrap_or(&Value::Null);
    let mut found = Vec::new();
    if text(spec, &["persistentVolumeReclaimPolicy"]) == "Recycle" {
        let why = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use \
                   dynamic provisioning.";
        found.push(format!("spec.persistentVolumeReclaimPolicy: {why}"));
    }
    let terms = items(spec, &["nodeAffinity", "required", "nodeSelectorTerms"]);
    for (index, term) in terms.iter().enumerate() {
        let field = format!("spec.nodeAffinity.required.nodeSelectorTerms[{index}]");
        node_term(term, false, &field, &mut found);
    }
    let removed = REMOVED.iter().filter(|(source, _, _)| at(spec, &[source]).is_some());
    found.extend(removed.map(|(_, shown, why)| format!("spec.{shown}: {why}")));
    found
}

fn cells(view: View<'_>) -> Vec<Value> {
    let claim = match (view.str("/spec/claimRef/namespace"), view.str("/spec/claimRef/name")) {
        ("", "") => String::new(),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    view.named(vec![
        view.text("/spec/capacity/storage"),
        json!(short_modes(view.list("/spec/accessModes"))),
        view.text("/spec/persistentVolumeReclaimPolicy"),
        phase(view),
        json!(claim),
        view.text("/spec/storageClassName"),
        or_unset(view, "/spec/volumeAttributesClassName"),
        view.text("/status/reason"),
        view.age(),
        or_unset(view, "/spec/volumeMode"),
    ])
}
