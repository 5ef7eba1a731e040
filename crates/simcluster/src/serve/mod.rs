//! The API over HTTPS on a local port, for kubectl and for clients in other languages.
//!
//! A bad connection is that connection's problem: nothing here panics or stops because of it. On
//! shutdown watches end cleanly, running requests are answered, then the connections close.

mod compression;
mod connection;
mod identity;
mod kubeconfig;
mod peers;
mod request_log;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use self::connection::Site;
pub use self::request_log::RequestLog;
use crate::client;
use simcluster_controllers::{Controllers, start_signer};
use simcluster_server::auth::{Tokens, User};
use simcluster_server::server::ApiServer;

/// What a client may take of the server's time and memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at one time; further clients wait until one ends.
    pub connections: usize,
    /// How long a TLS handshake may take.
    pub handshake: Duration,
    /// How long the head of a request may take, and so how long an HTTP/1.1 connection may idle.
    pub head: Duration,
    /// How long the body of a request may take.
    pub body: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1_000,
            handshake: Duration::from_secs(10),
            head: Duration::from_mins(2),
            body: Duration::from_mins(1),
        }
    }
}

/// How to serve, beside where.
#[derive(Debug, Default)]
pub struct Options {
    /// Bearer tokens beside the admin's own.
    pub tokens: BTreeMap<String, User>,
    /// Where a line for each request goes.
    pub request_log: Option<RequestLog>,
    /// What clients may take.
    pub limits: Limits,
}

/// A running server; it stops when it is dropped, cleanly with `shutdown`.
#[derive(Debug)]
pub struct Served {
    address: SocketAddr,
    authority_pem: String,
    admin_token: String,
    stop: watch::Sender<bool>,
    accepting: tokio::task::JoinHandle<()>,
    #[expect(dead_code, reason = "holds the signer, which stops when it is dropped")]
    signer: Option<Controllers>,
}

/// Starts to serve on an address such as `127.0.0.1:0`. If it `signs`, those get certificates whose
/// requests are approved.
pub(crate) async fn serve(
    server: Arc<ApiServer>,
    listen: &str,
    options: Options,
    signs: bool,
) -> io::Result<Served> {
    let listener = TcpListener::bind(listen).await?;
    let address = listener.local_addr()?;
    let identity = identity::new(address).map_err(io::Error::other)?;
    let mut tokens = options.tokens;
    tokens.insert(identity.admin_token.clone(), User::admin());
    server.sign_tokens_with(&identity::secret().map_err(io::Error::other)?);
    let authority_pem = identity.authority.pem();
    let signer = signs.then(|| {
        let client = client::client(&server, User::controller("certificate-controller"));
        start_signer(client, *server.clock(), server.seed(), identity.authority)
    });
    let site = Site {
        server,
        peers: identity.peers,
        tokens: Tokens::new(tokens),
        request_log: options.request_log,
        limits: options.limits,
    };
    let (stop, stopped) = watch::channel(false);
    let acceptor = TlsAcceptor::from(Arc::new(identity.tls));
    let accepting = tokio::spawn(connection::accept(listener, acceptor, site, stopped));
    Ok(Served {
        address,
        authority_pem,
        admin_token: identity.admin_token,
        stop,
        accepting,
        signer,
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
        kubeconfig::text(self.address, &self.authority_pem, user, token)
    }

    /// Writes the admin's kubeconfig to a file that only its owner can read. A file that is there is
    /// replaced as a whole; what is no plain file, such as a symbolic link, is refused.
    pub fn write_kubeconfig(&self, path: &Path) -> io::Result<()> {
        kubeconfig::write_private(path, &self.kubeconfig())
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

#[cfg(test)]
mod tests;
