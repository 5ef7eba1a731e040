//! Turns a spec into values that cannot be wrong. The only step that can fail without a server.
//!
//! The rules are those of the custom resource definition, once more: an object may have been
//! stored before a rule existed, or through a server that did not know it.

use std::{fmt, num::NonZeroU16};

use crate::api::simpleapp::{IMAGE_LENGTH_MAX, SimpleAppSpec};

use super::observed::App;

const LABEL_LENGTH_MAX: usize = 63;
const HOST_LENGTH_MAX: usize = 253;
const IMAGE_LENGTH_MIN: usize = 3;
const IMAGE_NAME_LENGTH_MAX: usize = 255;
const TAG_LENGTH_MAX: usize = 128;

/// A name that a Service may have: an RFC 1035 label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AppName(String);

/// An image reference that a container runtime can parse.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Image(String);

/// A DNS name in lower case, with at most one leading `*.`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Host(String);

macro_rules! text {
    ($($name:ident),*) => {$(
        impl $name {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}
text!(AppName, Image, Host);

impl Image {
    /// When a kubelet pulls the image: always if its tag can move (`latest`, which no tag means, too),
    /// else only if it is not there. That is the API server's own default, but the server fills it
    /// once, when the container is made: left to it, an app that moves from `web:1` to `web:latest`
    /// would never see a newer `latest`.
    #[must_use]
    pub fn pull_policy(&self) -> &'static str {
        let path_start = self.0.rfind('/').map_or(0, |slash| slash + 1);
        let last = self.0.get(path_start..).unwrap_or_default();
        let moves = match (last.contains('@'), last.split_once(':')) {
            (true, _) => false,
            (false, None) => true,
            (false, Some((_, tag))) => tag == "latest",
        };
        if moves { "Always" } else { "IfNotPresent" }
    }
}

/// An app that can be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Valid {
    /// Namespace of the app and its children.
    pub namespace: String,
    /// Name of the app and its children.
    pub name: AppName,
    /// Identity of the app.
    pub uid: String,
    /// What runs.
    pub image: Image,
    /// How many pods run.
    pub replicas: u32,
    /// Port of container and Service.
    pub port: NonZeroU16,
    /// Where it is reachable from outside, if it is.
    pub host: Option<Host>,
}

/// Why a spec cannot be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// Which field.
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: String,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)
    }
}

/// Checks everything and reports all that is wrong, in the order of the fields.
pub fn validate(app: &App) -> Result<Valid, Vec<Invalid>> {
    let spec = match &app.spec {
        Ok(spec) => spec,
        Err(problem) => return Err(vec![unreadable(problem)]),
    };
    let mut problems = Vec::new();
    let mut keep = |field, problem: String| problems.push(Invalid { field, problem });
    let name = parse_name(&app.key.name).map_err(|problem| keep("metadata.name", problem)).ok();
    let image = parse_image(&spec.image).map_err(|problem| keep("spec.image", problem)).ok();
    let replicas = parse_replicas(spec).map_err(|problem| keep("spec.replicas", problem)).ok();
    let port = parse_port(spec).map_err(|problem| keep("spec.port", problem)).ok();
    let host = spec.host.as_deref().map(parse_host).transpose();
    let host = host.map_err(|problem| keep("spec.host", problem)).ok();
    let (Some(name), Some(image), Some(replicas), Some(port), Some(host)) =
        (name, image, replicas, port, host)
    else {
        return Err(problems);
    };
    let namespace = app.key.namespace.clone();
    Ok(Valid { namespace, name, uid: app.uid.clone(), image, replicas, port, host })
}

fn unreadable(problem: &str) -> Invalid {
    let problem = problem.strip_prefix("spec: ").unwrap_or(problem).to_owned();
    Invalid { field: "spec", problem }
}

fn parse_replicas(spec: &SimpleAppSpec) -> Result<u32, String> {
    u32::try_from(spec.replicas).map_err(|_negative| format!("{} is less than 0", spec.replicas))
}

fn parse_port(spec: &SimpleAppSpec) -> Result<NonZeroU16, String> {
    let port = u16::try_from(spec.port).ok().and_then(NonZeroU16::new);
    port.ok_or_else(|| format!("{} is not between 1 and 65535", spec.port))
}

/// Parses a name that a Service may have.
pub fn parse_name(name: &str) -> Result<AppName, String> {
    let starts_with_letter = name.starts_with(|first: char| first.is_ascii_lowercase());
    if starts_with_letter && is_label(name) {
        return Ok(AppName(name.to_owned()));
    }
    Err(format!(
        "{name:?} cannot be the name of a Service: at most 63 characters of a-z, 0-9 and -, that start with a letter and do not end with -"
    ))
}

/// Parses the name of a namespace.
pub fn parse_namespace(name: &str) -> Result<String, String> {
    if is_label(name) {
        return Ok(name.to_owned());
    }
    Err(format!("{name:?} is not the name of a namespace"))
}

/// Parses a host that an Ingress may have.
pub fn parse_host(host: &str) -> Result<Host, String> {
    let refuse = |problem: &str| Err(format!("{host:?} {problem}"));
    if host.is_empty() {
        return refuse("is empty: leave the field out for an app without an Ingress");
    }
    if host.len() > HOST_LENGTH_MAX {
        return refuse("has more than 253 characters");
    }
    let labels: Vec<&str> = host.strip_prefix("*.").unwrap_or(host).split('.').collect();
    if !labels.iter().all(|label| is_label(label)) {
        return refuse(
            "is not a DNS name: labels of at most 63 characters of a-z, 0-9 and -, that start and end with a letter or digit, and at most one leading *.",
        );
    }
    let all_digits = |label: &&str| label.bytes().all(|byte| byte.is_ascii_digit());
    if !host.starts_with("*.") && labels.len() == 4 && labels.iter().all(all_digits) {
        return refuse("is an IP address, not a DNS name");
    }
    Ok(Host(host.to_owned()))
}

/// Parses an image reference: `[registry[:port]/]path[:tag][@digest]`.
pub fn parse_image(image: &str) -> Result<Image, String> {
    let refuse = |problem: &str| Err(format!("{image:?} {problem}"));
    if image.len() < IMAGE_LENGTH_MIN {
        return refuse("has less than 3 characters");
    }
    if image.len() > IMAGE_LENGTH_MAX {
        return refuse("is longer than any image reference");
    }
    let (rest, digest) = image.split_once('@').map_or((image, None), |(rest, d)| (rest, Some(d)));
    let path_start = rest.rfind('/').map_or(0, |slash| slash + 1);
    let tag_start = rest.get(path_start..).and_then(|last| last.find(':'));
    let (name, tag) = match tag_start.and_then(|colon| rest.split_at_checked(path_start + colon)) {
        Some((name, tag)) => (name, Some(tag.trim_start_matches(':'))),
        None => (rest, None),
    };
    if rest.get(path_start..).is_some_and(|last| last.matches(':').count() > 1) {
        return refuse("has more than one tag");
    }
    if name.len() > IMAGE_NAME_LENGTH_MAX {
        return refuse("has a name of more than 255 characters");
    }
    if !is_image_name(name) {
        return refuse("does not name an image: [registry[:port]/]path in lower case");
    }
    if image.len() == 64 && image.bytes().all(is_lower_hex) {
        return refuse("is an image ID, not a name");
    }
    if !tag.is_none_or(is_tag) {
        return refuse("has an invalid tag");
    }
    if !digest.is_none_or(is_digest) {
        return refuse("has an invalid digest");
    }
    Ok(Image(image.to_owned()))
}

/// An RFC 1123 label.
fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty()
        && text.len() <= LABEL_LENGTH_MAX
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn is_image_name(name: &str) -> bool {
    let paths = |text: &str| text.split('/').all(is_path_component);
    paths(name)
        || name.split_once('/').is_some_and(|(registry, path)| is_registry(registry) && paths(path))
}

/// Runs of lower-case letters and digits, joined by `.`, `_`, `__` or any number of `-`.
fn is_path_component(text: &str) -> bool {
    let alphanumeric = |byte: char| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.starts_with(alphanumeric)
        && text.ends_with(alphanumeric)
        && text.split(alphanumeric).all(|joint| {
            matches!(joint, "" | "." | "_" | "__") || joint.bytes().all(|byte| byte == b'-')
        })
}

fn is_registry(text: &str) -> bool {
    if let Some(address) = text.strip_prefix('[') {
        let Some((address, port)) = address.split_once(']') else {
            return false;
        };
        let hex = |byte: u8| byte.is_ascii_hexdigit() || byte == b':';
        return !address.is_empty()
            && address.bytes().all(hex)
            && (port.is_empty() || port.strip_prefix(':').is_some_and(is_digits));
    }
    let (domain, port) = text.split_once(':').map_or((text, None), |(d, port)| (d, Some(port)));
    let label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    domain.split('.').all(label) && port.is_none_or(is_digits)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_tag(tag: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !tag.is_empty()
        && tag.len() <= TAG_LENGTH_MAX
        && tag.bytes().all(|byte| word(byte) || byte == b'.' || byte == b'-')
        && !tag.starts_with(['.', '-'])
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else {
        return false;
    };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    hex.len() == length && hex.bytes().all(is_lower_hex)
}

fn is_lower_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}
