//! What has to be installed, as files. `config/` in the repository is exactly this.

use std::{collections::BTreeMap, fmt::Write as _};

use kube::CustomResourceExt;
use serde_json::{Value, json};

use crate::{
    api::{crd, simpleapp::SimpleApp},
    kernel::ownership::FIELD_MANAGER,
};

use super::rbac::cluster_role_rules;

/// Namespace that the manifests install into.
pub const NAMESPACE: &str = "simpleapp-system";
/// Image that the manifests run.
const IMAGE: &str = concat!("simpleapp-operator:", env!("CARGO_PKG_VERSION"));

const HEADER: &str = "# Made by `simpleapp-operator manifests`. Change the code, not this file.\n";

const SAMPLES: [(&str, &str); 3] = [
    ("1-image-only", include_str!("../../fixtures/litmus-1-image-only/simpleapp.yaml")),
    ("2-replicas-port", include_str!("../../fixtures/litmus-2-replicas-port/simpleapp.yaml")),
    ("3-all-fields", include_str!("../../fixtures/litmus-3-all-fields/simpleapp.yaml")),
];

/// All files: path below the output directory -> content.
#[must_use]
pub fn files() -> BTreeMap<String, String> {
    let objects = [
        ("crd/simpleapps.yaml", crd::to_json(&SimpleApp::crd())),
        ("manager/namespace.yaml", namespace()),
        ("manager/deployment.yaml", deployment()),
        ("rbac/service_account.yaml", service_account()),
        ("rbac/cluster_role.yaml", cluster_role()),
        ("rbac/cluster_role_binding.yaml", cluster_role_binding()),
    ];
    let mut files: BTreeMap<String, String> =
        objects.map(|(path, object)| (path.to_owned(), yaml(&object))).into();
    for (name, content) in SAMPLES {
        files.insert(format!("samples/{name}.yaml"), content.to_owned());
    }
    for base in ["crd", "manager", "rbac", "samples"] {
        let prefix = format!("{base}/");
        let names = files.keys().filter_map(|path| path.strip_prefix(&prefix));
        let content = kustomization(&names.map(str::to_owned).collect::<Vec<_>>());
        files.insert(format!("{base}/kustomization.yaml"), content);
    }
    let bases = ["crd", "rbac", "manager"].map(str::to_owned);
    files.insert("kustomization.yaml".into(), kustomization(&bases));
    files
}

/// What to install, as one stream of documents, in an order that can be applied; without samples.
#[must_use]
pub fn stream() -> String {
    let files = files();
    let order = [
        "manager/namespace.yaml",
        "crd/simpleapps.yaml",
        "rbac/service_account.yaml",
        "rbac/cluster_role.yaml",
        "rbac/cluster_role_binding.yaml",
        "manager/deployment.yaml",
    ];
    let mut text = String::new();
    for content in order.iter().filter_map(|path| files.get(*path)) {
        let _ = write!(text, "---\n{content}");
    }
    text
}

fn yaml(object: &Value) -> String {
    let text = serde_saphyr::to_string(object).expect("plain data can be written as YAML");
    format!("{HEADER}{text}")
}

fn kustomization(resources: &[String]) -> String {
    yaml(&json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": resources,
    }))
}

fn labels() -> Value {
    json!({"app.kubernetes.io/name": FIELD_MANAGER})
}

fn namespace() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": NAMESPACE,
            "labels": {
                "app.kubernetes.io/name": FIELD_MANAGER,
                "pod-security.kubernetes.io/enforce": "restricted",
            },
        },
    })
}

fn service_account() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": FIELD_MANAGER, "namespace": NAMESPACE, "labels": labels()},
    })
}

fn cluster_role() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": FIELD_MANAGER, "labels": labels()},
        "rules": cluster_role_rules(),
    })
}

fn cluster_role_binding() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": FIELD_MANAGER, "labels": labels()},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": FIELD_MANAGER,
        },
        "subjects": [
            {"kind": "ServiceAccount", "name": FIELD_MANAGER, "namespace": NAMESPACE},
        ],
    })
}

fn deployment() -> Value {
    let field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": FIELD_MANAGER, "namespace": NAMESPACE, "labels": labels()},
        "spec": {
            "replicas": 1,
            // Never two at a time.
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels()},
            "template": {
                "metadata": {"labels": labels()},
                "spec": {
                    "serviceAccountName": FIELD_MANAGER,
                    "securityContext": {
                        "runAsNonRoot": true,
                        "runAsUser": 65532,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [{
                        "name": "operator",
                        "image": IMAGE,
                        "args": ["run", "--log-format=json"],
                        "env": [
                            field("OPERATOR_NAMESPACE", "metadata.namespace"),
                            field("POD_NAME", "metadata.name"),
                        ],
                        "resources": {
                            "requests": {"cpu": "10m", "memory": "32Mi"},
                            "limits": {"memory": "256Mi"},
                        },
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "readOnlyRootFilesystem": true,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }],
                },
            },
        },
    })
}
