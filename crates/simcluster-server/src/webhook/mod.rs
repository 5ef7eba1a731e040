//! Calls to webhooks, for admission and for conversion: where they are, what is sent, and what may be
//! answered, in the words of Go's clients.

mod caller;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;

pub use self::caller::{WebhookCall, WebhookCaller, WebhookReply, WebhookService};
use crate::server::ApiServer;
use crate::store;
use simcluster_model::codec::yaml;
use simcluster_model::object;

/// How often a webhook is asked again (`maxRetries` of Go's client).
const RETRIES_MAX: u32 = 10;

/// The `clientConfig` of a webhook.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    url: String,
    service: Option<WebhookService>,
    authority: Vec<u8>,
}

impl Address {
    pub(crate) fn parse(config: &Value) -> Self {
        let text = |node: &Value, key: &str| {
            node.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let authority = STANDARD.decode(text(config, "caBundle")).unwrap_or_default();
        let Some(service) = config.get("service").filter(|one| !one.is_null()) else {
            return Self { url: text(config, "url"), service: None, authority };
        };
        let port = service.get("port").and_then(Value::as_u64).unwrap_or(443);
        let service_port = u16::try_from(port).unwrap_or(443);
        let (name, namespace) = (text(service, "name"), text(service, "namespace"));
        let url = format!("https://{name}.{namespace}.svc:{port}{}", text(service, "path"));
        let service = WebhookService { namespace, name, port: service_port };
        Self { url, service: Some(service), authority }
    }

    /// The address with its time limit.
    fn with_timeout(&self, timeout: Duration) -> String {
        let (scheme, rest) = self.url.split_once("://").unwrap_or(("https", &self.url));
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let segments: Vec<&str> = path.split('/').filter(|one| !one.is_empty()).collect();
        format!("{scheme}://{host}/{}?timeout={}s", segments.join("/"), timeout.as_secs())
    }
}

impl ApiServer {
    /// Posts a review to a webhook and reads the review that it answers. It may take `timeout`, and is told
    /// that it may take `told`. An error is the text that follows `failed to call webhook: `.
    pub(crate) async fn call_webhook(
        &self,
        address: &Address,
        timeout: Duration,
        told: Duration,
        review: &Value,
    ) -> Result<Value, String> {
        let url = address.with_timeout(told);
        let failed = |why: String| format!("Post {url:?}: {why}");
        if let Some(service) = &address.service {
            self.check_service(service).map_err(failed)?;
        }
        let Some(caller) = self.webhook_caller() else {
            return Err(failed("this server was given no way to call webhooks".to_owned()));
        };
        let call = WebhookCall {
            url: url.clone(),
            service: address.service.clone(),
            authority: address.authority.clone(),
            body: Bytes::from(format!("{review}\n")),
            timeout,
        };
        let asked = tokio::time::timeout(timeout, ask_again(&*caller, call));
        match asked.await {
            Ok(reply) => read(&reply.map_err(failed)?, review),
            Err(_) => Err(failed("context deadline exceeded".to_owned())),
        }
    }

    /// A Service that webhooks are behind must exist and have the port.
    fn check_service(&self, service: &WebhookService) -> Result<(), String> {
        let WebhookService { namespace, name, port } = service;
        let stored = self.store().get("/services", &store::key(namespace, name));
        let Some(stored) = stored else { return Err(format!("service {name:?} not found")) };
        let ports = object::at_path(&stored, "spec.ports").and_then(Value::as_array);
        let number = |one: &Value| one.get("port").and_then(Value::as_u64);
        if ports.into_iter().flatten().any(|one| number(one) == Some(u64::from(*port))) {
            return Ok(());
        }
        Err(format!("no service port {port} found for service {name:?}"))
    }
}

/// Asks until a webhook answers something else than to come again later, as Go's client does.
async fn ask_again(caller: &dyn WebhookCaller, call: WebhookCall) -> Result<WebhookReply, String> {
    let mut retries = 0;
    loop {
        let reply = caller.call(call.clone()).await?;
        let later = reply.retry_after.filter(|_| reply.status == 429 || reply.status >= 500);
        let Some(seconds) = later.filter(|_| retries < RETRIES_MAX) else { return Ok(reply) };
        retries += 1;
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
}

/// Reads what a webhook answered to a review.
fn read(reply: &WebhookReply, asked: &Value) -> Result<Value, String> {
    let document = serde_json::from_slice::<Value>(&reply.body);
    if !(200..=206).contains(&reply.status) {
        return Err(refusal(reply, document.ok().as_ref()));
    }
    if reply.body.is_empty() {
        return Err(format!(
            "0-length response with status code: {} and content type: {}",
            reply.status, reply.content_type
        ));
    }
    let document = match document {
        Ok(document) => document,
        Err(why) if why.is_eof() => return Err(unreadable("unexpected end of JSON input")),
        Err(_) => yaml::parse(&reply.body).map_err(|why| unreadable(&why))?.value,
    };
    if !document.is_object() {
        let found = simcluster_model::golang::json_type_name(&document);
        return Err(unreadable(&format!(
            "json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \
             \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
        )));
    }
    check_type(&document, asked)?;
    Ok(document)
}

fn unreadable(why: &str) -> String {
    format!("couldn't get version/kind; json parse error: {why}")
}

fn field<'a>(document: &'a Value, key: &str) -> &'a str {
    document.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The answer must be of the kind that was asked for, if it says of which it is.
fn check_type(document: &Value, asked: &Value) -> Result<(), String> {
    let (version, kind) = (field(document, "apiVersion"), field(document, "kind"));
    let (wanted_version, wanted_kind) = (field(asked, "apiVersion"), field(asked, "kind"));
    if version.is_empty() || kind.is_empty() || (version, kind) == (wanted_version, wanted_kind) {
        return Ok(());
    }
    let short = |version: &str| version.rsplit('/').next().unwrap_or_default().to_owned();
    let (group, _) = wanted_version.split_once('/').unwrap_or_default();
    let same_group = version
        .strip_prefix(group)
        .is_some_and(|rest| matches!(rest, "/v1" | "/v1beta1") && kind == wanted_kind);
    if same_group || (version, kind) == ("v1", "Status") {
        let (found, wanted) = (short(version), short(wanted_version));
        return Err(format!(
            "converting ({found}.{kind}) to ({wanted}.{wanted_kind}): unknown conversion"
        ));
    }
    Err(format!(
        "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
    ))
}

/// The error that Go's client makes of an HTTP status.
fn refusal(reply: &WebhookReply, document: Option<&Value>) -> String {
    if let Some(document) = document
        && field(document, "kind") == "Status"
        && field(document, "status") == "Failure"
    {
        return field(document, "message").to_owned();
    }
    let is_text = reply.content_type.is_empty() || reply.content_type.starts_with("text/");
    let body = String::from_utf8_lossy(&reply.body);
    let said = if is_text { body.trim() } else { "unknown" };
    let text = match reply.status {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 | 406 | 415 => said,
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be \
             processing the request"
        }
        code if code >= 500 => {
            return format!(
                "an error on the server ({said:?}) has prevented the request from succeeding"
            );
        }
        code => {
            return format!(
                "the server responded with the status code {code} but did not return more information"
            );
        }
    };
    text.to_owned()
}

#[cfg(test)]
mod tests;
