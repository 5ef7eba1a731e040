//! Whether an app has come to rest, and how.

use std::time::Duration;

use tokio::time::Instant;

use crate::api::simpleapp::{Phase, SimpleApp};

/// How long an app must stay failed to count as failed: some failures are passing (a conflict that is
/// resolved, an image that comes at the second try).
const FAILURE_STANDS: Duration = Duration::from_secs(2);

/// What can be said of an app now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is on its way; the text says how far.
    Pending(String),
    /// All replicas of its present spec are ready.
    Settled,
    /// It has failed and stays so; the text says why.
    Failed(String),
}

/// An app as the sandbox follows it.
#[derive(Debug, Default)]
pub(super) struct Followed {
    app: Option<SimpleApp>,
    failed_since: Option<Instant>,
}

impl Followed {
    /// Takes note of a new state (`None`: deleted).
    pub(super) fn update(&mut self, app: Option<SimpleApp>, now: Instant) {
        let failed = app.as_ref().is_some_and(|app| phase(app) == Some(Phase::Failed));
        self.failed_since = failed.then(|| self.failed_since.unwrap_or(now));
        self.app = app;
    }

    /// The last state; `None` before the first and after the deletion.
    pub(super) fn app(&self) -> Option<&SimpleApp> {
        self.app.as_ref()
    }

    /// What can be said at `now`.
    pub(super) fn verdict(&self, now: Instant) -> Verdict {
        let Some(app) = &self.app else {
            return Verdict::Pending("is not there".to_owned());
        };
        match phase(app) {
            Some(Phase::Available) => Verdict::Settled,
            Some(Phase::Failed) if self.failed_for(now) >= FAILURE_STANDS => {
                Verdict::Failed(message(app))
            }
            other => {
                let phase = other.map_or_else(|| "no status".to_owned(), |p| format!("{p:?}"));
                Verdict::Pending(format!("{phase}: {}", message(app)))
            }
        }
    }

    fn failed_for(&self, now: Instant) -> Duration {
        self.failed_since.map(|since| now.duration_since(since)).unwrap_or_default()
    }
}

/// The phase, if the status speaks of the present spec.
fn phase(app: &SimpleApp) -> Option<Phase> {
    let status = app.status.as_ref()?;
    if status.observed_generation < app.metadata.generation {
        return None;
    }
    status.phase
}

fn message(app: &SimpleApp) -> String {
    app.status.as_ref().and_then(|status| status.message.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn app(generation: i64, observed: i64, phase: &str) -> Option<SimpleApp> {
        serde_json::from_value(json!({
            "apiVersion": "apps.bootcamp.local/v1", "kind": "SimpleApp",
            "metadata": { "name": "web", "generation": generation },
            "spec": { "image": "nginx" },
            "status": { "phase": phase, "observedGeneration": observed, "message": "why" },
        }))
        .unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_of_an_older_spec_settles_nothing() {
        let mut followed = Followed::default();
        followed.update(app(2, 1, "Available"), Instant::now());
        assert_eq!(followed.verdict(Instant::now()), Verdict::Pending("no status: why".to_owned()));
        followed.update(app(2, 2, "Available"), Instant::now());
        assert_eq!(followed.verdict(Instant::now()), Verdict::Settled);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_counts_when_it_stands() {
        let mut followed = Followed::default();
        followed.update(app(1, 1, "Failed"), Instant::now());
        assert!(matches!(followed.verdict(Instant::now()), Verdict::Pending(_)));
        tokio::time::advance(FAILURE_STANDS).await;
        assert_eq!(followed.verdict(Instant::now()), Verdict::Failed("why".to_owned()));
        followed.update(app(1, 1, "Available"), Instant::now());
        assert_eq!(followed.verdict(Instant::now()), Verdict::Settled);
    }
}
