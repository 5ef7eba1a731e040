//! What becomes of requests for certificates without anybody who signs.

use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::json;
use simcluster::{SimCluster, User};

const SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";

/// A request of a kubelet for itself.
fn request(name: &str) -> CertificateSigningRequest {
    let mut asked = CertificateParams::new(Vec::new()).unwrap();
    asked.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    asked.distinguished_name.push(DnType::CommonName, "system:node:n1");
    let asked = asked.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
    serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "request": ByteString(asked.into_bytes()), "signerName": SIGNER,
            "usages": ["client auth", "digital signature"],
        },
    }))
    .unwrap()
}

fn kubelet() -> User {
    User {
        name: "system:node:n1".to_owned(),
        groups: vec!["system:nodes".to_owned(), "system:authenticated".to_owned()],
        ..User::anonymous()
    }
}

async fn allow(cluster: &SimCluster, role: &str) {
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": { "name": role.replace(':', "-") },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
        "subjects": [
            { "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:nodes" },
        ],
    }))
    .unwrap();
    let bindings = Api::all(cluster.client());
    bindings.create(&PostParams::default(), &binding).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kubelets_that_may_are_approved() {
    let cluster = SimCluster::builder().start().unwrap();
    allow(&cluster, "system:node-bootstrapper").await;
    let requests: Api<CertificateSigningRequest> = Api::all(cluster.client_as(kubelet()));
    let name = "before";
    requests.create(&PostParams::default(), &request(name)).await.unwrap();
    cluster.settle().await.unwrap();
    let all: Api<CertificateSigningRequest> = Api::all(cluster.client());
    let conditions = |one: CertificateSigningRequest| one.status.unwrap().conditions;
    assert_eq!(conditions(all.get(name).await.unwrap()), None);

    let role = "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient";
    allow(&cluster, role).await;
    let name = "after";
    requests.create(&PostParams::default(), &request(name)).await.unwrap();
    cluster.settle().await.unwrap();
    let approved = conditions(all.get(name).await.unwrap()).unwrap();
    let [approved] = approved.as_slice() else { panic!("one condition: {approved:?}") };
    assert_eq!(approved.type_, "Approved");
    assert_eq!(
        approved.message.as_deref(),
        Some("Auto approving self kubelet client certificate after SubjectAccessReview.")
    );
}

#[tokio::test(start_paused = true)]
async fn old_requests_go() {
    let cluster = SimCluster::builder().start().unwrap();
    let requests: Api<CertificateSigningRequest> = Api::all(cluster.client());
    requests.create(&PostParams::default(), &request("waiting")).await.unwrap();
    requests.create(&PostParams::default(), &request("denied")).await.unwrap();
    let verdict = json!({ "status": { "conditions": [{ "type": "Denied", "status": "True" }] } });
    let verdict = Patch::Merge(verdict);
    requests.patch_approval("denied", &PatchParams::default(), &verdict).await.unwrap();
    let names = async || {
        let all = requests.list(&ListParams::default()).await.unwrap();
        all.items.into_iter().filter_map(|one| one.metadata.name).collect::<Vec<_>>()
    };
    tokio::time::sleep(Duration::from_mins(59)).await;
    assert_eq!(names().await, ["denied", "waiting"]);
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(names().await, ["waiting"]);
    tokio::time::sleep(Duration::from_hours(23)).await;
    assert!(names().await.is_empty());
}
