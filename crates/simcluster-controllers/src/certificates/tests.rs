use super::requests::check;
use super::*;

/// A request of `/O=system:nodes/CN=system:node:n1`.
const NODE: &str = "-----BEGIN CERTIFICATE REQUEST-----
MIHrMIGSAgEAMDAxFTATBgNVBAoMDHN5c3RlbTpub2RlczEXMBUGA1UEAwwOc3lz
dGVtOm5vZGU6bjEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARCJnzY+wrU+55m
vTmZK1rtFqz26CVN9MJPoRvZmo96MD3JBM+EDE4im9x/OIpopSPbUQMmmecVLxSs
QlqQQe1LoAAwCgYIKoZIzj0EAwIDSAAwRQIgNVcOLHb+l8gqc1QdxSWAMHhcQ8Ks
X+JhgKachvjPTZ4CIQDtdXjSIxbDEf3MI23GNhnqVnOuFAVA2LYinfCfF2hz/w==
-----END CERTIFICATE REQUEST-----
";

/// A request of `/O=dev/CN=jane` with one name of each sort.
const NAMES: &str = "-----BEGIN CERTIFICATE REQUEST-----
MIIBHjCBxQIBADAdMQwwCgYDVQQKDANkZXYxDTALBgNVBAMMBGphbmUwWTATBgcq
hkjOPQIBBggqhkjOPQMBBwNCAARCJnzY+wrU+55mvTmZK1rtFqz26CVN9MJPoRvZ
mo96MD3JBM+EDE4im9x/OIpopSPbUQMmmecVLxSsQlqQQe1LoEYwRAYJKoZIhvcN
AQkOMTcwNTAzBgNVHREELDAqgg1hLmV4YW1wbGUuY29thwQKAQIDgQVhQGIuY4YM
c3BpZmZlOi8veC95MAoGCCqGSM49BAMCA0gAMEUCIQDPxRyU6jKeABHjglnJR5LK
J/nH6wigBRVzfyWxkzoeQwIgTPF+YbXzqsz0akmynFqK/o60f8PtYS7H/0dRVk5X
Pw4=
-----END CERTIFICATE REQUEST-----
";

fn asked(text: &str) -> Request {
    Request::parse(text.as_bytes()).unwrap()
}

fn fault(signer: &str, text: &str, usages: &[&str]) -> Option<String> {
    let usages: Vec<String> = usages.iter().map(|usage| (*usage).to_owned()).collect();
    check(&format!("kubernetes.io/{signer}"), &asked(text), &usages)?.err()
}

#[test]
fn who_signs_what() {
    let client = "kube-apiserver-client";
    assert_eq!(fault(client, NAMES, &["client auth", "digital signature"]), None);
    let missing = "missing required usage for client certificate: client auth";
    assert_eq!(fault(client, NAMES, &["key encipherment"]).unwrap(), missing);
    let invalid = "invalid usage for client certificate: any";
    assert_eq!(fault(client, NAMES, &["client auth", "any"]).unwrap(), invalid);
    let kubelet = "kube-apiserver-client-kubelet";
    let usages = ["client auth", "digital signature"];
    assert_eq!(fault(kubelet, NODE, &usages), None);
    assert_eq!(fault(kubelet, NODE, &[&usages[..], &["key encipherment"]].concat()), None);
    let other = "usages did not match [client auth digital signature key encipherment]";
    assert_eq!(fault(kubelet, NODE, &["client auth"]).unwrap(), other);
    let whose = "subject organization is not system:nodes";
    assert_eq!(fault(kubelet, NAMES, &usages).unwrap(), whose);
    let serving = fault("kubelet-serving", NODE, &["server auth", "digital signature"]);
    assert_eq!(serving.unwrap(), "DNS or IP subjectAltName is required");
    assert!(check("example.com/a", &asked(NODE), &[]).is_none());
}

#[test]
fn names_beside_the_subject_are_read() {
    let asked = asked(NAMES);
    assert_eq!(asked.dns_names, ["a.example.com"]);
    assert_eq!(asked.emails, ["a@b.c"]);
    assert_eq!(asked.uris, ["spiffe://x/y"]);
    assert_eq!(asked.ips, ["10.1.2.3".parse::<std::net::IpAddr>().unwrap()]);
}

#[test]
fn a_time_near_the_last_one_ends_nothing_early() {
    let request = serde_json::from_value(serde_json::json!({
        "metadata": { "name": "a" },
        "spec": { "request": "", "signerName": "a/b", "usages": [] },
        "status": { "conditions": [{
            "type": "Denied", "status": "True", "lastUpdateTime": "9999-12-30T21:59:59Z",
        }] },
    }))
    .unwrap();
    assert_eq!(super::end(&request), Some(jiff::Timestamp::MAX));
}
