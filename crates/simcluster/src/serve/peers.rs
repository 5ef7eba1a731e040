//! Who a client is by its certificate: its common name is a user, its organisations are groups.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tokio_rustls::rustls::client::danger::HandshakeSignatureValid;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::{
    DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
};

use simcluster_model::certificates::Certificate;
use simcluster_model::golang;
use simcluster_server::auth::User;

/// What a certificate says of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Peer {
    /// There is none.
    Unknown,
    /// The authority has signed it.
    Known(User),
    /// It is worth nothing, which is no credential.
    Wrong,
}

/// Judges certificates of clients. A handshake takes any of them, as that of a real server does: what
/// they are worth decides who a request is from.
#[derive(Debug, Clone)]
pub(super) struct Peers(Arc<dyn ClientCertVerifier>);

impl Peers {
    /// Takes the certificates that an authority has signed.
    pub(super) fn new(
        authority: CertificateDer<'static>,
    ) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let mut roots = RootCertStore::empty();
        roots.add(authority)?;
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        Ok(Self(verifier.allow_unauthenticated().build()?))
    }

    /// The client that has shown these certificates, its own first.
    pub(super) fn peer(&self, shown: Option<&[CertificateDer<'_>]>) -> Peer {
        let Some((own, between)) = shown.and_then(<[_]>::split_first) else {
            return Peer::Unknown;
        };
        if self.0.verify_client_cert(own, between, UnixTime::now()).is_err() {
            return Peer::Wrong;
        }
        match Certificate::parse(own).map(|certificate| user(&certificate, own)) {
            Ok(user) if !user.name.is_empty() => Peer::Known(user),
            Ok(_) | Err(_) => Peer::Unknown,
        }
    }
}

fn user(certificate: &Certificate, bytes: &[u8]) -> User {
    let subject = &certificate.subject;
    let mut groups: Vec<String> = subject.organizations().map(str::to_owned).collect();
    groups.push("system:authenticated".to_owned());
    let id = format!("X509SHA256={}", golang::hex(&Sha256::digest(bytes)));
    let extra =
        BTreeMap::from([("authentication.kubernetes.io/credential-id".to_owned(), vec![id])]);
    User { name: subject.common_name().to_owned(), uid: String::new(), groups, extra }
}

impl ClientCertVerifier for Peers {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _own: &CertificateDer<'_>,
        _between: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests;
