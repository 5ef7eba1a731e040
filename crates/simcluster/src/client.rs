//! A `kube::Client` in the same process: requests go straight to the pipeline, without sockets.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body_util::BodyExt;
use kube::client::Body as ClientBody;
use tower::retry::RetryLayer;
use tower::{BoxError, ServiceBuilder};

use crate::retry::Retries;
use simcluster_server::auth::User;
use simcluster_server::http::{Body, handle};
use simcluster_server::server::ApiServer;

/// A client of the server for a user, with the retries that kube's own clients have. Its default
/// namespace is `default`.
#[must_use]
pub(crate) fn client(server: &Arc<ApiServer>, user: User) -> kube::Client {
    let retries = RetryLayer::new(Retries::new(server.seed(), &user));
    let transport = Transport { server: Arc::clone(server), user };
    let service = ServiceBuilder::new().layer(retries).service(transport);
    kube::Client::new(service, "default")
}

/// The same for programs that decide themselves when to try again (`default_retry = false`).
#[must_use]
pub(crate) fn client_without_retry(server: &Arc<ApiServer>, user: User) -> kube::Client {
    kube::Client::new(Transport { server: Arc::clone(server), user }, "default")
}

/// Hands requests of one user to the server.
#[derive(Debug, Clone)]
struct Transport {
    server: Arc<ApiServer>,
    user: User,
}

impl tower::Service<Request<ClientBody>> for Transport {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ClientBody>) -> Self::Future {
        let Self { server, user } = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let content = body.collect().await?.to_bytes();
            Ok(handle(&server, &user, Request::from_parts(parts, content)).await?)
        })
    }
}
