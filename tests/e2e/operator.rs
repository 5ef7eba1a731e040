//! The operator's binary as a process.

use std::process::{Child, Command, Stdio};

use serde_json::Value;
use simcluster::env::Cluster;

const BINARY: &str = env!("CARGO_BIN_EXE_simpleapp-operator");

/// The CRD as the program prints it.
pub(crate) fn crd() -> Value {
    let output = Command::new(BINARY).arg("manifests").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(str::from_utf8(&output.stdout).unwrap()).unwrap();
    let is_crd = |document: &Value| document["kind"] == "CustomResourceDefinition";
    documents.into_iter().find(is_crd).expect("the manifests hold the CRD")
}

/// A running operator; it ends when this is dropped, and when the test is killed.
pub(crate) struct Operator(Child);

impl Operator {
    /// Starts it as the cluster's admin, for one namespace.
    pub(crate) fn start(cluster: &Cluster, namespace: &str) -> Self {
        // The shell's standard input ends with the test, whatever ends that.
        let script = r#""$@" </dev/null & operator=$!; read -r _; kill "$operator"; wait"#;
        let child = Command::new("sh")
            .args(["-c", script, "operator", BINARY, "run", "--watch-namespace", namespace])
            .env("KUBECONFIG", cluster.kubeconfig().expect("the test needs sockets"))
            .env("LOG_LEVEL", "warn")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}
