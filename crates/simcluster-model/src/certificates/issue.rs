//! Certificates as kube-controller-manager's signers make them.

use jiff::{SignedDuration, Timestamp};

use super::der::{BIT_STRING, INTEGER, OCTET_STRING, OID, SEQUENCE};
use super::{Certificate, Request};

/// `ecdsa-with-SHA256`
const ALGORITHM: &[u8] = &[0x30, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];

/// Certificates are good from a little before they are made.
const BACKDATE: SignedDuration = SignedDuration::from_mins(5);

/// What lives shorter than this does not end earlier because it begins earlier.
const SHORT: SignedDuration = SignedDuration::from_hours(8);

/// Usages of a key, each at the place of its bit.
const KEY_USAGES: [&str; 9] = [
    "digital signature",
    "content commitment",
    "key encipherment",
    "data encipherment",
    "key agreement",
    "cert sign",
    "crl sign",
    "encipher only",
    "decipher only",
];

/// What else a certificate is good for, by object identifiers; those below `1.3.6.1.5.5.7.3` by their
/// last number.
const PURPOSES: [(&str, &[u8]); 13] = [
    ("any", &[0x55, 0x1d, 37, 0]),
    ("server auth", &[1]),
    ("client auth", &[2]),
    ("code signing", &[3]),
    ("email protection", &[4]),
    ("s/mime", &[4]),
    ("ipsec end system", &[5]),
    ("ipsec tunnel", &[6]),
    ("ipsec user", &[7]),
    ("timestamping", &[8]),
    ("ocsp signing", &[9]),
    ("microsoft sgc", &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 10, 3, 3]),
    ("netscape sgc", &[0x60, 0x86, 0x48, 1, 0x86, 0xf8, 0x42, 4, 1]),
];

/// What makes a certificate out of a request.
#[derive(Debug, Clone, Copy)]
pub struct Issue<'a> {
    /// What was asked for.
    pub request: &'a Request,
    /// What the certificate is good for, by the API's names.
    pub usages: &'a [String],
    /// The certificate of who signs.
    pub issuer: &'a Certificate,
    /// A number that no other certificate of the issuer has.
    pub serial: u128,
    /// The time.
    pub now: Timestamp,
    /// How long it is to be good.
    pub lifetime: SignedDuration,
}

impl Issue<'_> {
    /// The certificate, signed by a P-256 key with SHA-256.
    pub fn sign<E>(&self, sign: impl FnOnce(&[u8]) -> Result<Vec<u8>, E>) -> Result<Vec<u8>, E> {
        let contents = self.contents();
        let signature = sign(&contents)?;
        Ok(element(0x30, &[&contents, ALGORITHM, &bits(0, &signature)].concat()))
    }

    fn contents(&self) -> Vec<u8> {
        let validity = [self.now - BACKDATE, self.end()].map(time).concat();
        let parts = [
            element(0xa0, &element(INTEGER, &[2])),
            // The first byte keeps it positive.
            element(INTEGER, &[&[1], self.serial.to_be_bytes().as_slice()].concat()),
            ALGORITHM.to_vec(),
            self.issuer.subject.raw().to_vec(),
            element(0x30, &validity),
            self.request.subject.raw().to_vec(),
            self.request.key.info().to_vec(),
            element(0xa3, &sequence(&self.extensions())),
        ];
        sequence(&parts)
    }

    /// Nothing outlives who signed it.
    fn end(&self) -> Timestamp {
        let backdate = if self.lifetime < SHORT { SignedDuration::ZERO } else { BACKDATE };
        let end = self.now + (self.lifetime - backdate);
        self.issuer.not_after.map_or(end, |last| end.min(last))
    }

    fn extensions(&self) -> Vec<Vec<u8>> {
        let wants = |usage: &str| self.usages.iter().any(|one| one == usage);
        let mut extensions = Vec::new();
        let wanted = KEY_USAGES
            .iter()
            .map(|usage| wants(usage) || (*usage == "digital signature" && wants("signing")));
        let mask = wanted.rev().fold(0_u16, |mask, wanted| (mask << 1) | u16::from(wanted));
        if mask != 0 {
            let [low, high] = mask.to_le_bytes();
            let bytes: &[u8] = &[low.reverse_bits(), high.reverse_bits()];
            let bytes = if high == 0 { bytes.get(..1).unwrap_or(bytes) } else { bytes };
            let unused = bytes.last().map_or(0, |last| last.trailing_zeros());
            let unused = u8::try_from(unused).unwrap_or_default();
            extensions.push(extension(15, true, &bits(unused, bytes)));
        }
        let mut purposes: Vec<Vec<u8>> = Vec::new();
        for (_, id) in PURPOSES.iter().filter(|(usage, _)| wants(usage)) {
            let id = match id {
                [_] => [&[0x2b, 6, 1, 5, 5, 7, 3], *id].concat(),
                id => id.to_vec(),
            };
            let id = element(OID, &id);
            if !purposes.contains(&id) {
                purposes.push(id);
            }
        }
        if !purposes.is_empty() {
            extensions.push(extension(37, false, &sequence(&purposes)));
        }
        // It is no authority.
        extensions.push(extension(19, true, &sequence(&[])));
        if !self.request.other_names.is_empty() {
            let only_names = self.request.subject.parts().next().is_none();
            extensions.push(extension(17, only_names, &self.request.other_names));
        }
        extensions
    }
}

/// An extension below `2.5.29`.
fn extension(id: u8, critical: bool, value: &[u8]) -> Vec<u8> {
    let mut parts = vec![element(OID, &[0x55, 0x1d, id])];
    if critical {
        parts.push(element(1, &[0xff]));
    }
    parts.push(element(OCTET_STRING, value));
    sequence(&parts)
}

/// Two digits for the year until 2049, four after that.
fn time(time: Timestamp) -> Vec<u8> {
    let digits = |text: String| -> Vec<u8> {
        text.bytes().filter(u8::is_ascii_digit).chain([b'Z']).collect()
    };
    let text = crate::time::format_seconds(time);
    match text.strip_prefix("20") {
        Some(rest) if text.as_str() < "2050" => element(23, &digits(rest.to_owned())),
        _ => element(24, &digits(text)),
    }
}

fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    element(SEQUENCE | 0x20, &parts.concat())
}

fn bits(unused: u8, bytes: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[unused], bytes].concat())
}

/// An element by its first byte.
fn element(first: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let length: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
    let head = match length.as_slice() {
        [] => vec![first, 0],
        [short @ 0..=0x7f] => vec![first, *short],
        long => {
            let count = u8::try_from(long.len()).unwrap_or_default();
            [&[first, 0x80 | count], long].concat()
        }
    };
    [head.as_slice(), content].concat()
}
