//! A real control plane: etcd, kube-apiserver and, if it is there, kube-controller-manager, from the
//! folder that `KUBEBUILDER_ASSETS` names (the convention of envtest). simcluster's own controllers are
//! attached for the rest: scheduler and kubelet when a test needs Pods that run, all others where there is no
//! kube-controller-manager.
//!
//! One serves all tests of a binary. Its programs live in a process group of their own under a small
//! shell that ends them when this process is gone, whether it returns, panics or is killed: the
//! shell's standard input ends then. See `supervise.sh`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};

use super::attach::attach;
use super::{Real, audit};
use crate::env::cluster::random_hex;
use crate::env::{Backend, Error, POD_KINDS};
use simcluster_controllers::Kind;
use simcluster_server::auth::User;
use simcluster_server::trace::Request;

/// How long etcd and kube-apiserver may take to become ready; on two busy cores it is about 6 s.
const START: Duration = Duration::from_secs(90);
/// Ports are chosen free and taken a moment later: another process can be faster.
const STARTS_MAX: usize = 3;
/// The pause between two looks at a real cluster.
const PAUSE: Duration = Duration::from_millis(50);

/// A running control plane; it ends when the process does.
#[derive(Debug)]
pub(super) struct ControlPlane {
    dir: PathBuf,
    kubeconfig: Value,
    supervisor: Mutex<ChildStdin>,
    pods: OnceCell<Result<(), Error>>,
}

impl ControlPlane {
    /// The control plane of this process, started when it is first asked for: with controllers, or
    /// without, so that nobody but the tests acts on it.
    pub(super) async fn shared(controllers: bool) -> Result<&'static Self, Error> {
        static WITH: OnceCell<Result<ControlPlane, Error>> = OnceCell::const_new();
        static WITHOUT: OnceCell<Result<ControlPlane, Error>> = OnceCell::const_new();
        let shared = if controllers { &WITH } else { &WITHOUT };
        shared.get_or_init(|| Self::start(controllers)).await.as_ref().map_err(Clone::clone)
    }

    async fn start(controllers: bool) -> Result<Self, Error> {
        let assets = assets()?;
        let mut failure = Error::new("the control plane was never started");
        for _ in 0..STARTS_MAX {
            match Self::start_once(&assets, controllers).await {
                Ok(started) => return Ok(started),
                Err(error) => failure = error,
            }
            if !failure.to_string().contains("address already in use") {
                break;
            }
        }
        Err(failure)
    }

    async fn start_once(assets: &Path, controllers: bool) -> Result<Self, Error> {
        let dir = std::env::temp_dir().join(format!("control-plane-{}", random_hex(8)?));
        let fail = |what: &str, error: &dyn std::fmt::Display| {
            Error::new(format!("{what} in {}: {error}", dir.display()))
        };
        fs::create_dir_all(&dir).map_err(|error| fail("the state cannot be kept", &error))?;
        let [etcd, peer, port, manager] = free_ports()?;
        let files = Files { dir: &dir, assets, etcd, peer, port, manager };
        let kubeconfig = files.write().map_err(|error| fail("cannot prepare", &error))?;

        let supervisor = Command::new("sh")
            .args(["-c", include_str!("supervise.sh"), "supervise"])
            .arg(&dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|error| fail("sh cannot be run", &error))?;
        let supervisor = supervisor.stdin.expect("standard input was asked for");
        let started = Self {
            kubeconfig,
            supervisor: Mutex::new(supervisor),
            pods: OnceCell::new(),
            dir: dir.clone(),
        };
        started.tell("start etcd");
        started.tell("start kube-apiserver");
        started.wait_until_ready().await?;
        if !controllers {
            return Ok(started);
        }
        if assets.join("kube-controller-manager").is_file() {
            started.tell("start kube-controller-manager");
        } else {
            let mut kinds = Kind::all();
            kinds.retain(|kind| !POD_KINDS.contains(kind));
            started.attach(kinds).await?;
        }
        Ok(started)
    }

    /// Schedules and runs Pods from now on. Nobody does until a test needs it.
    pub(super) async fn run_pods(&self) -> Result<(), Error> {
        let start = || self.attach(BTreeSet::from(POD_KINDS));
        self.pods.get_or_init(start).await.clone()
    }

    /// Runs controllers of ours for as long as the process lives.
    async fn attach(&self, kinds: BTreeSet<Kind>) -> Result<(), Error> {
        let ca = fs::read_to_string(self.dir.join("ca.crt")).map_err(Error::new)?;
        attach(self.config(None).await?, kinds, ca)
    }

    async fn config(&self, user: Option<&User>) -> Result<kube::Config, Error> {
        let kubeconfig = serde_json::from_value(self.kubeconfig.clone()).map_err(Error::new)?;
        config_of(kubeconfig, user).await
    }

    fn tell(&self, line: &str) {
        let mut supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner);
        // If the shell is gone, so are its programs: whoever needs them finds out.
        drop(supervisor.write_all(format!("{line}\n").as_bytes()));
    }

    async fn wait_until_ready(&self) -> Result<(), Error> {
        let client = kube::Client::try_from(self.config(None).await?).map_err(Error::new)?;
        let deadline = Instant::now() + START;
        loop {
            let request = http::Request::get("/readyz").body(Vec::new()).map_err(Error::new)?;
            if client.request_text(request).await.is_ok() {
                return Ok(());
            }
            let gone = ["etcd", "kube-apiserver"].into_iter().find(|name| self.has_ended(name));
            if gone.is_none() && Instant::now() < deadline {
                sleep(PAUSE).await;
                continue;
            }
            self.tell("keep");
            let what = gone.map_or_else(
                || format!("the control plane was not ready after {} s", START.as_secs()),
                |name| format!("{name} ended"),
            );
            let logs = ["etcd", "kube-apiserver"].map(|name| self.log_end(name));
            return Err(Error::new(format!("{what}; {}\n{}", self.dir.display(), logs.concat())));
        }
    }

    /// Whether a program ran and runs no more.
    fn has_ended(&self, name: &str) -> bool {
        let Ok(pid) = fs::read_to_string(self.dir.join(format!("{name}.pid"))) else {
            return false;
        };
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        // The state follows the name in brackets; a zombie has ended.
        stat.map_or(true, |stat| stat.rsplit(')').next().is_some_and(|rest| rest.contains('Z')))
    }

    fn log_end(&self, name: &str) -> String {
        const LINES: usize = 5;
        let text = fs::read_to_string(self.dir.join(format!("{name}.log"))).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let end = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
        format!("{name}.log ends:\n{}\n", end.join("\n"))
    }
}

impl Real for &'static ControlPlane {
    fn backend(&self) -> Backend {
        Backend::ControlPlane
    }

    fn client<'a>(&'a self, user: Option<&'a User>) -> BoxFuture<'a, Result<kube::Client, Error>> {
        Box::pin(
            async move { kube::Client::try_from(self.config(user).await?).map_err(Error::new) },
        )
    }

    fn kubeconfig(&self) -> OsString {
        self.dir.join("kubeconfig").into_os_string()
    }

    /// Those that were answered, in the order in which the audit log has them.
    fn requests(&self) -> Result<Vec<Request>, Error> {
        let log = self.dir.join("audit.log");
        let text = fs::read_to_string(&log)
            .map_err(|error| Error::new(format!("{}: {error}", log.display())))?;
        Ok(audit::requests(&text))
    }

    fn outlives_tests(&self) -> bool {
        false
    }

    fn keep_logs(&self) -> Option<PathBuf> {
        self.tell("keep");
        Some(self.dir.clone())
    }
}

/// How to reach a cluster, in the name of another user if one is given, and without retries: a test
/// sees what the server answers.
pub(super) async fn config_of(
    kubeconfig: Kubeconfig,
    user: Option<&User>,
) -> Result<kube::Config, Error> {
    let options = KubeConfigOptions::default();
    let mut config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(Error::new)?;
    config.default_retry = false;
    if let Some(user) = user {
        config.auth_info.impersonate = Some(user.name.clone());
        config.auth_info.impersonate_groups = Some(user.groups.clone());
    }
    Ok(config)
}

/// The folder with the programs.
fn assets() -> Result<PathBuf, Error> {
    let how = "hack/kube-assets/build builds them and prints the folder";
    let folder = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from).ok_or_else(|| {
        Error::new(format!("KUBEBUILDER_ASSETS does not say where the programs are; {how}"))
    })?;
    for name in ["etcd", "kube-apiserver"] {
        if !folder.join(name).is_file() {
            let place = folder.display();
            return Err(Error::new(format!("{place} (KUBEBUILDER_ASSETS) has no {name}; {how}")));
        }
    }
    Ok(folder)
}

fn free_ports() -> Result<[u16; 4], Error> {
    // All are held until all are chosen, so that they differ.
    let listen = |_| TcpListener::bind(("127.0.0.1", 0));
    let held: Vec<TcpListener> =
        (0..4).map(listen).collect::<Result<_, _>>().map_err(Error::new)?;
    let mut ports = [0; 4];
    for (port, listener) in ports.iter_mut().zip(&held) {
        *port = listener.local_addr().map_err(Error::new)?.port();
    }
    Ok(ports)
}

/// What the programs read at their start.
struct Files<'a> {
    dir: &'a Path,
    assets: &'a Path,
    etcd: u16,
    peer: u16,
    port: u16,
    manager: u16,
}

impl Files<'_> {
    /// Writes keys, policy, tokens, the kubeconfig and the start lines; returns the kubeconfig.
    fn write(&self) -> Result<Value, Box<dyn std::error::Error>> {
        let token = random_hex(16)?;
        self.put("tokens.csv", &format!("{token},admin,admin,system:masters\n"))?;
        let key = KeyPair::generate()?;
        self.put("sa.key", &key.serialize_pem())?;
        self.put("sa.pub", &key.public_key_pem())?;
        let ca = self.write_certificates()?;
        let policy = json!({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy",
            "omitStages": ["RequestReceived"], "rules": [{ "level": "Metadata" }],
        });
        self.put("audit-policy.json", &policy.to_string())?;
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "control-plane",
            "contexts": [{
                "name": "control-plane",
                "context": { "cluster": "control-plane", "user": "admin" },
            }],
            "clusters": [{
                "name": "control-plane",
                "cluster": {
                    "server": format!("https://127.0.0.1:{}", self.port),
                    "certificate-authority-data": base64(&ca),
                },
            }],
            "users": [{ "name": "admin", "user": { "token": token } }],
        });
        self.put("kubeconfig", &kubeconfig.to_string())?;
        self.put_run("etcd", &self.etcd_flags())?;
        self.put_run("kube-apiserver", &self.apiserver_flags())?;
        self.put_run("kube-controller-manager", &self.manager_flags())?;
        Ok(kubeconfig)
    }

    /// An authority of its own and the server's certificate by it; returns the authority's.
    fn write_certificates(&self) -> Result<String, Box<dyn std::error::Error>> {
        let mut ca = CertificateParams::default();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.distinguished_name.push(DnType::CommonName, "control-plane");
        let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate()?)?;
        let key = KeyPair::generate()?;
        let names = ["127.0.0.1", "localhost"].map(str::to_owned);
        let certificate = CertificateParams::new(names)?.signed_by(&key, &ca)?;
        self.put("server.crt", &certificate.pem())?;
        self.put("server.key", &key.serialize_pem())?;
        self.put("ca.crt", &ca.pem())?;
        Ok(ca.pem())
    }

    fn etcd_flags(&self) -> Vec<String> {
        let clients = format!("http://127.0.0.1:{}", self.etcd);
        let peers = format!("http://127.0.0.1:{}", self.peer);
        vec![
            format!("--data-dir={}", self.path("etcd")),
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
            format!("--listen-client-urls={clients}"),
            format!("--advertise-client-urls={clients}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=default={peers}"),
        ]
    }

    fn apiserver_flags(&self) -> Vec<String> {
        vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.etcd),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.port),
            format!("--tls-cert-file={}", self.path("server.crt")),
            format!("--tls-private-key-file={}", self.path("server.key")),
            format!("--token-auth-file={}", self.path("tokens.csv")),
            "--authorization-mode=RBAC".to_owned(),
            "--allow-privileged=true".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", self.path("sa.pub")),
            format!("--service-account-signing-key-file={}", self.path("sa.key")),
            // Written before the answer is complete, so that a test may count what was answered.
            "--audit-log-mode=blocking".to_owned(),
            format!("--audit-log-path={}", self.path("audit.log")),
            format!("--audit-policy-file={}", self.path("audit-policy.json")),
            // Tests of one binary come all at once.
            "--enable-priority-and-fairness=false".to_owned(),
        ]
    }

    fn manager_flags(&self) -> Vec<String> {
        let kubeconfig = self.path("kubeconfig");
        vec![
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.manager),
            format!("--cert-dir={}", self.path("certs")),
            "--leader-elect=false".to_owned(),
            format!("--root-ca-file={}", self.path("ca.crt")),
            format!("--service-account-private-key-file={}", self.path("sa.key")),
            "--use-service-account-credentials=false".to_owned(),
            // Its usual 20 requests a second are few for all tests of a binary at once.
            "--kube-api-qps=1000".to_owned(),
            "--kube-api-burst=1000".to_owned(),
            // There are no machines behind the nodes here.
            "--controllers=*,-nodeipam,-nodelifecycle".to_owned(),
        ]
    }

    fn path(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    fn put(&self, name: &str, text: &str) -> std::io::Result<()> {
        fs::write(self.dir.join(name), text)
    }

    fn put_run(&self, name: &str, flags: &[String]) -> std::io::Result<()> {
        let program = self.assets.join(name).display().to_string();
        let words: Vec<String> =
            std::iter::once(&program).chain(flags).map(|word| quoted(word)).collect();
        self.put(&format!("{name}.run"), &format!("exec {}\n", words.join(" ")))
    }
}

/// A word that the shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}
