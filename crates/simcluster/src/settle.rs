//! Letting virtual time pass until a cluster has come to rest.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::cluster::SimCluster;
use simcluster_clock as clock;
use simcluster_server::gate::On;
use simcluster_server::trace::Request;

/// Virtual time without a change after which a cluster counts as settled. Longer than the
/// delays of the simulated controllers, shorter than the back-off of a container that crashes for
/// ever.
const QUIET: Duration = Duration::from_mins(1);

/// Virtual time after which a cluster that is still busy never will be quiet.
const BUSY_MAX: Duration = Duration::from_hours(1);

/// Requests that a report names.
const NAMED_MAX: usize = 5;

/// What counts as rest.
///
/// ```
/// use simcluster::Settle;
/// use simcluster::faults::On;
/// // An operator that renews its Lease for ever can be at rest otherwise.
/// let rest = Settle::default().except(On::writes().resource("leases"));
/// ```
#[derive(Debug, Clone)]
pub struct Settle {
    except: Vec<On>,
    within: Duration,
    refusals: bool,
}

impl Default for Settle {
    fn default() -> Self {
        Self { except: Vec::new(), within: BUSY_MAX, refusals: false }
    }
}

impl Settle {
    /// Leaves requests out: what they change does not disturb the rest.
    #[must_use]
    pub fn except(mut self, requests: On) -> Self {
        self.except.push(requests);
        self
    }

    /// Gives up after so much virtual time (default: an hour).
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.within = time;
        self
    }

    /// A client that is refused again and again may be at rest, too.
    #[must_use]
    pub fn with_refusals(mut self) -> Self {
        self.refusals = true;
        self
    }

    /// Waits for a cluster.
    pub(crate) async fn wait(&self, cluster: &SimCluster) -> Result<(), NotSettled> {
        if !clock::is_paused() {
            return Err(NotSettled::RealTime);
        }
        let faults = cluster.faults();
        tokio::select! {
            biased;
            what = faults.runaway() => Err(NotSettled::Runaway(what)),
            outcome = self.quiet(cluster) => outcome,
        }
    }

    async fn quiet(&self, cluster: &SimCluster) -> Result<(), NotSettled> {
        let start = cluster.position();
        let mut passed = Duration::ZERO;
        loop {
            let (revision, position) = (cluster.revision(), cluster.position());
            tokio::time::sleep(QUIET).await;
            if !self.disturbed(cluster, revision) {
                let quiet = cluster.requests_since(position);
                return self.check_refusals(&cluster.requests_since(start), &quiet);
            }
            passed += QUIET;
            if passed >= self.within {
                let requests = cluster.requests_since(position);
                let changed = requests.iter().filter(|request| self.counts(request, 0));
                return Err(NotSettled::Busy { within: self.within, busiest: counts(changed) });
            }
        }
    }

    /// Whether something changed after a revision.
    fn disturbed(&self, cluster: &SimCluster, revision: u64) -> bool {
        if self.except.is_empty() {
            return cluster.revision() != revision;
        }
        cluster.requests().iter().any(|request| self.counts(request, revision))
    }

    fn counts(&self, request: &Request, revision: u64) -> bool {
        request.changed.is_some_and(|changed| changed > revision)
            && !self.except.iter().any(|on| on.matches(request))
    }

    /// Those who were refused, and while all was quiet were refused again, wait for something that
    /// does not come.
    fn check_refusals(&self, requests: &[Request], quiet: &[Request]) -> Result<(), NotSettled> {
        if self.refusals {
            return Ok(());
        }
        let last: BTreeMap<String, u16> =
            quiet.iter().map(|request| (request.deed(), request.code)).collect();
        let refused = |request: &&Request| {
            is_refusal(request.code)
                && last.get(&request.deed()).is_some_and(|code| is_refusal(*code))
                && !self.except.iter().any(|on| on.matches(request))
        };
        let mut refused = counts(requests.iter().filter(refused));
        refused.retain(|(_, count)| *count > 1);
        if refused.is_empty() { Ok(()) } else { Err(NotSettled::Refused(refused)) }
    }
}

fn is_refusal(code: u16) -> bool {
    matches!(code, 401 | 403)
}

/// What is done most often, and how often.
fn counts<'a>(requests: impl Iterator<Item = &'a Request>) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for request in requests {
        *counts.entry(request.deed()).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.truncate(NAMED_MAX);
    counts
}

/// Why a cluster did not come to rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotSettled {
    /// The runtime's time is real: a minute without a change would take a minute.
    RealTime,
    /// It was still busy at the end; what changed most in the last minute, and how often.
    Busy {
        /// The virtual time that it was given.
        within: Duration,
        /// Who did what, and how often.
        busiest: Vec<(String, usize)>,
    },
    /// Somebody asks and asks at one moment, so that virtual time stands still.
    Runaway(String),
    /// Nothing changes, but somebody is refused again and again.
    Refused(Vec<(String, usize)>),
}

impl fmt::Display for NotSettled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, requests: &[(String, usize)]| {
            requests.iter().try_for_each(|(what, count)| write!(f, "\n  {count} times {what}"))
        };
        match self {
            Self::RealTime => f.write_str(
                "settle() lets virtual time pass, and the time of this runtime is real: use \
                 #[tokio::test(start_paused = true)], or tokio::time::pause() before the cluster \
                 starts",
            ),
            Self::Busy { within, busiest } => {
                let seconds = within.as_secs();
                write!(f, "the cluster is still busy after {seconds} s; in the last minute")?;
                list(f, busiest)
            }
            Self::Runaway(what) => write!(
                f,
                "virtual time stands still, for somebody asks again as soon as they are answered: \
                 thousands of times at one moment\n  {what}"
            ),
            Self::Refused(refused) => {
                write!(f, "nothing changes any more, but somebody is refused and tries again")?;
                list(f, refused)
            }
        }
    }
}

impl std::error::Error for NotSettled {}
