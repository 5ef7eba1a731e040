//! SIGTERM and SIGINT: the first ends the program in order, the second at once.

use std::{future::Future, io, process};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Exit code of a program that was told twice to stop.
const ABORTED: i32 = 130;

/// Resolves at the first signal. From then on, a second one ends the process.
pub fn on_signal() -> io::Result<impl Future<Output = ()>> {
    let mut signals = Signals {
        terminate: signal(SignalKind::terminate())?,
        interrupt: signal(SignalKind::interrupt())?,
    };
    Ok(async move {
        signals.next().await;
        tracing::info!("stopping: running reconciles may finish; a second signal aborts");
        tokio::spawn(async move {
            signals.next().await;
            process::exit(ABORTED);
        });
    })
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
