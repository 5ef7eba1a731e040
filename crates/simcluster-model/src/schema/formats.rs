//! String formats that CRD schemas may name (`kube-openapi` strfmt), and Go's regular expressions.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

/// A format of strings that is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Bson,
    Uri,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    Uuid(Option<char>),
    Isbn10,
    Isbn13,
    Isbn,
    CreditCard,
    Ssn,
    HexColor,
    RgbColor,
    Byte,
    Password,
    Date,
    Duration,
    DateTime,
    ShortName,
    LongName,
}

impl Format {
    /// The format of that name; dashes do not count.
    pub(super) fn parse(name: &str) -> Option<Self> {
        Some(match name.replace('-', "").as_str() {
            "bsonobjectid" => Self::Bson,
            "uri" => Self::Uri,
            "email" => Self::Email,
            "hostname" => Self::Hostname,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "cidr" => Self::Cidr,
            "mac" => Self::Mac,
            "uuid" => Self::Uuid(None),
            "uuid3" => Self::Uuid(Some('3')),
            "uuid4" => Self::Uuid(Some('4')),
            "uuid5" => Self::Uuid(Some('5')),
            "isbn" => Self::Isbn,
            "isbn10" => Self::Isbn10,
            "isbn13" => Self::Isbn13,
            "creditcard" => Self::CreditCard,
            "ssn" => Self::Ssn,
            "hexcolor" => Self::HexColor,
            "rgbcolor" => Self::RgbColor,
            "byte" => Self::Byte,
            "password" => Self::Password,
            "date" => Self::Date,
            "duration" => Self::Duration,
            "datetime" => Self::DateTime,
            "k8sshortname" => Self::ShortName,
            "k8slongname" => Self::LongName,
            _ => return None,
        })
    }

    /// Whether the server checks a format of that name.
    pub(super) fn is_known(name: &str) -> bool {
        Self::parse(name).is_some()
    }

    /// Whether a text is of the format.
    pub(super) fn accepts(self, text: &str) -> bool {
        match self {
            Self::Bson => text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
            Self::Uri => is_request_uri(text),
            Self::Email => is_email(text),
            Self::Hostname => is_hostname(text),
            Self::Ipv4 => text.contains('.') && parse_ip(text).is_some(),
            Self::Ipv6 => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
            Self::Cidr => is_cidr(text),
            Self::Mac => is_mac(text),
            Self::Uuid(version) => is_uuid(text, version),
            Self::Isbn10 => is_isbn10(text),
            Self::Isbn13 => is_isbn13(text),
            Self::Isbn => is_isbn10(text) || is_isbn13(text),
            Self::CreditCard => is_credit_card(text),
            Self::Ssn => matches(&SSN, text),
            Self::HexColor => matches(&HEX_COLOR, text),
            Self::RgbColor => matches(&RGB_COLOR, text),
            Self::Byte => matches(&BASE64, text),
            Self::Password => true,
            Self::Date => is_date(text),
            Self::Duration => is_duration(text),
            Self::DateTime => is_date_time(text),
            Self::ShortName => text.len() <= 63 && matches(&SHORT_NAME, text),
            Self::LongName => text.len() <= 253 && matches(&LONG_NAME, text),
        }
    }
}

macro_rules! regexes {
    ($($name:ident = $pattern:literal;)*) => {
        $(static $name: LazyLock<Regex> =
            LazyLock::new(|| Regex::new($pattern).expect("the pattern is written here"));)*
    };
}

regexes! {
    HOSTNAME = r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$";
    MAC_COLON = r"^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}(:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})?((:[0-9a-fA-F]{2}){12})?$";
    MAC_DASH = r"^[0-9a-fA-F]{2}(-[0-9a-fA-F]{2}){5}(-[0-9a-fA-F]{2}-[0-9a-fA-F]{2})?((-[0-9a-fA-F]{2}){12})?$";
    MAC_DOT = r"^[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4}){2}(\.[0-9a-fA-F]{4})?((\.[0-9a-fA-F]{4}){6})?$";
    CREDIT_CARD = r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|(222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}|6[27][0-9]{14})$";
    SSN = r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$";
    HEX_COLOR = r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$";
    RGB_COLOR = r"^rgb\(\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*,\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*,\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*\)$";
    BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$";
    TIME = r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$";
    SHORT_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
    LONG_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
    GO_DURATION = r"^[-+]?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$";
    LONG_DURATION = r"([0-9]+)\s*([A-Za-zµ]+)";
    EMAIL = r"^[^\s<>@,;:()\[\]]+@[^\s<>@,;:()\[\]]+$";
    URI_SCHEME = r"^[a-zA-Z][a-zA-Z0-9+.\-]*:";
}

fn matches(regex: &Regex, text: &str) -> bool {
    regex.is_match(text)
}

/// Go's `url.ParseRequestURI`: an absolute URI or an absolute path.
fn is_request_uri(text: &str) -> bool {
    let clean = !text.bytes().any(|byte| byte < 0x20 || byte == 0x7f || byte == b' ');
    let absolute = text.starts_with('/') || URI_SCHEME.is_match(text);
    clean && absolute && well_escaped(text)
}

/// Whether every `%` is followed by two hexadecimal digits.
fn well_escaped(text: &str) -> bool {
    text.split('%').skip(1).all(|after| {
        let digits: Vec<u8> = after.bytes().take(2).collect();
        digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit)
    })
}

/// Go's `mail.ParseAddress`: an address, alone or in angle brackets after a name.
fn is_email(text: &str) -> bool {
    let address = match (text.trim().rfind('<'), text.trim().strip_suffix('>')) {
        (Some(start), Some(inner)) => inner.get(start + 1..).unwrap_or_default(),
        _ => text.trim(),
    };
    EMAIL.is_match(address) && !address.contains("..") && !address.starts_with('.')
}

fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && HOSTNAME.is_match(text) && text.split('.').all(|label| label.len() <= 63)
}

/// An IP address whose IPv4 parts may have leading zeros.
fn parse_ip(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    let parts: Vec<u8> = text
        .split('.')
        .map(|part| {
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| part.parse().ok()).flatten()
        })
        .collect::<Option<_>>()?;
    let octets: [u8; 4] = parts.try_into().ok()?;
    Some(IpAddr::V4(Ipv4Addr::from(octets)))
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let limit = match parse_ip(address) {
        Some(IpAddr::V4(_)) => 32,
        Some(IpAddr::V6(_)) => 128,
        None => return false,
    };
    let digits = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    digits && bits.parse::<u8>().is_ok_and(|bits| bits <= limit)
}

fn is_mac(text: &str) -> bool {
    matches(&MAC_COLON, text) || matches(&MAC_DASH, text) || matches(&MAC_DOT, text)
}

fn is_uuid(text: &str, version: Option<char>) -> bool {
    let dashes_fit = {
        // Each of the four dashes may be missing.
        let mut rest = text;
        [8_usize, 4, 4, 4, 12].iter().enumerate().all(|(group, length)| {
            if group > 0 {
                rest = rest.strip_prefix('-').unwrap_or(rest);
            }
            let Some((digits, after)) = rest.split_at_checked(*length) else { return false };
            rest = after;
            digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        }) && rest.is_empty()
    };
    let digits: Vec<char> = text.chars().filter(|char| *char != '-').collect();
    let version_fits = version.is_none_or(|version| {
        let variant = digits.get(16).is_some_and(|char| "89abAB".contains(*char));
        digits.get(12) == Some(&version) && (version == '3' || variant)
    });
    dashes_fit && version_fits
}

fn isbn_digits(text: &str) -> Vec<char> {
    text.chars().filter(|char| !matches!(char, ' ' | '-')).collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = isbn_digits(text);
    let values: Option<Vec<u32>> = digits
        .iter()
        .enumerate()
        .map(|(place, char)| if place == 9 && *char == 'X' { Some(10) } else { char.to_digit(10) })
        .collect();
    values.is_some_and(|values| {
        let sum: u32 = (1..).zip(&values).map(|(weight, value)| weight * value).sum();
        values.len() == 10 && sum.is_multiple_of(11)
    })
}

fn is_isbn13(text: &str) -> bool {
    let values: Option<Vec<u32>> = isbn_digits(text).iter().map(|char| char.to_digit(10)).collect();
    values.is_some_and(|values| {
        let sum: u32 =
            [1, 3].iter().cycle().zip(&values).map(|(weight, value)| weight * value).sum();
        values.len() == 13 && sum.is_multiple_of(10)
    })
}

/// A card number of a known issuer with a right check digit; everything but digits is ignored.
fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if !CREDIT_CARD.is_match(&digits) {
        return false;
    }
    let sum: u32 = digits
        .chars()
        .rev()
        .filter_map(|char| char.to_digit(10))
        .enumerate()
        .map(|(place, digit)| match (place % 2, digit * 2) {
            (0, _) => digit,
            (_, twice) if twice > 9 => twice - 9,
            (_, twice) => twice,
        })
        .sum();
    sum.is_multiple_of(10)
}

fn is_date(text: &str) -> bool {
    let shape = text.len() == 10
        && text.bytes().enumerate().all(|(place, byte)| {
            if place == 4 || place == 7 { byte == b'-' } else { byte.is_ascii_digit() }
        });
    shape && text.parse::<jiff::civil::Date>().is_ok()
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let Some((date, rest)) = lower.split_once('t') else { return false };
    let time = rest.split('t').next().unwrap_or_default();
    let Some(parts) = TIME.captures(time) else { return false };
    let below =
        |group: usize, limit: &str| parts.get(group).is_some_and(|part| part.as_str() <= limit);
    is_date(date) && below(1, "23") && below(2, "59") && below(3, "59")
}

/// What Go's `time.ParseDuration` takes.
pub fn is_go_duration(text: &str) -> bool {
    GO_DURATION.is_match(text)
}

/// Go's duration syntax, or one of Scala's (`22 seconds`).
fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 28] = [
        "ns", "nano", "nanos", "us", "µs", "micro", "micros", "ms", "milli", "millis", "s", "sec",
        "secs", "m", "min", "mins", "h", "hr", "hrs", "hour", "d", "day", "days", "w", "wk", "wks",
        "week", "weeks",
    ];
    const PREFIXES: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    is_go_duration(text)
        || LONG_DURATION.captures_iter(text).any(|found| {
            let unit = found.get(2).map(|unit| unit.as_str().to_lowercase()).unwrap_or_default();
            UNITS.contains(&unit.as_str()) || PREFIXES.iter().any(|prefix| unit.starts_with(prefix))
        })
}

/// Compiles a regular expression of Go: the classes `\d`, `\w`, `\s` and `\b` are ASCII there.
pub(crate) fn go_regex(source: &str) -> Result<Regex, String> {
    let mut text = String::with_capacity(source.len());
    let mut chars = source.chars();
    let mut in_class = false;
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some(escaped) => push_escape(&mut text, escaped, in_class),
                None => text.push('\\'),
            },
            '[' if !in_class => {
                in_class = true;
                text.push('[');
                // A bracket right after the start is an ordinary character.
                let mut rest = chars.clone();
                if rest.next() == Some('^') {
                    text.push('^');
                    chars.next();
                    rest = chars.clone();
                    if rest.next() == Some(']') {
                        text.push_str("\\]");
                        chars.next();
                    }
                } else if chars.clone().next() == Some(']') {
                    text.push_str("\\]");
                    chars.next();
                }
            }
            '[' if chars.as_str().starts_with(':') => text.push('['),
            // Go knows no nested classes and no set operations.
            '[' | '&' | '~' if in_class => {
                text.push('\\');
                text.push(char);
            }
            ']' if in_class => {
                // The end of `[:alpha:]` is not the end of the class.
                in_class = text.ends_with(':')
                    && text.rfind("[:").is_some_and(|start| {
                        text.get(start + 2..)
                            .is_some_and(|name| !name.contains(']') && name.len() > 1)
                    });
                text.push(']');
            }
            char => text.push(char),
        }
    }
    Regex::new(&text).map_err(|why| why.to_string())
}

fn push_escape(text: &mut String, escaped: char, in_class: bool) {
    text.push_str(match (escaped, in_class) {
        ('d', true) => "0-9",
        ('w', true) => "0-9A-Za-z_",
        ('s', true) => r"\t\n\f\r ",
        ('d', false) => "[0-9]",
        ('D', false) => "[^0-9]",
        ('w', false) => "[0-9A-Za-z_]",
        ('W', false) => "[^0-9A-Za-z_]",
        ('s', false) => r"[\t\n\f\r ]",
        ('S', false) => r"[^\t\n\f\r ]",
        ('b', false) => r"(?-u:\b)",
        ('C', false) => ".",
        _ => {
            text.push('\\');
            text.push(escaped);
            return;
        }
    });
}
