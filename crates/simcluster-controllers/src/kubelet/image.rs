//! Image names, and the lives that some of them choose.

use std::time::Duration;

/// What becomes of a container of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    /// It runs and is ready after `ready_after` beyond the usual delay.
    Runs {
        /// Extra time until ready.
        ready_after: Duration,
    },
    /// It runs and is never ready.
    NeverReady,
    /// It ends with code 1 soon after each start; so many starts come without back-off between them.
    Crashes {
        /// Starts before the first back-off.
        starts: u32,
    },
    /// It ends with this code soon after each start.
    Exits {
        /// The exit code.
        code: i32,
    },
    /// The registry does not have it.
    NotFound,
    /// The name is no image reference.
    Invalid,
}

/// The life of a container of an image:
///
/// | image | life |
/// |---|---|
/// | any name with the tag `not-exist` | it cannot be pulled |
/// | `sim/crash:N` | ends with code 1, over and over; back-off after N starts |
/// | `sim/exit:CODE` | ends with CODE |
/// | `sim/slow:30s` | is ready 30 s later than others |
/// | `sim/unready` | runs, is never ready |
/// | no image reference | `InvalidImageName` |
/// | anything else | runs and is ready |
///
/// `sim/` may stand behind a registry and further path components.
pub(crate) fn life(image: &str) -> Life {
    let Some(reference) = parse(image) else { return Life::Invalid };
    if reference.tag == Some("not-exist") {
        return Life::NotFound;
    }
    let runs = Life::Runs { ready_after: Duration::ZERO };
    let mut path = reference.repository.rsplit('/');
    let (name, parent) = (path.next(), path.next());
    if parent != Some("sim") {
        return runs;
    }
    let tag = reference.tag.unwrap_or_default();
    match name {
        Some("crash") => Life::Crashes { starts: tag.parse().unwrap_or(2).max(1) },
        Some("exit") => Life::Exits { code: tag.parse().unwrap_or(0) },
        Some("slow") => {
            Life::Runs { ready_after: duration(tag).unwrap_or(Duration::from_secs(30)) }
        }
        Some("unready") => Life::NeverReady,
        Some(_) | None => runs,
    }
}

/// A number with `ms`, `s` or `m`.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    match text.strip_prefix(digits)? {
        "ms" => Some(Duration::from_millis(number)),
        "s" | "" => Some(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs),
        _ => None,
    }
}

/// The parts of an image reference.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reference<'a> {
    pub(super) registry: Option<&'a str>,
    pub(super) repository: &'a str,
    pub(super) tag: Option<&'a str>,
    pub(super) digest: Option<&'a str>,
}

/// Parses `[registry[:port]/]path[:tag][@digest]`.
pub(super) fn parse(image: &str) -> Option<Reference<'_>> {
    let (rest, digest) = match image.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (image, None),
    };
    let (name, tag) = match rest.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        Some(_) | None => (rest, None),
    };
    let (registry, repository) = match name.split_once('/') {
        Some((first, path)) if first.contains(['.', ':']) || first == "localhost" => {
            (Some(first), path)
        }
        Some(_) | None => (None, name),
    };
    let is_valid = registry.is_none_or(is_registry)
        && repository.split('/').all(is_component)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest)
        && name.len() <= 255;
    is_valid.then_some(Reference { registry, repository, tag, digest })
}

/// The full name, with what docker adds when it is left out.
pub(super) fn full_name(image: &str) -> String {
    let Some(reference) = parse(image) else { return image.to_owned() };
    let registry = reference.registry.unwrap_or("docker.io");
    let library = if registry == "docker.io" && !reference.repository.contains('/') {
        "library/"
    } else {
        ""
    };
    let end = match (reference.tag, reference.digest) {
        (_, Some(digest)) => format!("@{digest}"),
        (Some(tag), None) => format!(":{tag}"),
        (None, None) => ":latest".to_owned(),
    };
    format!("{registry}/{library}{}{end}", reference.repository)
}

fn is_registry(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    host.split('.').all(is_label)
        && port
            .is_none_or(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Lower-case letters and digits, with one `.`, one or two `_`, or dashes between them.
fn is_component(text: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let separators = text.split(is_plain).filter(|separator| !separator.is_empty());
    text.starts_with(is_plain)
        && text.ends_with(is_plain)
        && separators.into_iter().all(|separator| {
            matches!(separator, "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-')
        })
}

fn is_tag(text: &str) -> bool {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    (1..=128).contains(&text.len())
        && text.starts_with(is_word)
        && text.chars().all(|letter| is_word(letter) || matches!(letter, '.' | '-'))
}

fn is_digest(text: &str) -> bool {
    text.split_once(':').is_some_and(|(algorithm, hex)| {
        !algorithm.is_empty()
            && algorithm.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+._-".contains(&byte))
            && hex.len() >= 32
            && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}
