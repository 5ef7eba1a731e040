//! What the server's own admission plugins do, as functions of the object and of what is stored.

pub mod limits;
pub mod pod_security;
pub mod quota;

use std::cmp::Reverse;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::builtin::quantity::Quantity;
use crate::builtin::value::{at, flag, int, items, objects_mut, text};
use crate::error::ApiError;
use crate::object;
use crate::resource::{Resource, Surroundings};

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const TOKEN_VOLUME: &str = "kube-api-access-";
/// Lifetime of mounted tokens: an hour and seven seconds, by which the server tells them from others.
const TOKEN_SECONDS: i64 = 3607;
/// How long a Pod stays on a node that is not ready or not reachable.
const TOLERATION_SECONDS: i64 = 300;

fn forbidden(resource: &Resource, pod: &Value, why: &str) -> ApiError {
    let name = match object::name(pod) {
        "" => object::meta_str(pod, "generateName"),
        name => name,
    };
    ApiError::forbidden(resource.names(), name, why)
}

fn spec_mut(object: &mut Value) -> &mut Map<String, Value> {
    object::as_map(object::child(object, "spec"))
}

/// The account that a Pod runs as: it must exist, and its token is mounted (`ServiceAccount`).
pub fn service_account(
    resource: &Resource,
    pod: &mut Value,
    around: &mut Surroundings<'_>,
) -> Result<(), ApiError> {
    if at(pod, &["metadata", "annotations", "kubernetes.io/config.mirror"]).is_some() {
        return Ok(());
    }
    if text(pod, &["spec", "serviceAccountName"]).is_empty() {
        spec_mut(pod).insert("serviceAccountName".to_owned(), json!("default"));
        spec_mut(pod).insert("serviceAccount".to_owned(), json!("default"));
    }
    let name = text(pod, &["spec", "serviceAccountName"]).to_owned();
    let namespace = object::namespace(pod).to_owned();
    let accounts = (around.stored)("/serviceaccounts");
    let found =
        |one: &&Arc<Value>| object::namespace(one) == namespace && object::name(one) == name;
    let Some(account) = accounts.iter().find(found) else {
        let why = format!(
            "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
        );
        return Err(forbidden(resource, pod, &why));
    };
    let automount = at(pod, &["spec", "automountServiceAccountToken"])
        .or_else(|| at(account, &["automountServiceAccountToken"]));
    if automount != Some(&Value::Bool(false)) {
        mount_token(pod, around);
    }
    let secrets = items(account, &["imagePullSecrets"]);
    if items(pod, &["spec", "imagePullSecrets"]).is_empty() && !secrets.is_empty() {
        spec_mut(pod).insert("imagePullSecrets".to_owned(), json!(secrets));
    }
    Ok(())
}

/// Mounts the account's token into every container that has nothing else there.
fn mount_token(pod: &mut Value, around: &mut Surroundings<'_>) {
    let volumes = items(pod, &["spec", "volumes"]);
    let existing =
        volumes.iter().map(|one| text(one, &["name"])).find(|name| name.starts_with(TOKEN_VOLUME));
    let (name, exists) = match existing {
        Some(name) => (name.to_owned(), true),
        None => (format!("{TOKEN_VOLUME}{}", suffix(around)), false),
    };
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        for container in objects_mut(spec_mut(pod).get_mut(list)) {
            let mounts = container.entry("volumeMounts").or_insert_with(|| json!([]));
            let Some(mounts) = mounts.as_array_mut() else { continue };
            if mounts.iter().all(|mount| text(mount, &["mountPath"]) != TOKEN_PATH) {
                mounts.push(json!({ "name": name, "readOnly": true, "mountPath": TOKEN_PATH }));
                mounted = true;
            }
        }
    }
    if mounted && !exists {
        let volumes = spec_mut(pod).entry("volumes").or_insert_with(|| json!([]));
        if let Some(volumes) = volumes.as_array_mut() {
            volumes.push(token_volume(&name));
        }
    }
}

fn token_volume(name: &str) -> Value {
    let namespace = json!({ "apiVersion": "v1", "fieldPath": "metadata.namespace" });
    json!({ "name": name, "projected": { "defaultMode": 0o644, "sources": [
        { "serviceAccountToken": { "expirationSeconds": TOKEN_SECONDS, "path": "token" } },
        { "configMap": {
            "name": "kube-root-ca.crt",
            "items": [{ "key": "ca.crt", "path": "ca.crt" }],
        } },
        { "downwardAPI": { "items": [{ "path": "namespace", "fieldRef": namespace }] } },
    ] } })
}

/// Five characters as the server appends them to names.
fn suffix(around: &mut Surroundings<'_>) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut one = || {
        let index = usize::try_from((around.random)() % 27).unwrap_or_default();
        char::from(ALPHABET.get(index).copied().unwrap_or(b'x'))
    };
    (0..5).map(|_| one()).collect()
}

/// The priority that a new Pod's class means (`Priority`).
pub fn priority(
    resource: &Resource,
    pod: &mut Value,
    around: &mut Surroundings<'_>,
) -> Result<(), ApiError> {
    let mut class = text(pod, &["spec", "priorityClassName"]).to_owned();
    let classes = (around.stored)("scheduling.k8s.io/priorityclasses");
    let (priority, policy) = if class.is_empty() {
        let defaults = classes.iter().filter(|one| flag(one, &["globalDefault"]));
        match defaults.min_by_key(|one| int(one, &["value"]).unwrap_or_default()) {
            Some(found) => {
                object::name(found).clone_into(&mut class);
                (int(found, &["value"]).unwrap_or_default(), policy_of(found))
            }
            None => (0, "PreemptLowerPriority".to_owned()),
        }
    } else if let Some(found) = classes.iter().find(|one| object::name(one) == class) {
        (int(found, &["value"]).unwrap_or_default(), policy_of(found))
    } else {
        let system = match class.as_str() {
            "system-node-critical" => Some(2_000_001_000),
            "system-cluster-critical" => Some(2_000_000_000),
            _ => None,
        };
        let Some(value) = system else {
            let why = format!("no PriorityClass with name {class} was found");
            return Err(forbidden(resource, pod, &why));
        };
        (value, "PreemptLowerPriority".to_owned())
    };
    if let Some(given) = int(pod, &["spec", "priority"]).filter(|given| *given != priority) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority \
             admission controller computed {priority} from the given PriorityClass name"
        );
        return Err(forbidden(resource, pod, &why));
    }
    let given = text(pod, &["spec", "preemptionPolicy"]);
    if !given.is_empty() && given != policy {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority \
             admission controller computed {policy} from the given PriorityClass name"
        );
        return Err(forbidden(resource, pod, &why));
    }
    let spec = spec_mut(pod);
    if !class.is_empty() {
        spec.insert("priorityClassName".to_owned(), json!(class));
    }
    spec.insert("priority".to_owned(), json!(priority));
    spec.insert("preemptionPolicy".to_owned(), json!(policy));
    Ok(())
}

fn policy_of(class: &Value) -> String {
    match text(class, &["preemptionPolicy"]) {
        "" => "PreemptLowerPriority".to_owned(),
        policy => policy.to_owned(),
    }
}

/// Keeps the priority of a Pod whose update does not name it (`Priority`).
pub fn keep_priority(pod: &mut Value, old: &Value) {
    for field in ["priority", "preemptionPolicy"] {
        if at(pod, &["spec", field]).is_none()
            && let Some(value) = at(old, &["spec", field])
        {
            object::set_path(pod, &format!("spec.{field}"), value.clone());
        }
    }
}

/// For how long a Pod stays on a Node that fails, if it does not say (`DefaultTolerationSeconds`).
pub fn default_tolerations(pod: &mut Value) {
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = items(pod, &["spec", "tolerations"]).iter().any(|one| {
            let same_key = matches!(text(one, &["key"]), "") || text(one, &["key"]) == key;
            same_key && matches!(text(one, &["effect"]), "" | "NoExecute")
        });
        if tolerated {
            continue;
        }
        let list = spec_mut(pod).entry("tolerations").or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            list.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": TOLERATION_SECONDS,
            }));
        }
    }
}

/// Gives a new Ingress without a class the default one (`DefaultIngressClass`): of several the newest,
/// of equally old ones the first by name.
pub fn default_ingress_class(ingress: &mut Value, classes: &[Arc<Value>]) {
    let older = "kubernetes.io/ingress.class";
    default_class(ingress, classes, "ingressClassName", older, is_default_ingress_class);
}

/// Gives a new claim without a class the default one (`DefaultStorageClass`), chosen as for an Ingress.
pub fn default_storage_class(claim: &mut Value, classes: &[Arc<Value>]) {
    let older = "volume.beta.kubernetes.io/storage-class";
    default_class(claim, classes, "storageClassName", older, is_default_storage_class);
}

fn is_default_ingress_class(class: &Value) -> bool {
    annotation(class, "ingressclass.kubernetes.io/is-default-class") == Some("true")
}

/// By today's annotation or the older one.
fn is_default_storage_class(class: &Value) -> bool {
    ["storageclass.kubernetes.io", "storageclass.beta.kubernetes.io"]
        .iter()
        .any(|prefix| annotation(class, &format!("{prefix}/is-default-class")) == Some("true"))
}

fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    at(object, &["metadata", "annotations", key]).and_then(Value::as_str)
}

/// `older` is the annotation that named a class before the field did.
fn default_class(
    one: &mut Value,
    classes: &[Arc<Value>],
    field: &str,
    older: &str,
    is_default: fn(&Value) -> bool,
) {
    if at(one, &["spec", field]).is_some() || annotation(one, older).is_some() {
        return;
    }
    let newest = classes.iter().filter(|class| is_default(class)).max_by_key(|class| {
        (object::meta_str(class, "creationTimestamp"), Reverse(object::name(class)))
    });
    if let Some(class) = newest {
        spec_mut(one).insert(field.to_owned(), json!(object::name(class)));
    }
}

/// Why a claim may not ask for more than it has (`PersistentVolumeClaimResize`); `class` is the one of
/// its name.
#[must_use]
pub fn claim_growth_fault(
    claim: &Value,
    old: &Value,
    class: Option<&Value>,
) -> Option<&'static str> {
    let storage = |claim: &Value| {
        let amount = text(claim, &["spec", "resources", "requests", "storage"]);
        Quantity::parse(amount).map(Quantity::nanos).unwrap_or_default()
    };
    let named = |claim: &Value| text(claim, &["spec", "storageClassName"]).to_owned();
    if storage(claim) <= storage(old) {
        return None;
    }
    if text(old, &["status", "phase"]) != "Bound" {
        return Some("Only bound persistent volume claims can be expanded");
    }
    let allowed = class.is_some_and(|class| flag(class, &["allowVolumeExpansion"]));
    (!allowed || named(claim) != named(old)).then_some(
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
         support resize",
    )
}
