//! The functions that rules may call.

use super::types::Kind;

/// What a function answers.
pub(super) enum Answer {
    /// Always this type.
    Kind(Kind),
    /// The type of the list's items.
    Item,
    /// The type of the value itself.
    Same,
    /// Not known here.
    Unknown,
}

const INT: &str = "size indexOf lastIndexOf int getDate getDayOfMonth getDayOfWeek getDayOfYear \
    getFullYear getHours getMilliseconds getMinutes getMonth getSeconds asInteger sign major minor \
    patch prefixLength family";
const BOOL: &str = "contains startsWith endsWith matches bool isURL isQuantity isInteger isIP isCIDR \
    isSorted hasValue isGreaterThan isLessThan isSemver isCanonical isUnspecified isLoopback \
    isLinkLocalMulticast isLinkLocalUnicast isGlobalUnicast containsIP containsCIDR intersects \
    equivalent isNaN isInf isFinite isMask";
const STRING: &str = "string lowerAscii upperAscii trim replace substring join charAt find format \
    quote reverse getScheme getHost getHostname getPort getEscapedPath escapeKey";
const STRINGS: &str = "split findAll";
const UNKNOWN: &str = "dyn type value orValue or optMap optFlatMap of none ofNonZeroValue optional \
    getQuery add sub compareTo greatest least ceil floor round trunc abs sqrt bitAnd bitOr bitXor \
    bitNot bitShiftLeft bitShiftRight encode decode named validate masked flatten range first last \
    all exists existsOne exists_one map filter transformList transformMap transformMapEntry \
    dns1123Label dns1123Subdomain dns1035Label qualifiedName dns1123LabelPrefix \
    dns1123SubdomainPrefix dns1035LabelPrefix labelValue uri uuid byte date datetime";
const TYPES: &str =
    "int uint double bool string bytes list map type null_type dyn timestamp duration google";
const LIBRARIES: &str = "optional math base64 sets strings format jsonpatch semver ip";
/// Macros that the expression library here does not know: they are still calls after parsing.
const UNSUPPORTED: &str = "transformList transformMap transformMapEntry sortBy optMap optFlatMap";
const WALKS: &str = "all exists existsOne exists_one";

fn among(names: &str, name: &str) -> bool {
    names.split_ascii_whitespace().any(|known| known == name)
}

/// Whether a name before a dot is that of a library, not of a variable.
pub(super) fn is_library(name: &str) -> bool {
    among(LIBRARIES, name)
}

/// Whether a name is that of a type, which rules may use as a value.
pub(super) fn is_type(name: &str) -> bool {
    among(TYPES, name)
}

/// What a function answers; `None`: the server has none of that name.
pub(super) fn answer(name: &str) -> Option<Answer> {
    let kind = match name {
        "uint" => Kind::Uint,
        "double" | "asApproximateFloat" => Kind::Double,
        "bytes" => Kind::Bytes,
        "duration" => Kind::Duration,
        "timestamp" => Kind::Timestamp,
        "quantity" => Kind::Library("kubernetes.Quantity"),
        "url" => Kind::Library("kubernetes.URL"),
        "ip" => Kind::Library("net.IP"),
        "cidr" => Kind::Library("net.CIDR"),
        "semver" => Kind::Library("kubernetes.Semver"),
        "sum" | "min" | "max" => return Some(Answer::Item),
        "distinct" | "sort" | "slice" | "sortBy" => return Some(Answer::Same),
        _ if among(INT, name) => Kind::Int,
        _ if among(BOOL, name) => Kind::Bool,
        _ if among(STRING, name) => Kind::String,
        _ if among(STRINGS, name) => Kind::List(Box::new(Kind::String)),
        _ => return among(UNKNOWN, name).then_some(Answer::Unknown),
    };
    Some(Answer::Kind(kind))
}

/// Whether a call is one of a macro of the server that cannot be evaluated here.
pub(super) fn is_unsupported(name: &str, arguments: usize) -> bool {
    among(UNSUPPORTED, name) || (among(WALKS, name) && arguments == 3)
}
