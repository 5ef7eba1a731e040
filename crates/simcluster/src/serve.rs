//! The API over HTTPS on a local port, for kubectl and for clients in other languages.
//!
//! A bad connection is that connection's problem: nothing here panics or stops because of it. On
//! shutdown watches end cleanly, running requests are answered, then the connections close.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use futures::stream::StreamExt;
use http::header::AUTHORIZATION;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use sha2::{Digest, Sha256};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use simcluster_model::codec::body::LIMIT_BYTES;
use simcluster_server::auth::{Tokens, User};
use simcluster_server::http::{Body, handle, unauthorized};
use simcluster_server::server::ApiServer;

/// How long connections may take to finish after shutdown was asked for.
const GRACE: Duration = Duration::from_secs(5);

/// A running server; it stops when it is dropped, cleanly with `shutdown`.
#[derive(Debug)]
pub struct Served {
    address: SocketAddr,
    authority_pem: String,
    admin_token: String,
    stop: watch::Sender<bool>,
    accepting: tokio::task::JoinHandle<()>,
}

/// Starts to serve on an address such as `127.0.0.1:0`. `tokens` are bearer tokens beside the admin's
/// own, which is made here.
pub async fn serve(
    server: Arc<ApiServer>,
    listen: &str,
    tokens: BTreeMap<String, User>,
) -> io::Result<Served> {
    let listener = TcpListener::bind(listen).await?;
    let address = listener.local_addr()?;
    let identity = identity(address).map_err(io::Error::other)?;
    let mut tokens = tokens;
    tokens.insert(identity.admin_token.clone(), User::admin());
    let site = Site { server, tokens: Tokens::new(tokens) };
    let (stop, stopped) = watch::channel(false);
    let acceptor = TlsAcceptor::from(Arc::new(identity.tls));
    let accepting = tokio::spawn(accept(listener, acceptor, site, stopped));
    Ok(Served {
        address,
        authority_pem: identity.authority_pem,
        admin_token: identity.admin_token,
        stop,
        accepting,
    })
}

impl Served {
    /// Where the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A kubeconfig for the cluster's admin.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        self.kubeconfig_for("admin", &self.admin_token)
    }

    /// A kubeconfig for the holder of a token.
    #[must_use]
    pub fn kubeconfig_for(&self, user: &str, token: &str) -> String {
        let authority = STANDARD.encode(&self.authority_pem);
        let address = self.address;
        format!(
            "apiVersion: v1
kind: Config
clusters:
- name: simcluster
  cluster:
    server: https://{address}
    certificate-authority-data: {authority}
users:
- name: {user}
  user:
    token: {token}
contexts:
- name: simcluster
  context:
    cluster: simcluster
    user: {user}
    namespace: default
current-context: simcluster
"
        )
    }

    /// Writes the admin's kubeconfig to a file that only its owner can read.
    pub fn write_kubeconfig(&self, path: &Path) -> io::Result<()> {
        write_private(path, &self.kubeconfig())
    }

    /// Stops: ends watches, lets running requests finish for a few seconds, closes the port.
    pub async fn shutdown(mut self) {
        self.stop.send_replace(true);
        // The task only ends; an error would say that it was aborted.
        let _ = (&mut self.accepting).await;
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        self.accepting.abort();
    }
}

/// Writes a file with mode 0600, whatever was there before.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())
}

/// The keys of one server.
struct Identity {
    tls: ServerConfig,
    authority_pem: String,
    admin_token: String,
}

/// Makes a certificate authority, a certificate for the address signed by it, and the admin's token.
fn identity(address: SocketAddr) -> Result<Identity, Box<dyn std::error::Error + Send + Sync>> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.distinguished_name.push(DnType::CommonName, "simcluster-ca");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    names.extend(["kubernetes", "kubernetes.default", "kubernetes.default.svc"].map(str::to_owned));
    if !names.contains(&address.ip().to_string()) {
        names.push(address.ip().to_string());
    }
    let key = KeyPair::generate()?;
    let mut leaf = CertificateParams::new(names)?;
    leaf.distinguished_name.push(DnType::CommonName, "simcluster");
    let leaf = leaf.signed_by(&key, &authority)?;

    let private_key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], private_key)?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Identity { tls, authority_pem: authority.pem(), admin_token: secret()? })
}

/// A secret text. The hash of a fresh private key is as hard to guess as the key itself.
fn secret() -> Result<String, rcgen::Error> {
    let key = KeyPair::generate()?;
    let digest = Sha256::digest(key.serialized_der());
    Ok(digest.iter().take(16).fold(String::new(), |mut text, byte| {
        use std::fmt::Write;
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// What every connection needs.
#[derive(Debug, Clone)]
struct Site {
    server: Arc<ApiServer>,
    tokens: Tokens,
}

/// Waits until the server is to stop (or is gone).
async fn stop_of(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stop| *stop).await;
}

async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    site: Site,
    mut stopped: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = stop_of(&mut stopped) => break,
            Some(_) = connections.join_next() => {}
            incoming = listener.accept() => match incoming {
                Ok((stream, _)) => {
                    let (acceptor, site) = (acceptor.clone(), site.clone());
                    connections.spawn(connection(stream, acceptor, site, stopped.clone()));
                }
                Err(error) => {
                    // Out of file descriptors, most likely: the next try may find some.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
        }
    }
    drop(listener);
    let _ = tokio::time::timeout(GRACE, async { while connections.join_next().await.is_some() {} })
        .await;
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    site: Site,
    mut stopped: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let stream = match acceptor.accept(stream).await {
        Ok(stream) => stream,
        Err(error) => {
            tracing::debug!(%error, "TLS handshake failed");
            return;
        }
    };
    let until = stopped.clone();
    let service = service_fn(move |request| {
        let (site, until) = (site.clone(), until.clone());
        async move { Ok::<_, std::convert::Infallible>(answer(&site, request, until).await) }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = stop_of(&mut stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "connection broke");
    }
}

/// Authenticates a request and answers it; a watch ends when the server stops.
async fn answer(
    site: &Site,
    request: Request<Incoming>,
    mut stopped: watch::Receiver<bool>,
) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(site.tokens.clone());
    let Some(content) = read(body).await else {
        let mut broken = Response::new(Body::empty());
        *broken.status_mut() = http::StatusCode::BAD_REQUEST;
        return broken;
    };
    let request = Request::from_parts(parts, content);
    let answer = match authenticate(&site.tokens, &request) {
        Some(user) => handle(&site.server, &user, request).await,
        None => unauthorized(&site.server, &request),
    };
    answer.map(|body| match body {
        Body::Full(content) => Body::Full(content),
        Body::Stream(lines) => {
            let end = async move { stop_of(&mut stopped).await };
            Body::Stream(lines.take_until(Box::pin(end)).boxed())
        }
    })
}

/// Reads a body up to just beyond the limit, where the pipeline refuses it; `None` if it broke off.
async fn read(mut body: Incoming) -> Option<Bytes> {
    let mut content = BytesMut::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.ok()?.into_data() {
            content.extend_from_slice(&data);
        }
        if content.len() > LIMIT_BYTES {
            break;
        }
    }
    Some(content.freeze())
}

/// The user of a request: by bearer token, or anonymous without one; `None` for a wrong token.
fn authenticate(tokens: &Tokens, request: &Request<Bytes>) -> Option<User> {
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = header.and_then(|header| {
        let (scheme, token) = header.trim().split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    match token {
        None | Some("") => Some(User::anonymous()),
        Some(token) => tokens.user(token).cloned(),
    }
}
