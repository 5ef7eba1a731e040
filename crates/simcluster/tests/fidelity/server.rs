//! What answers the cases.

use std::error::Error;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use simcluster::auth::User;
use simcluster::env::Cluster;

/// The body of an answer, which may be a stream.
pub(crate) type Body = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

/// Sends one request as the cluster's admin.
pub(crate) async fn send(cluster: &Cluster, request: Request<Bytes>) -> Response<Body> {
    if let Some(sim) = cluster.sim() {
        let answer = sim.handle(&User::admin(), request).await;
        return answer.map(|body| body.map_err(Into::into).boxed_unsync());
    }
    let request = request.map(kube::client::Body::from);
    let answer = cluster.client().send(request).await.expect("the server can be reached");
    answer.map(|body| body.map_err(Into::into).boxed_unsync())
}
