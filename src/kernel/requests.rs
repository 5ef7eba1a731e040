//! Sends a request with a time limit.

use std::{future::Future, time::Duration};

use super::error::RequestError;

/// How long one request may take. The API server itself gives up after 60 s; half of that leaves
/// room for a second attempt within a clean-up deadline of minutes.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Waits for the answer to `request` (what it is called in logs), but not for ever.
///
/// The client must not retry by itself: attempts are the business of the queue's back-off.
pub async fn send<T>(
    request: String,
    answer: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, RequestError> {
    match tokio::time::timeout(REQUEST_TIMEOUT, answer).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(RequestError::new(request, error)),
        Err(_elapsed) => Err(RequestError::TimedOut { request, limit: REQUEST_TIMEOUT }),
    }
}
