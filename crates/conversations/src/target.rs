//! What answers the requests of a conversation.

use std::error::Error as StdError;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderValue, Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use simcluster::auth::User;
use simcluster::cluster::SimCluster;
use simcluster::env::Cluster;

use crate::error::Error;

/// The body of an answer, which may be a stream.
pub(crate) type Body = UnsyncBoxBody<Bytes, Box<dyn StdError + Send + Sync>>;

/// A server, asked as the cluster's admin.
#[derive(Clone)]
pub enum Target<'a> {
    /// A simulated cluster in this process, without a connection.
    Simulated(&'a SimCluster),
    /// A server that a client reaches.
    Real(kube::Client),
}

impl<'a> From<&'a Cluster> for Target<'a> {
    fn from(cluster: &'a Cluster) -> Self {
        cluster.sim().map_or_else(|| Self::Real(cluster.client()), Self::Simulated)
    }
}

impl Target<'_> {
    /// Sends one request.
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, Error> {
        match self {
            Self::Simulated(cluster) => Ok(simulated(cluster, request).await),
            Self::Real(client) => {
                let request = request.map(kube::client::Body::from);
                let answer = client.send(request).await.map_err(Error::Unreachable)?;
                Ok(answer.map(|body| body.map_err(Into::into).boxed_unsync()))
            }
        }
    }

    /// Whether its time is that of the machine, or of everybody who shares the cluster.
    pub(crate) fn is_real(&self) -> bool {
        matches!(self, Self::Real(_))
    }
}

async fn simulated(cluster: &SimCluster, request: Request<Bytes>) -> Response<Body> {
    // The admin has no token here, so every token is a wrong one.
    let mut answer = if request.headers().contains_key(AUTHORIZATION) {
        simcluster::unauthorized(cluster.server(), &request)
    } else {
        cluster.handle(&User::admin(), request).await
    };
    frame(&mut answer);
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
