//! Get and list.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::options::ListOptions;
use super::selectors::{FieldSelector, LabelSelector};
use super::{Call, List, Outcome};
use crate::conversion::unreadable_list;
use crate::server::ApiServer;
use crate::store;
use simcluster_model::error::{ApiError, Cause, Details};
use simcluster_model::object;

/// How long the server waits for a revision that it has not seen yet, in seconds.
pub(super) const FUTURE_WAIT_SECONDS: u64 = 3;

/// GET of an object.
pub(super) async fn get(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let text = call.param("resourceVersion").unwrap_or_default();
    let version = parse_version(text).map_err(ApiError::raw)?;
    wait_for(server, version).await?;
    let resource = &call.resource;
    let key = store::key(&call.namespace, &call.name);
    let stored = {
        let store = server.store();
        let head = store.revision();
        match call.view.revision(head, at_least(text, version)) {
            newest if newest == head => store.get(&resource.storage_key, &key),
            older => store.get_at(&resource.storage_key, &key, older),
        }
    };
    let stored = stored.ok_or_else(|| ApiError::not_found(resource.names(), &call.name))?;
    let shown = if text.is_empty() {
        server.decode(resource, &stored).await
    } else {
        // Any version that is named is good enough for the cache to answer.
        server.cached(resource, &stored).await
    };
    Ok(Outcome::Object(200, shown.map_err(|fault| fault.of_read())?))
}

/// A `resourceVersion` as a number; nothing counts as 0.
pub(super) fn parse_version(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        let quoted = json!(text);
        format!(
            "resourceVersion: Invalid value: {quoted}: strconv.ParseUint: parsing {quoted}: invalid \
             syntax"
        )
    })
}

/// The oldest state that satisfies a read of a version; nothing asks for the newest one.
pub(super) fn at_least(text: &str, version: u64) -> Option<u64> {
    (!text.is_empty()).then_some(version)
}

/// Waits a little for a revision of the future, then gives up (rows UP01, LI13).
pub(super) async fn wait_for(server: &ApiServer, version: u64) -> Result<(), ApiError> {
    if version <= server.revision() {
        return Ok(());
    }
    tokio::time::sleep(std::time::Duration::from_secs(FUTURE_WAIT_SECONDS)).await;
    let current = server.revision();
    if version <= current { Ok(()) } else { Err(too_large(version, current)) }
}

/// 504 of a revision that did not come in time.
pub(super) fn too_large(version: u64, current: u64) -> ApiError {
    let message = format!("Timeout: Too large resource version: {version}, current: {current}");
    ApiError::new(504, "Timeout", message).with_details(Details {
        causes: vec![Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        }],
        retry_after_seconds: Some(1),
        ..Details::default()
    })
}

/// What a list or watch selects.
#[derive(Debug, Clone)]
pub(super) struct Selection {
    pub(super) labels: LabelSelector,
    pub(super) fields: FieldSelector,
    /// Only this name, if there is one (legacy watch paths).
    pub(super) name: String,
}

impl Selection {
    pub(super) fn parse(call: &Call, options: &ListOptions) -> Result<Self, ApiError> {
        Ok(Self {
            labels: LabelSelector::parse(&options.label_selector)?,
            fields: FieldSelector::parse(&options.field_selector, &call.resource)?,
            name: call.name.clone(),
        })
    }

    pub(super) fn matches(&self, call: &Call, stored: &Value) -> bool {
        (self.name.is_empty() || object::name(stored) == self.name)
            && self.labels.matches(stored)
            && (self.fields.is_empty() || self.fields.matches(&call.resource, stored))
    }

    fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty() && self.name.is_empty()
    }
}

/// GET of a collection.
pub(super) async fn list(server: &ApiServer, call: &Call) -> Result<Outcome, ApiError> {
    let options = ListOptions::parse(call, false)?;
    let selection = Selection::parse(call, &options)?;
    let page = Page::wanted(server, call, &options).await?;
    Ok(Outcome::List(page.read(server, call, &selection).await?))
}

/// What a list or a watch shows of stored objects, where a webhook converts them: all are converted,
/// whichever are selected, so one that cannot be spoils the list.
pub(super) async fn converted(
    server: &ApiServer,
    call: &Call,
    objects: Vec<(String, Arc<Value>)>,
) -> Result<Vec<(String, Arc<Value>)>, ApiError> {
    let mut shown = Vec::with_capacity(objects.len());
    let mut faults = Vec::new();
    for (key, stored) in objects {
        match server.cached(&call.resource, &stored).await {
            Ok(converted) => shown.push((key, converted)),
            Err(fault) => faults.push(fault),
        }
    }
    server.version_caches().set_stuck(&call.resource, !faults.is_empty());
    if faults.is_empty() { Ok(shown) } else { Err(unreadable_list(&call.resource, &faults)) }
}

/// One page of a list: which revision, from where, how many.
pub(super) struct Page {
    revision: u64,
    /// The first key wanted, relative to the list; empty for the beginning.
    start: String,
    limit: usize,
}

impl Page {
    /// What the options ask for (`k8s.io/apiserver` resource version semantics, rows LI07 to LI17).
    pub(super) async fn wanted(
        server: &ApiServer,
        call: &Call,
        options: &ListOptions,
    ) -> Result<Self, ApiError> {
        let text = options.resource_version.as_str();
        let version = parse_version(text)
            .map_err(|why| ApiError::bad_request(format!("invalid resource version: {why}")))?;
        let head = server.revision();
        if !options.continue_token.is_empty() {
            let token = Token::decode(&options.continue_token)?;
            if version != 0 {
                return Err(ApiError::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            return Ok(token.page(options.limit, head));
        }
        wait_for(server, version).await?;
        let exact = options.resource_version_match == "Exact"
            || (options.resource_version_match.is_empty() && options.limit > 0 && version > 0);
        // A list that any version satisfies comes from the cache, which knows no pages.
        let limit = if text == "0" { 0 } else { options.limit };
        let revision = if exact {
            version
        } else {
            call.view.revision(server.revision(), at_least(text, version))
        };
        let page = Self { revision, start: String::new(), limit };
        if exact && page.objects(server, call, 0).is_err() {
            let why = "The resourceVersion for the provided list is too old.";
            return Err(ApiError::new(410, "Expired", why));
        }
        Ok(page)
    }

    /// So many of the objects from the page's start on, and how many there are beyond them.
    fn objects(
        &self,
        server: &ApiServer,
        call: &Call,
        limit: usize,
    ) -> Result<(Vec<(String, Arc<Value>)>, usize), store::Compacted> {
        let from = format!("{}{}", prefix(call), self.start);
        let key = &call.resource.storage_key;
        server.store().list_from(key, &call.namespace, &from, self.revision, limit)
    }

    /// Reads the page.
    pub(super) async fn read(
        &self,
        server: &ApiServer,
        call: &Call,
        selection: &Selection,
    ) -> Result<List, ApiError> {
        let limit = if self.limit == 0 { usize::MAX } else { self.limit };
        let is_converted = server.conversion_webhook(&call.resource).is_some();
        // Whoever selects has to look at all, and one that cannot be converted spoils the list.
        let looks_at_all = is_converted || !selection.is_everything();
        let looked_at = if looks_at_all { usize::MAX } else { limit };
        let (mut objects, beyond) =
            self.objects(server, call, looked_at).map_err(|_| self.expired())?;
        if is_converted {
            objects = converted(server, call, objects).await?;
        }
        let mut matching = objects.iter().filter(|(_, object)| selection.matches(call, object));
        let items: Vec<&(String, Arc<Value>)> = matching.by_ref().take(limit).collect();
        let remaining = matching.count() + beyond;
        let mut metadata = json!({ "resourceVersion": self.revision.to_string() });
        if remaining > 0
            && let Some((last, _)) = items.last()
        {
            let start = format!("{}\0", last.strip_prefix(&prefix(call)).unwrap_or(last));
            object::put(&mut metadata, "continue", json!(Token::encode(self.revision, &start)));
            if selection.is_everything() {
                object::put(&mut metadata, "remainingItemCount", json!(remaining));
            }
        } else if call.resource.custom {
            object::put(&mut metadata, "continue", json!(""));
        }
        let items = items.into_iter().map(|(_, object)| Arc::clone(object)).collect();
        let resource = Arc::clone(&call.resource);
        Ok(List { resource, metadata, items, converted: is_converted })
    }

    /// 410 of a continue token whose revision is gone; a token to go on with comes along.
    fn expired(&self) -> ApiError {
        let why = "The provided continue parameter is too old to display a consistent list result. \
                   You can start a new list without the continue parameter, or use the continue \
                   token in this response to retrieve the remainder of the results. Continuing with \
                   the provided token results in an inconsistent list - objects that were created, \
                   modified, or deleted between the time the first chunk was returned and now may \
                   show up in the list.";
        let mut error = ApiError::new(410, "Expired", why);
        error.continue_token = Some(Token::encode_at_head(&self.start));
        error
    }
}

/// What the keys of a list begin with.
fn prefix(call: &Call) -> String {
    if call.namespace.is_empty() { String::new() } else { format!("{}/", call.namespace) }
}

/// A continue token (row LI08): `{"v":"meta.k8s.io/v1","rv":7,"start":"/name\u0000"}` in base64url.
struct Token {
    /// -1: at the head, whatever it is.
    version: i64,
    start: String,
}

impl Token {
    const FORMAT: &str = "meta.k8s.io/v1";

    fn encode(revision: u64, start: &str) -> String {
        Self::text(&json!(revision), start)
    }

    fn encode_at_head(start: &str) -> String {
        Self::text(&json!(-1), start)
    }

    fn text(version: &Value, start: &str) -> String {
        let token = json!({ "v": Self::FORMAT, "rv": version, "start": format!("/{start}") });
        URL_SAFE_NO_PAD.encode(token.to_string())
    }

    fn decode(text: &str) -> Result<Self, ApiError> {
        let fault = |why: &str| {
            let why = format!("invalid continue token: continue key is not valid: {why}");
            ApiError::bad_request(why)
        };
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|error| {
            let position = match error {
                base64::DecodeError::InvalidByte(at, _)
                | base64::DecodeError::InvalidLastSymbol(at, _) => at,
                // Go names the letter that is alone.
                base64::DecodeError::InvalidLength(length) => length.saturating_sub(1),
                base64::DecodeError::InvalidPadding => text.len(),
            };
            fault(&format!("illegal base64 data at input byte {position}"))
        })?;
        let token: Value = serde_json::from_slice(&bytes).map_err(|_| {
            let first = bytes.first().copied().map(char::from).unwrap_or_default();
            fault(&format!("invalid character '{first}' looking for beginning of value"))
        })?;
        if !token.is_object() {
            let found = simcluster_model::golang::json_type_name(&token);
            let target = "Go value of type storage.continueToken";
            return Err(fault(&format!("json: cannot unmarshal {found} into {target}")));
        }
        let format = token.get("v").and_then(Value::as_str).unwrap_or_default();
        if format != Self::FORMAT {
            return Err(fault(&format!("server does not recognize this encoded version {format}")));
        }
        let version = token.get("rv").and_then(Value::as_i64).unwrap_or_default();
        if version == 0 {
            let why = format!("incorrect encoded start resourceVersion (version {format})");
            return Err(fault(&why));
        }
        let start = token.get("start").and_then(Value::as_str).unwrap_or_default();
        if start.is_empty() {
            return Err(fault(&format!("encoded start key empty (version {format})")));
        }
        if start.split('/').any(|part| part == "..") {
            return Err(fault(start.trim_end_matches('\0')));
        }
        let start = start.strip_prefix('/').unwrap_or(start).to_owned();
        Ok(Self { version, start })
    }

    fn page(self, limit: usize, head: u64) -> Page {
        let revision = u64::try_from(self.version).unwrap_or(head);
        Page { revision, start: self.start, limit }
    }
}
