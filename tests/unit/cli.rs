//! What may be typed.

use std::time::Duration;

use clap::{CommandFactory, Parser};
use simpleapp_operator::cli::{Cli, Command, RunArgs};

fn parse(arguments: &[&str]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once(&"simpleapp-operator").chain(arguments))
}

#[track_caller]
fn run(arguments: &[&str]) -> RunArgs {
    let arguments: Vec<&str> = std::iter::once(&"run").chain(arguments).copied().collect();
    match parse(&arguments).unwrap().command {
        Command::Run(args) => args,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn defaults() {
    let args = run(&[]);
    assert!(args.watch_namespace.is_empty());
    assert_eq!(args.cleanup_timeout, Duration::from_mins(5));
    assert!(args.log_level.starts_with("info,"));
    assert!(!args.dry_run);
}

#[test]
fn flags() {
    let args = run(&[
        "--watch-namespace=a",
        "--watch-namespace=b,c",
        "--cleanup-timeout=1h30m",
        "--concurrency=1",
        "--dry-run",
    ]);
    assert_eq!(args.watch_namespace, ["a", "b", "c"]);
    assert_eq!(args.cleanup_timeout, Duration::from_mins(90));
    assert_eq!(args.concurrency, 1);
    assert!(args.dry_run);
}

#[test]
fn usage_errors_exit_with_2() {
    let wrong: [&[&str]; 9] = [
        &["run", "--concurrency=0"],
        &["run", "--cleanup-timeout=-5m"],
        &["run", "--cleanup-timeout=soon"],
        &["run", "--watch-namespace=Shop"],
        &["run", "--operator-namespace="],
        &["run", "--log-format=xml"],
        &["run", "--log-level==="],
        &["run", "--leader-elect"],
        &["fly"],
    ];
    for arguments in wrong {
        let error = parse(arguments).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{arguments:?}");
    }
}

#[test]
fn every_flag_of_run_can_come_from_the_environment() {
    let command = Cli::command();
    let run = command.find_subcommand("run").unwrap();
    for flag in run.get_arguments().filter(|flag| flag.get_id() != "help") {
        assert!(flag.get_env().is_some(), "{}", flag.get_id());
    }
}

#[test]
fn a_log_level_that_is_none_is_refused() {
    for good in ["off", "debug", "info,kube=debug", "simpleapp_operator=trace"] {
        assert_eq!(run(&["--log-level", good]).log_level, good);
    }
    for bad in ["infoo", "info,zzz", "kube=loud"] {
        assert!(parse(&["run", "--log-level", bad]).is_err(), "{bad}");
    }
}
