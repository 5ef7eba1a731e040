//! A valid app -> the children it should have. Cannot fail.
//!
//! Each child holds the fields that we mean to own and no others: what the server fills in, and
//! what others add, is none of our business.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{
    api::simpleapp::{GROUP, KIND, VERSION},
    kernel::ownership::FIELD_MANAGER,
};

use super::{observed::ChildKind, validate::Valid};

/// Name of the app's container.
pub const CONTAINER: &str = "app";
/// Name of the port of container and Service. The Service and the Ingress refer to it by name, so
/// that pods of the old and of the new port are both reached while the port changes.
const PORT: &str = "http";

const NAME_LABEL: &str = "app.kubernetes.io/name";
const INSTANCE_LABEL: &str = "app.kubernetes.io/instance";
const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";

/// The children that `app` should have. No Ingress without a host.
#[must_use]
pub fn children(app: &Valid) -> BTreeMap<ChildKind, Value> {
    let ingress = app.host.as_ref().map(|host| (ChildKind::Ingress, ingress(app, host.as_str())));
    [(ChildKind::Deployment, deployment(app)), (ChildKind::Service, service(app))]
        .into_iter()
        .chain(ingress)
        .collect()
}

/// The part of a child that field ownership speaks of: without what says which object it is.
#[must_use]
pub fn owned_part(child: &Value) -> Value {
    let mut part: Map<String, Value> = child.as_object().cloned().unwrap_or_default();
    part.remove("apiVersion");
    part.remove("kind");
    if let Some(metadata) = part.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("name");
        metadata.remove("namespace");
    }
    Value::Object(part)
}

/// The port of a child; an Ingress has none.
#[must_use]
pub fn port(child: &Value) -> Option<&Value> {
    ["/spec/ports/0", "/spec/template/spec/containers/0/ports/0"]
        .iter()
        .find_map(|path| child.pointer(path))
}

/// The selector of the app's pods. Frozen: a Deployment's selector cannot be changed.
#[must_use]
pub fn selector(name: &str) -> Value {
    json!({NAME_LABEL: name, INSTANCE_LABEL: name})
}

/// The selector as the API takes it in queries and in the scale subresource.
#[must_use]
pub fn selector_text(name: &str) -> String {
    format!("{INSTANCE_LABEL}={name},{NAME_LABEL}={name}")
}

fn labels(app: &Valid) -> Value {
    let name = app.name.as_str();
    json!({NAME_LABEL: name, INSTANCE_LABEL: name, MANAGED_BY_LABEL: FIELD_MANAGER})
}

fn metadata(app: &Valid) -> Value {
    json!({
        "name": app.name.as_str(),
        "namespace": app.namespace,
        "labels": labels(app),
        "ownerReferences": [{
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": KIND,
            "name": app.name.as_str(),
            "uid": app.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        }],
    })
}

fn deployment(app: &Valid) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(app),
        "spec": {
            "replicas": app.replicas,
            "selector": {"matchLabels": selector(app.name.as_str())},
            "template": {
                "metadata": {"labels": labels(app)},
                "spec": {
                    "containers": [{
                        "name": CONTAINER,
                        "image": app.image.as_str(),
                        "imagePullPolicy": app.image.pull_policy(),
                        "ports": [{
                            "name": PORT,
                            "containerPort": app.port.get(),
                            "protocol": "TCP",
                        }],
                    }],
                },
            },
        },
    })
}

fn service(app: &Valid) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(app),
        "spec": {
            "type": "ClusterIP",
            "selector": selector(app.name.as_str()),
            "ports": [{
                "name": PORT,
                "port": app.port.get(),
                "protocol": "TCP",
                "targetPort": PORT,
            }],
        },
    })
}

fn ingress(app: &Valid, host: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": metadata(app),
        "spec": {
            "rules": [{
                "host": host,
                "http": {
                    "paths": [{
                        "path": "/",
                        "pathType": "Prefix",
                        "backend": {
                            "service": {"name": app.name.as_str(), "port": {"name": PORT}},
                        },
                    }],
                },
            }],
        },
    })
}
