//! The life of one Pod on its node: its containers in their order, as data.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container as Spec, Pod};

use super::container::{Container, Happened, Restart, State, Steps};

/// What the node knows of a Pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Life {
    /// When the node took the Pod on.
    pub(crate) started: Timestamp,
    /// The Pod's address; known once its sandbox is there.
    pub(crate) ip: Option<String>,
    pub(crate) init: Vec<Container>,
    pub(crate) main: Vec<Container>,
}

/// Something that happened to a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Incident {
    pub(crate) container: String,
    pub(crate) is_init: bool,
    pub(crate) image: String,
    pub(crate) what: Happened,
}

impl Life {
    /// A Pod that the node takes on now, or that it finds running on a restart. `steps` says how long
    /// the steps of the container of a name take.
    pub(crate) fn new(pod: &Pod, now: Timestamp, steps: impl Fn(&str) -> Steps) -> Self {
        let spec = pod.spec.clone().unwrap_or_default();
        let policy = match spec.restart_policy.as_deref() {
            Some("Never") => Restart::Never,
            Some("OnFailure") => Restart::OnFailure,
            Some(_) | None => Restart::Always,
        };
        let container = |spec: &Spec, restart: Restart| {
            let mut steps = steps(&spec.name);
            steps.ready = match &spec.readiness_probe {
                // Without a probe a container is ready as soon as it runs.
                None => Duration::ZERO,
                Some(probe) => {
                    let wait = u64::try_from(probe.initial_delay_seconds.unwrap_or(0)).unwrap_or(0);
                    steps.ready + Duration::from_secs(wait)
                }
            };
            Container::new(&spec.name, spec.image.as_deref().unwrap_or_default(), restart, steps)
        };
        let init_restart = |spec: &Spec| match (spec.restart_policy.as_deref(), policy) {
            (Some("Always"), _) => Restart::Always,
            (_, Restart::Never) => Restart::Never,
            (_, Restart::Always | Restart::OnFailure) => Restart::OnFailure,
        };
        let init = spec.init_containers.iter().flatten();
        let mut life = Self {
            started: now,
            ip: None,
            init: init.map(|spec| container(spec, init_restart(spec))).collect(),
            main: spec.containers.iter().map(|spec| container(spec, policy)).collect(),
        };
        life.resume(pod);
        life
    }

    /// Takes over what the status says of a Pod that runs already.
    fn resume(&mut self, pod: &Pod) {
        let Some(status) = &pod.status else { return };
        self.started = status.start_time.as_ref().map_or(self.started, |time| time.0);
        self.ip.clone_from(&status.pod_ip);
        let known = status.init_container_statuses.iter().chain(&status.container_statuses);
        for known in known.flatten() {
            let mut all = self.init.iter_mut().chain(&mut self.main);
            let Some(container) = all.find(|container| container.name == known.name) else {
                continue;
            };
            let state = known.state.as_ref();
            let restarts = u32::try_from(known.restart_count).unwrap_or(0);
            if let Some(running) = state.and_then(|state| state.running.as_ref()) {
                let since = running.started_at.as_ref().map_or(self.started, |time| time.0);
                container.resume(since, known.ready, restarts);
            } else if state.is_some_and(|state| state.terminated.is_some()) {
                container.state = State::Over;
                container.starts = restarts.saturating_add(1);
            }
        }
    }

    /// Makes all changes that are due by `now`, in their order.
    pub(crate) fn advance(&mut self, now: Timestamp) -> Vec<Incident> {
        let mut incidents = Vec::new();
        loop {
            let begun = self.begin_next(now);
            let stepped = self.step_all(now);
            if begun.is_empty() && stepped.is_none() {
                return incidents;
            }
            incidents.extend(begun);
            incidents.extend(stepped.into_iter().flatten());
        }
    }

    /// Ends all containers of a Pod that is being deleted, with this code if they run. A Pod in which one
    /// has never run stays as it is.
    pub(crate) fn stop(&mut self, at: Timestamp, code: i32) {
        if self.main.iter().all(Container::has_run) {
            self.init.iter_mut().chain(&mut self.main).for_each(|one| one.stop(at, code));
        }
    }

    /// Lets containers begin whose turn has come: init containers one after the other (one that keeps
    /// running lets the next begin once it runs), then all others.
    fn begin_next(&mut self, now: Timestamp) -> Vec<Incident> {
        let mut incidents = Vec::new();
        for container in &mut self.init {
            if let Some(what) = container.begin(now) {
                incidents.push(incident(container, true, what));
            }
            if !is_initialized(container) {
                return incidents;
            }
        }
        for container in &mut self.main {
            if let Some(what) = container.begin(now) {
                incidents.push(incident(container, false, what));
            }
        }
        incidents
    }

    fn step_all(&mut self, now: Timestamp) -> Option<Vec<Incident>> {
        let mut all = None;
        let init = self.init.iter_mut().map(|container| (true, container));
        let main = self.main.iter_mut().map(|container| (false, container));
        for (is_init, container) in init.chain(main) {
            if let Some(happened) = container.step(now) {
                let incidents = happened.into_iter().map(|what| incident(container, is_init, what));
                all.get_or_insert_with(Vec::new).extend(incidents);
            }
        }
        all
    }

    /// The next moment at which something changes by itself.
    pub(crate) fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        self.init.iter().chain(&self.main).filter_map(|one| one.next_change(now)).min()
    }

    /// Whether all init containers are done (or run, if they are to keep running).
    pub(crate) fn is_initialized(&self) -> bool {
        self.init.iter().all(is_initialized)
    }

    /// Whether a container has been created, so that the Pod has a sandbox and an address.
    pub(crate) fn has_sandbox(&self) -> bool {
        self.init.iter().chain(&self.main).any(|one| one.starts > 0)
    }

    /// The phase.
    pub(crate) fn phase(&self) -> &'static str {
        if self.init.iter().any(|one| one.result().is_some_and(|code| code != 0)) {
            return "Failed";
        }
        if !self.is_initialized() || self.main.iter().any(|one| one.starts == 0) {
            return "Pending";
        }
        let mut results = self.main.iter().map(Container::result);
        if results.any(|result| result.is_none()) {
            return "Running";
        }
        let succeeded = self.main.iter().all(|one| one.result() == Some(0));
        if succeeded { "Succeeded" } else { "Failed" }
    }
}

fn is_initialized(container: &Container) -> bool {
    match container.restart {
        Restart::Always => container.is_running(),
        Restart::OnFailure | Restart::Never => container.result() == Some(0),
    }
}

fn incident(container: &Container, is_init: bool, what: Happened) -> Incident {
    Incident { container: container.name.clone(), is_init, image: container.image.clone(), what }
}
