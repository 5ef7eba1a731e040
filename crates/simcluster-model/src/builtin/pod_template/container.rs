//! Validation of containers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::builtin::check::Faults;
use crate::builtin::quantity::Quantity;
use crate::builtin::value::{at, flag, int, items, text};
use crate::field::FieldError;
use crate::names;

/// What containers are checked against.
pub(in crate::builtin) struct Surrounding<'a> {
    /// Names of the Pod's volumes.
    pub(in crate::builtin) volumes: BTreeSet<&'a str>,
    /// The Pod's grace period.
    pub(in crate::builtin) grace_period: i64,
}

/// The containers of a Pod; there must be one.
pub(in crate::builtin) fn containers(
    list: &[Value],
    path: &str,
    around: &Surrounding<'_>,
    faults: &mut Faults,
) {
    if list.is_empty() {
        faults.required(path, "");
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, container) in list.iter().enumerate() {
        let here = format!("{path}[{index}]");
        common(container, &here, around, faults);
        let name = text(container, &["name"]);
        if !seen.insert(name) {
            faults.duplicate(format!("{here}.name"), &json!(name));
        }
        lifecycle_and_probes(container, &here, around, faults);
        if let Some(policy) = at(container, &["restartPolicy"]) {
            let policy = policy.as_str().unwrap_or_default();
            faults.one_of(
                format!("{here}.restartPolicy"),
                policy,
                &["Always", "Never", "OnFailure"],
            );
        }
    }
    host_ports(list, path, faults);
}

/// The init containers of a Pod.
pub(in crate::builtin) fn init_containers(
    list: &[Value],
    regular: &[Value],
    path: &str,
    around: &Surrounding<'_>,
    faults: &mut Faults,
) {
    let mut seen: BTreeSet<&str> = regular.iter().map(|one| text(one, &["name"])).collect();
    for (index, container) in list.iter().enumerate() {
        let here = format!("{path}[{index}]");
        common(container, &here, around, faults);
        let name = text(container, &["name"]);
        if seen.contains(name) {
            faults.duplicate(format!("{here}.name"), &json!(name));
        } else if !name.is_empty() {
            seen.insert(name);
        }
        host_ports(std::slice::from_ref(container), path, faults);
        if text(container, &["restartPolicy"]) == "Always" {
            lifecycle_and_probes(container, &here, around, faults);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if at(container, &[field]).is_some() {
                let why = "may not be set for init containers without restartPolicy=Always";
                faults.forbidden(format!("{here}.{field}"), why);
            }
        }
    }
}

fn common(container: &Value, path: &str, around: &Surrounding<'_>, faults: &mut Faults) {
    let name = text(container, &["name"]);
    let field = format!("{path}.name");
    if name.is_empty() {
        faults.required(field, "");
    } else {
        faults.texts(&field, name, names::dns1123_label(name));
    }
    if text(container, &["image"]).is_empty() {
        faults.required(format!("{path}.image"), "");
    }
    let policy = text(container, &["terminationMessagePolicy"]);
    let policies = ["File", "FallbackToLogsOnError"];
    faults.one_of(format!("{path}.terminationMessagePolicy"), policy, &policies);
    ports(items(container, &["ports"]), &format!("{path}.ports"), faults);
    env(items(container, &["env"]), &format!("{path}.env"), faults);
    env_from(items(container, &["envFrom"]), &format!("{path}.envFrom"), faults);
    volume_mounts(
        items(container, &["volumeMounts"]),
        &format!("{path}.volumeMounts"),
        around,
        faults,
    );
    let policy = text(container, &["imagePullPolicy"]);
    faults.one_of(format!("{path}.imagePullPolicy"), policy, &["Always", "IfNotPresent", "Never"]);
    resources(at(container, &["resources"]), &format!("{path}.resources"), faults);
    security(at(container, &["securityContext"]), &format!("{path}.securityContext"), faults);
}

fn ports(list: &[Value], path: &str, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    for (index, port) in list.iter().enumerate() {
        let here = format!("{path}[{index}]");
        let name = text(port, &["name"]);
        let wrong = names::port_name(name);
        if !name.is_empty() && !wrong.is_empty() {
            faults.texts(&format!("{here}.name"), name, wrong);
        } else if !name.is_empty() && !seen.insert(name) {
            faults.duplicate(format!("{here}.name"), &json!(name));
        }
        let field = format!("{here}.containerPort");
        match int(port, &["containerPort"]).unwrap_or_default() {
            0 => faults.required(field, ""),
            number => number_in_range(number, &field, faults),
        }
        let host = int(port, &["hostPort"]).unwrap_or_default();
        if host != 0 {
            number_in_range(host, &format!("{here}.hostPort"), faults);
        }
        let protocol = text(port, &["protocol"]);
        faults.one_of(format!("{here}.protocol"), protocol, &["SCTP", "TCP", "UDP"]);
    }
}

fn number_in_range(number: i64, field: &str, faults: &mut Faults) {
    for why in names::port_number(number) {
        faults.invalid(field, &json!(number), &why);
    }
}

fn host_ports(list: &[Value], path: &str, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    for (index, container) in list.iter().enumerate() {
        for (position, port) in items(container, &["ports"]).iter().enumerate() {
            let Some(number) = int(port, &["hostPort"]).filter(|number| *number != 0) else {
                continue;
            };
            let key = format!("{}/{}/{number}", text(port, &["protocol"]), text(port, &["hostIP"]));
            if !seen.insert(key.clone()) {
                let field = format!("{path}[{index}].ports[{position}].hostPort");
                faults.duplicate(field, &json!(key));
            }
        }
    }
}

fn env(list: &[Value], path: &str, faults: &mut Faults) {
    for (index, variable) in list.iter().enumerate() {
        let here = format!("{path}[{index}]");
        let name = text(variable, &["name"]);
        let field = format!("{here}.name");
        if name.is_empty() {
            faults.required(field, "");
        } else {
            faults.texts(&field, name, names::env_var(name));
        }
        if let Some(source) = at(variable, &["valueFrom"]) {
            let filled = !text(variable, &["value"]).is_empty();
            env_source(source, filled, &format!("{here}.valueFrom"), faults);
        }
    }
}

fn env_source(source: &Value, has_value: bool, path: &str, faults: &mut Faults) {
    let kinds = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    if let Some(reference) = at(source, &["fieldRef"]) {
        field_reference(reference, &format!("{path}.fieldRef"), faults);
    }
    for kind in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(reference) = at(source, &[kind]) {
            key_reference(reference, &format!("{path}.{kind}"), faults);
        }
    }
    let count = kinds.iter().filter(|kind| at(source, &[**kind]).is_some()).count();
    let why = if count == 0 {
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or \
         `fileKeyRef`"
    } else if has_value {
        "may not be specified when `value` is not empty"
    } else if count > 1 {
        "may not have more than one field specified at a time"
    } else {
        return;
    };
    faults.invalid(path, &json!(""), why);
}

fn field_reference(reference: &Value, path: &str, faults: &mut Faults) {
    const SUPPORTED: [&str; 9] = [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ];
    const CONVERTED: [&str; 6] = [
        "metadata.annotations",
        "metadata.labels",
        "spec.host",
        "spec.restartPolicy",
        "spec.schedulerName",
        "status.phase",
    ];
    let field = text(reference, &["fieldPath"]);
    let annotated = ["metadata.annotations['", "metadata.labels['"]
        .iter()
        .any(|prefix| field.starts_with(prefix) && field.ends_with("']"));
    if !annotated && !field.is_empty() && !SUPPORTED.contains(&field) && !CONVERTED.contains(&field)
    {
        let why = format!("error converting fieldPath: field label not supported: {field}");
        faults.invalid(format!("{path}.fieldPath"), &json!(field), &why);
    } else if !annotated {
        faults.one_of(format!("{path}.fieldPath"), field, &SUPPORTED);
    }
}

fn key_reference(reference: &Value, path: &str, faults: &mut Faults) {
    let name = text(reference, &["name"]);
    faults.texts(&format!("{path}.name"), name, names::dns1123_subdomain(name));
    let key = text(reference, &["key"]);
    let field = format!("{path}.key");
    if key.is_empty() {
        faults.required(field, "");
    } else {
        faults.texts(&field, key, names::config_key(key));
    }
}

fn env_from(list: &[Value], path: &str, faults: &mut Faults) {
    for (index, source) in list.iter().enumerate() {
        let here = format!("{path}[{index}]");
        let prefix = text(source, &["prefix"]);
        if !prefix.is_empty() {
            faults.texts(&format!("{here}.prefix"), prefix, names::env_var(prefix));
        }
        let mut count = 0;
        for kind in ["configMapRef", "secretRef"] {
            let Some(reference) = at(source, &[kind]) else { continue };
            count += 1;
            let field = format!("{here}.{kind}.name");
            match text(reference, &["name"]) {
                "" => faults.required(field, ""),
                name => {
                    let masked = names::mask_trailing_dash(name);
                    faults.texts(&field, name, names::dns1123_subdomain(&masked));
                }
            }
        }
        if count == 0 {
            faults.invalid(path, &json!(""), "must specify one of: `configMapRef` or `secretRef`");
        } else if count > 1 {
            let why = "may not have more than one field specified at a time";
            faults.invalid(path, &json!(""), why);
        }
    }
}

fn volume_mounts(list: &[Value], path: &str, around: &Surrounding<'_>, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    for (index, mount) in list.iter().enumerate() {
        let here = format!("{path}[{index}]");
        let name = text(mount, &["name"]);
        if name.is_empty() {
            faults.required(format!("{here}.name"), "");
        }
        if !around.volumes.contains(name) {
            faults.add(FieldError::not_found(format!("{here}.name"), &json!(name)));
        }
        let target = text(mount, &["mountPath"]);
        if target.is_empty() {
            faults.required(format!("{here}.mountPath"), "");
        }
        if !seen.insert(target) {
            faults.invalid(format!("{here}.mountPath"), &json!(target), "must be unique");
        }
        for field in ["subPath", "subPathExpr"] {
            local_path(text(mount, &[field]), &format!("{path}.{field}"), faults);
        }
    }
}

/// A path below a volume: relative, and never upwards.
fn local_path(value: &str, field: &str, faults: &mut Faults) {
    if value.starts_with('/') {
        faults.invalid(field, &json!(value), "must be a relative path");
    }
    if value.split('/').any(|part| part == "..") {
        faults.invalid(field, &json!(value), "must not contain '..'");
    }
}

fn resources(resources: Option<&Value>, path: &str, faults: &mut Faults) {
    let Some(resources) = resources else { return };
    let amounts = |list: &str| -> BTreeMap<&str, &str> {
        let map = at(resources, &[list]).and_then(Value::as_object).into_iter().flatten();
        map.map(|(name, amount)| (name.as_str(), amount.as_str().unwrap_or_default())).collect()
    };
    let (limits, requests) = (amounts("limits"), amounts("requests"));
    for (name, amount) in &limits {
        resource_amount(name, amount, &format!("{path}.limits[{name}]"), faults);
    }
    for (name, amount) in &requests {
        resource_amount(name, amount, &format!("{path}.requests[{name}]"), faults);
        let nanos = |text: &str| Quantity::parse(text).map(Quantity::nanos).unwrap_or_default();
        let overcommits = !name.contains('/') && !name.starts_with("hugepages-");
        match limits.get(name) {
            Some(limit) if !overcommits && nanos(amount) != nanos(limit) => {
                let why = format!("must be equal to {name} limit of {limit}");
                faults.invalid(format!("{path}.requests"), &json!(amount), &why);
            }
            Some(limit) if nanos(amount) > nanos(limit) => {
                let why = format!("must be less than or equal to {name} limit of {limit}");
                faults.invalid(format!("{path}.requests"), &json!(amount), &why);
            }
            None if !overcommits => {
                let why = "Limit must be set for non overcommitable resources";
                faults.required(format!("{path}.limits"), why);
            }
            _ => {}
        }
    }
}

fn resource_amount(name: &str, amount: &str, path: &str, faults: &mut Faults) {
    let wrong = names::qualified_name(name);
    if !wrong.is_empty() {
        faults.texts(path, name, wrong);
    } else if !name.contains('/') {
        let of_containers = ["cpu", "memory", "ephemeral-storage"].contains(&name);
        let of_others = [
            "pods",
            "services",
            "storage",
            "replicationcontrollers",
            "resourcequotas",
            "secrets",
            "configmaps",
            "persistentvolumeclaims",
        ];
        if !of_containers && !name.starts_with("hugepages-") {
            if !of_others.contains(&name) && !name.starts_with("requests.") {
                let why = "must be a standard resource type or fully qualified";
                faults.invalid(path, &json!(name), why);
            }
            faults.invalid(path, &json!(name), "must be a standard resource for containers");
        }
    }
    let Ok(quantity) = Quantity::parse(amount) else { return };
    if quantity.nanos() < 0 {
        faults.invalid(path, &json!(amount), "must be greater than or equal to 0");
    }
    if name.contains('/') && quantity.nanos() % 1_000_000_000 != 0 {
        faults.invalid(path, &json!(amount), "must be an integer");
    }
}

/// Whether an id of a user or a group is one.
pub(super) fn id(field: &str, id: Option<i64>, faults: &mut Faults) {
    let Some(id) = id else { return };
    for why in names::in_range(id, 0, i64::from(i32::MAX)) {
        faults.invalid(field, &json!(id), &why);
    }
}

/// A field: its name in Go, its name in JSON, and the fields in it.
struct GoField(&'static str, &'static str, &'static [GoField]);

/// The fields of a container's security context, in the order of the internal type.
const CONTEXT: &[GoField] = {
    const PROFILE: &[GoField] =
        &[GoField("Type", "type", &[]), GoField("LocalhostProfile", "localhostProfile", &[])];
    &[
        GoField(
            "Capabilities",
            "capabilities",
            &[GoField("Add", "add", &[]), GoField("Drop", "drop", &[])],
        ),
        GoField("Privileged", "privileged", &[]),
        GoField(
            "SELinuxOptions",
            "seLinuxOptions",
            &[
                GoField("User", "user", &[]),
                GoField("Role", "role", &[]),
                GoField("Type", "type", &[]),
                GoField("Level", "level", &[]),
            ],
        ),
        GoField(
            "WindowsOptions",
            "windowsOptions",
            &[
                GoField("GMSACredentialSpecName", "gmsaCredentialSpecName", &[]),
                GoField("GMSACredentialSpec", "gmsaCredentialSpec", &[]),
                GoField("RunAsUserName", "runAsUserName", &[]),
                GoField("HostProcess", "hostProcess", &[]),
            ],
        ),
        GoField("RunAsUser", "runAsUser", &[]),
        GoField("RunAsGroup", "runAsGroup", &[]),
        GoField("RunAsNonRoot", "runAsNonRoot", &[]),
        GoField("ReadOnlyRootFilesystem", "readOnlyRootFilesystem", &[]),
        GoField("AllowPrivilegeEscalation", "allowPrivilegeEscalation", &[]),
        GoField("ProcMount", "procMount", &[]),
        GoField("SeccompProfile", "seccompProfile", PROFILE),
        GoField("AppArmorProfile", "appArmorProfile", PROFILE),
    ]
};

/// A value as the server prints its internal type: all fields, with the names that they have in Go.
fn shown_in_go(value: &Value, fields: &[GoField]) -> String {
    if !value.is_object() || fields.is_empty() {
        return value.to_string();
    }
    let shown = fields.iter().map(|GoField(go, json, inner)| {
        let value = value.get(json).unwrap_or(&Value::Null);
        format!("\"{go}\":{}", shown_in_go(value, inner))
    });
    format!("{{{}}}", shown.collect::<Vec<_>>().join(","))
}

fn security(context: Option<&Value>, path: &str, faults: &mut Faults) {
    let Some(context) = context else { return };
    for field in ["runAsUser", "runAsGroup"] {
        id(&format!("{path}.{field}"), int(context, &[field]), faults);
    }
    let added = items(context, &["capabilities", "add"]);
    if at(context, &["allowPrivilegeEscalation"]) == Some(&Value::Bool(false)) {
        if flag(context, &["privileged"]) {
            let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            faults.invalid_shown(path, &shown_in_go(context, CONTEXT), why);
        }
        if added.contains(&json!("CAP_SYS_ADMIN")) {
            let why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` \
                       CAP_SYS_ADMIN";
            faults.invalid_shown(path, &shown_in_go(context, CONTEXT), why);
        }
    }
}

fn lifecycle_and_probes(
    container: &Value,
    path: &str,
    around: &Surrounding<'_>,
    faults: &mut Faults,
) {
    for hook in ["postStart", "preStop"] {
        if let Some(handler) = at(container, &["lifecycle", hook]) {
            handlers(handler, &format!("{path}.lifecycle.{hook}"), around, faults);
        }
    }
    for kind in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = at(container, &[kind]) else { continue };
        let here = format!("{path}.{kind}");
        handlers(probe, &here, around, faults);
        for field in [
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ] {
            faults.not_negative(format!("{here}.{field}"), int(probe, &[field]));
        }
        let period = int(probe, &["terminationGracePeriodSeconds"]);
        let field = format!("{here}.terminationGracePeriodSeconds");
        if let Some(period) = period.filter(|period| *period <= 0) {
            faults.invalid(field.as_str(), &json!(period), "must be greater than 0");
        }
        if kind == "readinessProbe" {
            if let Some(period) = period {
                faults.invalid(field, &json!(period), "must not be set for readinessProbes");
            }
        } else if let Some(count) = int(probe, &["successThreshold"]).filter(|count| *count != 1) {
            faults.invalid(format!("{here}.successThreshold"), &json!(count), "must be 1");
        }
    }
}

/// Exactly one way to act.
fn handlers(handler: &Value, path: &str, around: &Surrounding<'_>, faults: &mut Faults) {
    let mut found = false;
    for kind in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let Some(action) = at(handler, &[kind]) else { continue };
        let here = format!("{path}.{kind}");
        if found {
            faults.forbidden(here, "may not specify more than 1 handler type");
            continue;
        }
        found = true;
        match kind {
            "exec" => {
                if items(action, &["command"]).is_empty() {
                    faults.required(format!("{here}.command"), "");
                }
            }
            "httpGet" => {
                if text(action, &["path"]).is_empty() {
                    faults.required(format!("{here}.path"), "");
                }
                faults.port(&format!("{here}.port"), at(action, &["port"]));
                let scheme = text(action, &["scheme"]);
                faults.one_of(format!("{here}.scheme"), scheme, &["HTTP", "HTTPS"]);
            }
            "sleep" => {
                let seconds = int(action, &["seconds"]).unwrap_or_default();
                if seconds < 0 || seconds > around.grace_period {
                    let why = format!(
                        "must be non-negative and less than terminationGracePeriodSeconds ({})",
                        around.grace_period
                    );
                    faults.invalid(here, &json!(seconds), &why);
                }
            }
            _ => faults.port(&format!("{here}.port"), at(action, &["port"])),
        }
    }
    if !found {
        faults.required(path, "must specify a handler type");
    }
}
