//! Arguments, and what they come to mean.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Parser as _;
use simcluster::controllers::Kind;

use super::arguments::{Arguments, Command};
use super::config::{Config, RequestLogTarget};

fn config(arguments: &[&str]) -> Result<Config, String> {
    let all = ["simcluster", "serve"].iter().chain(arguments);
    let Command::Serve(serve) = Arguments::try_parse_from(all).map_err(|e| e.to_string())?.command;
    Config::try_from(serve).map_err(|error| format!("{:#}", anyhow::Error::from(error)))
}

fn all_but(kinds: &[Kind]) -> BTreeSet<Kind> {
    Kind::all().into_iter().filter(|kind| !kinds.contains(kind)).collect()
}

#[test]
fn nothing_has_to_be_said() {
    let config = config(&[]).unwrap();
    assert_eq!(config.kubeconfig, None);
    assert_eq!(config.controllers, Kind::all());
    assert_eq!(config.service_network.to_string(), "10.0.0.0/16");
    assert_eq!(config.listen, "127.0.0.1:0");
    assert_eq!(config.disabled_admission, BTreeSet::new());
    assert_eq!(config.request_log, None);
}

#[track_caller]
fn check_controllers(list: &str, expected: &BTreeSet<Kind>) {
    let found = config(&[&format!("--controllers={list}")]).unwrap().controllers;
    assert_eq!(found, *expected, "{list}");
}

#[test]
fn controllers_are_named_as_kube_controller_manager_names_them() {
    check_controllers("*", &Kind::all());
    check_controllers("*,-kubelet", &all_but(&[Kind::Kubelet]));
    check_controllers("-deployment,*,-scheduler", &all_but(&[Kind::Deployment, Kind::Scheduler]));
    check_controllers("deployment,replicaset-controller", &BTreeSet::from([
        Kind::Deployment,
        Kind::ReplicaSet,
    ]));
    check_controllers("*,-garbage-collector-controller", &all_but(&[Kind::Garbage]));
    check_controllers("*,-job-controller,-nodeipam", &Kind::all());
    check_controllers("-namespace", &BTreeSet::new());
    check_controllers("", &BTreeSet::new());
    let unknown = config(&["--controllers=*,-kublet"]).unwrap_err();
    assert!(unknown.starts_with("--controllers: \"kublet\" is not in the list of known"), "{unknown}");
    assert!(unknown.contains("deployment-controller"), "{unknown}");
    let unknown = config(&["--controllers=job"]).unwrap_err();
    assert!(unknown.contains("\"job\" is not in the list"), "{unknown}");
    assert_eq!(config(&["--no-controllers"]).unwrap().controllers, BTreeSet::new());
    assert!(config(&["--no-controllers", "--controllers=*"]).is_err());
}

#[test]
fn admission_plugins_are_named_as_kube_apiserver_names_them() {
    let config = |list: &str| config(&[&format!("--disable-admission-plugins={list}")]);
    let found = config("ServiceAccount,Priority").unwrap().disabled_admission;
    assert_eq!(found, BTreeSet::from(["Priority", "ServiceAccount"].map(str::to_owned)));
    let unknown = config("serviceaccount").unwrap_err();
    assert!(unknown.contains("plugin \"serviceaccount\" is unknown"), "{unknown}");
    assert!(unknown.contains("NamespaceLifecycle"), "{unknown}");
}

#[test]
fn networks_are_checked() {
    let config = |network: &str| config(&[&format!("--service-cluster-ip-range={network}")]);
    assert_eq!(config("10.96.0.0/12").unwrap().service_network.to_string(), "10.96.0.0/12");
    let wrong = config("10.96.0.0").unwrap_err();
    assert!(wrong.starts_with("--service-cluster-ip-range: \"10.96.0.0\" is no IPv4"), "{wrong}");
}

#[test]
fn requests_are_written_to_a_file_or_to_standard_output() {
    let config = |target: &str| config(&["--request-log", target]).unwrap().request_log;
    assert_eq!(config("-"), Some(RequestLogTarget::Stdout));
    assert_eq!(config("a.log"), Some(RequestLogTarget::File(PathBuf::from("a.log"))));
}
