//! Connections: accepted, secured, authenticated, answered, ended.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::stream::StreamExt as _;
use http::header::{AUTHORIZATION, CONNECTION, HeaderValue};
use http::request::Parts;
use http::{Request, Response, StatusCode, Version};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::peers::{Peer, Peers};
use super::request_log::{Line, RequestLog};
use super::{Limits, compression};
use simcluster_model::codec::body::LIMIT_BYTES;
use simcluster_server::auth::{Tokens, User, account_of};
use simcluster_server::gate::ConnectionReset;
use simcluster_server::http::{Body, handle, may, unauthorized};
use simcluster_server::server::ApiServer;

/// How long connections may take to finish after shutdown was asked for.
const GRACE: Duration = Duration::from_secs(5);

/// How often a silent HTTP/2 connection is asked whether its client is still there.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// What every connection needs.
#[derive(Debug, Clone)]
pub(super) struct Site {
    pub(super) server: Arc<ApiServer>,
    pub(super) tokens: Tokens,
    pub(super) peers: Peers,
    pub(super) request_log: Option<RequestLog>,
    pub(super) limits: Limits,
}

/// Waits until the server is to stop (or is gone).
async fn stop_of(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stop| *stop).await;
}

pub(super) async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    site: Site,
    mut stopped: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(site.limits.connections));
    let mut connections = JoinSet::new();
    loop {
        let incoming = async {
            // Nobody closes the semaphore, so there will be a place.
            let place = Arc::clone(&places).acquire_owned().await.map_err(io::Error::other)?;
            Ok::<_, io::Error>((listener.accept().await?.0, place))
        };
        tokio::select! {
            biased;
            () = stop_of(&mut stopped) => break,
            Some(_) = connections.join_next() => {}
            incoming = incoming => match incoming {
                Ok((stream, place)) => {
                    let (acceptor, site) = (acceptor.clone(), site.clone());
                    let stopped = stopped.clone();
                    connections.spawn(async move {
                        connection(stream, acceptor, site, stopped).await;
                        drop(place);
                    });
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
    let _ = timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    site: Site,
    mut stopped: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let limits = site.limits;
    let stream = match timeout(limits.handshake, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%error, "TLS handshake failed");
            return;
        }
        Err(_) => {
            tracing::debug!("TLS handshake took too long");
            return;
        }
    };
    let peer = site.peers.peer(stream.get_ref().1.peer_certificates());
    let builder = protocol(&stream, &limits);
    let until = stopped.clone();
    let service = service_fn(move |request| {
        let (site, peer, until) = (site.clone(), peer.clone(), until.clone());
        async move { answer(&site, &peer, request, until).await }
    });
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

/// The protocol that the handshake chose: to look at the first bytes instead would wait for them without
/// a limit.
fn protocol(stream: &TlsStream<TcpStream>, limits: &Limits) -> auto::Builder<TokioExecutor> {
    let builder = auto::Builder::new(TokioExecutor::new());
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let mut builder = if is_http2 { builder.http2_only() } else { builder.http1_only() };
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.head);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(limits.head);
    builder
}

/// Answers a request and writes it to the log. An error closes the connection (of HTTP/2: resets the
/// stream).
async fn answer(
    site: &Site,
    peer: &Peer,
    request: Request<Incoming>,
    mut stopped: watch::Receiver<bool>,
) -> Result<Response<Body>, ConnectionReset> {
    let begun = Instant::now();
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(site.tokens.clone());
    let user = authenticate(site, peer, &parts);
    let answer = admit(site, user.as_ref(), &parts, body).await?;
    if let Some(log) = &site.request_log {
        log.add(&Line {
            time: site.server.clock().now(),
            request: &parts,
            user: user.as_ref().map_or("", |user| &user.name),
            took: begun.elapsed(),
            code: answer.status().as_u16(),
        });
    }
    Ok(compression::packed(answer, &parts).map(|body| match body {
        Body::Full(content) => Body::Full(content),
        Body::Stream(lines) => {
            let end = async move { stop_of(&mut stopped).await };
            Body::Stream(lines.take_until(Box::pin(end)).boxed())
        }
    }))
}

/// Answers a request. Bodies are read for those only who may do what they ask for.
async fn admit(
    site: &Site,
    user: Option<&User>,
    parts: &Parts,
    body: Incoming,
) -> Result<Response<Body>, ConnectionReset> {
    let request = |content| Request::from_parts(parts.clone(), content);
    let Some(user) = user else {
        return Ok(unauthorized(&site.server, &request(Bytes::new())));
    };
    if !may(&site.server, user, parts) {
        return handle(&site.server, user, request(Bytes::new())).await;
    }
    match timeout(site.limits.body, read(body)).await {
        Ok(Some(content)) => handle(&site.server, user, request(content)).await,
        Ok(None) => Ok(bare(parts, StatusCode::BAD_REQUEST)),
        Err(_) => Ok(bare(parts, StatusCode::REQUEST_TIMEOUT)),
    }
}

/// An answer to a client that does not say all it was about to.
fn bare(parts: &Parts, status: StatusCode) -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = status;
    if parts.version < Version::HTTP_2 {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
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

/// The user of a request: by certificate, by bearer token, a fixed one or one of a `ServiceAccount`, or
/// anonymous without one; `None` for a wrong certificate or token.
fn authenticate(site: &Site, peer: &Peer, request: &Parts) -> Option<User> {
    if let Peer::Known(user) = peer {
        return Some(user.clone());
    }
    let header = request.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = header.and_then(|header| {
        let (scheme, token) = header.trim().split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    match token {
        None | Some("") => (*peer == Peer::Unknown).then(User::anonymous),
        Some(token) => site.tokens.user(token).cloned().or_else(|| account_of(&site.server, token)),
    }
}
