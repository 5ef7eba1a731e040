//! One call over HTTPS, in real time.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http::header::{ACCEPT, CONTENT_TYPE, HOST, LOCATION, RETRY_AFTER, USER_AGENT};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{CertificateError, ClientConfig, Error};

use super::trust::Authority;
use simcluster_server::webhook::{WebhookCall, WebhookReply};

/// How many redirections are followed.
const REDIRECTS_MAX: usize = 10;

/// One real call, start to end, on a thread that may block.
pub(super) fn post(
    call: &WebhookCall,
    dialled: Option<SocketAddr>,
) -> Result<WebhookReply, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|why| why.to_string())?;
    runtime.block_on(async {
        let exchange = tokio::time::timeout(call.timeout, follow(call, dialled));
        exchange.await.unwrap_or_else(|_| Err("context deadline exceeded".to_owned()))
    })
}

/// Goes where a webhook sends it, as Go's client does.
async fn follow(call: &WebhookCall, dialled: Option<SocketAddr>) -> Result<WebhookReply, String> {
    let mut uri: Uri = call.url.parse().map_err(|why| format!("{why}"))?;
    for _ in 0..REDIRECTS_MAX {
        let answer = exchange(call, &uri, dialled).await?;
        let location = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let Some(location) = location.filter(|_| matches!(answer.status().as_u16(), 307 | 308))
        else {
            return reply(answer).await;
        };
        uri = elsewhere(&uri, location)?;
    }
    Err(format!("stopped after {REDIRECTS_MAX} redirects"))
}

/// The address that a redirection names: whole, or a path on the same host.
fn elsewhere(uri: &Uri, location: &str) -> Result<Uri, String> {
    let target: Uri = location.parse().map_err(|why| format!("{why}"))?;
    if target.host().is_some() {
        return Ok(target);
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = target.into_parts().path_and_query;
    Uri::from_parts(parts).map_err(|why| why.to_string())
}

async fn reply(answer: Response<Incoming>) -> Result<WebhookReply, String> {
    let text = |name| answer.headers().get(name).and_then(|value| value.to_str().ok());
    let status = answer.status().as_u16();
    let content_type = text(CONTENT_TYPE).unwrap_or_default().to_owned();
    let retry_after = text(RETRY_AFTER).and_then(|seconds| seconds.parse().ok());
    let body = answer.into_body().collect().await.map_err(|_| "unexpected EOF".to_owned())?;
    Ok(WebhookReply { status, content_type, body: body.to_bytes(), retry_after })
}

async fn exchange(
    call: &WebhookCall,
    uri: &Uri,
    dialled: Option<SocketAddr>,
) -> Result<Response<Incoming>, String> {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let shown = match dialled {
        Some(address) => address.to_string(),
        None => format!("{host}:{}", uri.port_u16().unwrap_or(443)),
    };
    let connected = TcpStream::connect(&shown).await;
    let stream = connected.map_err(|why| format!("dial tcp {shown}: {}", refused(&why)))?;
    let name = ServerName::try_from(host.clone()).map_err(|why| why.to_string())?;
    let connector = TlsConnector::from(Arc::new(tls(&call.authority)?));
    let stream = connector.connect(name, stream).await.map_err(|why| untrusted(&why, &host))?;
    let ended = |_| "EOF".to_owned();
    // Some webhooks, and those who read their logs, expect names of headers as Go writes them.
    let mut client = http1::Builder::new();
    let connected = client.title_case_headers(true).handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = connected.map_err(ended)?;
    // It ends with the runtime; its errors are those of the request.
    tokio::spawn(connection);
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = Request::post(path)
        .header(HOST, uri.authority().map_or(host.as_str(), |authority| authority.as_str()))
        .header(USER_AGENT, "kube-apiserver-admission")
        .header(ACCEPT, "application/json, */*")
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(call.body.clone()))
        .map_err(|why| why.to_string())?;
    sender.send_request(request).await.map_err(ended)
}

fn tls(authority: &[u8]) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Authority::new(authority, &provider);
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|why| why.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(config)
}

/// Why nobody answered, as Go says it.
#[expect(clippy::wildcard_enum_match_arm, reason = "the rest have no text of Go's")]
fn refused(why: &io::Error) -> String {
    match why.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        _ => why.to_string(),
    }
}

/// Why a connection is not trusted, as Go says it.
#[expect(clippy::wildcard_enum_match_arm, reason = "the rest have no text of Go's")]
fn untrusted(why: &io::Error, host: &str) -> String {
    let inner = why.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match inner {
        Some(Error::InvalidCertificate(fault)) => {
            let text = match fault {
                CertificateError::UnknownIssuer => "certificate signed by unknown authority".into(),
                CertificateError::NotValidForName
                | CertificateError::NotValidForNameContext { .. } => {
                    format!("certificate is not valid for {host}")
                }
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. } => {
                    "certificate has expired or is not yet valid".into()
                }
                other => other.to_string(),
            };
            format!("tls: failed to verify certificate: x509: {text}")
        }
        Some(other) => format!("tls: {other}"),
        None if why.kind() == io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        None => why.to_string(),
    }
}
