//! Entry point: arguments, exit code.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::Parser;
use mimalloc::MiMalloc;
use simpleapp_operator::cli::{self, Cli};

/// Caches of objects are many small pieces of memory, and the usual allocator spends a sixth of all time
/// on them.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // A usage error ends the program here, with exit code 2.
    let cli = Cli::parse();
    rustls::crypto::ring::default_provider()
        .install_default()
        .expect("nothing installed a provider before main");
    match cli::execute(cli) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {}", explain(&error));
            ExitCode::FAILURE
        }
    }
}

/// The error and its causes. Those that an error before them has already said (the client's do)
/// are left out.
fn explain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !text.contains(&cause) {
            let joint = if text.is_empty() { "" } else { ": " };
            text.push_str(joint);
            text.push_str(&cause);
        }
    }
    text
}
