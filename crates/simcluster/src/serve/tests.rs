//! Clients that take their time, say too much, or should not be heard at all; files and logs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::*;
use crate::cluster::SimCluster;

/// Long enough for a busy machine to answer, short enough to wait for.
const SHORT: Duration = Duration::from_millis(300);

/// What a test waits at most for something that must come.
const LONG: Duration = Duration::from_secs(30);

async fn served(limits: Limits) -> (SimCluster, Served) {
    let cluster = SimCluster::builder().controllers(false).real_time().start().unwrap();
    let options = Options { limits, ..Options::default() };
    let served = cluster.serve_with("127.0.0.1:0", options).await.unwrap();
    (cluster, served)
}

async fn connect(served: &Served) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(served.authority_pem.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(served.address()).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

/// What the server says until it closes the connection.
async fn until_closed(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut text = Vec::new();
    // A connection that is closed without a goodbye is closed.
    let _ = tokio::time::timeout(LONG, stream.read_to_end(&mut text)).await.expect("it is closed");
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test]
async fn a_handshake_takes_no_longer_than_it_may() {
    let (_cluster, served) = served(Limits { handshake: SHORT, ..Limits::default() }).await;
    let mut silent = TcpStream::connect(served.address()).await.unwrap();
    assert_eq!(until_closed(&mut silent).await, "");
}

#[tokio::test]
async fn a_head_takes_no_longer_than_it_may() {
    let (_cluster, served) = served(Limits { head: SHORT, ..Limits::default() }).await;
    let mut slow = connect(&served).await;
    slow.write_all(b"GET /version HTTP/1.1\r\nHost: localhost\r\nX-").await.unwrap();
    until_closed(&mut slow).await;
    until_closed(&mut connect(&served).await).await;
}

#[tokio::test]
async fn a_body_takes_no_longer_than_it_may() {
    let (_cluster, served) = served(Limits { body: SHORT, ..Limits::default() }).await;
    let mut slow = connect(&served).await;
    let head = format!(
        "POST /api/v1/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\
         Authorization: Bearer {}\r\n\r\n{{",
        served.admin_token
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    let answer = until_closed(&mut slow).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

#[tokio::test]
async fn bodies_of_those_who_may_not_are_not_read() {
    let (cluster, served) = served(Limits::default()).await;
    for (header, code) in [("X-Nobody: here", 403), ("Authorization: Bearer wrong", 401)] {
        let mut stranger = connect(&served).await;
        let head = format!(
            "POST /api/v1/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\
             Connection: close\r\n{header}\r\n\r\n"
        );
        stranger.write_all(head.as_bytes()).await.unwrap();
        // The body never comes, the answer does.
        let answer = until_closed(&mut stranger).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {code} ")), "{answer}");
    }
    assert_eq!(cluster.requests().last().unwrap().code, 403);
}

#[tokio::test]
async fn only_so_many_connections_are_served_at_a_time() {
    let (_cluster, served) = served(Limits { connections: 1, ..Limits::default() }).await;
    let first = connect(&served).await;
    let second = tokio::time::timeout(SHORT, connect(&served)).await;
    assert!(second.is_err(), "the second waits");
    drop(first);
    tokio::time::timeout(LONG, connect(&served)).await.expect("there is a place again");
}

/// A directory of a test's own, which is removed after it.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let name = format!("simcluster-test-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_kubeconfig_is_for_its_owner_only() {
    let directory = Directory::new("kubeconfig");
    let path = directory.0.join("config");
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    for text in ["one", "two"] {
        kubeconfig::write_private(&path, text).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode()), (text, 0o600));
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    kubeconfig::write_private(&path, "three").unwrap();
    assert_eq!(mode(), 0o600);
    assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_kubeconfig_goes_where_no_link_leads() {
    let directory = Directory::new("links");
    let (target, link) = (directory.0.join("target"), directory.0.join("link"));
    fs::write(&target, "precious").unwrap();
    symlink(&target, &link).unwrap();
    assert!(kubeconfig::write_private(&link, "new").is_err());
    assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
    symlink(directory.0.join("nothing"), directory.0.join("dangling")).unwrap();
    assert!(kubeconfig::write_private(&directory.0.join("dangling"), "new").is_err());
    assert!(kubeconfig::write_private(&directory.0, "new").is_err());
}

/// A writer whose text a test can read.
#[derive(Debug, Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn requests_are_written_down() {
    let cluster = SimCluster::builder().controllers(false).real_time().start().unwrap();
    let text = Shared::default();
    let request_log = Some(RequestLog::new(text.clone()));
    let options = Options { request_log, ..Options::default() };
    let served = cluster.serve_with("127.0.0.1:0", options).await.unwrap();
    let mut client = connect(&served).await;
    let head = format!(
        "GET /api/v1/pods?limit=5 HTTP/1.1\r\nHost: localhost\r\nUser-Agent: me \"x\"\r\n\
         Connection: close\r\nAuthorization: Bearer {}\r\n\r\n",
        served.admin_token
    );
    client.write_all(head.as_bytes()).await.unwrap();
    assert!(until_closed(&mut client).await.starts_with("HTTP/1.1 200 "));
    let text = String::from_utf8(text.0.lock().unwrap().clone()).unwrap();
    let (_, line) = text.split_once(" verb=").unwrap();
    assert!(line.starts_with("\"GET\" URI=\"/api/v1/pods?limit=5\" latency=\""), "{line}");
    assert!(line.contains(r#" userAgent="me \"x\"" user=""#), "{line}");
    assert!(line.ends_with(" resp=200\n"), "{line}");
}

/// Head and body of the answer to a GET by the admin.
async fn get(served: &Served, path: &str, headers: &str) -> (String, Vec<u8>) {
    let mut client = connect(served).await;
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Authorization: Bearer {}\r\n{headers}\r\n",
        served.admin_token
    );
    client.write_all(head.as_bytes()).await.unwrap();
    let mut text = Vec::new();
    let _ = tokio::time::timeout(LONG, client.read_to_end(&mut text)).await.expect("it is closed");
    let end = text.windows(4).position(|four| four == b"\r\n\r\n").expect("the head ends");
    let body = text.split_off(end + 4);
    (String::from_utf8(text).unwrap().to_lowercase(), body)
}

#[tokio::test]
async fn large_answers_are_packed_for_those_who_can_unpack_them() {
    let (cluster, served) = served(Limits::default()).await;
    let large = "x".repeat(200_000);
    for name in ["a", "b"] {
        let object = serde_json::json!({ "metadata": { "name": name }, "data": { "k": large } });
        let client = cluster.client();
        let maps =
            kube::Api::<k8s_openapi::api::core::v1::ConfigMap>::namespaced(client, "default");
        maps.create(&kube::api::PostParams::default(), &serde_json::from_value(object).unwrap())
            .await
            .unwrap();
    }
    let (list, one) = ("/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default");
    let gzip = "Accept-Encoding: deflate, gzip\r\n";
    let (head, whole) = get(&served, list, "").await;
    assert!(whole.len() > 400_000 && !head.contains("encoding"), "{head}");
    let (head, packed) = get(&served, list, gzip).await;
    assert!(head.contains("\r\ncontent-encoding: gzip\r\nvary: accept-encoding\r\n"), "{head}");
    assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", packed.len())), "{head}");
    let mut unpacked = Vec::new();
    io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut unpacked).unwrap();
    assert_eq!(unpacked, whole);
    // What is small, a stream, or of v3 is sent as it is; v2 is packed earlier.
    for (path, packs) in [
        (one.to_owned(), false),
        (format!("{list}?watch=1&timeoutSeconds=1"), false),
        ("/openapi/v3/api/v1".to_owned(), false),
        ("/openapi/v2".to_owned(), true),
    ] {
        let (head, _) = get(&served, &path, gzip).await;
        assert!(head.starts_with("http/1.1 200 "), "{head}");
        assert_eq!(head.contains("\r\ncontent-encoding: gzip\r\n"), packs, "{path}: {head}");
    }
}

#[tokio::test]
async fn tokens_of_service_accounts_are_good_as_long_as_these_live() {
    use k8s_openapi::api::authentication::v1::TokenRequest;
    use k8s_openapi::api::core::v1::ServiceAccount;
    use kube::api::{Api, DeleteParams, PostParams};

    let (cluster, served) = served(Limits::default()).await;
    let accounts = Api::<ServiceAccount>::namespaced(cluster.client(), "default");
    let account = serde_json::json!({ "metadata": { "name": "robot" } });
    let account = serde_json::from_value(account).unwrap();
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let request = async |audience: &str| {
        let spec = serde_json::json!({ "spec": { "audiences": [audience] } });
        let request: TokenRequest = serde_json::from_value(spec).unwrap();
        let params = PostParams::default();
        let issued = accounts.create_token_request("robot", &params, &request).await.unwrap();
        issued.status.unwrap().token.unwrap()
    };
    let code = async |token: &str| {
        let mut client = connect(&served).await;
        let head = format!(
            "GET /apis/apps/v1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Authorization: Bearer {token}\r\n\r\n"
        );
        client.write_all(head.as_bytes()).await.unwrap();
        until_closed(&mut client).await.split(' ').nth(1).unwrap().to_owned()
    };
    let token = request("https://kubernetes.default.svc").await;
    assert_eq!(code(&token).await, "200");
    let user = cluster.requests().last().unwrap().user.clone();
    assert_eq!(user, "system:serviceaccount:default:robot");
    assert_eq!(code(&request("somebody else").await).await, "401");
    assert_eq!(code(&format!("{token}x")).await, "401");
    accounts.delete("robot", &DeleteParams::default()).await.unwrap();
    assert_eq!(code(&token).await, "401");
}
