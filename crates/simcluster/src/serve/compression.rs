//! Large answers go packed to clients that can unpack them, as `APIResponseCompression` has it
//! (`k8s.io/apiserver/pkg/endpoints/handlers/responsewriters`). Watches are never packed.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::Response;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue, VARY};
use http::request::Parts;
use simcluster_server::http::Body;

/// Answers up to this size, in bytes, are sent as they are.
const THRESHOLD_BYTES: usize = 128 * 1024;

/// The same for `/openapi/v2`, which a handler of its own packs (`github.com/NYTimes/gziphandler`).
const OPENAPI_THRESHOLD_BYTES: usize = 1400;

/// The answer to a request, packed if it is large and the client can unpack it.
pub(super) fn packed(answer: Response<Body>, request: &Parts) -> Response<Body> {
    let path = request.uri.path();
    let is_v2 = path == "/openapi/v2";
    let threshold = if is_v2 { OPENAPI_THRESHOLD_BYTES } else { THRESHOLD_BYTES };
    if path.starts_with("/openapi/v3") || !accepts_gzip(&request.headers) {
        return answer;
    }
    let packed = match answer.body() {
        Body::Full(Some(content)) if content.len() > threshold => gzip(content).ok(),
        Body::Full(_) | Body::Stream(_) => None,
    };
    let Some(packed) = packed else { return answer };
    let mut answer = answer.map(|_| Body::full(packed));
    answer.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    if !is_v2 {
        // The document of v2 names it already.
        answer.headers_mut().append(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    answer
}

/// Whether the client names `gzip`, without looking at weights.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    accepted.unwrap_or_default().split(',').any(|one| one.trim() == "gzip")
}

fn gzip(content: &[u8]) -> std::io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content)?;
    Ok(Bytes::from(encoder.finish()?))
}
