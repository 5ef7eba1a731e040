//! Plays random conversations on a real and on the simulated server at once, and shows where they
//! answer differently.
//!
//! `KUBEBUILDER_ASSETS=$(hack/kube-assets/build) cargo run -p conversations --example differential --
//! --seeds 0..500` prints how many answers are equal, and the differences in groups, each with the
//! smallest conversation that was found to show it. `--write FOLDER` writes those as cases, with what the
//! real server answered.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use conversations::shrink::shrink;
use conversations::{Answers, Case, Records, Servers, Signature, Step, random, request, verb};
use futures::FutureExt as _;
use serde_json::Value;
use simcluster::env::{self, Backend, Cluster, Needs};
use tokio::time::Instant;

/// How long the same servers are used: one test on a real cluster may take only so long.
const SHIFT: Duration = Duration::from_mins(2);
/// How many places are shown at which one answer differs.
const PLACES_MAX: usize = 6;

/// Plays random conversations on a real and on the simulated server at once.
#[derive(Debug, Parser)]
struct Args {
    /// The seeds of the conversations: `7`, or `0..500` without the last.
    #[arg(long, default_value = "0..100", value_parser = seeds)]
    seeds: Range<u64>,
    /// The plural of the one resource to talk about.
    #[arg(long)]
    only: Option<String>,
    /// How often a conversation is played again to make it smaller; 0 leaves it as it is.
    #[arg(long, default_value_t = 250)]
    tries: usize,
    /// The folder to write a case to for each group of differences.
    #[arg(long)]
    write: Option<PathBuf>,
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
    match text.split_once("..") {
        Some((start, end)) => Ok(number(start)?..number(end)?),
        None => number(text).map(|seed| seed..seed + 1),
    }
}

/// What came of one conversation.
enum Outcome {
    Played(Vec<Answers>),
    /// It could not be played to its end.
    Failed(String),
}

/// Conversations that differ alike.
struct Group {
    /// How often each request showed it.
    requests: BTreeMap<String, usize>,
    seed: u64,
    /// The shortest of them, up to the difference.
    steps: Vec<Step>,
}

impl Group {
    fn count(&self) -> usize {
        self.requests.values().sum()
    }
}

#[derive(Default)]
struct Tally {
    /// By verb: equal answers, all answers.
    verbs: BTreeMap<&'static str, (usize, usize)>,
    groups: BTreeMap<Signature, Group>,
    failures: BTreeMap<u64, String>,
    conversations: usize,
    equal_conversations: usize,
}

impl Tally {
    fn add(&mut self, seed: u64, steps: &[Step], outcome: Outcome) {
        self.conversations += 1;
        let answers = match outcome {
            Outcome::Played(answers) => answers,
            Outcome::Failed(text) => {
                self.failures.insert(seed, text);
                return;
            }
        };
        for (step, answers) in steps.iter().zip(&answers) {
            let (equal, all) = self.verbs.entry(verb(step)).or_default();
            *all += 1;
            *equal += usize::from(answers.places.is_empty());
        }
        let Some((signature, index)) = first_difference(steps, &answers) else {
            self.equal_conversations += 1;
            return;
        };
        let request = steps.get(index).map(request).unwrap_or_default();
        let steps = steps.iter().take(index + 1).cloned().collect::<Vec<_>>();
        let group = self.groups.entry(signature);
        let group = group.or_insert_with(|| Group {
            requests: BTreeMap::new(),
            seed,
            steps: steps.clone(),
        });
        *group.requests.entry(request).or_default() += 1;
        if steps.len() < group.steps.len() {
            (group.seed, group.steps) = (seed, steps);
        }
    }

    fn print(&self, to: &mut impl Write) -> std::io::Result<()> {
        let sum = |of: fn(&(usize, usize)) -> usize| self.verbs.values().map(of).sum::<usize>();
        let (equal, all) = (sum(|counts| counts.0), sum(|counts| counts.1));
        writeln!(
            to,
            "{equal} of {all} answers equal ({}); {} of {} conversations",
            percent(equal, all),
            self.equal_conversations,
            self.conversations
        )?;
        for (verb, (equal, all)) in &self.verbs {
            writeln!(to, "  {verb}: {equal} of {all} ({})", percent(*equal, *all))?;
        }
        for (seed, failure) in &self.failures {
            writeln!(to, "seed {seed} could not be played: {failure}")?;
        }
        Ok(())
    }
}

fn percent(part: usize, all: usize) -> String {
    let tenths = part * 1000 / all.max(1);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// The first step whose answers differ.
fn first_difference(steps: &[Step], answers: &[Answers]) -> Option<(Signature, usize)> {
    let index = answers.iter().position(|answers| !answers.places.is_empty())?;
    Some((Signature::of(steps.get(index)?, answers.get(index)?), index))
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let mut out = std::io::stdout();
    let tally = Mutex::new(Tally::default());
    let seeds: Vec<u64> = args.seeds.clone().collect();
    on_all_cores(&seeds, async |both, seed| {
        let steps = random::conversation(*seed, args.only.as_deref());
        let outcome = both.play(&steps).await;
        locked(&tally).add(*seed, &steps, outcome);
    });
    let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    tally.print(&mut out)?;

    let mut groups: Vec<(&Signature, &Group)> = tally.groups.iter().collect();
    groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.count()));
    let numbered: Vec<_> = (1..).zip(groups).collect();
    writeln!(out, "{} groups of differences", numbered.len())?;
    let smallest = Mutex::new(BTreeMap::new());
    on_all_cores(&numbered, async |both, (number, (signature, group))| {
        let found = both.smallest(signature, &group.steps, args.tries).await;
        locked(&smallest).insert(*number, found);
    });
    for (number, (signature, group)) in &numbered {
        let found = locked(&smallest).remove(number).flatten();
        print_group(*number, signature, group, found.as_ref(), &mut out)?;
        if let (Some(folder), Some((steps, answers))) = (&args.write, &found) {
            write_case(folder, *number, signature, steps, answers)?;
        }
    }
    Ok(())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does something with every item, on all cores, each with servers of its own.
fn on_all_cores<T: Sync>(items: &[T], act: impl AsyncFn(&Both<'_>, &T) + Sync) {
    let next = AtomicUsize::new(0);
    let take = || items.get(next.fetch_add(1, Ordering::Relaxed));
    let work = || {
        while let Some(first) = take() {
            env::run_on(Backend::ControlPlane, &Needs::default().only([]), async |cluster| {
                let both = Both { cluster: &cluster, servers: Cell::new(None) };
                let until = Instant::now() + SHIFT;
                // What a conversation needs is large, and the stack of a thread is not.
                Box::pin(act(&both, first)).await;
                while Instant::now() < until
                    && let Some(item) = take()
                {
                    Box::pin(act(&both, item)).await;
                }
            });
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
}

/// A real and a simulated server, and new ones after a panic.
struct Both<'a> {
    cluster: &'a Cluster,
    servers: Cell<Option<Servers<'a>>>,
}

impl<'a> Both<'a> {
    async fn play(&self, steps: &[Step]) -> Outcome {
        let failed = |error: conversations::Error| {
            Outcome::Failed(format!("{:#}", anyhow::Error::from(error)))
        };
        let servers = match self.servers.take() {
            Some(servers) => servers,
            None => match self.start().await {
                Ok(servers) => servers,
                Err(error) => return failed(error),
            },
        };
        match AssertUnwindSafe(servers.converse(steps)).catch_unwind().await {
            Ok(played) => {
                self.servers.set(Some(servers));
                played.map_or_else(failed, Outcome::Played)
            }
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                Outcome::Failed(format!("panicked: {}", text.unwrap_or("without a text")))
            }
        }
    }

    async fn start(&self) -> Result<Servers<'a>, conversations::Error> {
        let records =
            Records::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/apiserver"));
        Servers::start(self.cluster, &records.fixture(random::FIXTURE)?).await
    }

    /// The smallest conversation found that ends with this difference, and its answers; `None` if the
    /// difference does not come again.
    async fn smallest(
        &self,
        signature: &Signature,
        steps: &[Step],
        tries: usize,
    ) -> Option<(Vec<Step>, Vec<Answers>)> {
        let shows = async |steps: &[Step]| match self.play(steps).await {
            Outcome::Played(answers) => {
                let found = first_difference(steps, &answers);
                found.is_some_and(|(found, index)| found == *signature && index + 1 == steps.len())
            }
            Outcome::Failed(_) => false,
        };
        if !shows(steps).await {
            return None;
        }
        let steps = shrink(steps, tries, shows).await;
        match self.play(&steps).await {
            Outcome::Played(answers) => Some((steps, answers)),
            Outcome::Failed(_) => None,
        }
    }
}

fn print_group(
    number: usize,
    signature: &Signature,
    group: &Group,
    smallest: Option<&(Vec<Step>, Vec<Answers>)>,
    to: &mut impl Write,
) -> std::io::Result<()> {
    let requests = group.requests.iter().map(|(request, count)| format!("{count} {request}"));
    let requests = requests.collect::<Vec<_>>().join(", ");
    writeln!(to, "\n## {number}. {signature}")?;
    writeln!(to, "{} times: {requests}; such as seed {}", group.count(), group.seed)?;
    match smallest {
        Some((steps, answers)) => print_conversation(steps, answers, to),
        None => writeln!(to, "it did not come again"),
    }
}

fn print_conversation(
    steps: &[Step],
    answers: &[Answers],
    to: &mut impl Write,
) -> std::io::Result<()> {
    for (step, answers) in steps.iter().zip(answers) {
        let headers: Vec<String> =
            step.headers.iter().map(|(name, value)| format!(" {name}: {value}")).collect();
        writeln!(to, "  {}{}", step.line, headers.concat())?;
        if let Some(body) = &step.body {
            writeln!(to, "    {body}")?;
        }
        if let Some(text) = &step.text {
            writeln!(to, "    {text:?}")?;
        }
        let ended = |answer: &Value| answer.get("status").cloned().unwrap_or_default();
        let message = |answer: &Value| answer.pointer("/body/message").cloned().unwrap_or_default();
        if ended(&answers.real) == ended(&answers.simulated) {
            for place in answers.places.iter().take(PLACES_MAX) {
                writeln!(to, "    {place}")?;
            }
            continue;
        }
        for (name, answer) in [("real", &answers.real), ("simulated", &answers.simulated)] {
            writeln!(to, "    {name} {} {}", ended(answer), message(answer))?;
        }
    }
    Ok(())
}

fn write_case(
    folder: &Path,
    number: usize,
    signature: &Signature,
    steps: &[Step],
    answers: &[Answers],
) -> anyhow::Result<()> {
    let id = format!("RANDOM{number:03}");
    let steps = steps
        .iter()
        .zip(answers)
        .map(|(step, answers)| Step { got: answers.real.clone(), ..step.clone() });
    let case = Case {
        id: id.clone(),
        rows: Vec::new(),
        title: signature.to_string(),
        needs: vec![random::FIXTURE.to_owned()],
        controllers: true,
        hooks: BTreeMap::new(),
        parallel: Vec::new(),
        steps: steps.collect(),
    };
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let path = folder.join(format!("{id}.yaml"));
    fs::write(&path, case.to_yaml()?).with_context(|| path.display().to_string())
}
