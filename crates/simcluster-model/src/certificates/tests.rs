use proptest::prelude::*;

use super::*;

/// A request of an Ed25519 key for `/CN=ed`.
const REQUEST: &str = "-----BEGIN CERTIFICATE REQUEST-----
MIGMMEACAQAwDTELMAkGA1UEAwwCZWQwKjAFBgMrZXADIQCMU3/gUu7k6qQ/S+dJ
T8/xHA0k7vFZHQHJHWhHrvs6fqAAMAUGAytlcANBAIXlDFm4IhPJW+YOkDd4vUl0
1BAMARMB2Ns/LHA8Oq85ibSyFUDtMd1iscnGHnAWkOLOtYfbLhbN7IpX1c7WnQk=
-----END CERTIFICATE REQUEST-----
";

fn bytes() -> Vec<u8> {
    decode_pem(REQUEST.as_bytes()).expect("a block").0.bytes
}

#[test]
fn a_request_says_whom_it_is_for_and_is_signed() {
    let request = Request::parse(format!("hello\n{REQUEST}").as_bytes()).unwrap();
    assert_eq!(request.subject.common_name(), "ed");
    assert_eq!(request.subject.organizations().count(), 0);
    assert_eq!(request.check_signature(), Ok(()));
}

#[test]
fn texts_of_blocks_are_the_bytes_again() {
    let written = encode_pem("X", &bytes());
    let (block, rest) = decode_pem(written.as_bytes()).unwrap();
    assert_eq!((block.label.as_str(), block.bytes, rest.len()), ("X", bytes(), 0));
    assert_eq!(decode_pem(b"-----BEGIN X-----\nAAAA\n"), None);
    let headers = "-----BEGIN X-----\nA: b\n\nAAAA\n-----END X-----\nrest";
    let (block, rest) = decode_pem(headers.as_bytes()).unwrap();
    assert!(block.has_headers);
    assert_eq!((block.bytes.len(), rest), (3, b"rest".as_slice()));
}

#[test]
fn certificates_are_all_that_a_text_may_hold() {
    let fault = |text: &str| certificates(text.as_bytes()).unwrap_err();
    assert_eq!(fault("x"), "must contain at least one CERTIFICATE PEM block");
    let other = "only CERTIFICATE PEM blocks are allowed, found \"CERTIFICATE REQUEST\"";
    assert_eq!(fault(REQUEST), other);
    assert_eq!(fault(&encode_pem("CERTIFICATE", b"x")), "x509: malformed certificate");
}

proptest! {
    #[test]
    fn what_is_harmed_is_refused_and_nothing_more(at in 0_usize..200, byte in any::<u8>(), cut in 0_usize..200) {
        let mut bytes = bytes();
        let length = bytes.len();
        bytes[at % length] = byte;
        let is_whole = bytes == self::bytes() && cut >= length;
        bytes.truncate(cut);
        let read = Request::parse(encode_pem("CERTIFICATE REQUEST", &bytes).as_bytes());
        let is_good = read.is_ok_and(|request| request.check_signature().is_ok());
        prop_assert_eq!(is_good, is_whole);
        let _ = Certificate::parse(&bytes);
    }
}
