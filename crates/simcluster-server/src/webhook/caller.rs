//! How webhooks are reached: the server itself has no HTTP client.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;

/// One POST to a webhook.
#[derive(Debug, Clone)]
pub struct WebhookCall {
    /// The whole address, as errors name it. That of a Service is `https://name.namespace.svc:port/path`.
    pub url: String,
    /// The Service that the configuration names instead of a URL.
    pub service: Option<WebhookService>,
    /// The certificates that are trusted, in PEM.
    pub authority: Vec<u8>,
    /// The review, as JSON.
    pub body: Bytes,
    /// How long the answer may take.
    pub timeout: Duration,
}

/// A port of a Service.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WebhookService {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The port.
    pub port: u16,
}

/// What a webhook answered.
#[derive(Debug, Clone)]
pub struct WebhookReply {
    /// HTTP status code.
    pub status: u16,
    /// Media type; empty if there is none.
    pub content_type: String,
    /// The body.
    pub body: Bytes,
    /// After how many seconds it wants to be asked again, if it says so.
    pub retry_after: Option<u64>,
}

/// Sends calls to webhooks.
pub trait WebhookCaller: Send + Sync + fmt::Debug {
    /// Sends one call. An error is what Go's HTTP client would say, such as
    /// `dial tcp 127.0.0.1:1: connect: connection refused`.
    fn call(&self, call: WebhookCall) -> BoxFuture<'static, Result<WebhookReply, String>>;
}
