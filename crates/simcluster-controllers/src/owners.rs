//! Owner references: who controls an object, and adopting and releasing by selector.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use kube::Resource;
use kube::api::{Patch, PatchParams};
use kube::core::{Selector, SelectorExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::MANAGER;
use super::runtime::{Api, Doing, Failure, Object, Written, status_of};

/// The reference that marks an object's controller.
pub(crate) fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Whether `owner` is the controller of an object.
pub(crate) fn is_controlled_by(meta: &ObjectMeta, owner: &ObjectMeta) -> bool {
    controller_of(meta).is_some_and(|reference| Some(&reference.uid) == owner.uid.as_ref())
}

/// The reference that names `owner` as controller.
pub(crate) fn controller_reference<K: Object>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: owner.meta().name.clone().unwrap_or_default(),
        uid: owner.meta().uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Groups the objects of a store by their controller's UID; those without one by namespace.
pub(crate) fn group_of<K: Resource>(object: &K) -> String {
    let meta = object.meta();
    controller_of(meta).map_or_else(
        || orphans_of(meta.namespace.as_deref().unwrap_or_default()),
        |owner| owner.uid.clone(),
    )
}

/// The group of the objects in a namespace that have no controller.
pub(crate) fn orphans_of(namespace: &str) -> String {
    format!("orphans of {namespace}")
}

/// The labels that a selector wants, whatever its expressions want beside.
pub(crate) fn labels_of(selector: &LabelSelector) -> &BTreeMap<String, String> {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    selector.match_labels.as_ref().unwrap_or(&NONE)
}

/// Whether a selector that is not empty matches the labels; an invalid one matches nothing.
pub(crate) fn matches(selector: &LabelSelector, labels: Option<&BTreeMap<String, String>>) -> bool {
    let none = BTreeMap::new();
    let is_empty = selector.match_labels.as_ref().is_none_or(BTreeMap::is_empty)
        && selector.match_expressions.as_ref().is_none_or(Vec::is_empty);
    !is_empty
        && Selector::try_from(selector.clone())
            .is_ok_and(|selector| selector.matches(labels.unwrap_or(&none)))
}

/// Objects sorted by what their owner has to do with them.
#[derive(Debug)]
pub(crate) struct Claims<K> {
    /// Controlled by the owner and matched by its selector.
    pub(crate) mine: Vec<Arc<K>>,
    /// Without controller, and matched.
    pub(crate) adopt: Vec<Arc<K>>,
    /// Controlled by the owner, but no longer matched.
    pub(crate) release: Vec<Arc<K>>,
}

/// Decides which objects an owner keeps, takes and lets go. One that is being deleted only keeps.
pub(crate) fn claim<K: Resource>(
    owner: &ObjectMeta,
    selector: &LabelSelector,
    objects: impl IntoIterator<Item = Arc<K>>,
) -> Claims<K> {
    let mut claims = Claims { mine: Vec::new(), adopt: Vec::new(), release: Vec::new() };
    let leaving = owner.deletion_timestamp.is_some();
    for object in objects {
        let meta = object.meta();
        let matched = matches(selector, meta.labels.as_ref());
        match controller_of(meta) {
            Some(reference) if Some(&reference.uid) != owner.uid.as_ref() => {}
            Some(_) if matched => claims.mine.push(object),
            Some(_) if leaving => {}
            Some(_) => claims.release.push(object),
            None if matched && !leaving && meta.deletion_timestamp.is_none() => {
                claims.adopt.push(object);
            }
            None => {}
        }
    }
    claims
}

/// Adopts and releases. Before adopting, the owner is read anew: a cached one may be gone already.
/// Answers the changed objects.
pub(crate) async fn settle_claims<O, K>(
    owners: &Api<O>,
    api: &Api<K>,
    owner: &O,
    claims: &Claims<K>,
) -> Result<Vec<Written>, Failure>
where
    O: Object + Serialize + DeserializeOwned,
    K: Object + Serialize + DeserializeOwned,
{
    let mut changed = Vec::new();
    let owner_uid = owner.meta().uid.as_deref().unwrap_or_default();
    for object in &claims.release {
        let patch = json!({"metadata": {
            "uid": object.meta().uid,
            "ownerReferences": [{"$patch": "delete", "uid": owner_uid}],
        }});
        changed.extend(patch_references(api, object.meta(), patch).await.doing("release")?);
    }
    if claims.adopt.is_empty() {
        return Ok(changed);
    }
    let name = owner.meta().name.as_deref().unwrap_or_default();
    let fresh = owners.get(name).await.doing("read the owner anew")?;
    if fresh.meta().uid != owner.meta().uid || fresh.meta().deletion_timestamp.is_some() {
        return Err(Failure::Missing(format!("{name} is gone or going, it adopts nothing")));
    }
    for object in &claims.adopt {
        let patch = json!({"metadata": {
            "uid": object.meta().uid,
            "ownerReferences": [controller_reference(owner)],
        }});
        changed.extend(patch_references(api, object.meta(), patch).await.doing("adopt")?);
    }
    Ok(changed)
}

/// Patches owner references; an object that is gone or is another by now needs none.
async fn patch_references<K>(
    api: &Api<K>,
    meta: &ObjectMeta,
    patch: serde_json::Value,
) -> Result<Option<Written>, kube::Error>
where
    K: Object + Serialize + DeserializeOwned,
{
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    match api
        .patch(meta.name.as_deref().unwrap_or_default(), &params, &Patch::Strategic(patch))
        .await
    {
        Ok(object) => Ok(Some(object)),
        Err(error)
            if status_of(&error)
                .is_some_and(|status| status.is_not_found() || status.is_invalid()) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
