//! The server's own plugins: rules that wait for nobody.

use std::future::ready;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use super::{Attributes, Operation, Plugin, certificates, limits, pod_security, quota, webhook};
use crate::lifecycle;
use crate::server::{ApiServer, subject};
use crate::store;
use simcluster_model::builtin::admission;
use simcluster_model::certificates::{GROUP, REQUESTS};
use simcluster_model::error::{ApiError, Cause, Details, Names};
use simcluster_model::object;
use simcluster_model::resource::Surroundings;

/// Storage key of Namespaces.
pub(crate) const NAMESPACES: &str = "/namespaces";

/// Storage key of `IngressClasses`.
const INGRESS_CLASSES: &str = "networking.k8s.io/ingressclasses";

/// Storage key of `StorageClasses`.
const STORAGE_CLASSES: &str = "storage.k8s.io/storageclasses";

/// Namespaces that cannot be deleted.
const PROTECTED: [&str; 3] = ["default", "kube-system", "kube-public"];

/// A rule that answers at once.
#[derive(Debug)]
struct BuiltIn {
    name: &'static str,
    handles: fn(&Attributes) -> bool,
    admit: Option<fn(&ApiServer, &mut Attributes) -> Result<(), ApiError>>,
    validate: Option<fn(&ApiServer, &Attributes) -> Result<(), ApiError>>,
}

impl Plugin for BuiltIn {
    fn name(&self) -> &str {
        self.name
    }

    fn handles(&self, attributes: &Attributes) -> bool {
        (self.handles)(attributes)
    }

    /// Each writes fields that are its own.
    fn changes_anything(&self, _server: &ApiServer) -> bool {
        false
    }

    fn admit<'a>(
        &'a self,
        server: &'a ApiServer,
        attributes: &'a mut Attributes,
    ) -> BoxFuture<'a, Result<(), ApiError>> {
        Box::pin(ready(self.admit.map_or(Ok(()), |admit| admit(server, attributes))))
    }

    fn validate<'a>(
        &'a self,
        server: &'a ApiServer,
        attributes: &'a Attributes,
    ) -> BoxFuture<'a, Result<(), ApiError>> {
        Box::pin(ready(self.validate.map_or(Ok(()), |validate| validate(server, attributes))))
    }
}

/// All plugins that are on, in a real server's order.
pub(super) fn plugins() -> Vec<Arc<dyn Plugin>> {
    let first = [
        BuiltIn {
            name: "NamespaceLifecycle",
            handles: |_| true,
            admit: Some(|server, attributes| namespace_lifecycle(server, attributes)),
            validate: None,
        },
        BuiltIn {
            name: "LimitRanger",
            handles: |attributes| creates(attributes, "", "pods"),
            admit: Some(limits::admit),
            validate: Some(limits::validate),
        },
        BuiltIn {
            name: "ServiceAccount",
            handles: |attributes| creates(attributes, "", "pods"),
            admit: Some(|server, attributes| {
                with_pod(server, attributes, admission::service_account)
            }),
            validate: None,
        },
        BuiltIn {
            name: "PodSecurity",
            handles: pod_security::handles,
            admit: None,
            validate: Some(pod_security::validate),
        },
        BuiltIn { name: "Priority", handles: writes_pod, admit: Some(priority), validate: None },
        BuiltIn {
            name: "DefaultTolerationSeconds",
            handles: writes_pod,
            admit: Some(|_, attributes| {
                attributes.object.iter_mut().for_each(admission::default_tolerations);
                Ok(())
            }),
            validate: None,
        },
        BuiltIn {
            name: "DefaultStorageClass",
            handles: |attributes| creates(attributes, "", "persistentvolumeclaims"),
            admit: Some(|server, attributes| {
                let classes = server.stored(STORAGE_CLASSES);
                let claim = attributes.object.iter_mut();
                claim.for_each(|one| admission::default_storage_class(one, &classes));
                Ok(())
            }),
            validate: None,
        },
        BuiltIn {
            name: "PersistentVolumeClaimResize",
            handles: |attributes| {
                attributes.operation == Operation::Update
                    && attributes.is_of("", "persistentvolumeclaims")
            },
            admit: None,
            validate: Some(claim_resize),
        },
        BuiltIn {
            name: "CertificateApproval",
            handles: |attributes| certificates::updates(attributes, "approval"),
            admit: None,
            validate: Some(certificates::may_approve),
        },
        BuiltIn {
            name: "CertificateSigning",
            handles: |attributes| certificates::updates(attributes, "status"),
            admit: None,
            validate: Some(certificates::may_sign),
        },
        BuiltIn {
            name: "CertificateSubjectRestriction",
            handles: |attributes| creates(attributes, GROUP, REQUESTS),
            admit: None,
            validate: Some(certificates::restrict_subject),
        },
        BuiltIn {
            name: "DefaultIngressClass",
            handles: |attributes| creates(attributes, "networking.k8s.io", "ingresses"),
            admit: Some(|server, attributes| {
                let classes = server.stored(INGRESS_CLASSES);
                let ingress = attributes.object.iter_mut();
                ingress.for_each(|one| admission::default_ingress_class(one, &classes));
                Ok(())
            }),
            validate: None,
        },
    ];
    let last = BuiltIn {
        name: "ResourceQuota",
        handles: quota::handles,
        admit: None,
        validate: Some(quota::validate),
    };
    let arc = |plugin| -> Arc<dyn Plugin> { Arc::new(plugin) };
    let mut plugins: Vec<Arc<dyn Plugin>> = first.into_iter().map(arc).collect();
    plugins.extend(webhook::plugins());
    plugins.push(arc(last));
    plugins
}

fn creates(attributes: &Attributes, group: &str, plural: &str) -> bool {
    attributes.operation == Operation::Create && attributes.is_of(group, plural)
}

fn writes_pod(attributes: &Attributes) -> bool {
    attributes.operation != Operation::Delete && attributes.is_of("", "pods")
}

fn with_pod(
    server: &ApiServer,
    attributes: &mut Attributes,
    rule: fn(
        &simcluster_model::resource::Resource,
        &mut Value,
        &mut Surroundings<'_>,
    ) -> Result<(), ApiError>,
) -> Result<(), ApiError> {
    let resource = Arc::clone(&attributes.resource);
    let Some(pod) = &mut attributes.object else { return Ok(()) };
    let subject = subject(&resource, pod);
    // A Pod takes no address that would have to be reserved.
    let mut reservation = server.services().reservation(true);
    let user = &attributes.user;
    server
        .with_surroundings(user, &subject, &mut reservation, |around| rule(&resource, pod, around))
}

/// A claim grows only if its class allows it.
fn claim_resize(server: &ApiServer, attributes: &Attributes) -> Result<(), ApiError> {
    let (Some(claim), Some(old)) = (&attributes.object, &attributes.old_object) else {
        return Ok(());
    };
    let class = object::at_path(claim, "spec.storageClassName").and_then(Value::as_str);
    let class = class.and_then(|name| server.store().get(STORAGE_CLASSES, &store::key("", name)));
    match admission::claim_growth_fault(claim, old, class.as_deref()) {
        Some(why) => Err(attributes.forbidden(why)),
        None => Ok(()),
    }
}

fn priority(server: &ApiServer, attributes: &mut Attributes) -> Result<(), ApiError> {
    if attributes.operation == Operation::Create {
        return with_pod(server, attributes, admission::priority);
    }
    if let (Some(pod), Some(old)) = (&mut attributes.object, &attributes.old_object) {
        admission::keep_priority(pod, old);
    }
    Ok(())
}

/// An object's namespace must exist and stay (rows CR18, CR19), its CRD must not be going (row CR20),
/// and some namespaces are there for ever.
fn namespace_lifecycle(server: &ApiServer, attributes: &Attributes) -> Result<(), ApiError> {
    let resource = &attributes.resource;
    match attributes.operation {
        Operation::Delete => {
            let protected =
                resource.storage_key == NAMESPACES && PROTECTED.contains(&attributes.name.as_str());
            let why = "this namespace may not be deleted";
            return if protected { Err(attributes.forbidden(why)) } else { Ok(()) };
        }
        Operation::Update => return Ok(()),
        Operation::Create => {}
    }
    if resource.custom && lifecycle::is_terminating(server, resource) {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(attributes.forbidden(why));
    }
    if !resource.namespaced || resource.kind.ends_with("AccessReview") {
        return Ok(());
    }
    let name = &attributes.namespace;
    let Some(namespace) = server.store().get(NAMESPACES, &store::key("", name)) else {
        let names = Names { group: "", plural: "namespaces", kind: "Namespace" };
        return Err(ApiError::not_found(names, name));
    };
    if !object::is_deleting(&namespace) {
        return Ok(());
    }
    let why =
        format!("unable to create new content in namespace {name} because it is being terminated");
    let mut error = attributes.forbidden(&why);
    error.details.get_or_insert_with(Box::<Details>::default).causes.push(Cause {
        reason: "NamespaceTerminating".to_owned(),
        message: format!("namespace {name} is being terminated"),
        field: "metadata.namespace".to_owned(),
    });
    Err(error)
}
