//! Webhooks: HTTPS servers on loopback that answer reviews as a case says, and remember them.

mod answer;
mod serve;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{SocketAddr, TcpListener as Listener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::Value;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

pub use self::answer::Rule;

use self::serve::Hook;
use crate::error::Error;

/// Time without a call after which no more are expected.
const QUIET: Duration = Duration::from_millis(500);
/// How long to wait for that.
const QUIET_MAX: Duration = Duration::from_secs(15);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// What a webhook was asked.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) hook: String,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
    at: Instant,
}

/// The calls of one conversation, and what its answers refer to.
#[derive(Debug, Default)]
struct Log {
    calls: Vec<Call>,
    /// The uids of all reviews.
    reviews: BTreeSet<String>,
    /// The values that steps have saved.
    names: BTreeMap<String, String>,
}

/// The webhooks of one conversation; they stop when they are dropped.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    log: Arc<Mutex<Log>>,
    /// Host and port of each.
    addresses: BTreeMap<String, String>,
    /// The authority of their certificate, as a `caBundle`.
    authority: String,
    /// Webhooks that are called at once, in the order in which their calls are told.
    parallel: Vec<String>,
    /// They run as long as it is there, on a thread of their own: in the machine's time, whatever that
    /// of the conversation is.
    running: Option<oneshot::Sender<()>>,
    /// Ports on which nobody listens.
    refused: Vec<TcpSocket>,
}

impl Hooks {
    /// Starts the webhooks of a case.
    pub(crate) fn start(
        rules: &BTreeMap<String, Vec<Rule>>,
        parallel: &[String],
    ) -> Result<Self, Error> {
        let mut hooks = Self { parallel: parallel.to_vec(), ..Self::default() };
        if rules.is_empty() {
            return Ok(hooks);
        }
        let (acceptor, authority) = certificate().map_err(Error::Webhook)?;
        hooks.authority = authority;
        let mut servers = Vec::new();
        for (name, rules) in rules {
            let listener = hooks.add(name, rules).map_err(Error::Webhook)?;
            let hook =
                Hook { name: name.clone(), rules: rules.clone(), log: Arc::clone(&hooks.log) };
            servers.extend(listener.map(|listener| (listener, hook)));
        }
        hooks.running = Some(run(servers, acceptor).map_err(Error::Webhook)?);
        Ok(hooks)
    }

    /// Finds a port for a webhook; nobody is to listen on that of one that refuses.
    fn add(&mut self, name: &str, rules: &[Rule]) -> io::Result<Option<Listener>> {
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut listens = None;
        let address = if rules.iter().any(|rule| rule.refuse) {
            // Bound, so that nobody else gets the port, but not listening.
            let socket = TcpSocket::new_v4()?;
            socket.bind(anywhere)?;
            let address = socket.local_addr()?;
            self.refused.push(socket);
            address
        } else {
            let listener = Listener::bind(anywhere)?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            listens = Some(listener);
            address
        };
        self.addresses.insert(name.to_owned(), address.to_string());
        Ok(listens)
    }

    /// Values that steps refer to in braces: URLs and the authority.
    pub(crate) fn names(&self) -> BTreeMap<String, String> {
        let urls = self.addresses.iter();
        let mut names: BTreeMap<String, String> = urls
            .map(|(name, address)| (format!("hook:{name}"), format!("https://{address}/{name}")))
            .collect();
        if !self.authority.is_empty() {
            names.insert("ca".to_owned(), self.authority.clone());
        }
        names
    }

    /// Texts of answers and calls that differ from run to run, and their names.
    pub(crate) fn texts(&self) -> Vec<(String, String)> {
        let addresses = self.addresses.iter();
        let mut texts: Vec<(String, String)> = addresses
            .map(|(name, address)| (address.clone(), format!("<address:{name}>")))
            .collect();
        if !self.authority.is_empty() {
            texts.push((self.authority.clone(), "<ca>".to_owned()));
        }
        texts
    }

    /// Whether there are any.
    pub(crate) fn are_there(&self) -> bool {
        !self.addresses.is_empty()
    }

    /// Forgets the calls so far, and says what answers may refer to from now on.
    pub(crate) fn begin(&self, names: &BTreeMap<String, String>) {
        let mut log = locked(&self.log);
        log.calls.clear();
        log.names.clone_from(names);
    }

    /// The uids of all reviews so far.
    pub(crate) fn reviews(&self) -> BTreeSet<String> {
        locked(&self.log).reviews.clone()
    }

    /// Waits until no call has come for a while. Where time is not the machine's it stands still as long
    /// as a webhook is being called.
    pub(crate) async fn quiet(&self, real: bool) {
        if !real {
            return sleep(QUIET).await;
        }
        let began = Instant::now();
        loop {
            let last = locked(&self.log).calls.iter().map(|call| call.at).max();
            let now = Instant::now();
            if now - last.unwrap_or(began).max(began) >= QUIET || now - began >= QUIET_MAX {
                return;
            }
            sleep(PAUSE).await;
        }
    }

    /// The calls in the order in which they came; neighbours among the parallel webhooks in the order
    /// of the case.
    pub(crate) fn calls(&self, only: &[String]) -> Vec<Call> {
        let rank = |call: &Call| self.parallel.iter().position(|name| *name == call.hook);
        let log = locked(&self.log);
        let mut calls: Vec<Call> = log
            .calls
            .iter()
            .filter(|call| only.is_empty() || only.contains(&call.hook))
            .cloned()
            .collect();
        for run in calls.chunk_by_mut(|one, next| rank(one).is_some() && rank(next).is_some()) {
            run.sort_by_key(rank);
        }
        calls
    }
}

/// Has webhooks answer until what is returned is dropped.
fn run(servers: Vec<(Listener, Hook)>, tls: TlsAcceptor) -> io::Result<oneshot::Sender<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (running, stopped) = oneshot::channel::<()>();
    let mut listeners = Vec::new();
    {
        let _inside = runtime.enter();
        for (listener, hook) in servers {
            listeners.push((TcpListener::from_std(listener)?, hook));
        }
    }
    std::thread::spawn(move || {
        runtime.block_on(async move {
            let mut serving = JoinSet::new();
            for (listener, hook) in listeners {
                serving.spawn(serve::serve(listener, tls.clone(), hook));
            }
            // It is never sent, only dropped.
            stopped.await.unwrap_or_default();
        });
    });
    Ok(running)
}

fn locked(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server's certificate for 127.0.0.1 which is its own authority, and that as a `caBundle`.
fn certificate() -> io::Result<(TlsAcceptor, String)> {
    let key = KeyPair::generate().map_err(io::Error::other)?;
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).map_err(io::Error::other)?;
    params.distinguished_name.push(DnType::CommonName, "webhooks");
    let certificate = params.self_signed(&key).map_err(io::Error::other)?;
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .map_err(io::Error::other)?;
    Ok((TlsAcceptor::from(Arc::new(config)), STANDARD.encode(certificate.pem())))
}

#[cfg(test)]
mod tests;
