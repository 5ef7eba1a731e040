//! Watch streams as HTTP bodies: one JSON text per line.

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use serde_json::json;

use crate::clock::Clock;
use crate::http::present::Presentation;
use crate::http::response::Body;
use crate::verbs::WatchEvent;

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
    let mut text = json!({ "type": event.kind, "object": object }).to_string();
    text.push('\n');
    Some(Bytes::from(text))
}
