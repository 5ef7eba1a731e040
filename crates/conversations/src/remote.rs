//! A server that is reached over HTTPS, with control over connections and headers.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderValue, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use kube::client::ConfigExt as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use simcluster::env::Cluster;
use tokio::net::{TcpSocket, lookup_host};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::error::Error;

/// The most connections that are kept for further requests.
const IDLE_MAX: usize = 4;

/// A server, and the credentials of a kubeconfig's current context. Clones share connections.
#[derive(Clone)]
pub struct Remote(Arc<Inner>);

struct Inner {
    host: String,
    port: u16,
    tls: Arc<ClientConfig>,
    token: Option<HeaderValue>,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "https://{}:{}", self.0.host, self.0.port)
    }
}

impl Remote {
    /// The real cluster of a test.
    pub(crate) async fn of(cluster: &Cluster) -> Result<Self, Error> {
        let paths = cluster.kubeconfig().unwrap_or_default();
        let kubeconfig = match std::env::split_paths(&paths).next() {
            // Several files are merged by the rules that hold for everybody who reads them.
            Some(file) if file.as_os_str() == paths => Kubeconfig::read_from(file),
            _ => Kubeconfig::read(),
        };
        Self::new(kubeconfig.map_err(unreachable)?).await
    }

    /// The server of a kubeconfig's current context.
    pub async fn new(kubeconfig: Kubeconfig) -> Result<Self, Error> {
        let token = token(&kubeconfig);
        let config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
                .await
                .map_err(unreachable)?;
        let uri = &config.cluster_url;
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let mut tls = config.rustls_client_config().map_err(unreachable)?;
        tls.alpn_protocols.clear();
        Ok(Self(Arc::new(Inner {
            host: host.to_owned(),
            port: uri.port_u16().unwrap_or(443),
            tls: Arc::new(tls),
            token,
            idle: Mutex::default(),
        })))
    }

    /// Sends a request on a connection that is free, or on a new one. Credentials are added unless the
    /// request has some.
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Result<Response<Incoming>, Error> {
        let mut connection = match self.idle() {
            Some(connection) => connection,
            None => self.connect(None).await?,
        };
        let answer = connection.send_request(self.complete(request)).await.map_err(unreachable)?;
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(connection);
        Ok(answer)
    }

    /// Sends a request on a connection of its own, of whose answer the kernel buffers `window` bytes.
    pub(crate) async fn open(
        &self,
        request: Request<Bytes>,
        window: Option<u32>,
    ) -> Result<Response<Incoming>, Error> {
        let mut connection = self.connect(window).await?;
        connection.send_request(self.complete(request)).await.map_err(unreachable)
    }

    /// A connection whose last answer was read.
    fn idle(&self) -> Option<SendRequest<Full<Bytes>>> {
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|connection| !connection.is_closed());
        if idle.len() > IDLE_MAX {
            idle.remove(0);
        }
        let free = idle.iter().position(SendRequest::is_ready)?;
        Some(idle.swap_remove(free))
    }

    async fn connect(&self, window: Option<u32>) -> Result<SendRequest<Full<Bytes>>, Error> {
        let Inner { host, port, tls, .. } = &*self.0;
        let address = lookup_host((host.as_str(), *port)).await.map_err(unreachable)?.next();
        let address = address.ok_or_else(|| unreachable(format!("{host} has no address")))?;
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
        let socket = socket.map_err(unreachable)?;
        if let Some(window) = window {
            socket.set_recv_buffer_size(window).map_err(unreachable)?;
        }
        let stream = socket.connect(address).await.map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        let name = ServerName::try_from(host.clone()).map_err(unreachable)?;
        let stream = TlsConnector::from(tls.clone()).connect(name, stream).await;
        let stream = TokioIo::new(stream.map_err(unreachable)?);
        let (sender, connection) = http1::handshake(stream).await.map_err(unreachable)?;
        // It ends with an error if the server cuts it: the answer that is being read says so.
        tokio::spawn(async move { connection.with_upgrades().await.unwrap_or_default() });
        Ok(sender)
    }

    fn complete(&self, request: Request<Bytes>) -> Request<Full<Bytes>> {
        let Inner { host, port, token, .. } = &*self.0;
        let mut request = request.map(Full::new);
        let headers = request.headers_mut();
        if let Ok(host) = HeaderValue::from_str(&format!("{host}:{port}")) {
            headers.entry(HOST).or_insert(host);
        }
        if let Some(token) = token {
            headers.entry(AUTHORIZATION).or_insert_with(|| token.clone());
        }
        request
    }
}

fn unreachable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Unreachable(io::Error::other(error))
}

/// The bearer token of the current context's user, if that is what it has.
fn token(kubeconfig: &Kubeconfig) -> Option<HeaderValue> {
    let kubeconfig = serde_json::to_value(kubeconfig).ok()?;
    let named = |list: &str, name: &Value| {
        let found = kubeconfig.get(list)?.as_array()?.iter();
        found.into_iter().find(|one| one.get("name") == Some(name))
    };
    let context = named("contexts", kubeconfig.get("current-context")?)?;
    let user = named("users", context.pointer("/context/user")?)?;
    let token = user.pointer("/user/token")?.as_str()?;
    HeaderValue::from_str(&format!("Bearer {token}")).ok()
}
