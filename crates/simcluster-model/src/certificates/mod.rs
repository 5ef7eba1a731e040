//! X.509: requests for certificates (PKCS#10), and what there is to know of a certificate. Faults are
//! worded as Go's `crypto/x509` words them.

mod certificate;
mod der;
mod issue;
mod pem;
mod request;
mod signature;
#[cfg(test)]
mod tests;

pub use self::certificate::{Certificate, certificates};
pub use self::issue::Issue;
pub use self::pem::{Block, decode as decode_pem, encode as encode_pem};
pub use self::request::Request;
pub use self::signature::{PublicKey, Unverified};

use self::der::{OID, SEQUENCE, SET};

/// The API group of requests for certificates.
pub const GROUP: &str = "certificates.k8s.io";
/// Their resource.
pub const REQUESTS: &str = "certificatesigningrequests";
/// The signer of certificates of users of the API.
pub const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// A name: what a certificate says of whom it is for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// Its parts in their order: object identifier and text.
    parts: Vec<(Vec<u64>, String)>,
    raw: Vec<u8>,
}

impl Subject {
    /// Reads a sequence of sets of attributes.
    fn read(name: &der::Element<'_>) -> Result<Self, String> {
        let mut subject = Self { parts: Vec::new(), raw: name.raw.to_vec() };
        let mut sets = name.inside();
        while !sets.is_empty() {
            let mut attributes = sets.expect(SET, "")?.inside();
            while !attributes.is_empty() {
                let mut attribute = attributes.expect(SEQUENCE, "")?.inside();
                let kind = attribute.expect(OID, "Type")?;
                let value = attribute.any()?;
                let text = String::from_utf8_lossy(value.content).into_owned();
                subject.parts.push((identifier(kind.content), text));
            }
        }
        Ok(subject)
    }

    /// All parts in their order: object identifier and text.
    pub fn parts(&self) -> impl Iterator<Item = (&[u64], &str)> {
        self.parts.iter().map(|(id, text)| (id.as_slice(), text.as_str()))
    }

    /// All of it, in DER.
    #[must_use]
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// The common name: the last one, as Go takes it; empty if there is none.
    #[must_use]
    pub fn common_name(&self) -> &str {
        self.all(3).last().unwrap_or_default()
    }

    /// The organisations, which are a user's groups.
    pub fn organizations(&self) -> impl Iterator<Item = &str> {
        self.all(10)
    }

    fn all(&self, part: u64) -> impl DoubleEndedIterator<Item = &str> {
        let wanted = [2, 5, 4, part];
        self.parts.iter().filter(move |(id, _)| *id == wanted).map(|(_, text)| text.as_str())
    }
}

/// The numbers of an object identifier.
fn identifier(content: &[u8]) -> Vec<u64> {
    let mut numbers = Vec::new();
    let mut number: u64 = 0;
    for byte in content {
        number = number.wrapping_shl(7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            if numbers.is_empty() {
                let first = (number / 40).min(2);
                numbers.extend([first, number.saturating_sub(first * 40)]);
            } else {
                numbers.push(number);
            }
            number = 0;
        }
    }
    numbers
}
