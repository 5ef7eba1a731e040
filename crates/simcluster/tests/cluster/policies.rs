//! What admission enforces by itself: quotas, limits, Pod Security, and that nobody grants more than he
//! has.

use std::fmt::Debug;

use k8s_openapi::api::core::v1::{ConfigMap, LimitRange, Namespace, Pod, ResourceQuota};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::Resource;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use simcluster::SimCluster;
use simcluster::User;

use crate::support::{api, cluster, cluster_without_nodes, seconds};

async fn post<K>(api: &Api<K>, object: Value) -> Result<K, String>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize,
{
    let object: K = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.map_err(|error| match error {
        kube::Error::Api(status) => status.message,
        other => other.to_string(),
    })
}

async fn quota(cluster: &SimCluster, hard: Value) {
    let object = json!({ "metadata": { "name": "q" }, "spec": { "hard": hard } });
    post(&api::<ResourceQuota>(cluster), object).await.unwrap();
}

async fn used(cluster: &SimCluster, name: &str) -> String {
    let quota = api::<ResourceQuota>(cluster).get("q").await.unwrap();
    quota.status.unwrap().used.unwrap()[name].0.clone()
}

fn config_map(name: &str) -> Value {
    json!({ "metadata": { "name": name } })
}

#[tokio::test(start_paused = true)]
async fn a_quota_counts_and_refuses() {
    let cluster = cluster().await;
    let maps = api::<ConfigMap>(&cluster);
    quota(&cluster, json!({ "count/configmaps": "2", "secrets": "5" })).await;
    assert_eq!(used(&cluster, "count/configmaps").await, "1", "the CA of the cluster");
    post(&maps, config_map("a")).await.unwrap();
    assert_eq!(used(&cluster, "count/configmaps").await, "2");
    let refused = post(&maps, config_map("b")).await.unwrap_err();
    assert_eq!(
        refused,
        "configmaps \"b\" is forbidden: exceeded quota: q, requested: count/configmaps=1, used: \
         count/configmaps=2, limited: count/configmaps=2"
    );
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(used(&cluster, "count/configmaps").await, "1");
    post(&maps, config_map("b")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_quota_of_cpu_wants_every_container_to_speak() {
    let cluster = cluster_without_nodes().await;
    let pods = api::<Pod>(&cluster);
    quota(&cluster, json!({ "requests.cpu": "1", "limits.memory": "1Gi" })).await;
    let pod = |name: &str, resources: Value| {
        json!({
            "metadata": { "name": name },
            "spec": { "containers": [{ "name": "c", "image": "i", "resources": resources }] },
        })
    };
    let refused = post(&pods, pod("a", json!({}))).await.unwrap_err();
    assert_eq!(
        refused,
        "pods \"a\" is forbidden: failed quota: q: must specify limits.memory for: c; requests.cpu for: c"
    );
    let resources = json!({ "requests": { "cpu": "600m" }, "limits": { "memory": "512Mi" } });
    post(&pods, pod("a", resources.clone())).await.unwrap();
    assert_eq!(used(&cluster, "requests.cpu").await, "600m");
    let refused = post(&pods, pod("b", resources)).await.unwrap_err();
    assert_eq!(
        refused,
        "pods \"b\" is forbidden: exceeded quota: q, requested: requests.cpu=600m, used: \
         requests.cpu=600m, limited: requests.cpu=1"
    );
}

#[tokio::test(start_paused = true)]
async fn a_limit_range_fills_in_and_refuses() {
    let cluster = cluster_without_nodes().await;
    let limits = json!([{
        "type": "Container", "default": { "cpu": "1" }, "defaultRequest": { "cpu": "100m" },
        "max": { "cpu": "2" }, "maxLimitRequestRatio": { "cpu": "10" },
    }]);
    let range = json!({ "metadata": { "name": "l" }, "spec": { "limits": limits } });
    post(&api::<LimitRange>(&cluster), range).await.unwrap();
    let pods = api::<Pod>(&cluster);
    let pod = |name: &str, resources: Value| {
        json!({
            "metadata": { "name": name },
            "spec": { "containers": [{ "name": "c", "image": "i", "resources": resources }] },
        })
    };
    let filled = post(&pods, pod("a", json!({}))).await.unwrap();
    assert_eq!(
        filled.metadata.annotations.unwrap()["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    );
    let resources = filled.spec.unwrap().containers[0].resources.clone().unwrap();
    assert_eq!(resources.requests.unwrap()["cpu"].0, "100m");
    // What is not asked for is asked for as much as the limit, before any LimitRange looks.
    let refused = post(&pods, pod("b", json!({ "limits": { "cpu": "3" } }))).await.unwrap_err();
    assert_eq!(
        refused,
        "pods \"b\" is forbidden: maximum cpu usage per Container is 2, but limit is 3"
    );
    let resources = json!({ "requests": { "cpu": "50m" }, "limits": { "cpu": "1500m" } });
    let refused = post(&pods, pod("b", resources)).await.unwrap_err();
    assert_eq!(
        refused,
        "pods \"b\" is forbidden: cpu max limit to request ratio per Container is 10, but provided \
         ratio is 30.000000"
    );
}

/// An account that may write roles and bindings, and read `ConfigMaps`.
async fn writer(cluster: &SimCluster) -> kube::Client {
    let group = ["rbac.authorization.k8s.io"];
    let role = json!({
        "metadata": { "name": "writer" },
        "rules": [
            { "apiGroups": group, "resources": ["roles", "rolebindings", "clusterroles"],
              "verbs": ["create", "update", "patch", "get"] },
            { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"] },
        ],
    });
    post(&Api::<ClusterRole>::all(cluster.client()), role).await.unwrap();
    let binding = json!({
        "metadata": { "name": "writer" },
        "roleRef": { "apiGroup": group[0], "kind": "ClusterRole", "name": "writer" },
        "subjects": [{ "kind": "ServiceAccount", "namespace": "default", "name": "writer" }],
    });
    post(&Api::<ClusterRoleBinding>::all(cluster.client()), binding).await.unwrap();
    cluster.client_as(User::service_account("default", "writer"))
}

#[tokio::test(start_paused = true)]
async fn nobody_grants_what_he_does_not_have() {
    let cluster = cluster().await;
    let client = writer(&cluster).await;
    let roles: Api<Role> = Api::namespaced(client.clone(), "default");
    let role = |name: &str, resources: &[&str], verbs: &[&str]| {
        let rule = json!({ "apiGroups": [""], "resources": resources, "verbs": verbs });
        json!({ "metadata": { "name": name }, "rules": [rule] })
    };
    post(&roles, role("fine", &["configmaps"], &["get"])).await.unwrap();
    let refused = post(&roles, role("more", &["secrets", "configmaps"], &["get", "delete"])).await;
    assert_eq!(
        refused.unwrap_err(),
        "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \
         \"system:serviceaccount:default:writer\" (groups=[\"system:serviceaccounts\" \
         \"system:serviceaccounts:default\" \"system:authenticated\"]) is attempting to grant RBAC \
         permissions not currently held:\n\
         {APIGroups:[\"\"], Resources:[\"configmaps\"], Verbs:[\"delete\"]}\n\
         {APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \"delete\"]}"
    );
    let bindings: Api<RoleBinding> = Api::namespaced(client, "default");
    let binding = |role: &str| {
        json!({
            "metadata": { "name": role },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
            "subjects": [{ "kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "eve" }],
        })
    };
    let refused = post(&bindings, binding("cluster-admin")).await.unwrap_err();
    assert!(
        refused.contains("is attempting to grant RBAC permissions not currently held"),
        "{refused}"
    );
    let missing = post(&bindings, binding("nope")).await.unwrap_err();
    assert_eq!(missing, "rolebindings.rbac.authorization.k8s.io \"nope\" not found");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_demands_pod_security() {
    let cluster = cluster_without_nodes().await;
    let namespaces: Api<Namespace> = Api::all(cluster.client());
    let labels = json!({ "pod-security.kubernetes.io/enforce": "restricted" });
    post(&namespaces, json!({ "metadata": { "name": "safe", "labels": labels } })).await.unwrap();
    seconds(1).await;
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "safe");
    let container = json!({ "name": "c", "image": "i" });
    let pod = json!({
        "metadata": { "name": "p" },
        "spec": { "hostNetwork": true, "containers": [container] },
    });
    assert_eq!(
        post(&pods, pod).await.unwrap_err(),
        "pods \"p\" is forbidden: violates PodSecurity \"restricted:latest\": host namespaces \
         (hostNetwork=true), allowPrivilegeEscalation != false (container \"c\" must set \
         securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"c\" \
         must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or container \
         \"c\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container \"c\" must \
         set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")"
    );
    let context = json!({
        "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] }, "runAsNonRoot": true,
        "seccompProfile": { "type": "RuntimeDefault" },
    });
    let container = json!({ "name": "c", "image": "i", "securityContext": context });
    let pod = json!({ "metadata": { "name": "p" }, "spec": { "containers": [container] } });
    post(&pods, pod).await.unwrap();
    let wrong =
        json!({ "metadata": { "labels": { "pod-security.kubernetes.io/enforce": "strict" } } });
    let refused = namespaces.patch("safe", &PatchParams::default(), &Patch::Merge(wrong)).await;
    let kube::Error::Api(status) = refused.unwrap_err() else { panic!("no answer") };
    assert_eq!(
        status.message,
        "Namespace \"safe\" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid \
         value: \"strict\": must be one of privileged, baseline, restricted"
    );
}
