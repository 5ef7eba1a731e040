//! Which keys and signatures there are, and whether a signature is good.

use ::ring::signature::{self as ring, UnparsedPublicKey, VerificationAlgorithm};

use super::der::{Element, OID, Reader, SEQUENCE};

/// `1.2.840.113549.1.1`, below which RSA's algorithms are.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1];
/// `1.2.840.10045.2.1`
const EC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
/// `1.2.840.10045.4.1`
const ECDSA_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1];
/// `1.2.840.10045.4.3`, below which the other ECDSA algorithms are.
const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3];
/// `1.3.101.112`
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
/// `1.2.840.10045.3.1.7`, `1.3.132.0.34`, `1.3.132.0.33` and `1.3.132.0.35`
const CURVES: [(&[u8], Curve); 4] = [
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7], Curve::P256),
    (&[0x2b, 0x81, 0x04, 0, 34], Curve::P384),
    (&[0x2b, 0x81, 0x04, 0, 33], Curve::P224),
    (&[0x2b, 0x81, 0x04, 0, 35], Curve::P521),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Curve {
    P224,
    P256,
    P384,
    P521,
}

/// The algorithm of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    Rsa,
    Ecdsa(Curve),
    Ed25519,
    /// One that Go does not know either: nothing it has signed can be checked.
    Unknown,
}

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    algorithm: Algorithm,
    /// The key itself, in the form of its algorithm.
    bits: Vec<u8>,
    /// All of its `SubjectPublicKeyInfo`.
    info: Vec<u8>,
}

/// Why a signature is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unverified {
    /// It is wrong: Go's text.
    Wrong(String),
    /// It may be good; nobody here can tell.
    Unsupported(&'static str),
}

impl PublicKey {
    /// Reads a `SubjectPublicKeyInfo`.
    pub(super) fn read(info: Element<'_>) -> Result<Self, String> {
        let mut fields = info.inside();
        let mut algorithm = fields.expect(SEQUENCE, "Algorithm")?.inside();
        let bits = fields.expect(super::der::BIT_STRING, "PublicKey")?;
        let id = algorithm.expect(OID, "Algorithm")?.content;
        let algorithm = match id.strip_prefix(RSA) {
            Some([1]) => Algorithm::Rsa,
            _ if id == ED25519 => Algorithm::Ed25519,
            _ if id == EC_KEY => {
                let curve = algorithm.expect(OID, "").map(|curve| curve.content);
                let curve = curve.map_err(|_| "x509: invalid ECDSA parameters")?;
                let known = CURVES.iter().find(|(id, _)| *id == curve);
                Algorithm::Ecdsa(known.ok_or("x509: unsupported elliptic curve")?.1)
            }
            _ => Algorithm::Unknown,
        };
        let bits = bits.bits().unwrap_or_default().to_vec();
        Ok(Self { algorithm, bits, info: info.raw.to_vec() })
    }

    /// The key in the form of its algorithm.
    #[must_use]
    pub fn bits(&self) -> &[u8] {
        &self.bits
    }

    /// Its `SubjectPublicKeyInfo`.
    #[must_use]
    pub fn info(&self) -> &[u8] {
        &self.info
    }

    /// Whether this key made a signature of a message, by an `AlgorithmIdentifier`.
    pub(super) fn verify(
        &self,
        identifier: Element<'_>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), Unverified> {
        let Some((wanted, fault)) = wanted(identifier) else {
            let why = "x509: cannot verify signature: algorithm unimplemented";
            return Err(Unverified::Wrong(why.to_owned()));
        };
        let (found, type_name) = match self.algorithm {
            Algorithm::Rsa => ("RSA", "*rsa.PublicKey"),
            Algorithm::Ecdsa(_) => ("ECDSA", "*ecdsa.PublicKey"),
            Algorithm::Ed25519 => ("Ed25519", "ed25519.PublicKey"),
            Algorithm::Unknown => ("", "<nil>"),
        };
        let name = wanted.name();
        if found != name {
            return Err(Unverified::Wrong(format!(
                "x509: signature algorithm specifies an {name} public key, but have public key of type \
                 {type_name}"
            )));
        }
        let with = wanted
            .with(self.algorithm)
            .ok_or(Unverified::Unsupported("the check of a signature by this key and this hash"))?;
        let key = UnparsedPublicKey::new(with, &self.bits);
        key.verify(message, signature).map_err(|_| Unverified::Wrong(fault.to_owned()))
    }
}

/// How something was signed.
#[derive(Debug, Clone, Copy)]
enum Signed {
    Rsa { bits: u16 },
    RsaPss { bits: u16 },
    Ecdsa { bits: u16 },
    Ed25519,
}

impl Signed {
    fn name(self) -> &'static str {
        match self {
            Self::Rsa { .. } | Self::RsaPss { .. } => "RSA",
            Self::Ecdsa { .. } => "ECDSA",
            Self::Ed25519 => "Ed25519",
        }
    }

    /// What checks it, if there is something.
    fn with(self, key: Algorithm) -> Option<&'static dyn VerificationAlgorithm> {
        Some(match (self, key) {
            (Self::Rsa { bits: 1 }, _) => &ring::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY,
            (Self::Rsa { bits: 256 }, _) => &ring::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
            (Self::Rsa { bits: 384 }, _) => &ring::RSA_PKCS1_2048_8192_SHA384,
            (Self::Rsa { bits: 512 }, _) => &ring::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY,
            (Self::RsaPss { bits: 256 }, _) => &ring::RSA_PSS_2048_8192_SHA256,
            (Self::RsaPss { bits: 384 }, _) => &ring::RSA_PSS_2048_8192_SHA384,
            (Self::RsaPss { bits: 512 }, _) => &ring::RSA_PSS_2048_8192_SHA512,
            (Self::Ecdsa { bits: 256 }, Algorithm::Ecdsa(Curve::P256)) => {
                &ring::ECDSA_P256_SHA256_ASN1
            }
            (Self::Ecdsa { bits: 384 }, Algorithm::Ecdsa(Curve::P256)) => {
                &ring::ECDSA_P256_SHA384_ASN1
            }
            (Self::Ecdsa { bits: 256 }, Algorithm::Ecdsa(Curve::P384)) => {
                &ring::ECDSA_P384_SHA256_ASN1
            }
            (Self::Ecdsa { bits: 384 }, Algorithm::Ecdsa(Curve::P384)) => {
                &ring::ECDSA_P384_SHA384_ASN1
            }
            (Self::Ed25519, _) => &ring::ED25519,
            _ => return None,
        })
    }
}

/// The algorithm that an identifier names, if Go knows it, and what Go says of a wrong signature.
fn wanted(identifier: Element<'_>) -> Option<(Signed, &'static str)> {
    let mut fields = identifier.inside();
    let id = fields.expect(OID, "").ok()?.content;
    let rsa = "crypto/rsa: verification error";
    let ecdsa = "x509: ECDSA verification failure";
    if let Some(number) = id.strip_prefix(RSA) {
        return Some((
            match number {
                [5] => Signed::Rsa { bits: 1 },
                [11] => Signed::Rsa { bits: 256 },
                [12] => Signed::Rsa { bits: 384 },
                [13] => Signed::Rsa { bits: 512 },
                [10] => Signed::RsaPss { bits: pss_bits(&fields.any().ok()?)? },
                _ => return None,
            },
            rsa,
        ));
    }
    if let Some(number) = id.strip_prefix(ECDSA) {
        return Some((
            match number {
                [2] => Signed::Ecdsa { bits: 256 },
                [3] => Signed::Ecdsa { bits: 384 },
                [4] => Signed::Ecdsa { bits: 512 },
                _ => return None,
            },
            ecdsa,
        ));
    }
    match id {
        ED25519 => Some((Signed::Ed25519, "x509: Ed25519 verification failure")),
        ECDSA_SHA1 => Some((Signed::Ecdsa { bits: 1 }, ecdsa)),
        _ => None,
    }
}

/// The size of the hash of RSA-PSS, if all of its parameters are the usual ones for it.
fn pss_bits(parameters: &Element<'_>) -> Option<u16> {
    const HASHES: [(u8, u8, u16); 3] = [(1, 32, 256), (2, 48, 384), (3, 64, 512)];
    let usual = |hash: u8, salt: u8| {
        let hash = [0x30, 13, 6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, hash, 5, 0];
        let mask = [&[0xa1, 28, 0x30, 26, 6, 9], RSA, &[8]].concat();
        [&[0xa0, 15], hash.as_slice(), &mask, &hash, &[0xa2, 3, 2, 1, salt]].concat()
    };
    let mut known = HASHES.iter();
    known.find(|(hash, salt, _)| usual(*hash, *salt) == parameters.content).map(|found| found.2)
}

/// Whether a `Reader` has an `AlgorithmIdentifier` next.
pub(super) fn identifier<'a>(fields: &mut Reader<'a>) -> Result<Element<'a>, String> {
    fields.expect(SEQUENCE, "SignatureAlgorithm")
}
