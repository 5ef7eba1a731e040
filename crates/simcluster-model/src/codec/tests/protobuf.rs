use serde_json::{Value, json};

use crate::codec::protobuf::read;

const CONFIG_MAP: (&str, &str) = ("v1", "ConfigMap");

/// A message's field with a length: number below 16.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
    out.extend_from_slice(content);
    out
}

fn body(api_version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
    let type_meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &type_meta), field(2, object)].concat()
}

#[test]
fn a_recorded_body_is_read() {
    let text = b"k8s\0\n\x0F\n\x02v1\x12\tConfigMap\x12\r\n\x03\n\x01a\x12\x06\n\x01k\x12\x01v";
    let expected = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "k": "v" },
    });
    assert_eq!(read(text, CONFIG_MAP).unwrap(), expected);
}

#[test]
fn bytes_times_and_lists_take_their_json_forms() {
    let owner = field(3, b"x");
    let created = [&[0x08][..], &[0x80, 0xb3, 0xbe, 0x8e, 0x06]].concat();
    let metadata =
        [field(1, b"s"), field(8, &created), field(13, &owner), field(13, &owner)].concat();
    let data = [field(1, b"k"), field(2, b"v")].concat();
    let secret = [field(1, &metadata), field(2, &data), field(3, b"Opaque")].concat();
    let read = read(&body("v1", "Secret", &secret), CONFIG_MAP).unwrap();
    let expected = json!({
        "apiVersion": "v1", "kind": "Secret", "data": { "k": "dg==" }, "type": "Opaque",
        "metadata": {
            "name": "s", "creationTimestamp": "2022-01-01T00:00:00Z",
            "ownerReferences": [{ "name": "x" }, { "name": "x" }],
        },
    });
    assert_eq!(read, expected);
}

#[test]
fn inlined_messages_and_numbers_or_strings_are_read() {
    let port = [&[0x08, 0][..], &[0x10, 80]].concat();
    let get = field(2, &port);
    let handler = field(2, &get);
    let probe = field(1, &handler);
    let container = [field(1, b"c"), field(10, &probe)].concat();
    let spec = field(2, &container);
    let read = read(&body("v1", "Pod", &field(2, &spec)), CONFIG_MAP).unwrap();
    let container = &read["spec"]["containers"][0];
    assert_eq!(container["livenessProbe"], json!({ "httpGet": { "port": 80 } }));
}

#[track_caller]
fn check_refused(bytes: &[u8], expected: &str) {
    assert_eq!(read(bytes, CONFIG_MAP).unwrap_err(), expected);
}

#[test]
fn broken_bodies_are_refused() {
    check_refused(b"{}", "provided data does not appear to be a protobuf message");
    check_refused(&body("v1", "ConfigMap", &[0x0a, 9, 0]), "unexpected EOF");
    check_refused(&body("v1", "ConfigMap", &[0x0b]), "proto: illegal wireType 3");
    check_refused(
        &body("v9", "Nope", &[]),
        "no kind \"Nope\" is registered for version \"v9\" in scheme",
    );
    let deep = (0..40).fold(
        Vec::new(),
        |inner, _| {
            if inner.len() > 100 { inner } else { field(1, &inner) }
        },
    );
    assert!(read(&body("v1", "ConfigMap", &deep), CONFIG_MAP).is_ok_and(|v: Value| v.is_object()));
}
