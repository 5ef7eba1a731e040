//! What answers the cases.

use std::error::Error;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderValue, Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use simcluster::auth::User;
use simcluster::env::Cluster;

/// The body of an answer, which may be a stream.
pub(crate) type Body = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

/// Sends one request as the cluster's admin.
pub(crate) async fn send(cluster: &Cluster, request: Request<Bytes>) -> Response<Body> {
    if let Some(sim) = cluster.sim() {
        // The admin has no token here, so every token is a wrong one.
        let mut answer = if request.headers().contains_key(AUTHORIZATION) {
            simcluster::unauthorized(sim.server(), &request)
        } else {
            sim.handle(&User::admin(), request).await.expect("no fault breaks it")
        };
        frame(&mut answer);
        return answer.map(|body| body.map_err(Into::into).boxed_unsync());
    }
    let request = request.map(kube::client::Body::from);
    let answer = cluster.client().send(request).await.expect("the server can be reached");
    answer.map(|body| body.map_err(Into::into).boxed_unsync())
}

/// Adds the header by which HTTP/1.1 says where a body ends: without a connection nobody else does.
fn frame(answer: &mut Response<simcluster::Body>) {
    let (name, value) = match answer.body().size_hint().exact() {
        Some(size) => (CONTENT_LENGTH, HeaderValue::from(size)),
        None => (TRANSFER_ENCODING, HeaderValue::from_static("chunked")),
    };
    answer.headers_mut().insert(name, value);
}
