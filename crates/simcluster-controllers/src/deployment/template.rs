//! Pod templates and the ReplicaSets made of them.

use crate::types::{Deployment, ReplicaSet};
use k8s_openapi::api::apps::v1::ReplicaSetSpec;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::hash::{replica_set_name, template_hash};
use crate::owners::controller_reference;

/// Label by which the Pods and ReplicaSets of a Deployment's templates are told apart.
const HASH_LABEL: &str = "pod-template-hash";

/// Whether a ReplicaSet's template is the Deployment's, the hash label aside.
pub(crate) fn same(of_set: Option<&PodTemplateSpec>, of_deployment: &PodTemplateSpec) -> bool {
    of_set.is_some_and(|template| without_hash(template) == without_hash(of_deployment))
}

fn without_hash(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut template = template.clone();
    let metadata = template.metadata.get_or_insert_default();
    if let Some(labels) = &mut metadata.labels {
        labels.remove(HASH_LABEL);
    }
    metadata.labels.get_or_insert_default();
    template
}

/// The ReplicaSet of the Deployment's current template; size and annotations are left open.
pub(crate) fn new_replica_set(deployment: &Deployment) -> ReplicaSet {
    let collisions = deployment.status.as_ref().and_then(|status| status.collision_count);
    let hash = template_hash(&deployment.spec.template, collisions);
    let mut template = deployment.spec.template.clone();
    let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
    labels.insert(HASH_LABEL.to_owned(), hash.clone());
    let labels = labels.clone();
    let mut selector = deployment.spec.selector.clone();
    selector.match_labels.get_or_insert_default().insert(HASH_LABEL.to_owned(), hash.clone());
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    ReplicaSet {
        metadata: ObjectMeta {
            name: Some(replica_set_name(name, &hash)),
            namespace: deployment.metadata.namespace.clone(),
            labels: Some(labels),
            owner_references: Some(vec![controller_reference(deployment)]),
            ..ObjectMeta::default()
        },
        spec: ReplicaSetSpec {
            min_ready_seconds: deployment.spec.min_ready_seconds,
            selector,
            template: Some(template),
            replicas: None,
        },
        status: None,
    }
}
