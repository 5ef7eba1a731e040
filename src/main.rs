//! Entry point: arguments, exit code.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::Parser;
use simpleapp_operator::cli::{self, Cli};

fn main() -> ExitCode {
    // A usage error ends the program here, with exit code 2.
    let cli = Cli::parse();
    rustls::crypto::ring::default_provider()
        .install_default()
        .expect("nothing installed a provider before main");
    match cli::execute(cli) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
