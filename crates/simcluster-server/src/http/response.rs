//! Responses: bodies, common headers, and how values are written.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body::{Frame, SizeHint};
use serde_json::Value;

use crate::gate;
use crate::http::accept::{Accepted, Format};
use crate::http::status::Ordered;
use simcluster_model::codec::yaml;
use simcluster_model::error::ApiError;

/// A response body: all at once, or the lines of a watch.
pub enum Body {
    /// The whole body; `None` once it was read.
    Full(Option<Bytes>),
    /// One item per line. An error cuts the connection.
    Stream(BoxStream<'static, std::io::Result<Bytes>>),
}

impl Body {
    /// A body without content.
    #[must_use]
    pub fn empty() -> Self {
        Self::Full(None)
    }

    /// The first half of a body that breaks off there. A stream breaks off at once.
    pub(crate) fn cut_short(self) -> Self {
        let half = match self {
            Self::Full(content) => {
                let content = content.unwrap_or_default();
                Some(Ok(content.slice(..content.len() / 2)))
            }
            Self::Stream(_) => None,
        };
        Self::Stream(stream::iter(half).chain(stream::once(gate::broken())).boxed())
    }

    /// A whole body.
    #[must_use]
    pub fn full(content: impl Into<Bytes>) -> Self {
        Self::Full(Some(content.into()))
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Full(content) => f.debug_tuple("Full").field(content).finish(),
            Self::Stream(_) => f.write_str("Stream(..)"),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::Full(content) => Poll::Ready(content.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(lines) => {
                lines.poll_next_unpin(cx).map(|line| line.map(|line| line.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(content) => {
                let length = content.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX))
            }
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// How a value is written.
#[derive(Debug, Clone, Copy)]
pub struct Writing {
    /// JSON or YAML.
    pub format: Format,
    /// Indented JSON.
    pub pretty: bool,
}

impl Writing {
    /// What was negotiated; `human` indents JSON for browsers and command-line tools.
    #[must_use]
    pub fn new(accepted: Accepted, human: bool) -> Self {
        Self { format: accepted.format, pretty: accepted.pretty || human }
    }

    /// The media type.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self.format {
            Format::Json => "application/json",
            Format::Yaml => "application/yaml",
        }
    }

    /// The text: compact JSON ends with a newline, indented JSON does not.
    #[must_use]
    pub fn text(self, value: &Value) -> Vec<u8> {
        let written = match (self.format, self.pretty) {
            (Format::Yaml, _) => return yaml::write(value).into_bytes(),
            (Format::Json, true) => {
                return serde_json::to_vec_pretty(&Ordered(value)).unwrap_or_default();
            }
            (Format::Json, false) => serde_json::to_vec(&Ordered(value)),
        };
        let mut text = written.unwrap_or_default();
        text.push(b'\n');
        text
    }
}

/// Whether JSON is indented: `?pretty=` decides, else the user agents of humans.
#[must_use]
pub fn is_for_humans(pretty: Option<&str>, user_agent: &str) -> bool {
    match pretty {
        Some(asked) if !asked.is_empty() => {
            matches!(asked, "1" | "t" | "T" | "TRUE" | "true" | "True")
        }
        _ => ["curl", "Wget", "Mozilla/5.0"].iter().any(|human| user_agent.starts_with(human)),
    }
}

/// A response with a body of a media type.
#[must_use]
pub fn response(status: u16, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    set_header(&mut response, CONTENT_TYPE, content_type);
    response
}

/// A value, written.
#[must_use]
pub fn value(status: u16, writing: Writing, value: &Value) -> Response<Body> {
    response(status, writing.content_type(), Body::full(writing.text(value)))
}

/// An error's Status, written.
#[must_use]
pub fn error(error: &ApiError, writing: Writing) -> Response<Body> {
    let mut response = value(error.code, writing, &error.to_status());
    let retry = error.details.as_ref().and_then(|details| details.retry_after_seconds);
    if let Some(seconds) = retry {
        set_header(&mut response, http::header::RETRY_AFTER, &seconds.to_string());
    }
    if error.code == 403 {
        set_header(&mut response, http::header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    }
    response
}

/// Plain text.
#[must_use]
pub fn text(status: u16, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = response(status, "text/plain; charset=utf-8", Body::full(text));
    set_header(&mut response, http::header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    response
}

/// The answer to a path that nobody serves.
#[must_use]
pub fn page_not_found() -> Response<Body> {
    text(404, "404 page not found\n")
}

/// Sets a header; values that HTTP does not allow are left out.
pub fn set_header<T>(response: &mut Response<T>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
        response.headers_mut().insert(name, value);
    }
}

/// Adds what every response carries.
pub fn finish(response: &mut Response<Body>, audit_id: &str, warnings: &[String]) {
    if !response.headers().contains_key(CACHE_CONTROL) {
        set_header(response, CACHE_CONTROL, "no-cache, private");
    }
    set_header(response, HeaderName::from_static("audit-id"), audit_id);
    for warning in warning_headers(warnings) {
        if let Ok(value) = HeaderValue::from_bytes(warning.as_bytes()) {
            response.headers_mut().append(http::header::WARNING, value);
        }
    }
}

/// `Warning` headers as `k8s.io/apiserver/pkg/endpoints/filters/warning.go` writes them: texts with
/// control characters are dropped; once all together pass 4096 characters each is cut to 256.
#[must_use]
pub fn warning_headers(texts: &[String]) -> Vec<String> {
    const TOTAL_CHARS: usize = 4096;
    const ITEM_CHARS: usize = 256;
    let usable: Vec<&String> = texts
        .iter()
        .filter(|text| !text.is_empty() && !text.chars().any(char::is_control))
        .collect();
    let total: usize = usable.iter().map(|text| text.chars().count()).sum();
    let limit = if total > TOTAL_CHARS { ITEM_CHARS } else { usize::MAX };
    let mut written = 0;
    let mut headers = Vec::new();
    for text in usable {
        if limit == ITEM_CHARS && written >= TOTAL_CHARS {
            break;
        }
        let text: String = text.chars().take(limit).collect();
        written += text.chars().count();
        headers.push(format!("299 - {}", quoted(&text)));
    }
    headers
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}
