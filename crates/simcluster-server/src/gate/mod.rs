//! The gate that every request passes on its way in and on its way out, and every event of a watch
//! before its client gets it. Rules decide, as data, what happens there: faults that a real cluster
//! has, too, at moments that a test chooses.

mod pace;
mod rule;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};

use self::pace::Pace;
use self::rule::Placed;
pub use self::rule::{Effect, Failure, On, Rule, Stage};
use crate::server::ApiServer;
use crate::store::Compacted;
use crate::trace::Request;
use simcluster_model::error::ApiError;
use simcluster_model::random::Random;

/// The answer when a request took too long.
pub(crate) fn timed_out() -> ApiError {
    let why = "Timeout: request did not complete within the allotted timeout";
    ApiError::new(504, "Timeout", why)
}

/// The connection broke before there was an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("connection reset by peer")]
pub struct ConnectionReset;

impl From<ConnectionReset> for std::io::Error {
    fn from(reset: ConnectionReset) -> Self {
        Self::new(std::io::ErrorKind::ConnectionReset, reset)
    }
}

/// What was written before a connection breaks gets a moment to arrive.
const ARRIVAL: Duration = Duration::from_millis(10);

/// The end of a body whose connection breaks.
pub(crate) async fn broken() -> std::io::Result<Bytes> {
    sleep(ARRIVAL).await;
    Err(ConnectionReset.into())
}

/// The gate of one server.
#[derive(Debug)]
pub(crate) struct Gate {
    state: Mutex<State>,
    /// Whether there are rules: without, events pass without a lock.
    active: AtomicBool,
    /// Changes with the rules and their hits.
    changed: Notify,
    /// Who let no time pass.
    runaway: watch::Sender<Option<String>>,
    /// The seed that shuffles tasks, if they are to be.
    shuffle: Option<u64>,
}

#[derive(Debug, Default)]
struct State {
    rules: Vec<Placed>,
    next_id: u64,
    /// How often removed rules acted.
    past_hits: BTreeMap<u64, u64>,
    pace: Pace,
}

/// How a request or an event that does not simply pass ends.
pub(crate) enum Stop {
    Fail(ApiError),
    Reset,
    CutShort,
    Close,
}

/// The state that a request may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct View(Option<u64>);

impl View {
    /// The newest state.
    pub const HEAD: Self = Self(None);

    /// The revision that a read sees, given that of the newest state, if a state of `oldest` (or
    /// newer) is good enough for it; `None` asks for the newest.
    pub(crate) fn revision(self, head: u64, oldest: Option<u64>) -> u64 {
        match (self.0, oldest) {
            (Some(revision), Some(oldest)) if oldest <= revision => revision.min(head),
            _ => head,
        }
    }
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::default(),
            active: AtomicBool::new(false),
            changed: Notify::new(),
            runaway: watch::Sender::new(None),
            shuffle: None,
        }
    }

    /// Lets tasks run in an order that a seed chooses.
    pub(crate) fn shuffle(&mut self, seed: u64) {
        self.shuffle = Some(seed);
    }

    /// A request comes in. What it may read is returned.
    pub(crate) async fn enter(&self, server: &ApiServer, request: &Request) -> Result<View, Stop> {
        self.take_turns(request).await;
        let runaway = self.lock().pace.count(Instant::now(), request);
        if let Some(what) = runaway {
            self.runaway.send_replace(Some(what));
            sleep(pace::TOLL).await;
        }
        let mut view = View::HEAD;
        self.act(server, Stage::Request, request, &mut view).await?;
        Ok(view)
    }

    /// An answer or an event goes out.
    pub(crate) async fn leave(
        &self,
        server: &ApiServer,
        stage: Stage,
        request: &Request,
    ) -> Result<(), Stop> {
        let mut view = View::HEAD;
        self.act(server, stage, request, &mut view).await
    }

    /// Whether there are rules at all.
    pub(crate) fn is_active(&self) -> bool {
        self.active.load(Ordering::Relaxed)
    }

    async fn act(
        &self,
        server: &ApiServer,
        stage: Stage,
        request: &Request,
        view: &mut View,
    ) -> Result<(), Stop> {
        if !self.is_active() {
            return Ok(());
        }
        for (id, effect) in self.effects(stage, request) {
            match effect {
                Effect::Fail(failure) => return Err(Stop::Fail(failure.error(request))),
                Effect::Reset => return Err(Stop::Reset),
                Effect::CutShort => return Err(Stop::CutShort),
                Effect::Close => return Err(Stop::Close),
                Effect::Silence => future::pending().await,
                Effect::Delay(time) => sleep(time).await,
                Effect::Hold => self.hold(id).await,
                Effect::StaleReads { revision } => *view = View(Some(revision)),
                Effect::Compact => server.compact(server.revision()),
                Effect::Restore { revision } => {
                    // A state that is forgotten cannot come back; the rule's hits say that it acted.
                    let _ = server.restore(revision);
                }
            }
        }
        Ok(())
    }

    fn effects(&self, stage: Stage, request: &Request) -> Vec<(u64, Effect)> {
        let effects: Vec<(u64, Effect)> = self
            .lock()
            .rules
            .iter_mut()
            .filter_map(|placed| Some((placed.id, placed.act(stage, request)?)))
            .collect();
        if !effects.is_empty() {
            self.changed.notify_waiters();
        }
        effects
    }

    async fn hold(&self, id: u64) {
        loop {
            let changed = self.changed.notified();
            if !self.lock().rules.iter().any(|placed| placed.id == id) {
                return;
            }
            changed.await;
        }
    }

    /// Other tasks go first, some turns long.
    async fn take_turns(&self, request: &Request) {
        let Some(seed) = self.shuffle else { return };
        let stream = format!("turns/{}/{}", request.user, request.client_ordinal);
        for _ in 0..Random::stream(seed, &stream).next_u64() % 4 {
            tokio::task::yield_now().await;
        }
    }

    fn hits(&self, id: u64) -> u64 {
        let state = self.lock();
        let past = state.past_hits.get(&id).copied().unwrap_or_default();
        state.rules.iter().find(|placed| placed.id == id).map_or(past, |placed| placed.hits)
    }

    fn remove(&self, wanted: impl Fn(u64) -> bool) {
        let mut state = self.lock();
        let (gone, kept) =
            std::mem::take(&mut state.rules).into_iter().partition(|placed| wanted(placed.id));
        state.rules = kept;
        let gone: Vec<Placed> = gone;
        state.past_hits.extend(gone.iter().map(|placed| (placed.id, placed.hits)));
        self.active.store(!state.rules.is_empty(), Ordering::Relaxed);
        drop(state);
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The faults of one cluster: what happens to requests and watches beyond what they ask for.
#[derive(Debug, Clone)]
pub struct Faults {
    server: Arc<ApiServer>,
}

impl Faults {
    /// The faults of a server.
    #[must_use]
    pub fn new(server: Arc<ApiServer>) -> Self {
        Self { server }
    }

    /// Puts a rule in force. Rules act in the order in which they were added; one that ends a request
    /// hides the later ones. The handle need not be kept.
    #[expect(clippy::must_use_candidate, reason = "a rule acts whether or not its handle is kept")]
    pub fn add(&self, rule: Rule) -> Fault {
        let gate = self.server.gate();
        let mut state = gate.lock();
        state.next_id += 1;
        let id = state.next_id;
        state.rules.push(Placed::new(id, rule));
        gate.active.store(true, Ordering::Relaxed);
        Fault { server: Arc::clone(&self.server), id }
    }

    /// Removes all rules; what they held goes on.
    pub fn clear(&self) {
        self.server.gate().remove(|_| true);
    }

    /// Forgets the history of all objects up to now: watches that are behind and pages of lists get
    /// a 410.
    pub fn compact(&self) {
        self.server.compact(self.server.revision());
    }

    /// Sets all objects back to the state of a revision, as from a backup of etcd: watches end with a
    /// 410, and what was written since is gone. Fails if that state is forgotten.
    pub fn restore(&self, revision: u64) -> Result<(), Compacted> {
        self.server.restore(revision)
    }

    /// The revision of the newest state.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.server.revision()
    }

    /// Waits until somebody asks and asks at one moment of virtual time; what they do is returned.
    /// From then on each such request takes a second, so that time goes on.
    pub async fn runaway(&self) -> String {
        let mut seen = self.server.gate().runaway.subscribe();
        match seen.wait_for(Option::is_some).await {
            Ok(what) => what.clone().unwrap_or_default(),
            // The sender is the server's, which this value holds.
            Err(_) => future::pending().await,
        }
    }
}

/// A rule in force; it stays when this value is dropped.
#[derive(Debug, Clone)]
pub struct Fault {
    server: Arc<ApiServer>,
    id: u64,
}

impl Fault {
    /// How often it acted.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.server.gate().hits(self.id)
    }

    /// Waits until it has acted so often.
    pub async fn reached(&self, hits: u64) {
        loop {
            let changed = self.server.gate().changed.notified();
            if self.hits() >= hits {
                return;
            }
            changed.await;
        }
    }

    /// Takes the rule away; what it holds goes on.
    pub fn remove(&self) {
        self.server.gate().remove(|id| id == self.id);
    }
}
