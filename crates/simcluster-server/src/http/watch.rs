//! Watch streams as HTTP bodies: one JSON text per line.

use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use serde::Serialize;
use serde_json::Value;

use crate::http::present::Presentation;
use crate::http::response::Body;
use crate::http::texts::Texts;
use crate::verbs::{Shown, WatchEvent};
use simcluster_clock::Clock;

/// Turns events into the lines of a body.
#[must_use]
pub(super) fn body(
    events: BoxStream<'static, WatchEvent>,
    presentation: Presentation,
    clock: Clock,
    texts: Arc<Texts>,
) -> Body {
    let mut first = true;
    let lines = events.filter_map(move |event| {
        let line = line(event, &presentation, first, clock, &texts);
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
    texts: &Texts,
) -> Option<Bytes> {
    let WatchEvent { kind, object } = event;
    let write = |object: Shown| {
        let object = presentation.event(object.into_value(), first, clock.now())?;
        Some(text(&Line { kind, object: &object }))
    };
    let shared = presentation.line_form(kind);
    match (&object, shared) {
        (Shown::Stored(stored, resource, revision), Some(form)) => {
            let id = (stored, resource, *revision);
            Some(texts.of(id, form, || write(object.clone()).unwrap_or_default()))
        }
        (Shown::Stored(..) | Shown::Made(_), _) => write(object),
    }
}

fn text(line: &Line<'_>) -> Bytes {
    // A value of JSON can always be written to memory.
    let mut text = serde_json::to_vec(line).unwrap_or_default();
    text.push(b'\n');
    Bytes::from(text)
}

/// An event as it is written.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    object: &'a Value,
}
