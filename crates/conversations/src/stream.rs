//! Answers that are read as they come: events, one JSON document a line, in an HTTP body or in the
//! frames of a websocket.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::upgrade::Upgraded;
use serde_json::Value;
use tokio::time::timeout;

use crate::target::Body;
use crate::websocket::Websocket;

/// An open stream of events.
pub(crate) struct Stream {
    source: Source,
    /// What came and is no whole line yet.
    pending: Vec<u8>,
    /// Kinds of frames that came.
    pub(crate) frames: BTreeSet<&'static str>,
    /// How it ended: `open` as long as that was not seen, `clean`, `cut`, or the code of a close frame.
    pub(crate) end: String,
}

enum Source {
    Http(Body),
    Websocket(Websocket),
}

/// What came next.
pub(crate) enum Part {
    Data(Bytes),
    Frame(&'static str, Vec<u8>),
    End(String),
}

impl Stream {
    /// The body of an answer.
    pub(crate) fn http(body: Body) -> Self {
        Self::new(Source::Http(body))
    }

    /// A connection that was upgraded.
    pub(crate) fn websocket(connection: Upgraded) -> Self {
        Self::new(Source::Websocket(Websocket::new(connection)))
    }

    fn new(source: Source) -> Self {
        let end = "open".to_owned();
        Self { source, pending: Vec::new(), frames: BTreeSet::new(), end }
    }

    /// Reads events until `count` came or `seconds` passed without one. What is no JSON comes as a text.
    pub(crate) async fn events(&mut self, count: usize, seconds: f64) -> Vec<Value> {
        let mut events = Vec::new();
        while events.len() < count {
            match timeout(Duration::from_secs_f64(seconds), self.line()).await {
                Ok(Some(line)) => {
                    let text = || String::from_utf8_lossy(&line).into_owned().into();
                    events.push(serde_json::from_slice(&line).unwrap_or_else(|_| text()));
                }
                Ok(None) | Err(_) => break,
            }
        }
        events
    }

    /// The next whole line; `None` when there will be no more. What was read of it stays if nobody waits
    /// until it is whole.
    async fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                return Some(self.pending.drain(..=end).collect());
            }
            if self.end != "open" {
                return None;
            }
            let part = match &mut self.source {
                Source::Http(body) => http_part(body).await,
                Source::Websocket(connection) => connection.part().await,
            };
            match part {
                Part::Data(data) => self.pending.extend(data),
                Part::Frame(kind, data) => {
                    self.frames.insert(kind);
                    self.pending.extend(data);
                }
                Part::End(end) => self.end = end,
            }
        }
    }
}

async fn http_part(body: &mut Body) -> Part {
    match body.frame().await {
        Some(Ok(frame)) => Part::Data(frame.into_data().unwrap_or_default()),
        Some(Err(_)) => Part::End("cut".to_owned()),
        None => Part::End("clean".to_owned()),
    }
}
