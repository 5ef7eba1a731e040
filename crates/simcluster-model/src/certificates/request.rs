//! Requests for certificates.

use std::net::IpAddr;

use super::der::{BIT_STRING, Element, INTEGER, OCTET_STRING, OID, Reader, SEQUENCE, SET};
use super::signature::{PublicKey, Unverified, identifier};
use super::{Subject, decode_pem};

/// `1.2.840.113549.1.9.14`: the extensions that a certificate is to have.
const EXTENSION_REQUEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 14];
/// `2.5.29.17`: other names of the subject.
const OTHER_NAMES: &[u8] = &[0x55, 0x1d, 17];

/// What somebody asks to have certified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Who it is for.
    pub subject: Subject,
    /// Host names beside the subject.
    pub dns_names: Vec<String>,
    /// Addresses of mail beside the subject.
    pub emails: Vec<String>,
    /// URIs beside the subject.
    pub uris: Vec<String>,
    /// IP addresses beside the subject.
    pub ips: Vec<IpAddr>,
    /// All of these names, in DER; empty if there are none.
    pub other_names: Vec<u8>,
    /// The key that is to be certified.
    pub key: PublicKey,
    /// Everything.
    raw: Vec<u8>,
}

/// The three parts of a request.
struct Parts<'a> {
    contents: Element<'a>,
    algorithm: Element<'a>,
    signature: &'a [u8],
}

impl Request {
    /// Reads a PEM text. `Err` is Go's text.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let block = decode_pem(text).map(|(block, _)| block);
        let block = block.filter(|block| block.label == "CERTIFICATE REQUEST");
        let block = block.ok_or("PEM block type must be CERTIFICATE REQUEST")?;
        let parts = parts(&block.bytes)?;
        let mut fields = parts.contents.inside();
        fields.expect(INTEGER, "Version")?;
        let subject = fields.any()?;
        let key = PublicKey::read(fields.expect(SEQUENCE, "PublicKey")?)?;
        let mut request = Self {
            subject: Subject::read(&subject)?,
            dns_names: Vec::new(),
            emails: Vec::new(),
            uris: Vec::new(),
            ips: Vec::new(),
            other_names: Vec::new(),
            key,
            raw: block.bytes.clone(),
        };
        if !fields.is_empty() {
            request.read_attributes(fields.any()?.inside())?;
        }
        Ok(request)
    }

    /// Whether it is signed by its own key.
    pub fn check_signature(&self) -> Result<(), Unverified> {
        let parts = parts(&self.raw).map_err(Unverified::Wrong)?;
        self.key.verify(parts.algorithm, parts.contents.raw, parts.signature)
    }

    fn read_attributes(&mut self, mut attributes: Reader<'_>) -> Result<(), String> {
        while !attributes.is_empty() {
            let mut attribute = attributes.any()?.inside();
            if attribute.expect(OID, "Id")?.content != EXTENSION_REQUEST {
                continue;
            }
            let mut extensions = attribute.expect(SET, "Value")?.inside();
            let mut extensions = extensions.expect(SEQUENCE, "Value")?.inside();
            while !extensions.is_empty() {
                let mut extension = extensions.expect(SEQUENCE, "")?.inside();
                let id = extension.expect(OID, "Id")?;
                let mut value = extension.any()?;
                if !value.is(OCTET_STRING) {
                    // Whether it is critical came first.
                    value = extension.expect(OCTET_STRING, "Value")?;
                }
                if id.content == OTHER_NAMES {
                    self.read_names(value.inside().expect(SEQUENCE, "")?.inside())?;
                    self.other_names = value.content.to_vec();
                }
            }
        }
        Ok(())
    }

    fn read_names(&mut self, mut names: Reader<'_>) -> Result<(), String> {
        while !names.is_empty() {
            let name = names.any()?;
            let text = || String::from_utf8_lossy(name.content).into_owned();
            match (name.class, name.tag) {
                (2, 1) => self.emails.push(text()),
                (2, 2) => self.dns_names.push(text()),
                (2, 6) => self.uris.push(text()),
                (2, 7) => {
                    let four = <[u8; 4]>::try_from(name.content).map(IpAddr::from);
                    let ip = four.or_else(|_| <[u8; 16]>::try_from(name.content).map(IpAddr::from));
                    let length = name.content.len();
                    self.ips.push(ip.map_err(|_| {
                        format!("x509: cannot parse IP address of length {length}")
                    })?);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn parts(bytes: &[u8]) -> Result<Parts<'_>, String> {
    let mut all = Reader::new(bytes);
    let mut fields = all.expect(SEQUENCE, "certificateRequest")?.inside();
    let contents = fields.expect(SEQUENCE, "tbsCertificateRequest")?;
    let algorithm = identifier(&mut fields)?;
    let signature = fields.expect(BIT_STRING, "SignatureValue")?.bits().unwrap_or_default();
    if !all.is_empty() {
        return Err("asn1: syntax error: trailing data".to_owned());
    }
    Ok(Parts { contents, algorithm, signature })
}
