//! Watch streams as HTTP bodies: one JSON text per line, each through the gate.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use serde::Serialize;

use crate::gate::{self, Stage, Stop};
use crate::http::present::Presentation;
use crate::http::response::Body;
use crate::http::texts::Texts;
use crate::server::ApiServer;
use crate::trace::Request;
use crate::verbs::{Shown, WatchEvent};
use simcluster_clock::Clock;
use simcluster_model::codec::declared::Declared;
use simcluster_model::object;

/// An answered watch: its events, and how they are written.
pub(super) struct Watch {
    pub(super) events: BoxStream<'static, WatchEvent>,
    pub(super) presentation: Presentation,
    pub(super) clock: Clock,
    pub(super) server: Arc<ApiServer>,
    /// The request that began it.
    pub(super) request: Request,
}

impl Watch {
    /// Turns events into the lines of a body.
    #[must_use]
    pub(super) fn into_body(self) -> Body {
        let lines = Lines { watch: self, first: true, last: None };
        let lines = stream::unfold(lines, |mut lines| async move {
            let line = lines.next().await?;
            Some((line, lines))
        });
        Body::Stream(lines.boxed())
    }
}

/// Waits until the gate lets an event through.
async fn pass(server: &ApiServer, watch: &Request, event: &WatchEvent) -> Result<(), Stop> {
    let gate = server.gate();
    if !gate.is_active() {
        return Ok(());
    }
    let shown = &*event.object;
    let request = Request {
        name: object::name(shown).to_owned(),
        namespace: object::namespace(shown).to_owned(),
        ..watch.clone()
    };
    gate.leave(server, Stage::Event, &request).await
}

/// The lines that are still to come.
struct Lines {
    watch: Watch,
    /// Whether nothing was sent yet.
    first: bool,
    /// What ends the stream, once that is known.
    last: Option<End>,
}

/// How a watch ends that the gate stops at an event.
struct End {
    /// What the client still gets.
    line: Option<Bytes>,
    /// Whether the connection breaks then.
    breaks: bool,
}

impl Lines {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            if let Some(last) = &mut self.last {
                return match (last.line.take(), std::mem::take(&mut last.breaks)) {
                    (Some(line), breaks) => {
                        last.breaks = breaks;
                        Some(Ok(line))
                    }
                    (None, true) => Some(gate::broken().await),
                    (None, false) => None,
                };
            }
            let event = self.watch.events.next().await?;
            let passed = pass(&self.watch.server, &self.watch.request, &event).await;
            let first = std::mem::take(&mut self.first);
            let Watch { presentation, clock, server, .. } = &self.watch;
            let line = line(event, presentation, first, *clock, server.texts());
            match passed {
                Ok(()) => {
                    if let Some(line) = line {
                        return Some(Ok(line));
                    }
                }
                Err(stop) => self.last = Some(End::of(&stop, line)),
            }
        }
    }
}

impl End {
    fn of(stop: &Stop, line: Option<Bytes>) -> Self {
        match stop {
            Stop::Fail(error) => {
                let line = text(&Line { kind: "ERROR", object: Declared::new(&error.to_status()) });
                Self { line: Some(line), breaks: false }
            }
            Stop::Reset => Self { line: None, breaks: true },
            Stop::CutShort => {
                Self { line: line.map(|line| line.slice(..line.len() / 2)), breaks: true }
            }
            Stop::Close => Self { line: None, breaks: false },
        }
    }
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
        Some(text(&Line { kind, object: Declared::new(&object) }))
    };
    let shared = presentation.line_form(kind);
    match (&object, shared) {
        (Shown::Stored(stored, resource, revision), Some(form)) => {
            let id = (stored, resource, *revision);
            let as_stored =
                presentation.is_plain() && revision.is_none() && resource.shows_what_is_stored();
            Some(texts.of(id, form, || {
                if as_stored {
                    text(&Line { kind, object: Declared::new(stored) })
                } else {
                    write(object.clone()).unwrap_or_default()
                }
            }))
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
    object: Declared<'a>,
}
