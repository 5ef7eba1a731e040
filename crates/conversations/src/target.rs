//! What answers the requests of a conversation.

use std::error::Error as StdError;
use std::io;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderValue, Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use kube::config::Kubeconfig;
use simcluster::SimCluster;
use simcluster::User;
use simcluster::env::Cluster;
use simcluster::serve::Served;

use crate::error::Error;
use crate::remote::Remote;

/// The body of an answer, which may be a stream.
pub(crate) type Body = UnsyncBoxBody<Bytes, Box<dyn StdError + Send + Sync>>;

/// A server, asked as the cluster's admin.
#[derive(Debug)]
pub enum Target<'a> {
    /// A simulated cluster in this process: without connections, unless a step is about one.
    Simulated {
        /// The cluster.
        cluster: &'a SimCluster,
        /// The cluster over HTTPS, once a step has needed it.
        served: Option<(Served, Remote)>,
    },
    /// A server that is reached over HTTPS.
    Real(Remote),
}

impl<'a> Target<'a> {
    /// A simulated cluster.
    #[must_use]
    pub fn simulated(cluster: &'a SimCluster) -> Self {
        Self::Simulated { cluster, served: None }
    }

    /// The cluster of a test.
    pub async fn of(cluster: &'a Cluster) -> Result<Self, Error> {
        match cluster.sim() {
            Some(simulated) => Ok(Self::simulated(simulated)),
            None => Ok(Self::Real(Remote::of(cluster).await?)),
        }
    }

    /// Sends one request.
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, Error> {
        match self {
            Self::Simulated { cluster, served } => {
                let answer = simulated(cluster, request).await?;
                if served.is_some() {
                    // Its connections are on this thread, too.
                    tokio::task::yield_now().await;
                }
                Ok(answer)
            }
            Self::Real(remote) => Ok(remote.send(request).await?.map(boxed)),
        }
    }

    /// Sends one request on a connection of its own, of whose answer the kernel buffers `window` bytes.
    pub(crate) async fn connect(
        &mut self,
        request: Request<Bytes>,
        window: Option<u32>,
    ) -> Result<Response<Body>, Error> {
        let remote = match self {
            Self::Real(remote) => remote,
            Self::Simulated { cluster, served } => match served {
                Some((_, remote)) => remote,
                None => &served.insert(serve(cluster).await?).1,
            },
        };
        Ok(remote.open(request, window).await?.map(boxed))
    }

    /// Whether its time is that of the machine, and others share the cluster.
    pub(crate) fn is_real(&self) -> bool {
        matches!(self, Self::Real(_))
    }
}

fn boxed(body: Incoming) -> Body {
    body.map_err(Into::into).boxed_unsync()
}

async fn serve(cluster: &SimCluster) -> Result<(Served, Remote), Error> {
    let served = cluster.serve("127.0.0.1:0").await.map_err(Error::Unreachable)?;
    let kubeconfig = Kubeconfig::from_yaml(&served.kubeconfig());
    let kubeconfig = kubeconfig.map_err(|error| Error::Unreachable(io::Error::other(error)))?;
    let remote = Remote::new(kubeconfig).await?;
    Ok((served, remote))
}

async fn simulated(cluster: &SimCluster, request: Request<Bytes>) -> Result<Response<Body>, Error> {
    // The admin has no token here, so every token is a wrong one.
    let mut answer = if request.headers().contains_key(AUTHORIZATION) {
        cluster.unauthorized(&request)
    } else {
        let answer = cluster.handle(&User::admin(), request).await;
        answer.map_err(|reset| Error::Unreachable(io::Error::other(reset)))?
    };
    frame(&mut answer);
    Ok(answer.map(|body| body.map_err(Into::into).boxed_unsync()))
}

/// Adds the header by which HTTP/1.1 says where a body ends: without a connection nobody else does.
fn frame(answer: &mut Response<simcluster::Body>) {
    let (name, value) = match answer.body().size_hint().exact() {
        Some(size) => (CONTENT_LENGTH, HeaderValue::from(size)),
        None => (TRANSFER_ENCODING, HeaderValue::from_static("chunked")),
    };
    answer.headers_mut().insert(name, value);
}
