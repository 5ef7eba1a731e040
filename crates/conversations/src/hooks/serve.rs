//! One webhook as an HTTPS server.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsAcceptor;

use super::answer::{Rule, choose};
use super::{Call, Log, locked};

/// A webhook.
#[derive(Debug, Clone)]
pub(super) struct Hook {
    pub(super) name: String,
    pub(super) rules: Vec<Rule>,
    pub(super) log: Arc<Mutex<Log>>,
}

/// Answers until it is stopped.
pub(super) async fn serve(listener: TcpListener, tls: TlsAcceptor, hook: Hook) {
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(connection(stream, tls.clone(), hook.clone()));
            }
            // The machine has no more of something: the next one may have luck.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// A client that hangs up or does not trust the certificate is what some cases are about.
async fn connection(stream: TcpStream, tls: TlsAcceptor, hook: Hook) {
    let Ok(stream) = tls.accept(stream).await else { return };
    let service = service_fn(|request| answer(request, &hook));
    let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    served.await.unwrap_or_default();
}

/// An error closes the connection without an answer.
async fn answer(request: Request<Incoming>, hook: &Hook) -> io::Result<Response<Full<Bytes>>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let review: Value = serde_json::from_slice(&body)?;
    let rule = note(head, &review, hook);
    if let Some(delay) = rule.delay {
        sleep(Duration::from_secs_f64(delay)).await;
    }
    if rule.hangup {
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    let mut response =
        Response::builder().status(rule.status.unwrap_or(200)).header(CONNECTION, "close");
    if !rule.headers.keys().any(|name| name.eq_ignore_ascii_case(CONTENT_TYPE.as_str())) {
        response = response.header(CONTENT_TYPE, "application/json");
    }
    for (name, value) in &rule.headers {
        response = response.header(name, value);
    }
    response.body(Full::from(rule.body(&review))).map_err(io::Error::other)
}

/// Writes a call down, and finds the rule that answers it.
fn note(head: http::request::Parts, review: &Value, hook: &Hook) -> Rule {
    let mut log = locked(&hook.log);
    let uid = review.pointer("/request/uid").and_then(Value::as_str).unwrap_or_default();
    log.reviews.insert(uid.to_owned());
    let headers = head.headers.iter().filter_map(|(name, value)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    });
    log.calls.push(Call {
        hook: hook.name.clone(),
        path: head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
        headers: headers.collect(),
        body: review.clone(),
        at: Instant::now(),
    });
    choose(&hook.rules, review, &log.names)
}
