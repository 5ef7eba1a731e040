//! The signer: it makes certificates of approved requests.

use std::fmt::Debug;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use kube::runtime::watcher;
use simcluster_clock::Clock;
use simcluster_model::certificates::{Certificate, Issue, Request, encode_pem};
use simcluster_model::random::Random;

use super::{add_condition, condition, is_denied, requests};
use crate::runtime::recorder::whole_seconds;
use crate::runtime::{
    Api, Doing, Failure, Informer, Key, Next, Queue, Reconcile, Store, Tasks, unless_overtaken,
};
use crate::types::Texts as _;
use crate::{Controllers, post_params};

/// The longest that a certificate is good.
const LIFETIME: SignedDuration = SignedDuration::from_hours(365 * 24);

/// The shortest.
const LIFETIME_MIN: SignedDuration = SignedDuration::from_mins(10);

/// Who signs: the authority whose certificates the API server takes.
pub trait Authority: Debug + Send + Sync {
    /// Its own certificate, in DER.
    fn certificate(&self) -> &[u8];

    /// A message signed by its P-256 key with SHA-256.
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, String>;
}

/// Starts the signer of Kubernetes' own certificates on the current runtime. `seed` decides their
/// numbers.
pub fn start_signer(
    client: Client,
    clock: Clock,
    seed: u64,
    authority: impl Authority + 'static,
) -> Controllers {
    let mut tasks = Tasks::new();
    let mut informer = Informer::new();
    let queue = Arc::new(Queue::new());
    informer.enqueue_present(&queue);
    let signer = Signer {
        client: client.clone(),
        clock,
        seed,
        authority: Box::new(authority),
        requests: Arc::clone(&informer.store),
    };
    tasks.run(signer, queue);
    informer.start(&client, watcher::Config::default(), &mut tasks);
    Controllers { tasks }
}

struct Signer {
    client: Client,
    clock: Clock,
    seed: u64,
    authority: Box<dyn Authority>,
    requests: Arc<Store<CertificateSigningRequest>>,
}

impl Signer {
    /// The certificate of a request that may have one.
    fn issue(
        &self,
        request: &CertificateSigningRequest,
        asked: &Request,
    ) -> Result<String, String> {
        let issuer = Certificate::parse(self.authority.certificate())?;
        let now = self.clock.now();
        if issuer.not_after.is_some_and(|end| now >= end) {
            return Err("the authority's own certificate has expired".to_owned());
        }
        let uid = request.metadata.uid.as_deref().unwrap_or_default();
        let mut chance = Random::stream(self.seed, &format!("certificate/{uid}"));
        let halves = (chance.next_u64(), chance.next_u64());
        let issue = Issue {
            request: asked,
            usages: request.spec.usages.texts(),
            issuer: &issuer,
            serial: u128::from(halves.0) << 64 | u128::from(halves.1),
            now,
            lifetime: lifetime(request.spec.expiration_seconds),
        };
        let signed = issue.sign(|message| self.authority.sign(message))?;
        Ok(encode_pem("CERTIFICATE", &signed))
    }
}

impl Reconcile for Signer {
    const NAME: &'static str = "certificate-signer";
    type Key = Key;

    async fn ready(&self) {
        self.requests.synced().await;
    }

    async fn reconcile(&self, key: Key) -> Result<Next, Failure> {
        let Some(request) = self.requests.get(&key) else { return Ok(Next::Done) };
        if !waits(&request) {
            return Ok(Next::Done);
        }
        let Ok(asked) = Request::parse(&request.spec.request.0) else { return Ok(Next::Done) };
        let spec = &request.spec;
        let Some(checked) = requests::check(&spec.signer_name, &asked, spec.usages.texts()) else {
            return Ok(Next::Done);
        };
        let mut changed = request.as_ref().clone();
        if let Err(why) = checked {
            add_condition(&mut changed, failed(why, self.clock.now()));
        } else {
            let issued = self.issue(&request, &asked).map_err(Failure::Missing)?;
            let status = changed.status.get_or_insert_default();
            status.certificate = Some(ByteString(issued.into_bytes()));
        }
        let api: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        let written = api.replace_status(&key.name, &post_params(), &changed).await;
        unless_overtaken(written).doing("sign a request")?;
        Ok(Next::Done)
    }
}

/// Whether somebody has approved a request, and nothing came of it yet.
fn waits(request: &CertificateSigningRequest) -> bool {
    let is_issued = request.status.as_ref().is_some_and(|status| status.certificate.is_some());
    let has_failed = condition(request, "Failed").is_some_and(|one| one.status == "True");
    let is_approved = condition(request, "Approved").is_some() && !is_denied(request);
    is_approved && !has_failed && !is_issued
}

fn failed(why: String, now: Timestamp) -> CertificateSigningRequestCondition {
    CertificateSigningRequestCondition {
        type_: "Failed".to_owned(),
        status: "True".to_owned(),
        reason: Some("SignerValidationFailure".to_owned()),
        message: Some(why),
        last_update_time: Some(Time(whole_seconds(now))),
        ..CertificateSigningRequestCondition::default()
    }
}

fn lifetime(asked: Option<i32>) -> SignedDuration {
    asked.map_or(LIFETIME, |seconds| {
        SignedDuration::from_secs(seconds.into()).clamp(LIFETIME_MIN, LIFETIME)
    })
}
