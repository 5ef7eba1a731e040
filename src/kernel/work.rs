//! The loop that turns triggers into reconciles.
//!
//! `kube::runtime::Controller` would do, but for four things that are wanted here: an order that
//! depends on nothing but the input, a back-off per object, reconciles that panic without taking
//! the others down, and one watch per kind that feeds the cache and the queue at once.

use std::{collections::BTreeMap, future::Future, pin::pin, time::Duration};

use futures::{Stream, StreamExt};
use tokio::{
    task::{Id, JoinError, JoinSet},
    time::Instant,
};

use super::{backoff, error::ErrorClass, key::Key, queue::Queue};

/// Something that the loop should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trigger {
    /// Something about this object changed: look at it.
    Look(Key),
    /// This object is gone.
    Gone(Key),
    /// The caches are complete: work may begin.
    Synced,
}

/// How a reconcile ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Done; look again after this time even if nothing happens.
    Done(Option<Duration>),
    /// Failed; try again after a wait that grows from failure to failure.
    Failed {
        /// What kind of failure.
        class: ErrorClass,
        /// The least time that the server asked us to wait.
        retry_after: Option<Duration>,
        /// The longest time to wait, if something has a deadline.
        at_most: Option<Duration>,
    },
}

/// Bounds of the loop.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How many reconciles may run at once.
    pub concurrency: usize,
    /// How long running reconciles may take to finish after a shutdown.
    pub drain: Duration,
}

struct Work {
    queue: Queue,
    running: JoinSet<Verdict>,
    keys: BTreeMap<Id, Key>,
    failures: BTreeMap<Key, u32>,
    synced: bool,
}

/// Runs until `shutdown`, then lets running reconciles finish.
pub async fn drive<F>(
    triggers: impl Stream<Item = Trigger>,
    reconcile: impl Fn(Key) -> F,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) where
    F: Future<Output = Verdict> + Send + 'static,
{
    let mut triggers = pin!(triggers);
    let mut shutdown = pin!(shutdown);
    let mut work = Work {
        queue: Queue::default(),
        running: JoinSet::new(),
        keys: BTreeMap::new(),
        failures: BTreeMap::new(),
        synced: false,
    };
    loop {
        work.start_due(&reconcile, limits.concurrency);
        let due = work.wake_at(limits.concurrency);
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            trigger = triggers.next() => match trigger {
                Some(trigger) => work.note(trigger),
                None => break,
            },
            Some(ended) = work.running.join_next_with_id() => work.ended(ended),
            () = sleep_until(due) => {}
        }
    }
    work.drain(limits.drain).await;
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

impl Work {
    fn note(&mut self, trigger: Trigger) {
        match trigger {
            Trigger::Look(key) => self.queue.add(key, Instant::now()),
            Trigger::Gone(key) => {
                self.failures.remove(&key);
                self.queue.forget(&key);
            }
            Trigger::Synced => self.synced = true,
        }
    }

    fn start_due<F>(&mut self, reconcile: &impl Fn(Key) -> F, concurrency: usize)
    where
        F: Future<Output = Verdict> + Send + 'static,
    {
        while self.synced && self.running.len() < concurrency {
            let Some(key) = self.queue.pop(Instant::now()) else {
                return;
            };
            let task = self.running.spawn(reconcile(key.clone()));
            self.keys.insert(task.id(), key);
        }
    }

    /// When there is something to start; `None` while there is no room for it.
    fn wake_at(&self, concurrency: usize) -> Option<Instant> {
        let room = self.synced && self.running.len() < concurrency;
        self.queue.next_due().filter(|_| room)
    }

    fn ended(&mut self, ended: Result<(Id, Verdict), JoinError>) {
        let (id, verdict) = match ended {
            Ok(ended) => ended,
            Err(panicked) => {
                tracing::error!(error = %panicked, "a reconcile panicked");
                let class = ErrorClass::Bug;
                (panicked.id(), Verdict::Failed { class, retry_after: None, at_most: None })
            }
        };
        let key = self.keys.remove(&id).expect("every task was entered when it was spawned");
        let wait = match verdict {
            Verdict::Done(wait) => {
                self.failures.remove(&key);
                wait
            }
            Verdict::Failed { class, retry_after, at_most } => {
                let failures = self.failures.entry(key.clone()).or_default();
                *failures = failures.saturating_add(1);
                let wait = backoff::wait(&key, class, *failures, retry_after);
                Some(at_most.map_or(wait, |at_most| wait.min(at_most)))
            }
        };
        self.queue.finished(key, wait.map(|wait| Instant::now() + wait));
    }

    async fn drain(mut self, limit: Duration) {
        let finished = tokio::time::timeout(limit, async {
            while self.running.join_next().await.is_some() {}
        });
        if finished.await.is_err() {
            tracing::warn!(
                running = self.running.len(),
                "reconciles were still running at the end"
            );
        }
    }
}
