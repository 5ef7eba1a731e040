//! The keys of a server: made when it starts, gone when it ends.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SigningKey as _,
};
use sha2::{Digest, Sha256};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::peers::Peers;
use simcluster_controllers::Authority;
use simcluster_model::golang;

/// The keys of one server.
pub(super) struct Identity {
    pub(super) tls: ServerConfig,
    pub(super) authority: Signing,
    pub(super) peers: Peers,
    pub(super) admin_token: String,
}

/// The authority that signs for the server and for its clients.
pub(super) struct Signing(CertifiedIssuer<'static, KeyPair>);

impl Signing {
    pub(super) fn pem(&self) -> String {
        self.0.pem()
    }
}

impl fmt::Debug for Signing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signing")
    }
}

impl Authority for Signing {
    fn certificate(&self) -> &[u8] {
        self.0.der()
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        self.0.key().sign(message).map_err(|error| error.to_string())
    }
}

/// Makes a certificate authority, a certificate for the address signed by it, and the admin's token.
pub(super) fn new(
    address: SocketAddr,
) -> Result<Identity, Box<dyn std::error::Error + Send + Sync>> {
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
    let peers = Peers::new(authority.der().clone())?;
    let mut tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(Arc::new(peers.clone()))
        .with_single_cert(vec![leaf.der().clone()], private_key)?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Identity { tls, authority: Signing(authority), peers, admin_token: secret()? })
}

/// A secret text. The hash of a fresh private key is as hard to guess as the key itself.
pub(super) fn secret() -> Result<String, rcgen::Error> {
    let key = KeyPair::generate()?;
    let text = golang::hex(&Sha256::digest(key.serialized_der()));
    Ok(text.chars().take(32).collect())
}
