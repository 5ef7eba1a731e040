//! What the signers of Kubernetes sign, and why they do not.

use simcluster_model::certificates::{CLIENT_SIGNER, Request};

/// Certificates of kubelets as users of the API.
pub(super) const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// Certificates of kubelets as servers.
const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";

/// What is wrong with a request; `None` if its signer is none of Kubernetes.
pub(super) fn check(
    signer: &str,
    asked: &Request,
    usages: &[String],
) -> Option<Result<(), String>> {
    Some(match signer {
        CLIENT_SIGNER => client(usages),
        KUBELET_CLIENT => kubelet_client(asked, usages),
        KUBELET_SERVING => kubelet_serving(asked, usages),
        _ => return None,
    })
}

fn client(usages: &[String]) -> Result<(), String> {
    let known = ["digital signature", "key encipherment", "client auth"];
    if let Some(other) = usages.iter().find(|usage| !known.contains(&usage.as_str())) {
        return Err(format!("invalid usage for client certificate: {other}"));
    }
    if usages.iter().any(|usage| usage == "client auth") {
        Ok(())
    } else {
        Err("missing required usage for client certificate: client auth".to_owned())
    }
}

/// What is wrong with a request of a kubelet as a user of the API.
pub(super) fn kubelet_client(asked: &Request, usages: &[String]) -> Result<(), String> {
    of_nodes(asked)?;
    let none = [
        (asked.dns_names.is_empty(), "DNS"),
        (asked.emails.is_empty(), "Email"),
        (asked.ips.is_empty(), "IP"),
        (asked.uris.is_empty(), "URI"),
    ];
    if let Some((_, names)) = none.iter().find(|(empty, _)| !empty) {
        return Err(format!("{names} subjectAltNames are not allowed"));
    }
    of_a_node(asked)?;
    match_usages(usages, "client auth")
}

fn kubelet_serving(asked: &Request, usages: &[String]) -> Result<(), String> {
    of_nodes(asked)?;
    if asked.dns_names.is_empty() && asked.ips.is_empty() {
        return Err("DNS or IP subjectAltName is required".to_owned());
    }
    let none = [(asked.emails.is_empty(), "Email"), (asked.uris.is_empty(), "URI")];
    if let Some((_, names)) = none.iter().find(|(empty, _)| !empty) {
        return Err(format!("{names} subjectAltNames are not allowed"));
    }
    match_usages(usages, "server auth")?;
    of_a_node(asked)
}

fn of_nodes(asked: &Request) -> Result<(), String> {
    if asked.subject.organizations().eq(["system:nodes"]) {
        Ok(())
    } else {
        Err("subject organization is not system:nodes".to_owned())
    }
}

fn of_a_node(asked: &Request) -> Result<(), String> {
    if asked.subject.common_name().starts_with("system:node:") {
        Ok(())
    } else {
        Err("subject common name does not begin with system:node:".to_owned())
    }
}

/// The usages must be these, but for one that not every key has.
fn match_usages(usages: &[String], purpose: &str) -> Result<(), String> {
    let optional = "key encipherment";
    let wanted = [purpose, "digital signature", optional];
    let is_known = |usage: &String| wanted.contains(&usage.as_str());
    let has = |usage: &&&str| usages.iter().any(|one| one == **usage);
    let needed = wanted.iter().filter(|usage| **usage != optional);
    if usages.iter().all(is_known) && needed.clone().all(|usage| has(&usage)) {
        return Ok(());
    }
    let mut sorted = wanted;
    sorted.sort_unstable();
    Err(format!("usages did not match [{}]", sorted.join(" ")))
}
