//! The embedded default: a simulated cluster in this process, the operator in it, and a live table.
//!
//! Nothing here decides anything about apps; it is the operator of `run`, on a cluster that needs no
//! installation. The operator works under its own service account, so its RBAC is in force, too.

mod input;
mod screen;
mod table;
mod verdict;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, PostParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use simcluster::SimCluster;
use simcluster::User;
use simcluster::serve::Served;
use tokio::time::Instant;

use self::input::Input;
use self::screen::Screen;
use self::table::Row;
use self::verdict::{Followed, Verdict};
use crate::api::simpleapp::{self, SimpleApp};
use crate::cli::SandboxArgs;
use crate::kernel::backoff::WatchBackoff;
use crate::kernel::clock::Clock;
use crate::kernel::ownership::FIELD_MANAGER;
use crate::ops::{manifests, shutdown};
use crate::run;

/// How often ages on a terminal are redrawn and standing failures are looked at.
const TICK: Duration = Duration::from_millis(500);

/// How long a sandbox on this machine may take to answer that it is there.
const REACHABLE: Duration = Duration::from_millis(200);

/// What identifies a file as a kubeconfig that a sandbox wrote.
const OWN_KUBECONFIG: &str = "current-context: simcluster";

/// Runs the sandbox until it is told to stop; with `--exit-when-settled` until every app is at rest.
pub async fn run(args: &SandboxArgs) -> anyhow::Result<ExitCode> {
    let inputs = match input::read(&args.files) {
        Ok(inputs) => inputs,
        Err(error) => {
            // It is about what was typed, and no line of the operator's log. If standard error is closed,
            // the exit code says it.
            let _ = writeln!(io::stderr(), "error: {error}");
            return Ok(ExitCode::from(2));
        }
    };
    let shutdown = shutdown::on_signal().context("listen for signals")?;
    let sandbox = Sandbox::start(args).await?;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let operator = tokio::spawn(run::run(
        sandbox.cluster.client_without_retry(operator_user()),
        operator_config(),
        async {
            // A sender that is gone means stop, too.
            let _ = stopped.await;
        },
    ));
    let outcome = tokio::select! {
        outcome = sandbox.follow(args, &inputs) => outcome,
        () = shutdown => interrupted(args),
    };
    drop(stop);
    operator.await.context("the operator panicked")??;
    if args.print_requests {
        // What came too late for the table.
        sandbox.print_requests(&mut Screen::new(false))?;
    }
    sandbox.stop(&args.kubeconfig).await;
    outcome
}

/// A script that waits for apps to settle must not take a Ctrl-C for that.
fn interrupted(args: &SandboxArgs) -> anyhow::Result<ExitCode> {
    if args.exit_when_settled {
        bail!("stopped before all apps had settled");
    }
    Ok(ExitCode::SUCCESS)
}

struct Sandbox {
    cluster: SimCluster,
    /// The position in the record up to which requests were printed.
    printed: Cell<usize>,
    served: Served,
    clock: Clock,
    started: Instant,
}

impl Sandbox {
    async fn start(args: &SandboxArgs) -> anyhow::Result<Self> {
        let started = Instant::now();
        check_kubeconfig(&args.kubeconfig)?;
        let definition = serde_json::to_value(simpleapp::definition())?;
        let cluster = SimCluster::builder()
            .real_time()
            .crd(definition)
            .start()
            .context("start the simulated cluster")?;
        install(&cluster.client()).await?;
        let listen = args.listen.to_string();
        let served = cluster.serve(&listen).await.with_context(|| format!("--listen {listen}"))?;
        served
            .write_kubeconfig(&args.kubeconfig)
            .with_context(|| format!("--kubeconfig {}", args.kubeconfig.display()))?;
        let printed = Cell::new(0);
        Ok(Self { cluster, printed, served, clock: Clock::real(), started })
    }

    /// Applies the apps and shows them until they are at rest, or for ever.
    async fn follow(&self, args: &SandboxArgs, inputs: &[Input]) -> anyhow::Result<ExitCode> {
        let mut screen = Screen::new(!args.print_requests);
        let kubeconfig = args.kubeconfig.display();
        if !args.exit_when_settled {
            let address = self.served.address();
            screen.say(&format!("A simulated cluster serves at https://{address}. Try:"))?;
            screen.say(&format!(
                "  kubectl --kubeconfig {kubeconfig} get simpleapp,deploy,svc,ing,pods"
            ))?;
            screen.say("")?;
        }
        let client = self.cluster.client();
        let mut apps: BTreeMap<String, Followed> = BTreeMap::new();
        for input in inputs {
            if let Err(error) = apply(&client, input).await {
                screen.say(&format!("{}: {}", input.source, refusal(&error)))?;
                return Ok(ExitCode::FAILURE);
            }
            apps.insert(key(&input.app), Followed::default());
        }
        let wanted: BTreeSet<String> = apps.keys().cloned().collect();
        let mut events = follow_apps(client).boxed();
        let mut tick = tokio::time::interval(TICK);
        let mut done = false;
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(Ok(event)) => note(&mut apps, event),
                    // Somebody may have deleted the CRD, and may bring it back.
                    Some(Err(error)) => tracing::debug!(%error, "the apps cannot be followed"),
                    None => {}
                },
                _ = tick.tick() => {}
            }
            if args.print_requests {
                self.print_requests(&mut screen)?;
            }
            let now = self.clock.now();
            let rows = apps.values().filter_map(Followed::app).map(Row::of).collect();
            screen.show(rows, now)?;
            if done {
                continue;
            }
            if let Some(code) = self.judge(args, &mut screen, &apps, &wanted)? {
                if args.exit_when_settled {
                    return Ok(code);
                }
                done = true;
                if !screen.is_live() {
                    screen.say("Serving until Ctrl-C.")?;
                }
            }
        }
    }

    /// The exit code, once every app that was asked for has come to rest or time is up.
    fn judge(
        &self,
        args: &SandboxArgs,
        screen: &mut Screen,
        apps: &BTreeMap<String, Followed>,
        wanted: &BTreeSet<String>,
    ) -> anyhow::Result<Option<ExitCode>> {
        let now = Instant::now();
        let late = now.duration_since(self.started) >= args.timeout;
        let mut faults = Vec::new();
        for name in wanted {
            let verdict = apps.get(name).map(|followed| followed.verdict(now));
            match verdict {
                Some(Verdict::Settled) => {}
                Some(Verdict::Failed(why)) => faults.push(format!("{name} failed: {why}")),
                Some(Verdict::Pending(why)) if late => {
                    faults.push(format!("{name} did not settle in {:?}: {why}", args.timeout));
                }
                Some(Verdict::Pending(_)) | None => return Ok(None),
            }
        }
        let seconds = self.started.elapsed().as_secs_f64();
        if faults.is_empty() {
            let count = wanted.len();
            screen.say(&format!("All {count} apps settled after {seconds:.2} s."))?;
            return Ok(Some(ExitCode::SUCCESS));
        }
        for fault in faults {
            screen.say(&fault)?;
        }
        Ok(Some(ExitCode::FAILURE))
    }

    /// Prints the operator's requests since the last time.
    fn print_requests(&self, screen: &mut Screen) -> anyhow::Result<()> {
        let position = self.printed.replace(self.cluster.position());
        let operator = operator_user().name;
        for request in self.cluster.requests_since(position) {
            if request.user == operator {
                screen.say(&format!("{} {}", request.code, request.line))?;
            }
        }
        Ok(())
    }

    async fn stop(self, kubeconfig: &Path) {
        let own = self.served.kubeconfig();
        self.served.shutdown().await;
        if fs::read_to_string(kubeconfig).is_ok_and(|text| text == own) {
            // It leads nowhere now. That it may be gone already is no fault.
            let _ = fs::remove_file(kubeconfig);
        }
    }
}

/// The service account that the manifests give the operator.
fn operator_user() -> User {
    User::service_account(manifests::NAMESPACE, FIELD_MANAGER)
}

fn operator_config() -> run::Config {
    run::Config {
        clock: Clock::real(),
        watch_namespaces: Vec::new(),
        operator_namespace: Some(manifests::NAMESPACE.to_owned()),
        instance: FIELD_MANAGER.to_owned(),
        cleanup_timeout: Duration::from_mins(5),
        concurrency: 16,
        shutdown_timeout: Duration::from_secs(5),
        dry_run: false,
    }
}

/// A file that somebody needs is not overwritten.
fn check_kubeconfig(path: &Path) -> anyhow::Result<()> {
    match fs::read_to_string(path) {
        Ok(text) if !text.contains(OWN_KUBECONFIG) => bail!(
            "--kubeconfig {}: exists and is not a sandbox's; name another file",
            path.display()
        ),
        Ok(text) if leads_to_somebody(&text) => bail!(
            "--kubeconfig {}: is that of a sandbox that still runs; name another file",
            path.display()
        ),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Whether somebody listens where a sandbox's kubeconfig leads to.
fn leads_to_somebody(kubeconfig: &str) -> bool {
    let server = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("server: https://"));
    let address = server.and_then(|server| server.parse::<SocketAddr>().ok());
    address.is_some_and(|address| TcpStream::connect_timeout(&address, REACHABLE).is_ok())
}

/// Installs what the operator needs beside the CRD: its namespace, account and RBAC.
async fn install(client: &Client) -> anyhow::Result<()> {
    let files = manifests::files();
    let file = |path: &str| files.get(path).cloned().unwrap_or_default();
    create::<Namespace>(Api::all(client.clone()), &file("manager/namespace.yaml")).await?;
    let accounts = Api::namespaced(client.clone(), manifests::NAMESPACE);
    create::<ServiceAccount>(accounts, &file("rbac/service_account.yaml")).await?;
    create::<ClusterRole>(Api::all(client.clone()), &file("rbac/cluster_role.yaml")).await?;
    let bindings = Api::all(client.clone());
    create::<ClusterRoleBinding>(bindings, &file("rbac/cluster_role_binding.yaml")).await
}

async fn create<K>(api: Api<K>, yaml: &str) -> anyhow::Result<()>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + serde::Serialize + std::fmt::Debug,
{
    let kind = K::kind(&());
    let object: K = serde_saphyr::from_str(yaml).with_context(|| format!("read the {kind}"))?;
    api.create(&PostParams::default(), &object)
        .await
        .with_context(|| format!("install the {kind}"))?;
    Ok(())
}

/// Creates an app, and the namespace that it names.
async fn apply(client: &Client, input: &Input) -> Result<(), kube::Error> {
    let namespace = input.app.namespace().unwrap_or_default();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    if namespaces.get_opt(&namespace).await?.is_none() {
        let metadata = ObjectMeta { name: Some(namespace.clone()), ..ObjectMeta::default() };
        let object = Namespace { metadata, ..Namespace::default() };
        namespaces.create(&PostParams::default(), &object).await?;
    }
    let apps: Api<SimpleApp> = Api::namespaced(client.clone(), &namespace);
    let options = PostParams { field_manager: Some("sandbox".to_owned()), ..PostParams::default() };
    apps.create(&options, &input.app).await?;
    Ok(())
}

/// The server's own words, if it answered.
fn refusal(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error { status.message.clone() } else { error.to_string() }
}

fn follow_apps(client: Client) -> impl Stream<Item = Result<Event<SimpleApp>, watcher::Error>> {
    watcher::watcher(Api::<SimpleApp>::all(client), watcher::Config::default())
        .backoff(WatchBackoff::default())
}

fn key(app: &SimpleApp) -> String {
    format!("{}/{}", app.namespace().unwrap_or_default(), app.name_any())
}

fn note(apps: &mut BTreeMap<String, Followed>, event: Event<SimpleApp>) {
    let now = Instant::now();
    match event {
        Event::Apply(app) | Event::InitApply(app) => {
            apps.entry(key(&app)).or_default().update(Some(app), now);
        }
        Event::Delete(app) => {
            apps.entry(key(&app)).or_default().update(None, now);
        }
        Event::Init | Event::InitDone => {}
    }
}
