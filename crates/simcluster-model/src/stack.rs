//! A larger stack for work that recurses deeply.

use std::io;

/// Enough for the deepest text that a parser takes here, in a debug build.
const BYTES: usize = 32 * 1024 * 1024;

/// Does some work on a stack of its own. The error is that of a machine which has no thread left.
pub(crate) fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(BYTES).spawn_scoped(scope, work)?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
