//! From a key to a user: a request is made, approved, signed, and its certificate is shown.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};

use super::*;
use crate::cluster::SimCluster;
use crate::serve::Served;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// A key that may have been certified.
struct Client<'a> {
    served: &'a Served,
    key: &'a KeyPair,
    certificate: Option<CertificateDer<'static>>,
    token: &'a str,
}

impl Client<'_> {
    async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let mut roots = RootCertStore::empty();
        let authority = self.served.authority_pem.as_bytes();
        roots.add(CertificateDer::from_pem_slice(authority).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let key = || PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let config = match self.certificate.clone() {
            Some(certificate) => config.with_client_auth_cert(vec![certificate], key()).unwrap(),
            None => config.with_no_client_auth(),
        };
        let stream = TcpStream::connect(self.served.address()).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        let io = TokioIo::new(stream);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        let mut request = http::Request::builder().method(method).uri(path).header("host", "x");
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        let request = request
            .header("content-type", "application/json")
            .body(Full::new(bytes::Bytes::from(body.to_string())))
            .unwrap();
        let answer = sender.send_request(request).await.unwrap();
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&body).unwrap())
    }

    /// Who the server takes the client for.
    async fn is(&self) -> (u16, Value) {
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
        });
        let (code, answer) = self.send(Method::POST, path, &review).await;
        (code, answer.pointer("/status/userInfo").cloned().unwrap_or_default())
    }
}

/// Asks for a certificate of a signer, says yes, and waits for it.
async fn signed(admin: &Client<'_>, usages: &[&str]) -> Value {
    let mut asked = CertificateParams::new(vec!["a.example.com".to_owned()]).unwrap();
    asked.distinguished_name.push(DnType::OrganizationName, "devs");
    asked.distinguished_name.push(DnType::CommonName, "jane");
    let asked = asked.serialize_request(admin.key).unwrap().pem().unwrap();
    let name = usages.concat().replace(' ', "-");
    let mut request = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": { "name": name },
        "spec": {
            "request": STANDARD.encode(asked), "usages": usages, "expirationSeconds": 3600,
            "signerName": "kubernetes.io/kube-apiserver-client",
        },
    });
    let (code, answer) = admin.send(Method::POST, REQUESTS, &request).await;
    assert_eq!(code, 201, "{answer}");
    request["status"] = json!({ "conditions": [{ "type": "Approved", "status": "True" }] });
    let path = format!("{REQUESTS}/{name}");
    let (code, answer) = admin.send(Method::PUT, &format!("{path}/approval"), &request).await;
    assert_eq!(code, 200, "{answer}");
    let done = async {
        loop {
            let (_, answer) = admin.send(Method::GET, &path, &Value::Null).await;
            let status = &answer["status"];
            if status.get("certificate").is_some() || status["conditions"].get(1).is_some() {
                return status.clone();
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), done).await.expect("somebody signs")
}

#[tokio::test]
async fn a_certificate_makes_a_user() {
    let cluster = SimCluster::builder().real_time().start().unwrap();
    let served = cluster.serve("127.0.0.1:0").await.unwrap();
    let key = &KeyPair::generate().unwrap();
    let admin = Client { served: &served, key, certificate: None, token: &served.admin_token };

    let status = signed(&admin, &["client auth", "digital signature"]).await;
    let pem = STANDARD.decode(status["certificate"].as_str().unwrap()).unwrap();
    let certificate = CertificateDer::from_pem_slice(&pem).unwrap();
    let jane = Client { token: "", certificate: Some(certificate), ..admin };
    let (code, user) = jane.is().await;
    assert_eq!((code, &user["username"]), (201, &json!("jane")));
    assert_eq!(user["groups"], json!(["devs", "system:authenticated"]));

    let status = signed(&admin, &["any"]).await;
    assert_eq!(status.get("certificate"), None);
    assert_eq!(status["conditions"][1]["type"], "Failed");
    assert_eq!(status["conditions"][1]["message"], "invalid usage for client certificate: any");

    // Whom nobody trusts is nobody, unless he has another credential.
    let own = CertificateParams::new(vec!["x".to_owned()]).unwrap().self_signed(key).unwrap();
    let stranger = Client { certificate: Some(own.der().clone()), ..jane };
    assert_eq!(stranger.is().await.0, 401);
    let with_token = Client { token: &served.admin_token, ..stranger };
    assert_eq!(with_token.is().await.1["username"], "admin");
    served.shutdown().await;
}
