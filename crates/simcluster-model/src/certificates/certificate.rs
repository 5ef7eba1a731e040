//! Certificates, so far as the API server looks at them.

use jiff::Timestamp;

use super::der::{INTEGER, Reader, SEQUENCE};
use super::{Subject, decode_pem};
use crate::golang;

/// What a certificate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// Who it is for.
    pub subject: Subject,
    /// Until when it is good; none if that is no time.
    pub not_after: Option<Timestamp>,
}

impl Certificate {
    /// Reads DER. `Err` is Go's text.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        read(&mut Reader::new(bytes))
    }
}

/// The certificates of a PEM text that holds nothing else. `Err` is the API server's text.
pub fn certificates(mut text: &[u8]) -> Result<Vec<Certificate>, String> {
    let mut found = Vec::new();
    while let Some((block, rest)) = decode_pem(text) {
        if block.label != "CERTIFICATE" {
            let label = golang::quote(&block.label);
            return Err(format!("only CERTIFICATE PEM blocks are allowed, found {label}"));
        }
        if block.has_headers {
            return Err("no PEM block headers are permitted".to_owned());
        }
        if block.bytes.is_empty() {
            return Err("found CERTIFICATE PEM block containing 0 certificates".to_owned());
        }
        let mut all = Reader::new(&block.bytes);
        while !all.is_empty() {
            found.push(read(&mut all)?);
        }
        text = rest;
    }
    if found.is_empty() {
        return Err("must contain at least one CERTIFICATE PEM block".to_owned());
    }
    Ok(found)
}

/// Reads the next certificate.
fn read(all: &mut Reader<'_>) -> Result<Certificate, String> {
    fn malformed(what: &str) -> impl Fn(String) -> String {
        move |_| format!("x509: malformed {what}")
    }
    let mut whole = all.expect(SEQUENCE, "").map_err(malformed("certificate"))?.inside();
    let contents = whole.expect(SEQUENCE, "").map_err(malformed("tbs certificate"))?;
    let mut fields = contents.inside();
    let mut first = fields.any().map_err(malformed("version"))?;
    if first.class == 2 && first.tag == 0 {
        first = fields.any().map_err(malformed("serial number"))?;
    }
    if !first.is(INTEGER) {
        return Err("x509: malformed serial number".to_owned());
    }
    fields.expect(SEQUENCE, "").map_err(malformed("signature algorithm identifier"))?;
    fields.expect(SEQUENCE, "").map_err(malformed("issuer"))?;
    let mut validity = fields.expect(SEQUENCE, "").map_err(malformed("validity"))?.inside();
    validity.any().map_err(malformed("validity"))?;
    let not_after = validity.any().map_err(malformed("validity"))?;
    let subject = fields.expect(SEQUENCE, "").map_err(malformed("issuer"))?;
    fields.expect(SEQUENCE, "").map_err(malformed("spki"))?;
    Ok(Certificate {
        subject: Subject::read(&subject).map_err(malformed("subject"))?,
        not_after: time(not_after.content),
    })
}

/// A time with two or four digits for its year, in UTC.
fn time(content: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(content).ok()?.strip_suffix('Z')?;
    let (year, rest) = text.split_at_checked(text.len().checked_sub(10)?)?;
    let year = match (year.len(), year.parse::<u16>().ok()?) {
        (2, short @ 0..50) => 2000 + short,
        (2, short) => 1900 + short,
        (_, year) => year,
    };
    let part = |from: usize| rest.get(from..from.saturating_add(2));
    let (month, day, hour, minute) = (part(0)?, part(2)?, part(4)?, part(6)?);
    format!("{year:04}-{month}-{day}T{hour}:{minute}:{}Z", part(8)?).parse().ok()
}
