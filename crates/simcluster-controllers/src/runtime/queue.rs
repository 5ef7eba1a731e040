//! A work queue: each key once, in order of arrival, one worker, back-off per key.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Load, Work};

/// First wait after a failed pass, doubled for each further one (as client-go's default limiter).
const RETRY_FIRST: Duration = Duration::from_millis(5);
/// Longest wait after failed passes.
const RETRY_LONGEST: Duration = Duration::from_secs(1000);

/// What a successful pass over a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing until something changes.
    Done,
    /// Another pass after this time, unless something changes earlier. It replaces what an earlier
    /// pass over the key asked for.
    After(Duration),
    /// Another pass as soon as something is heard of the key ([`Queue::add`] or [`Queue::let_go`]), or
    /// of everything ([`Queue::let_all_go`]): the caches are behind what the controller itself wrote.
    Wait,
}

/// The queue of one controller.
pub(crate) struct Queue<K> {
    state: Mutex<State<K>>,
    wake: Notify,
}

struct State<K> {
    ready: VecDeque<K>,
    queued: BTreeSet<K>,
    running: Option<K>,
    again: bool,
    timers: Timers<K>,
    waiting: BTreeSet<K>,
    failures: BTreeMap<K, u32>,
    /// Whether something was heard that the running key may be about to wait for.
    news: bool,
}

impl<K: Ord + Clone> State<K> {
    fn add(&mut self, key: K) {
        self.waiting.remove(&key);
        if self.running.as_ref() == Some(&key) {
            self.again = true;
        } else if self.queued.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    /// Moves the keys whose timers are due to the queue, earliest first.
    fn move_due(&mut self, now: Instant) {
        while let Some(key) = self.timers.pop_due(now) {
            self.add(key);
        }
    }

    /// Has a failed key tried again, each time later.
    fn retry(&mut self, key: K) {
        let failures = self.failures.entry(key.clone()).or_insert(0);
        let delay = retry_delay(*failures);
        *failures = failures.saturating_add(1);
        self.timers.set(key, Instant::now() + delay);
    }
}

/// One timer for each key.
struct Timers<K> {
    by_key: BTreeMap<K, Instant>,
    by_time: BTreeSet<(Instant, K)>,
}

impl<K: Ord + Clone> Timers<K> {
    fn set(&mut self, key: K, at: Instant) {
        self.clear(&key);
        self.by_time.insert((at, key.clone()));
        self.by_key.insert(key, at);
    }

    fn clear(&mut self, key: &K) {
        if let Some(at) = self.by_key.remove(key) {
            self.by_time.remove(&(at, key.clone()));
        }
    }

    fn next(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }

    fn pop_due(&mut self, now: Instant) -> Option<K> {
        self.next().filter(|at| *at <= now)?;
        let (_, key) = self.by_time.pop_first()?;
        self.by_key.remove(&key);
        Some(key)
    }
}

impl<K: Ord + Clone> Queue<K> {
    pub(crate) fn new() -> Self {
        let state = State {
            ready: VecDeque::new(),
            queued: BTreeSet::new(),
            running: None,
            again: false,
            timers: Timers { by_key: BTreeMap::new(), by_time: BTreeSet::new() },
            waiting: BTreeSet::new(),
            failures: BTreeMap::new(),
            news: false,
        };
        Self { state: Mutex::new(state), wake: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a pass over the key.
    pub(crate) fn add(&self, key: K) {
        self.lock().add(key);
        self.wake.notify_one();
    }

    /// Says that something was heard of a key: if it waits for that, it gets another pass.
    pub(crate) fn let_go(&self, key: &K) {
        let mut state = self.lock();
        if state.waiting.remove(key) {
            state.add(key.clone());
            drop(state);
            self.wake.notify_one();
        } else if state.running.as_ref() == Some(key) {
            state.news = true;
        }
    }

    /// Says that anything may have been heard (a cache was filled anew): all keys that wait get
    /// another pass.
    pub(crate) fn let_all_go(&self) {
        let mut state = self.lock();
        state.news = true;
        for key in std::mem::take(&mut state.waiting) {
            state.add(key);
        }
        drop(state);
        self.wake.notify_one();
    }

    /// The next key to work on, when there is one.
    pub(super) async fn next(&self) -> K {
        loop {
            let timer = {
                let mut state = self.lock();
                state.move_due(Instant::now());
                if let Some(key) = state.ready.pop_front() {
                    state.queued.remove(&key);
                    state.running = Some(key.clone());
                    state.news = false;
                    return key;
                }
                state.timers.next()
            };
            match timer {
                Some(at) => {
                    tokio::select! {
                        biased;
                        () = self.wake.notified() => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
                None => self.wake.notified().await,
            }
        }
    }

    /// Ends a pass over the key that [`Queue::next`] gave out.
    pub(super) fn done(&self, key: K, result: Result<Next, ()>) {
        let mut state = self.lock();
        state.running = None;
        let again = std::mem::take(&mut state.again);
        state.timers.clear(&key);
        if let Ok(next) = result {
            state.failures.remove(&key);
            match next {
                Next::Done => {}
                Next::After(delay) => state.timers.set(key.clone(), Instant::now() + delay),
                Next::Wait if state.news => state.add(key.clone()),
                Next::Wait => {
                    state.waiting.insert(key.clone());
                }
            }
        } else {
            state.retry(key.clone());
        }
        if again {
            state.add(key);
        }
    }
}

impl<K: Ord + Clone + Send + Sync> Load for Queue<K> {
    fn work(&self) -> Work {
        let state = self.lock();
        Work {
            busy: state.ready.len() + usize::from(state.running.is_some()),
            next: state.timers.next(),
        }
    }
}

/// The wait before the next try after `failures` earlier ones in a row.
pub(crate) fn retry_delay(failures: u32) -> Duration {
    2u32.checked_pow(failures)
        .and_then(|factor| RETRY_FIRST.checked_mul(factor))
        .map_or(RETRY_LONGEST, |delay| delay.min(RETRY_LONGEST))
}
