//! How a cluster reaches webhooks: handlers in the same process, and real HTTPS.
//!
//! A handler in the same process is part of virtual time like everything else. A real call is not: it
//! is made by a thread of its own, in real time, and while that thread works tokio does not move a
//! paused clock. So no timer of the cluster fires because somebody waits for a socket, and what a
//! webhook answers does not depend on how busy the machine is.

#[cfg(feature = "serve")]
mod https;
#[cfg(feature = "serve")]
mod trust;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use futures::future::BoxFuture;
use serde_json::Value;

use simcluster_server::webhook::{WebhookCall, WebhookCaller, WebhookReply, WebhookService};

/// Answers a review (an `AdmissionReview` or a `ConversionReview`) with a review.
type Handler = Arc<dyn Fn(Value) -> BoxFuture<'static, Value> + Send + Sync>;

/// The webhooks that a cluster can reach.
#[derive(Clone, Default)]
pub struct Webhooks(Arc<RwLock<Known>>);

#[derive(Default)]
struct Known {
    handlers: BTreeMap<String, Handler>,
    services: BTreeMap<WebhookService, SocketAddr>,
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("Webhooks")
            .field("handlers", &known.handlers.keys())
            .field("services", &known.services)
            .finish()
    }
}

impl Webhooks {
    /// Has a function of this process answer what is sent to an address. That of a Service is
    /// `https://name.namespace.svc:port/path` (port 443 is written, too), and the cluster must have the
    /// Service: without it a webhook fails as on a real server.
    pub fn handle<F>(&self, url: &str, handler: impl Fn(Value) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Value> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |review| Box::pin(handler(review)));
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.handlers.insert(url.to_owned(), handler);
    }

    /// Nobody in this process answers at an address any more.
    pub fn forget(&self, url: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).handlers.remove(url);
    }

    /// Says where the port of a Service leads to: Pods of a simulated cluster run no programs.
    pub fn resolve(&self, namespace: &str, name: &str, port: u16, address: SocketAddr) {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        let service = WebhookService { namespace, name, port };
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.services.insert(service, address);
    }

    fn handler(&self, url: &str) -> Option<Handler> {
        let (address, _) = url.split_once('?').unwrap_or((url, ""));
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.handlers.get(address).cloned()
    }

    fn address(&self, service: &WebhookService) -> Option<SocketAddr> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).services.get(service).copied()
    }
}

impl WebhookCaller for Webhooks {
    fn call(&self, call: WebhookCall) -> BoxFuture<'static, Result<WebhookReply, String>> {
        if let Some(handler) = self.handler(&call.url) {
            return Box::pin(async move {
                let review = serde_json::from_slice(&call.body).unwrap_or_default();
                let body = Bytes::from(handler(review).await.to_string());
                let content_type = "application/json".to_owned();
                Ok(WebhookReply { status: 200, content_type, body, retry_after: None })
            });
        }
        let dialled = match &call.service {
            None => None,
            Some(service) => {
                if let Some(address) = self.address(service) {
                    Some(address)
                } else {
                    let WebhookService { namespace, name, port } = service;
                    let why = format!("dial tcp: nothing listens at {namespace}/{name}:{port}");
                    return Box::pin(async move { Err(why) });
                }
            }
        };
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || real(&call, dialled)).await;
            done.unwrap_or_else(|why| Err(why.to_string()))
        })
    }
}

#[cfg(feature = "serve")]
use self::https::post as real;

/// Nothing leaves this process without the feature `serve`.
#[cfg(not(feature = "serve"))]
fn real(call: &WebhookCall, _: Option<SocketAddr>) -> Result<WebhookReply, String> {
    Err(format!("nothing handles {} in this process, and the feature `serve` is off", call.url))
}
