//! Fields that an endpoint puts back, so that no writer can own them through it.

use super::set::FieldSet;
use crate::certificates::REQUESTS;
use crate::resource::Resource;

/// The fields that writes through an endpoint cannot set.
pub(super) fn reset_fields(resource: &Resource, subresource: &str) -> FieldSet {
    if resource.plural == REQUESTS && !resource.custom {
        return match subresource {
            "status" => FieldSet::of_fields(&[&["spec"], &["status", "conditions"]]),
            "approval" => FieldSet::of_fields(&[&["spec"], &["status", "certificate"]]),
            _ => FieldSet::of_fields(&[&["spec"], &["status"]]),
        };
    }
    match subresource {
        "" if resource.has_subresource("status") => FieldSet::of_fields(&[&["status"]]),
        "status" if resource.custom => FieldSet::of_fields(&[&["metadata"], &["spec"]]),
        "status" => match (resource.group.as_str(), resource.kind.as_str()) {
            ("apps", "Deployment") => FieldSet::of_fields(&[&["spec"], &["metadata", "labels"]]),
            ("", "Pod") => FieldSet::of_fields(&[
                &["spec"],
                &["metadata", "deletionTimestamp"],
                &["metadata", "ownerReferences"],
            ]),
            _ => FieldSet::of_fields(&[&["spec"]]),
        },
        // Namespaces are finalized through a subresource that leaves their status alone.
        "finalize" => FieldSet::of_fields(&[&["status"]]),
        _ => FieldSet::default(),
    }
}

/// Fields that are nobody's: the server's own, and those that say which object it is.
pub(super) fn untracked_fields() -> FieldSet {
    FieldSet::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
}
