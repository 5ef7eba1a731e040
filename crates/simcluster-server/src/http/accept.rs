//! Content negotiation: what an `Accept` header asks for and what an endpoint can give.
//!
//! Follows `k8s.io/apiserver/pkg/endpoints/handlers/negotiation`. Protobuf is named in the texts, as
//! the real server names it, but never chosen: clients that ask for it list JSON too.

use simcluster_model::error::{ApiError, Details};

/// How a response is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `application/json`
    Json,
    /// `application/yaml`
    Yaml,
}

/// What objects are turned into before they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The object itself.
    Plain,
    /// `Table`, of `meta.k8s.io/v1` or `v1beta1`.
    Table(&'static str),
    /// `PartialObjectMetadata`
    Metadata(&'static str),
    /// `PartialObjectMetadataList`
    MetadataList(&'static str),
    /// `APIGroupDiscoveryList` of `apidiscovery.k8s.io/v2`.
    Discovery,
}

/// What kind of endpoint is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// Objects: every form but discovery.
    Objects,
    /// Objects that have no table, such as reviews.
    ObjectsWithoutTable,
    /// `/api` and `/apis`.
    Discovery,
    /// Documents and errors: no form but the plain one.
    Plain,
}

/// The outcome of a negotiation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// How to write.
    pub format: Format,
    /// What to write.
    pub form: Form,
    /// Whether the media type asked for indentation.
    pub pretty: bool,
}

/// One media range of an `Accept` header.
#[derive(Debug, Default)]
struct Clause<'a> {
    kind: &'a str,
    subtype: &'a str,
    quality: f64,
    params: Vec<(&'a str, &'a str)>,
}

/// The first clause that the endpoint can answer; `None` means 406.
#[must_use]
pub fn negotiate(header: &str, endpoint: Endpoint) -> Option<Accepted> {
    if header.is_empty() {
        return Some(Accepted { format: Format::Json, form: Form::Plain, pretty: false });
    }
    let clauses = clauses(header);
    if endpoint == Endpoint::Discovery
        && let Some(found) = clauses.iter().find_map(aggregated_discovery)
    {
        return Some(found);
    }
    clauses.iter().find_map(|clause| clause.accepted(endpoint))
}

/// How the document of `/openapi/v2` is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenApi {
    /// `application/json`
    Json,
    /// gnostic's messages
    Protobuf,
}

/// The first clause that `/openapi/v2` can answer; `None` means 406. Its handler looks at nothing but the
/// names (`k8s.io/kube-openapi/pkg/handler`).
#[must_use]
pub fn openapi_v2(header: &str) -> Option<OpenApi> {
    if header.is_empty() {
        return Some(OpenApi::Json);
    }
    clauses(header).iter().find_map(|clause| match (clause.kind, clause.subtype) {
        ("application" | "*", "json" | "*") => Some(OpenApi::Json),
        (
            "application" | "*",
            "com.github.proto-openapi.spec.v2@v1.0+protobuf"
            | "com.github.proto-openapi.spec.v2.v1.0+protobuf",
        ) => Some(OpenApi::Protobuf),
        _ => None,
    })
}

/// How errors are written for this header: JSON unless something else that is known comes first.
#[must_use]
pub fn negotiate_error(header: &str) -> Accepted {
    negotiate(header, Endpoint::Plain).unwrap_or(Accepted {
        format: Format::Json,
        form: Form::Plain,
        pretty: false,
    })
}

/// Whether the header names a media type that is served at all, as the router of built-in kinds looks
/// at it: without parameters and without partial wildcards.
#[must_use]
pub fn router_accepts(header: &str) -> bool {
    header.is_empty()
        || header.split(',').any(|range| {
            let media_type = range.split(';').next().unwrap_or_default().trim();
            matches!(
                media_type,
                "*/*"
                    | "application/json"
                    | "application/yaml"
                    | "application/vnd.kubernetes.protobuf"
            )
        })
}

/// 406 of custom resources and of transformations.
#[must_use]
pub fn not_acceptable() -> ApiError {
    ApiError::new(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json, application/yaml, \
         application/vnd.kubernetes.protobuf",
    )
}

/// 406 of a watch in a format that has no streams.
#[must_use]
pub fn stream_not_acceptable() -> ApiError {
    ApiError::new(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json;stream=watch, \
         application/vnd.kubernetes.protobuf;stream=watch",
    )
}

/// 406 of the router of built-in kinds; collections can be watched and name the stream types too.
#[must_use]
pub fn router_not_acceptable(collection: bool) -> ApiError {
    let streams = if collection {
        ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    } else {
        ""
    };
    let message = format!(
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
         application/vnd.kubernetes.protobuf{streams}"
    );
    ApiError::new(406, "NotAcceptable", message).with_details(Details::default())
}

/// The clauses, best first: higher quality first, wildcards after what is exact.
fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = header.split(',').filter_map(clause).collect();
    clauses.sort_by(|a, b| {
        b.quality
            .total_cmp(&a.quality)
            .then_with(|| (a.kind == "*").cmp(&(b.kind == "*")))
            .then_with(|| (a.subtype == "*").cmp(&(b.subtype == "*")))
    });
    clauses
}

fn clause(text: &str) -> Option<Clause<'_>> {
    let mut pieces = text.trim().split(';');
    let range = pieces.next().unwrap_or_default().trim();
    let (kind, subtype) = match range.split_once('/') {
        Some((kind, subtype)) if !subtype.contains('/') => (kind.trim(), subtype.trim()),
        None if range == "*" => ("*", "*"),
        _ => return None,
    };
    let mut clause = Clause { kind, subtype, quality: 1.0, params: Vec::new() };
    for (key, value) in pieces.filter_map(|piece| piece.split_once('=')) {
        if key.trim() == "q" {
            clause.quality = value.trim().parse().unwrap_or(0.0);
        } else {
            clause.params.push((key.trim(), value.trim()));
        }
    }
    Some(clause)
}

fn aggregated_discovery(clause: &Clause<'_>) -> Option<Accepted> {
    let json = clause.kind == "application" && clause.subtype == "json";
    let wanted = json
        && clause.param("g") == Some("apidiscovery.k8s.io")
        && clause.param("v") == Some("v2")
        && clause.param("as") == Some("APIGroupDiscoveryList");
    wanted.then_some(Accepted { format: Format::Json, form: Form::Discovery, pretty: false })
}

impl Clause<'_> {
    fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    fn accepted(&self, endpoint: Endpoint) -> Option<Accepted> {
        if self.param("stream").is_some_and(|stream| !stream.is_empty() && stream != "watch") {
            return None;
        }
        let form = self.form(endpoint)?;
        let pretty = self.param("pretty") == Some("1");
        self.format().map(|format| Accepted { format, form, pretty })
    }

    fn format(&self) -> Option<Format> {
        match (self.kind, self.subtype) {
            ("application", "json" | "*") | ("*", "*") => Some(Format::Json),
            ("application", "yaml") => Some(Format::Yaml),
            _ => None,
        }
    }

    fn form(&self, endpoint: Endpoint) -> Option<Form> {
        let asked = ["as", "g", "v"].map(|key| self.param(key));
        let [None, None, None] = asked else {
            let [kind, group, version] = asked.map(Option::unwrap_or_default);
            return object_form(endpoint, kind, group, version);
        };
        Some(Form::Plain)
    }
}

fn object_form(endpoint: Endpoint, kind: &str, group: &str, version: &str) -> Option<Form> {
    let version = match (group, version) {
        ("meta.k8s.io", "v1") => "v1",
        ("meta.k8s.io", "v1beta1") => "v1beta1",
        _ => return None,
    };
    match (endpoint, kind) {
        (Endpoint::Objects, "Table") => Some(Form::Table(version)),
        (Endpoint::Objects | Endpoint::ObjectsWithoutTable, "PartialObjectMetadata") => {
            Some(Form::Metadata(version))
        }
        (Endpoint::Objects | Endpoint::ObjectsWithoutTable, "PartialObjectMetadataList") => {
            Some(Form::MetadataList(version))
        }
        _ => None,
    }
}
