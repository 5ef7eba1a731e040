//! The life of one container: states and the moments they change, as data.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::image::{self, Life};

/// First back-off after a crash or a failed pull; doubled each time.
const BACK_OFF_FIRST: SignedDuration = SignedDuration::from_secs(10);
/// Longest back-off.
const BACK_OFF_LONGEST: SignedDuration = SignedDuration::from_secs(300);

/// How long the steps of a container take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Steps {
    /// Pulling the image, or failing to.
    pub(crate) pull: Duration,
    /// Creating and starting the container.
    pub(crate) start: Duration,
    /// From running to ready, beyond what the image's life adds.
    pub(crate) ready: Duration,
    /// From running to the end, for lives that end.
    pub(crate) run: Duration,
}

/// When a container that ended is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restart {
    Always,
    OnFailure,
    Never,
}

impl Restart {
    fn after(self, code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => code != 0,
            Self::Never => false,
        }
    }
}

/// How a run of a container ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) started: Timestamp,
    pub(crate) at: Timestamp,
    /// Which run it was, counted from 1.
    pub(crate) run: u32,
}

/// The state of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Its turn has not come (an init container runs before it).
    Queued,
    /// The image is being pulled.
    Pulling { until: Timestamp },
    /// It is being created.
    Starting { until: Timestamp },
    /// It runs.
    Running { since: Timestamp, ready_at: Option<Timestamp>, ends: Option<(Timestamp, i32)> },
    /// The pull failed just now.
    PullFailed { until: Timestamp },
    /// The pull failed; the next try waits.
    PullBackOff { until: Timestamp },
    /// The name of the image is no image reference; nothing more will happen.
    BadName,
    /// It crashed; the next start waits.
    CrashBackOff { until: Timestamp, wait: SignedDuration },
    /// It ended for good.
    Over,
}

/// Something that happened, for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Happened {
    Pulling,
    Pulled,
    Present,
    Created,
    Started,
    PullFailed,
    PullBackOff,
    BadName,
    CrashBackOff,
}

/// One container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Container {
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) restart: Restart,
    pub(crate) state: State,
    pub(crate) last: Option<Ended>,
    /// Starts so far.
    pub(crate) starts: u32,
    life: Life,
    steps: Steps,
    back_off: SignedDuration,
}

impl Container {
    pub(crate) fn new(name: &str, image: &str, restart: Restart, steps: Steps) -> Self {
        Self {
            name: name.to_owned(),
            image: image.to_owned(),
            restart,
            state: State::Queued,
            last: None,
            starts: 0,
            life: image::life(image),
            steps,
            back_off: BACK_OFF_FIRST,
        }
    }

    /// A container that runs already, known from its status.
    pub(crate) fn resume(&mut self, since: Timestamp, is_ready: bool, restarts: u32) {
        self.starts = restarts.saturating_add(1);
        self.state = self.running(since);
        if let (State::Running { ready_at, .. }, true) = (&mut self.state, is_ready) {
            *ready_at = Some(since);
        }
    }

    pub(crate) fn restarts(&self) -> u32 {
        self.starts.saturating_sub(1)
    }

    /// Whether it passed its readiness check by `now`.
    pub(crate) fn is_ready(&self, now: Timestamp) -> bool {
        matches!(self.state, State::Running { ready_at: Some(at), .. } if at <= now)
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    /// Whether it ended for good, and how.
    pub(crate) fn result(&self) -> Option<i32> {
        (self.state == State::Over).then(|| self.last.map_or(0, |ended| ended.code))
    }

    /// Lets a container begin whose turn has come.
    pub(crate) fn begin(&mut self, now: Timestamp) -> Option<Happened> {
        if self.state != State::Queued {
            return None;
        }
        if self.life == Life::Invalid {
            self.state = State::BadName;
            return Some(Happened::BadName);
        }
        self.state = State::Pulling { until: after(now, self.steps.pull) };
        Some(Happened::Pulling)
    }

    /// Whether it has run.
    pub(crate) fn has_run(&self) -> bool {
        self.starts > 0
    }

    /// Ends it for good, because its Pod is being deleted.
    pub(crate) fn stop(&mut self, at: Timestamp, code: i32) {
        if let State::Running { since, .. } = self.state {
            self.last = Some(Ended { code, started: since, at, run: self.starts });
        }
        if self.last.is_some() {
            self.state = State::Over;
        }
    }

    /// The next moment at which the state changes or the container becomes ready, after `now`.
    pub(crate) fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        match self.state {
            State::Queued | State::BadName | State::Over => None,
            State::Pulling { until }
            | State::Starting { until }
            | State::PullFailed { until }
            | State::PullBackOff { until }
            | State::CrashBackOff { until, .. } => Some(until),
            State::Running { ready_at, ends, .. } => {
                let ready_at = ready_at.filter(|at| *at > now);
                ready_at.into_iter().chain(ends.map(|(at, _)| at)).min()
            }
        }
    }

    /// Makes the next change that is due by `now`. `None`: none is.
    pub(crate) fn step(&mut self, now: Timestamp) -> Option<Vec<Happened>> {
        match self.state {
            State::Pulling { until } if until <= now => Some(self.pulled(until)),
            State::PullFailed { until } if until <= now => {
                let wait = self.next_back_off();
                self.state = State::PullBackOff { until: later(until, wait) };
                Some(vec![Happened::PullBackOff])
            }
            State::PullBackOff { until } if until <= now => {
                self.state = State::Pulling { until: after(until, self.steps.pull) };
                Some(vec![Happened::Pulling])
            }
            State::Starting { until } if until <= now => {
                self.starts = self.starts.saturating_add(1);
                self.state = self.running(until);
                Some(vec![Happened::Created, Happened::Started])
            }
            State::Running { since, ends: Some((at, code)), .. } if at <= now => {
                Some(self.ended(since, at, code))
            }
            State::CrashBackOff { until, .. } if until <= now => {
                self.state = State::Starting { until: after(until, self.steps.start) };
                Some(vec![Happened::Present])
            }
            State::Queued
            | State::Pulling { .. }
            | State::Starting { .. }
            | State::Running { .. }
            | State::PullFailed { .. }
            | State::PullBackOff { .. }
            | State::BadName
            | State::CrashBackOff { .. }
            | State::Over => None,
        }
    }

    fn pulled(&mut self, at: Timestamp) -> Vec<Happened> {
        if self.life == Life::NotFound {
            // The failure shows for as long as a pull takes, then the back-off.
            self.state = State::PullFailed { until: after(at, self.steps.pull) };
            return vec![Happened::PullFailed];
        }
        self.state = State::Starting { until: after(at, self.steps.start) };
        vec![Happened::Pulled]
    }

    fn running(&self, since: Timestamp) -> State {
        let ready_after = self.steps.ready;
        let ends = |code| Some((after(since, self.steps.run), code));
        let (ready_at, ends) = match self.life {
            Life::Runs { ready_after: extra } => {
                (Some(after(since, ready_after.saturating_add(extra))), None)
            }
            Life::NeverReady | Life::NotFound | Life::Invalid => (None, None),
            Life::Crashes { .. } => (None, ends(1)),
            Life::Exits { code } => (Some(after(since, ready_after)), ends(code)),
        };
        State::Running { since, ready_at, ends }
    }

    fn ended(&mut self, started: Timestamp, at: Timestamp, code: i32) -> Vec<Happened> {
        self.last = Some(Ended { code, started, at, run: self.starts });
        if !self.restart.after(code) {
            self.state = State::Over;
            return Vec::new();
        }
        let free_starts = if let Life::Crashes { starts } = self.life { starts } else { 2 };
        if self.starts < free_starts {
            self.state = State::Starting { until: after(at, self.steps.start) };
            return vec![Happened::Present];
        }
        let wait = self.next_back_off();
        self.state = State::CrashBackOff { until: later(at, wait), wait };
        vec![Happened::CrashBackOff]
    }

    fn next_back_off(&mut self) -> SignedDuration {
        let wait = self.back_off;
        self.back_off = (wait * 2).min(BACK_OFF_LONGEST);
        wait
    }
}

fn after(time: Timestamp, delay: Duration) -> Timestamp {
    SignedDuration::try_from(delay).map_or(Timestamp::MAX, |delay| later(time, delay))
}

fn later(time: Timestamp, delay: SignedDuration) -> Timestamp {
    time.checked_add(delay).unwrap_or(Timestamp::MAX)
}
