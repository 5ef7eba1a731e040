//! Watch streams as HTTP bodies: one JSON text per line.

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use serde::Serialize;
use serde_json::Value;

use crate::http::present::Presentation;
use crate::http::response::Body;
use crate::verbs::WatchEvent;
use simcluster_clock::Clock;

/// Turns events into the lines of a body.
#[must_use]
pub(super) fn body(
    events: BoxStream<'static, WatchEvent>,
    presentation: Presentation,
    clock: Clock,
) -> Body {
    let mut first = true;
    let lines = events.filter_map(move |event| {
        let line = line(event, &presentation, first, clock);
        first = false;
        std::future::ready(line.map(Ok))
    });
    Body::Stream(lines.boxed())
}

fn line(
    event: WatchEvent,
    presentation: &Presentation,
    first: bool,
    clock: Clock,
) -> Option<Bytes> {
    let object = presentation.event(event.object, first, clock.now())?;
    // A value of JSON can always be written to memory.
    let mut text = serde_json::to_vec(&Line { kind: event.kind, object: &object }).ok()?;
    text.push(b'\n');
    Some(Bytes::from(text))
}

/// An event as it is written.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    object: &'a Value,
}
