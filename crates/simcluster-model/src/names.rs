//! Formats of names, labels, ports and addresses, with the texts of the real server
//! (`k8s.io/apimachinery/pkg/util/validation`).
//!
//! Each function returns what is wrong with a value, one text for each fault: nothing for a good one.

use std::net::IpAddr;

use serde_json::json;

use crate::field::FieldError;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const CONFIG_KEY: &str = "[-._a-zA-Z0-9]+";

/// Longest DNS label in bytes.
pub const LABEL_MAX: usize = 63;
/// Longest DNS subdomain in bytes.
pub const SUBDOMAIN_MAX: usize = 253;

/// A DNS label (RFC 1123): names of namespaces and containers.
#[must_use]
pub fn dns1123_label(value: &str) -> Vec<String> {
    let mut faults = too_long(value, LABEL_MAX, "characters");
    if !is_dns_label(value) {
        faults.push(if is_subdomain(value) {
            "must not contain dots".to_owned()
        } else {
            with_regex(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
                 '-', and must start and end with an alphanumeric character",
                LABEL,
                &["my-name", "123-abc"],
            )
        });
    }
    faults
}

/// A DNS subdomain (RFC 1123): names of most objects.
#[must_use]
pub fn dns1123_subdomain(value: &str) -> Vec<String> {
    let mut faults = too_long(value, SUBDOMAIN_MAX, "characters");
    if !is_subdomain(value) {
        faults.push(subdomain_text());
    }
    faults
}

/// A DNS subdomain in whose labels underscores may stand, as some names of search paths have them.
#[must_use]
pub fn dns1123_subdomain_with_underscore(value: &str) -> Vec<String> {
    let mut faults = too_long(value, SUBDOMAIN_MAX, "characters");
    let is_label = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label);
        is_dns_label(&label.replace('_', "-"))
    };
    if !value.split('.').all(is_label) {
        let label = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
        faults.push(with_regex(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', \
             '-' or '.', and must start and end with an alphanumeric character",
            &format!("{label}(\\.{label})*"),
            &["example.com"],
        ));
    }
    faults
}

/// A DNS label (RFC 1035), which starts with a letter.
#[must_use]
pub fn dns1035_label(value: &str) -> Vec<String> {
    let mut faults = too_long(value, LABEL_MAX, "characters");
    if !(is_dns_label(value) && value.starts_with(|c: char| c.is_ascii_lowercase())) {
        faults.push(with_regex(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with \
             an alphabetic character, and end with an alphanumeric character",
            LABEL_1035,
            &["my-name", "abc-123"],
        ));
    }
    faults
}

/// `*.` and a DNS subdomain: wildcard hosts of an Ingress.
#[must_use]
pub fn wildcard_subdomain(value: &str) -> Vec<String> {
    let mut faults = too_long(value, SUBDOMAIN_MAX, "characters");
    if !value.strip_prefix("*.").is_some_and(is_subdomain) {
        faults.push(with_regex(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, \
             which must consist of lower case alphanumeric characters, '-' or '.' and end with an \
             alphanumeric character",
            &format!(r"\*\.{LABEL}(\.{LABEL})*"),
            &["*.example.com"],
        ));
    }
    faults
}

/// A name, or what stands for the names that a prefix makes.
pub(crate) fn masked(name: &str, prefix: bool) -> String {
    if prefix { mask_trailing_dash(name) } else { name.to_owned() }
}

/// What is checked of a `generateName`: a last dash stands for what follows it.
#[must_use]
pub fn mask_trailing_dash(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let cut = rest.char_indices().next_back().map_or(0, |(index, _)| index);
            format!("{}a", rest.get(..cut).unwrap_or_default())
        }
        _ => prefix.to_owned(),
    }
}

/// A path segment: names of roles and their bindings.
#[must_use]
pub fn path_segment(value: &str) -> Vec<String> {
    if matches!(value, "." | "..") {
        return vec![format!("may not be '{value}'")];
    }
    ["/", "%"]
        .into_iter()
        .filter(|part| value.contains(part))
        .map(|part| format!("may not contain '{part}'"))
        .collect()
}

/// A qualified name: keys of labels and annotations, finalizers, resource names.
#[must_use]
pub fn qualified_name(value: &str) -> Vec<String> {
    const RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and \
                        end with an alphanumeric character";
    let rule = || with_regex(RULE, QUALIFIED, &["MyName", "my.name", "123-abc"]);
    let mut faults = Vec::new();
    let name = match value.split('/').collect::<Vec<_>>().as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                faults.push("prefix part must be non-empty".to_owned());
            } else {
                let mut wrong = too_long(prefix, SUBDOMAIN_MAX, "bytes");
                if !is_subdomain(prefix) {
                    wrong.push(subdomain_text());
                }
                faults.extend(wrong.into_iter().map(|text| format!("prefix part {text}")));
            }
            *name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')",
                rule()
            )];
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else {
        faults.extend(
            too_long(name, LABEL_MAX, "bytes").iter().map(|text| format!("name part {text}")),
        );
    }
    if !is_qualified(name) {
        faults.push(format!("name part {}", rule()));
    }
    faults
}

/// The value of a label.
#[must_use]
pub fn label_value(value: &str) -> Vec<String> {
    let mut faults = too_long(value, LABEL_MAX, "bytes");
    if !value.is_empty() && !is_qualified(value) {
        faults.push(with_regex(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
             '.', and must start and end with an alphanumeric character",
            &format!("({QUALIFIED})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    faults
}

/// Labels, in the order of their keys (the server has none); `field` stands for each of them.
#[must_use]
pub fn labels<'a>(
    field: &str,
    labels: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Vec<FieldError> {
    let mut faults = Vec::new();
    for (key, value) in labels {
        faults.extend(invalid(field, key, qualified_name(key)));
        faults.extend(invalid(field, value, label_value(value)));
    }
    faults
}

/// The rule for finalizers of built-in kinds, on top of `qualified_name`; `field` is
/// `metadata.finalizers[i]`.
#[must_use]
pub fn kube_finalizer(field: &str, value: &str) -> Vec<FieldError> {
    let standard = ["kubernetes", "orphan", "foregroundDeletion"];
    if standard.contains(&value) || value.contains('/') {
        return Vec::new();
    }
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    vec![FieldError::invalid(field, &json!(value), why)]
}

/// A port number.
#[must_use]
pub fn port_number(value: i64) -> Vec<String> {
    in_range(value, 1, 65535)
}

/// A number between two others.
#[must_use]
pub fn in_range(value: i64, low: i64, high: i64) -> Vec<String> {
    if (low..=high).contains(&value) {
        Vec::new()
    } else {
        vec![format!("must be between {low} and {high}, inclusive")]
    }
}

/// The name of a container port or a target port.
#[must_use]
pub fn port_name(value: &str) -> Vec<String> {
    let mut faults = too_long(value, 15, "characters");
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let rules = [
        (
            !value.is_empty() && value.chars().all(allowed),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (
            value.contains(|c: char| c.is_ascii_lowercase()),
            "must contain at least one letter (a-z)",
        ),
        (!value.contains("--"), "must not contain consecutive hyphens"),
        (!value.starts_with('-') && !value.ends_with('-'), "must not begin or end with a hyphen"),
    ];
    faults.extend(rules.iter().filter(|(good, _)| !good).map(|(_, text)| (*text).to_owned()));
    faults
}

/// A percentage such as `25%`.
#[must_use]
pub fn percent(value: &str) -> Vec<String> {
    let digits = value.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    vec![with_regex(
        "a valid percent string must be a numeric string followed by an ending '%'",
        "[0-9]+%",
        &["1%", "93%"],
    )]
}

/// The name of an environment variable.
#[must_use]
pub fn env_var(value: &str) -> Vec<String> {
    if value.is_empty() {
        return vec!["environment variable name must be non-empty".to_owned()];
    }
    if value.chars().all(|c| matches!(c, ' '..='~') && c != '=') {
        return Vec::new();
    }
    vec![
        "a valid environment variable name must consist only of printable ASCII characters other \
         than '='"
            .to_owned(),
    ]
}

/// A key of a `ConfigMap` or a Secret.
#[must_use]
pub fn config_key(value: &str) -> Vec<String> {
    let mut faults = too_long(value, SUBDOMAIN_MAX, "characters");
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    if value.is_empty() || !value.chars().all(allowed) {
        faults.push(with_regex(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            CONFIG_KEY,
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    match value {
        "." | ".." => faults.push(format!("must not be '{value}'")),
        _ if value.starts_with("..") => faults.push("must not start with '..'".to_owned()),
        _ => {}
    }
    faults
}

/// An IP address.
#[must_use]
pub fn ip(value: &str) -> Vec<String> {
    let why = match value.parse::<IpAddr>() {
        Ok(IpAddr::V6(ip)) if ip.to_ipv4_mapped().is_some() => {
            "must not be an IPv4-mapped IPv6 address"
        }
        Ok(_) => return Vec::new(),
        Err(_) if without_leading_zeros(value).parse::<IpAddr>().is_ok() => {
            "must not have leading 0s"
        }
        Err(_) => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
    };
    vec![why.to_owned()]
}

/// A range of IP addresses, such as `10.0.0.0/8`.
#[must_use]
pub fn cidr(value: &str) -> Vec<String> {
    const INVALID: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
    let why = match (parse_cidr(value), value.split_once('/')) {
        (Some((IpAddr::V6(ip), _)), _) if ip.to_ipv4_mapped().is_some() => {
            "must not have an IPv4-mapped IPv6 address"
        }
        (Some((ip, length)), _) if masked_ip(ip, length) != ip => {
            "must not have bits set beyond the prefix length"
        }
        (Some(_), _) => return Vec::new(),
        (None, Some((ip, length))) => {
            let length = length.trim_start_matches('0');
            let length = if length.is_empty() { "0" } else { length };
            match parse_cidr(&format!("{}/{length}", without_leading_zeros(ip))) {
                Some(_) => "must not have leading 0s in IP or prefix length",
                None => INVALID,
            }
        }
        (None, None) => INVALID,
    };
    vec![why.to_owned()]
}

fn parse_cidr(value: &str) -> Option<(IpAddr, u32)> {
    let (ip, length) = value.split_once('/')?;
    let ip: IpAddr = ip.parse().ok()?;
    let longest = if ip.is_ipv4() { 32 } else { 128 };
    let plain = length == "0" || !length.starts_with(['0', '+']);
    let length = length.parse().ok().filter(|length| plain && *length <= longest)?;
    Some((ip, length))
}

/// An address without the bits beyond the prefix.
fn masked_ip(ip: IpAddr, length: u32) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or_default();
            IpAddr::V4((u32::from(ip) & mask).into())
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or_default();
            IpAddr::V6((u128::from(ip) & mask).into())
        }
    }
}

/// The parts of an IPv4 address without zeros in front, which some readers take for octal numbers.
fn without_leading_zeros(ip: &str) -> String {
    let parts: Vec<&str> = ip
        .split('.')
        .map(|part| match part.trim_start_matches('0') {
            "" if !part.is_empty() => "0",
            rest => rest,
        })
        .collect();
    parts.join(".")
}

/// One `Invalid value` for each text.
pub(crate) fn invalid(
    field: &str,
    value: &str,
    texts: Vec<String>,
) -> impl Iterator<Item = FieldError> {
    texts.into_iter().map(move |text| FieldError::invalid(field, &json!(value), &text))
}

fn is_dns_label(value: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    value.starts_with(alphanumeric)
        && value.ends_with(alphanumeric)
        && value.chars().all(|c| alphanumeric(c) || c == '-')
}

fn is_subdomain(value: &str) -> bool {
    value.split('.').all(is_dns_label)
}

fn is_qualified(value: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_alphanumeric();
    value.starts_with(alphanumeric)
        && value.ends_with(alphanumeric)
        && value.chars().all(|c| alphanumeric(c) || matches!(c, '-' | '_' | '.'))
}

fn subdomain_text() -> String {
    with_regex(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
         '.', and must start and end with an alphanumeric character",
        &format!(r"{LABEL}(\.{LABEL})*"),
        &["example.com"],
    )
}

fn too_long(value: &str, max: usize, unit: &str) -> Vec<String> {
    let text = || format!("must be no more than {max} {unit}");
    (value.len() > max).then(text).into_iter().collect()
}

fn with_regex(text: &str, regex: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|one| format!("'{one}', ")).collect();
    format!("{text} (e.g. {}regex used for validation is '{regex}')", examples.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_as_the_server_words_them() {
        assert_eq!(
            dns1123_subdomain("Up"),
            [
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' \
              or '.', and must start and end with an alphanumeric character (e.g. 'example.com', \
              regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*\
              [a-z0-9])?)*')"
            ]
        );
        assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
        assert!(dns1123_label("A").first().is_some_and(|text| {
            text.contains("(e.g. 'my-name',  or '123-abc', regex used for validation is")
        }));
        assert_eq!(
            port_name(""),
            [
                "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                "must contain at least one letter (a-z)",
            ]
        );
    }

    #[test]
    fn addresses_and_ranges() {
        for good in ["10.9.8.7", "::", "FE80::1"] {
            assert!(ip(good).is_empty(), "{good}");
        }
        assert_eq!(ip("010.9.8.7"), ["must not have leading 0s"]);
        assert_eq!(ip("::ffff:1.2.3.4"), ["must not be an IPv4-mapped IPv6 address"]);
        assert_eq!(ip("x"), ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]);
        for good in ["10.0.0.0/8", "0.0.0.0/0", "1.2.3.4/32", "::/0", "FE80::/64", "::1/128"] {
            assert!(cidr(good).is_empty(), "{good}");
        }
        for zeros in ["010.0.0.0/8", "10.0.0.0/08"] {
            assert_eq!(cidr(zeros), ["must not have leading 0s in IP or prefix length"], "{zeros}");
        }
        assert_eq!(cidr("10.0.0.1/8"), ["must not have bits set beyond the prefix length"]);
        assert_eq!(cidr("::ffff:1.2.3.4/128"), ["must not have an IPv4-mapped IPv6 address"]);
        for bad in ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/+8", "x/8", "/"] {
            assert!(cidr(bad).iter().any(|why| why.starts_with("must be a valid CIDR")), "{bad}");
        }
    }

    #[test]
    fn good_values() {
        assert!(qualified_name("app.kubernetes.io/name").is_empty());
        assert!(label_value("").is_empty());
        assert!(dns1035_label("web-1").is_empty());
        assert!(wildcard_subdomain("*.example.com").is_empty());
        assert!(config_key("tls.crt").is_empty());
        assert_eq!(mask_trailing_dash("web-"), "wea");
    }
}
