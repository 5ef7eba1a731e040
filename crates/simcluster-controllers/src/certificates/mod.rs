//! What kube-controller-manager does with requests for certificates: those of kubelets are approved if
//! they may ask for themselves, approved ones are signed where there is an authority, and all of them go
//! after a while.

mod requests;
mod signer;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use kube::api::DeleteParams;
use simcluster_clock::Clock;
use simcluster_model::certificates::{GROUP, REQUESTS, Request, certificates};

use super::runtime::{Api, Doing, Failure, Key, Next, Queue, Reconcile, Store, unless_overtaken};
use super::types::Texts as _;
use super::{Informers, post_params};
pub use signer::{Authority, start_signer};

/// How long requests stay that are done with, from when that was last said.
const DONE: SignedDuration = SignedDuration::from_hours(1);

/// How long requests stay that wait for somebody.
const WAITING: SignedDuration = SignedDuration::from_hours(24);

/// The approver and cleaner.
pub(crate) struct Controller {
    client: Client,
    clock: Clock,
    requests: Arc<Store<CertificateSigningRequest>>,
}

impl Controller {
    /// Hooks the controller to the informers. The keys are requests.
    pub(crate) fn wire(
        client: Client,
        clock: Clock,
        informers: &mut Informers,
    ) -> (Self, Arc<Queue<Key>>) {
        let queue = Arc::new(Queue::new());
        informers.certificate_requests.enqueue_present(&queue);
        let requests = Arc::clone(&informers.certificate_requests.store);
        (Self { client, clock, requests }, queue)
    }

    /// Approves a request of a kubelet that may ask for its own certificate, or for that of any.
    async fn approve(&self, request: &CertificateSigningRequest) -> Result<(), Failure> {
        let is_done = request.status.as_ref().is_some_and(|status| status.certificate.is_some());
        if is_done || condition(request, "Approved").is_some() || is_denied(request) {
            return Ok(());
        }
        let spec = &request.spec;
        let Ok(asked) = Request::parse(&spec.request.0) else { return Ok(()) };
        if spec.signer_name != requests::KUBELET_CLIENT
            || requests::kubelet_client(&asked, spec.usages.texts()).is_err()
        {
            return Ok(());
        }
        let is_own = spec.username.as_deref() == Some(asked.subject.common_name());
        let ways = [
            ("selfnodeclient", "Auto approving self kubelet client certificate", is_own),
            ("nodeclient", "Auto approving kubelet client certificate", true),
        ];
        for (subresource, message, _) in ways.into_iter().filter(|(_, _, applies)| *applies) {
            if !self.is_allowed(request, subresource).await? {
                continue;
            }
            let mut approved = request.clone();
            add_condition(
                &mut approved,
                CertificateSigningRequestCondition {
                    type_: "Approved".to_owned(),
                    status: "True".to_owned(),
                    reason: Some("AutoApproved".to_owned()),
                    message: Some(format!("{message} after SubjectAccessReview.")),
                    ..CertificateSigningRequestCondition::default()
                },
            );
            let name = request.metadata.name.as_deref().unwrap_or_default();
            let written =
                self.api().replace_subresource("approval", name, &post_params(), &approved).await;
            return unless_overtaken(written).map(drop).doing("approve a request");
        }
        Ok(())
    }

    /// Whether who made a request may make one of this kind.
    async fn is_allowed(
        &self,
        request: &CertificateSigningRequest,
        subresource: &str,
    ) -> Result<bool, Failure> {
        let spec = &request.spec;
        let attributes = ResourceAttributes {
            group: Some(GROUP.to_owned()),
            resource: Some(REQUESTS.to_owned()),
            subresource: Some(subresource.to_owned()),
            verb: Some("create".to_owned()),
            version: Some("*".to_owned()),
            ..ResourceAttributes::default()
        };
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: spec.username.clone(),
                uid: spec.uid.clone(),
                groups: spec.groups.clone(),
                extra: spec.extra.clone(),
                resource_attributes: Some(attributes),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews: kube::Api<SubjectAccessReview> = kube::Api::all(self.client.clone());
        let answer = reviews.create(&post_params(), &review).await;
        Ok(answer.doing("review a request")?.status.is_some_and(|status| status.allowed))
    }

    fn api(&self) -> Api<CertificateSigningRequest> {
        Api::all(self.client.clone())
    }
}

impl Reconcile for Controller {
    const NAME: &'static str = "certificates";
    type Key = Key;

    async fn ready(&self) {
        self.requests.synced().await;
    }

    async fn reconcile(&self, key: Key) -> Result<Next, Failure> {
        let Some(request) = self.requests.get(&key) else { return Ok(Next::Done) };
        let now = self.clock.now();
        let Some(end) = end(&request) else { return Ok(Next::Done) };
        if now > end {
            let gone = self.api().delete(&key.name, &DeleteParams::default()).await;
            unless_overtaken(gone).doing("delete an old request")?;
            return Ok(Next::Done);
        }
        self.approve(&request).await?;
        // A moment later it is past its end, and not just there.
        let left = Duration::try_from(end.duration_since(now)).unwrap_or_default();
        Ok(Next::After(left.saturating_add(Duration::from_secs(1))))
    }
}

/// The moment after which a request is of no use. A real cleaner looks once an hour who is past it.
fn end(request: &CertificateSigningRequest) -> Option<Timestamp> {
    // Anybody may write the times, so they may be the last there are.
    let after = |time: Option<&Time>, wait: SignedDuration| {
        time.map(|time| time.0.checked_add(wait).unwrap_or(Timestamp::MAX))
    };
    let said = |of_type: &str, wait: SignedDuration| {
        let condition = condition(request, of_type)?;
        after(condition.last_update_time.as_ref(), wait)
    };
    let status = request.status.as_ref();
    let issued = status.and_then(|status| status.certificate.as_ref());
    let expired = || certificates(&issued?.0).ok()?.first()?.not_after;
    let approved = said("Approved", if issued.is_some() { DONE } else { WAITING });
    let untouched = status.and_then(|status| status.conditions.as_ref()).is_none_or(Vec::is_empty);
    let pending = after(request.metadata.creation_timestamp.as_ref(), WAITING);
    let ends = [
        said("Denied", DONE),
        said("Failed", DONE),
        approved,
        approved.and_then(|_| expired()),
        pending.filter(|_| untouched),
    ];
    ends.into_iter().flatten().min()
}

/// The first condition of a type.
fn condition<'a>(
    request: &'a CertificateSigningRequest,
    of_type: &str,
) -> Option<&'a CertificateSigningRequestCondition> {
    let conditions = request.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == of_type)
}

fn is_denied(request: &CertificateSigningRequest) -> bool {
    condition(request, "Denied").is_some()
}

fn add_condition(
    request: &mut CertificateSigningRequest,
    condition: CertificateSigningRequestCondition,
) {
    let status = request.status.get_or_insert_default();
    status.conditions.get_or_insert_default().push(condition);
}
