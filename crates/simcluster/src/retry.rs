//! The retries of kube's own clients, with jitter from the cluster's seed: that of
//! [`kube::client::retry::RetryPolicy`] comes from the machine, so that no run repeats another.

use std::time::Duration;

use http::{Request, Response};
use kube::client::Body;
use tower::BoxError;
use tower::retry::Policy;
use tower::retry::backoff::{Backoff, ExponentialBackoff, ExponentialBackoffMaker, MakeBackoff};
use tower::util::rng::Rng;

use simcluster_model::random::Random;
use simcluster_server::auth::User;

/// As in `RetryPolicy::server_retry`.
const DELAY_MIN: Duration = Duration::from_millis(5);
const DELAY_MAX: Duration = Duration::from_secs(1000);
const RETRIES_MAX: u32 = 15;

/// Tries again what was answered with 429, 503 or 504, as `RetryPolicy::server_retry` does.
#[derive(Debug, Clone)]
pub(crate) struct Retries {
    backoff: ExponentialBackoff<Jitter>,
    done: u32,
}

/// Random numbers for jitter.
#[derive(Debug, Clone)]
struct Jitter(Random);

impl Rng for Jitter {
    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}

impl Retries {
    pub(crate) fn new(seed: u64, user: &User) -> Self {
        let jitter = Jitter(Random::stream(seed, &format!("retries/{}", user.name)));
        let backoff = ExponentialBackoffMaker::new(DELAY_MIN, DELAY_MAX, 2.0, jitter)
            .expect("the shortest delay is shorter than the longest")
            .make_backoff();
        Self { backoff, done: 0 }
    }
}

impl<B> Policy<Request<Body>, Response<B>, BoxError> for Retries {
    type Future = tokio::time::Sleep;

    fn retry(
        &mut self,
        _: &mut Request<Body>,
        result: &mut Result<Response<B>, BoxError>,
    ) -> Option<Self::Future> {
        let answer = result.as_ref().ok()?;
        if !matches!(answer.status().as_u16(), 429 | 503 | 504) || self.done >= RETRIES_MAX {
            return None;
        }
        self.done += 1;
        let own = self.backoff.next_backoff();
        let asked = answer.headers().get(http::header::RETRY_AFTER);
        let asked =
            asked.and_then(|text| text.to_str().ok()?.parse().ok()).map(Duration::from_secs);
        match asked {
            Some(asked) if own.deadline() <= tokio::time::Instant::now() + asked => {
                Some(tokio::time::sleep(asked))
            }
            _ => Some(own),
        }
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        let mut clone = Request::new(request.body().try_clone()?);
        request.method().clone_into(clone.method_mut());
        request.uri().clone_into(clone.uri_mut());
        request.headers().clone_into(clone.headers_mut());
        request.extensions().clone_into(clone.extensions_mut());
        Some(clone)
    }
}
