//! The Pod Security Standards in their latest version (`k8s.io/pod-security-admission/policy`).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::builtin::value::{at, flag, int, items, text};
use crate::object;

/// How much a Pod may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Everything.
    Privileged,
    /// Nothing that is known to lead out of a container.
    Baseline,
    /// What good practice allows.
    Restricted,
}

impl Level {
    /// The level of a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "privileged" => Self::Privileged,
            "baseline" => Self::Baseline,
            "restricted" => Self::Restricted,
            _ => return None,
        })
    }

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }
}

/// A check that failed: why, and what in the Pod does it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What is wrong.
    pub reason: String,
    /// Where.
    pub detail: String,
}

impl Violation {
    fn new(reason: &str, detail: String) -> Self {
        Self { reason: reason.to_owned(), detail }
    }
}

/// What a Pod, or a template of one, does beyond a level.
#[must_use]
pub fn violations(level: Level, pod: &Value) -> Vec<Violation> {
    type Check = fn(&Value) -> Option<Violation>;
    let baseline: [(Check, bool); 12] = [
        (app_armor, true),
        (capabilities, false),
        (host_namespaces, true),
        (host_paths, false),
        (host_ports, true),
        (probe_hosts, true),
        (privileged, true),
        (proc_mount, true),
        (selinux, true),
        (seccomp_baseline, false),
        (sysctls, true),
        (host_process, true),
    ];
    let restricted: [Check; 6] =
        [privilege_escalation, dropped_capabilities, volumes, non_root, root_user, seccomp];
    let (wanted, more): (Vec<Check>, &[Check]) = match level {
        Level::Privileged => (Vec::new(), &[]),
        Level::Baseline => (baseline.iter().map(|(check, _)| *check).collect(), &[]),
        // Some checks are stricter here, and replace those of the baseline.
        Level::Restricted => {
            let kept = baseline.iter().filter(|(_, kept)| *kept);
            (kept.map(|(check, _)| *check).collect(), &restricted)
        }
    };
    wanted.iter().chain(more).filter_map(|check| check(pod)).collect()
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    lists.into_iter().flat_map(|list| items(pod, &["spec", list]))
}

/// Names of the containers for which something holds.
fn named(pod: &Value, bad: impl Fn(&Value) -> bool) -> Vec<&str> {
    containers(pod).filter(|one| bad(one)).map(|one| text(one, &["name"])).collect()
}

fn quoted<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<String> =
        names.into_iter().map(|name| format!("\"{}\"", name.as_ref())).collect();
    names.join(", ")
}

fn plural<'a>(one: &'a str, many: &'a str, count: usize) -> &'a str {
    if count == 1 { one } else { many }
}

fn the_containers(names: &[&str]) -> String {
    format!("{} {}", plural("container", "containers", names.len()), quoted(names))
}

/// Who sets something: the Pod, some containers, or both.
fn setters(pod: bool, containers: &[&str]) -> Option<String> {
    let mut parts = Vec::new();
    if pod {
        parts.push("pod".to_owned());
    }
    if !containers.is_empty() {
        parts.push(the_containers(containers));
    }
    (!parts.is_empty()).then(|| parts.join(" and "))
}

const CONTEXT: &str = "securityContext";

fn pod_context<'a>(pod: &'a Value, field: &str) -> Option<&'a Value> {
    at(pod, &["spec", CONTEXT, field])
}

fn is_windows(pod: &Value) -> bool {
    text(pod, &["spec", "os", "name"]) == "windows"
}

fn has_own_users(pod: &Value) -> bool {
    at(pod, &["spec", "hostUsers"]) == Some(&Value::Bool(false))
}

fn app_armor(pod: &Value) -> Option<Violation> {
    const PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
    let kind = |context: Option<&Value>| {
        let kind = text(context?, &["type"]);
        (!matches!(kind, "RuntimeDefault" | "Localhost")).then(|| kind.to_owned())
    };
    let of_pod = kind(pod_context(pod, "appArmorProfile"));
    let of = |one: &Value| kind(at(one, &[CONTEXT, "appArmorProfile"]));
    let bad = named(pod, |one| of(one).is_some());
    let values: BTreeSet<String> =
        of_pod.iter().cloned().chain(containers(pod).filter_map(of)).collect();
    let mut values: Vec<String> = values.into_iter().collect();
    let mut parts: Vec<String> = setters(of_pod.is_some(), &bad).into_iter().collect();
    let annotations = object::metadata(pod).get("annotations").and_then(Value::as_object);
    let allowed =
        |value: &str| matches!(value, "" | "runtime/default") || value.starts_with("localhost/");
    let forbidden: Vec<String> = annotations
        .into_iter()
        .flatten()
        .filter(|(key, value)| {
            key.starts_with(PREFIX) && !allowed(value.as_str().unwrap_or_default())
        })
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    if !forbidden.is_empty() {
        parts.push(plural("annotation", "annotations", forbidden.len()).to_owned());
        values.extend(forbidden);
    }
    if parts.is_empty() {
        return None;
    }
    let reason = plural("forbidden AppArmor profile", "forbidden AppArmor profiles", values.len());
    let detail =
        format!("{} must not set AppArmor profile type to {}", parts.join(" and "), quoted(values));
    Some(Violation::new(reason, detail))
}

/// Capabilities that containers add beyond some, and the containers.
fn added<'a>(pod: &'a Value, allowed: &[&str]) -> (Vec<&'a str>, BTreeSet<String>) {
    let bad = |one: &Value| -> Vec<String> {
        let added = items(one, &[CONTEXT, "capabilities", "add"]).iter();
        let added = added.filter_map(Value::as_str).filter(|name| !allowed.contains(name));
        added.map(str::to_owned).collect()
    };
    let names = named(pod, |one| !bad(one).is_empty());
    (names, containers(pod).flat_map(bad).collect())
}

fn capabilities(pod: &Value) -> Option<Violation> {
    const ALLOWED: [&str; 13] = [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ];
    let (bad, names) = added(pod, &ALLOWED);
    let detail = || {
        let (who, what) = (the_containers(&bad), quoted(&names));
        format!("{who} must not include {what} in securityContext.capabilities.add")
    };
    (!bad.is_empty()).then(|| Violation::new("non-default capabilities", detail()))
}

fn host_namespaces(pod: &Value) -> Option<Violation> {
    let fields = ["hostNetwork", "hostPID", "hostIPC"];
    let set: Vec<String> = fields
        .iter()
        .filter(|field| flag(pod, &["spec", field]))
        .map(|field| format!("{field}=true"))
        .collect();
    (!set.is_empty()).then(|| Violation::new("host namespaces", set.join(", ")))
}

fn host_paths(pod: &Value) -> Option<Violation> {
    let volumes = items(pod, &["spec", "volumes"]).iter();
    let bad: Vec<&str> = volumes
        .filter(|one| at(one, &["hostPath"]).is_some())
        .map(|one| text(one, &["name"]))
        .collect();
    let detail = format!("{} {}", plural("volume", "volumes", bad.len()), quoted(&bad));
    (!bad.is_empty()).then(|| Violation::new("hostPath volumes", detail))
}

fn host_ports(pod: &Value) -> Option<Violation> {
    let ports = |one: &Value| -> Vec<String> {
        let ports = items(one, &["ports"]).iter().filter_map(|port| int(port, &["hostPort"]));
        ports.filter(|port| *port != 0).map(|port| port.to_string()).collect()
    };
    let bad = named(pod, |one| !ports(one).is_empty());
    let all: BTreeSet<String> = containers(pod).flat_map(ports).collect();
    let detail = || {
        let listed: Vec<&str> = all.iter().map(String::as_str).collect();
        let uses = plural("uses", "use", bad.len());
        let what = plural("hostPort", "hostPorts", all.len());
        format!("{} {uses} {what} {}", the_containers(&bad), listed.join(", "))
    };
    (!bad.is_empty()).then(|| Violation::new("hostPort", detail()))
}

fn probe_hosts(pod: &Value) -> Option<Violation> {
    const PLACES: [&[&str]; 5] = [
        &["livenessProbe"],
        &["readinessProbe"],
        &["startupProbe"],
        &["lifecycle", "postStart"],
        &["lifecycle", "preStop"],
    ];
    let hosts = |one: &Value| -> Vec<String> {
        let handlers = PLACES.iter().filter_map(|place| at(one, place));
        handlers
            .flat_map(|handler| {
                ["httpGet", "tcpSocket"].map(|kind| text(handler, &[kind, "host"]).to_owned())
            })
            .filter(|host| !host.is_empty())
            .collect()
    };
    let mut bad = named(pod, |one| !hosts(one).is_empty());
    bad.sort_unstable();
    let all: BTreeSet<String> = containers(pod).flat_map(hosts).collect();
    let detail = || {
        let uses = plural("uses", "use", bad.len());
        let what = plural("probe or lifecycle host", "probe or lifecycle hosts", all.len());
        format!("{} {uses} {what} {}", the_containers(&bad), quoted(&all))
    };
    (!bad.is_empty()).then(|| Violation::new("probe or lifecycle host", detail()))
}

fn privileged(pod: &Value) -> Option<Violation> {
    let bad = named(pod, |one| flag(one, &[CONTEXT, "privileged"]));
    let detail =
        || format!("{} must not set securityContext.privileged=true", the_containers(&bad));
    (!bad.is_empty()).then(|| Violation::new("privileged", detail()))
}

fn proc_mount(pod: &Value) -> Option<Violation> {
    if has_own_users(pod) {
        return None;
    }
    let kind = |one: &Value| text(one, &[CONTEXT, "procMount"]).to_owned();
    let is_bad = |one: &Value| !matches!(kind(one).as_str(), "" | "Default");
    let bad = named(pod, is_bad);
    let kinds: BTreeSet<String> = containers(pod).filter(|one| is_bad(one)).map(kind).collect();
    let detail = || {
        let (who, what) = (the_containers(&bad), quoted(&kinds));
        format!("{who} must not set securityContext.procMount to {what}")
    };
    (!bad.is_empty()).then(|| Violation::new("procMount", detail()))
}

fn selinux(pod: &Value) -> Option<Violation> {
    const TYPES: [&str; 5] =
        ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];
    let is_bad = |options: &Value| {
        !TYPES.contains(&text(options, &["type"]))
            || !text(options, &["user"]).is_empty()
            || !text(options, &["role"]).is_empty()
    };
    let of_pod = pod_context(pod, "seLinuxOptions");
    let bad = named(pod, |one| at(one, &[CONTEXT, "seLinuxOptions"]).is_some_and(is_bad));
    let who = setters(of_pod.is_some_and(is_bad), &bad)?;
    let of_containers = containers(pod).filter_map(|one| at(one, &[CONTEXT, "seLinuxOptions"]));
    let all: Vec<&Value> = of_pod.into_iter().chain(of_containers).collect();
    let types: BTreeSet<&str> = all
        .iter()
        .map(|options| text(options, &["type"]))
        .filter(|kind| !TYPES.contains(kind))
        .collect();
    let mut what = Vec::new();
    if !types.is_empty() {
        what.push(format!("{} {}", plural("type", "types", types.len()), quoted(types)));
    }
    for field in ["user", "role"] {
        if all.iter().any(|options| !text(options, &[field]).is_empty()) {
            what.push(format!("{field} may not be set"));
        }
    }
    let what = what.join("; ");
    let detail = format!("{who} set forbidden securityContext.seLinuxOptions: {what}");
    Some(Violation::new("seLinuxOptions", detail))
}

/// Types of seccomp profiles that nobody may set.
fn bad_seccomp(pod: &Value) -> Option<Violation> {
    let kind = |profile: Option<&Value>| {
        let kind = text(profile?, &["type"]);
        (!matches!(kind, "RuntimeDefault" | "Localhost")).then(|| kind.to_owned())
    };
    let of_pod = kind(pod_context(pod, "seccompProfile"));
    let of = |one: &Value| kind(at(one, &[CONTEXT, "seccompProfile"]));
    let bad = named(pod, |one| of(one).is_some());
    let who = setters(of_pod.is_some(), &bad)?;
    let kinds: BTreeSet<String> =
        of_pod.into_iter().chain(containers(pod).filter_map(of)).collect();
    let detail =
        format!("{who} must not set securityContext.seccompProfile.type to {}", quoted(kinds));
    Some(Violation::new("seccompProfile", detail))
}

fn seccomp_baseline(pod: &Value) -> Option<Violation> {
    bad_seccomp(pod)
}

fn seccomp(pod: &Value) -> Option<Violation> {
    if is_windows(pod) {
        return None;
    }
    if let Some(bad) = bad_seccomp(pod) {
        return Some(bad);
    }
    if pod_context(pod, "seccompProfile").is_some() {
        return None;
    }
    let silent = named(pod, |one| at(one, &[CONTEXT, "seccompProfile"]).is_none());
    let detail = || {
        let who = the_containers(&silent);
        format!(
            "pod or {who} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \
             \"Localhost\""
        )
    };
    (!silent.is_empty()).then(|| Violation::new("seccompProfile", detail()))
}

fn sysctls(pod: &Value) -> Option<Violation> {
    const ALLOWED: [&str; 14] = [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
        "net.ipv4.tcp_slow_start_after_idle",
        "net.ipv4.tcp_notsent_lowat",
    ];
    let set = items(pod, &["spec", CONTEXT, "sysctls"]).iter();
    let set = set.map(|one| text(one, &["name"])).filter(|name| !ALLOWED.contains(name));
    let bad: Vec<&str> = set.collect();
    (!bad.is_empty()).then(|| Violation::new("forbidden sysctls", bad.join(", ")))
}

fn host_process(pod: &Value) -> Option<Violation> {
    let of_pod = flag(pod, &["spec", CONTEXT, "windowsOptions", "hostProcess"]);
    let bad = named(pod, |one| flag(one, &[CONTEXT, "windowsOptions", "hostProcess"]));
    let who = setters(of_pod, &bad)?;
    let detail = format!("{who} must not set securityContext.windowsOptions.hostProcess=true");
    Some(Violation::new("hostProcess", detail))
}

fn privilege_escalation(pod: &Value) -> Option<Violation> {
    const FIELD: &str = "allowPrivilegeEscalation";
    if is_windows(pod) {
        return None;
    }
    let bad = named(pod, |one| at(one, &[CONTEXT, FIELD]) != Some(&Value::Bool(false)));
    let detail = || format!("{} must set securityContext.{FIELD}=false", the_containers(&bad));
    (!bad.is_empty()).then(|| Violation::new("allowPrivilegeEscalation != false", detail()))
}

fn dropped_capabilities(pod: &Value) -> Option<Violation> {
    if is_windows(pod) {
        return None;
    }
    let keeps = |one: &Value| {
        !items(one, &[CONTEXT, "capabilities", "drop"]).iter().any(|name| name == "ALL")
    };
    let keeping = named(pod, keeps);
    let (adding, names) = added(pod, &["NET_BIND_SERVICE"]);
    let mut details = Vec::new();
    if !keeping.is_empty() {
        let who = the_containers(&keeping);
        details.push(format!("{who} must set securityContext.capabilities.drop=[\"ALL\"]"));
    }
    if !adding.is_empty() {
        let (who, what) = (the_containers(&adding), quoted(&names));
        details.push(format!("{who} must not include {what} in securityContext.capabilities.add"));
    }
    let detail = details.join("; ");
    (!details.is_empty()).then(|| Violation::new("unrestricted capabilities", detail))
}

fn volumes(pod: &Value) -> Option<Violation> {
    const ALLOWED: [&str; 9] = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    let kinds = |volume: &Value| -> Vec<String> {
        let fields = volume.as_object().into_iter().flatten();
        let kinds = fields.filter(|(key, value)| *key != "name" && !value.is_null());
        kinds.map(|(key, _)| key.clone()).collect()
    };
    let is_bad = |volume: &&Value| !kinds(volume).iter().any(|one| ALLOWED.contains(&one.as_str()));
    let bad: Vec<&Value> = items(pod, &["spec", "volumes"]).iter().filter(is_bad).collect();
    if bad.is_empty() {
        return None;
    }
    let names: Vec<&str> = bad.iter().map(|one| text(one, &["name"])).collect();
    let types: BTreeSet<String> = bad
        .iter()
        .map(|one| kinds(one).into_iter().next().unwrap_or_else(|| "unknown".to_owned()))
        .collect();
    let detail = format!(
        "{} {} {} {} {}",
        plural("volume", "volumes", names.len()),
        quoted(&names),
        plural("uses", "use", names.len()),
        plural("restricted volume type", "restricted volume types", types.len()),
        quoted(&types)
    );
    Some(Violation::new("restricted volume types", detail))
}

fn non_root(pod: &Value) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    if has_own_users(pod) {
        return None;
    }
    let of_pod = pod_context(pod, "runAsNonRoot").and_then(Value::as_bool);
    let of = |one: &Value| at(one, &[CONTEXT, "runAsNonRoot"]).and_then(Value::as_bool);
    let bad = named(pod, |one| of(one) == Some(false));
    if let Some(who) = setters(of_pod == Some(false), &bad) {
        let detail = format!("{who} must not set securityContext.runAsNonRoot=false");
        return Some(Violation::new(REASON, detail));
    }
    let silent = named(pod, |one| of(one).is_none() && of_pod != Some(true));
    let detail = || {
        let who = the_containers(&silent);
        format!("pod or {who} must set securityContext.runAsNonRoot=true")
    };
    (!silent.is_empty()).then(|| Violation::new(REASON, detail()))
}

fn root_user(pod: &Value) -> Option<Violation> {
    if has_own_users(pod) {
        return None;
    }
    let of_pod = pod_context(pod, "runAsUser").and_then(Value::as_i64) == Some(0);
    let bad = named(pod, |one| int(one, &[CONTEXT, "runAsUser"]) == Some(0));
    let who = setters(of_pod, &bad)?;
    Some(Violation::new("runAsUser=0", format!("{who} must not set runAsUser=0")))
}
