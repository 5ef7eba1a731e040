//! `CertificateApproval`, `CertificateSigning` and `CertificateSubjectRestriction`: who may say what
//! of a request for a certificate, and what nobody may ask for.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{Attributes, Operation};
use crate::auth::rbac;
use crate::server::ApiServer;
use simcluster_model::certificates::{CLIENT_SIGNER, GROUP, REQUESTS, Request};
use simcluster_model::error::ApiError;
use simcluster_model::object::at_path;

/// Whether a subresource of a request changes.
pub(super) fn updates(attributes: &Attributes, subresource: &str) -> bool {
    attributes.operation == Operation::Update
        && attributes.subresource == subresource
        && (&*attributes.resource.group, &*attributes.resource.plural) == (GROUP, REQUESTS)
}

/// Who approves must have the right to, for the signer of the request.
pub(super) fn may_approve(server: &ApiServer, attributes: &Attributes) -> Result<(), ApiError> {
    check(server, attributes, "approve")
}

/// Who signs must have the right to, for the signer of the request.
pub(super) fn may_sign(server: &ApiServer, attributes: &Attributes) -> Result<(), ApiError> {
    let (Some(object), Some(old)) = (&attributes.object, &attributes.old_object) else {
        return Ok(());
    };
    let changes = |path| at_path(object, path) != at_path(old, path);
    if changes("status.certificate") || changes("status.conditions") {
        check(server, attributes, "sign")
    } else {
        Ok(())
    }
}

fn check(server: &ApiServer, attributes: &Attributes, verb: &str) -> Result<(), ApiError> {
    let old = attributes.old_object.as_deref().unwrap_or(&Value::Null);
    let signer = at_path(old, "spec.signerName").and_then(Value::as_str).unwrap_or_default();
    let domain = signer.split('/').next().unwrap_or_default();
    let allowed = [signer.to_owned(), format!("{domain}/*")].into_iter().any(|name| {
        let wanted = rbac::Attributes {
            verb: verb.to_owned(),
            group: GROUP.to_owned(),
            resource: "signers".to_owned(),
            name,
            ..rbac::Attributes::default()
        };
        let scopes = |namespace: &str| server.scope(namespace);
        rbac::authorize(&scopes, &attributes.user, &wanted).allowed
    });
    if allowed {
        return Ok(());
    }
    let why = format!("user not permitted to {verb} requests with signerName {signer:?}");
    Err(attributes.forbidden(&why))
}

/// Nobody becomes a master of the cluster by a certificate.
pub(super) fn restrict_subject(
    _server: &ApiServer,
    attributes: &Attributes,
) -> Result<(), ApiError> {
    let object = attributes.object.as_ref().unwrap_or(&Value::Null);
    let text = |path| at_path(object, path).and_then(Value::as_str).unwrap_or_default();
    if text("spec.signerName") != CLIENT_SIGNER {
        return Ok(());
    }
    let asked = Request::parse(&STANDARD.decode(text("spec.request")).unwrap_or_default());
    let asked =
        asked.map_err(|why| attributes.forbidden(&format!("failed to parse CSR: {why}")))?;
    if asked.subject.organizations().any(|group| group == "system:masters") {
        let why = format!("use of {CLIENT_SIGNER} signer with system:masters group is not allowed");
        return Err(attributes.forbidden(&why));
    }
    Ok(())
}
