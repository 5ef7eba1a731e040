//! What a request asks for: path, method and query turned into verb, resource and names.
//!
//! Follows `k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`, the legacy `/watch/` paths
//! included. Knows no resources: whether the path is served is decided elsewhere.

/// A parsed request line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// Whether the path has the form of a resource path.
    pub is_resource: bool,
    /// Decoded path.
    pub path: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, `proxy`; for
    /// paths without a resource the method in lower case; empty for methods that resources do not know.
    pub verb: String,
    /// API group, empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Namespace; empty if there is none. A Namespace object counts as in the namespace of its own name.
    pub namespace: String,
    /// Plural resource.
    pub resource: String,
    /// Subresource, empty if there is none.
    pub subresource: String,
    /// Name in the path; empty for collections.
    pub name: String,
    /// Name in a field selector `metadata.name=...` of a list or watch; it counts for authorisation only.
    pub selected_name: String,
    /// Whether the verb comes from the path (`/watch/...`).
    pub verb_in_path: bool,
    /// Decoded query parameters, in order.
    pub query: Vec<(String, String)>,
}

impl RequestInfo {
    /// The first value of a query parameter.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// `group/version`, or `version` in the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// Parses a method and an encoded path with its query.
#[must_use]
pub fn parse(method: &str, path: &str, query: &str) -> RequestInfo {
    let mut info = RequestInfo {
        path: decode(path, false),
        verb: method.to_ascii_lowercase(),
        query: parse_query(query),
        ..RequestInfo::default()
    };
    let path = info.path.clone();
    let parts = segments(&path);
    let Some(parts) = split_group_version(&mut info, &parts) else { return info };
    info.is_resource = true;
    let Some(parts) = split_verb(&mut info, method, parts) else { return info };
    let parts = split_namespace(&mut info, parts);
    let part = |index: usize| parts.get(index).copied().unwrap_or_default().to_owned();
    info.resource = part(0);
    info.name = part(1);
    if info.verb != "proxy" {
        info.subresource = part(2);
    }
    refine_verb(&mut info);
    info
}

/// The segments of a path without the outer slashes.
#[must_use]
pub fn segments(path: &str) -> Vec<&str> {
    let path = path.trim_matches('/');
    if path.is_empty() { Vec::new() } else { path.split('/').collect() }
}

/// Fills group and version; `None` for paths without a resource. Returns the rest of the parts.
fn split_group_version<'a, 'b>(
    info: &mut RequestInfo,
    parts: &'a [&'b str],
) -> Option<&'a [&'b str]> {
    match parts {
        ["api", version, rest @ ..] if !rest.is_empty() => {
            (*version).clone_into(&mut info.version);
            Some(rest)
        }
        ["apis", group, version, rest @ ..] if !rest.is_empty() => {
            (*group).clone_into(&mut info.group);
            (*version).clone_into(&mut info.version);
            Some(rest)
        }
        _ => None,
    }
}

/// Fills the verb from the path or the method; `None` if the path ends after the verb.
fn split_verb<'a, 'b>(
    info: &mut RequestInfo,
    method: &str,
    parts: &'a [&'b str],
) -> Option<&'a [&'b str]> {
    if let [verb @ ("watch" | "proxy"), rest @ ..] = parts {
        (*verb).clone_into(&mut info.verb);
        info.verb_in_path = true;
        return if rest.is_empty() { None } else { Some(rest) };
    }
    let verb = match method {
        "POST" => "create",
        "GET" | "HEAD" => "get",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "",
    };
    verb.clone_into(&mut info.verb);
    Some(parts)
}

/// Fills the namespace. `namespaces/x/status` and `namespaces/x/finalize` are a Namespace's own.
fn split_namespace<'a, 'b>(info: &mut RequestInfo, parts: &'a [&'b str]) -> &'a [&'b str] {
    let ["namespaces", namespace, rest @ ..] = parts else { return parts };
    (*namespace).clone_into(&mut info.namespace);
    match rest {
        [] | ["status" | "finalize", ..] => parts,
        _ => rest,
    }
}

fn refine_verb(info: &mut RequestInfo) {
    if !info.name.is_empty() {
        return;
    }
    match info.verb.as_str() {
        "get" => {
            let watch = info.param("watch").is_some_and(is_true);
            (if watch { "watch" } else { "list" }).clone_into(&mut info.verb);
        }
        "delete" => "deletecollection".clone_into(&mut info.verb),
        _ => {}
    }
    if matches!(info.verb.as_str(), "list" | "watch")
        && let Some(name) = info.param("fieldSelector").and_then(selected_name)
    {
        info.selected_name = name;
    }
}

/// A boolean query parameter as the server reads it: everything but `false` and `0` is true.
fn is_true(value: &str) -> bool {
    !matches!(value.to_ascii_lowercase().as_str(), "false" | "0")
}

/// The name that a field selector demands, if it demands one.
fn selected_name(selector: &str) -> Option<String> {
    selector.split(',').find_map(|term| {
        let (field, value) = term.split_once('=')?;
        let value = value.strip_prefix('=').unwrap_or(value);
        let usable = field == "metadata.name" && !value.is_empty() && !value.contains(['/', '%']);
        usable.then(|| value.to_owned())
    })
}

fn parse_query(query: &str) -> Vec<(String, String)> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key, true), decode(value, true))
        })
        .collect()
}

/// Percent-decodes; in queries `+` is a space. What is not an escape stays as it is.
pub(crate) fn decode(text: &str, query: bool) -> String {
    if !text.contains(['%', '+']) {
        return text.to_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'%', [high, low, tail @ ..]) => match (hex_digit(*high), hex_digit(*low)) {
                (Some(high), Some(low)) => {
                    bytes.push(high * 16 + low);
                    rest = tail;
                }
                _ => bytes.push(b'%'),
            },
            (b'+', _) if query => bytes.push(b' '),
            _ => bytes.push(*first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
