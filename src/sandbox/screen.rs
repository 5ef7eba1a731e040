//! Where the sandbox shows its table: redrawn in place on a terminal, a line for each change
//! elsewhere.

use std::io::{self, IsTerminal, Write};

use jiff::Timestamp;

use super::table::{self, Row};

/// The output of the sandbox.
pub(super) struct Screen {
    in_place: bool,
    /// Lines of the table on the terminal now.
    drawn_lines: usize,
    shown: Vec<Row>,
}

impl Screen {
    /// Standard output; `in_place` is given up where other lines come between or it is no terminal.
    pub(super) fn new(in_place: bool) -> Self {
        Self { in_place: in_place && io::stdout().is_terminal(), drawn_lines: 0, shown: Vec::new() }
    }

    /// Shows the rows: all of them on a terminal, else those that changed.
    pub(super) fn show(&mut self, rows: Vec<Row>, now: Timestamp) -> io::Result<()> {
        if self.in_place {
            let text = table::render(&rows, now);
            let mut out = io::stdout().lock();
            if self.drawn_lines > 0 {
                write!(out, "\x1b[{}A\x1b[J", self.drawn_lines)?;
            }
            // Without line wrap a long line takes one line, as the way back up expects.
            write!(out, "\x1b[?7l{text}\x1b[?7h")?;
            out.flush()?;
            self.drawn_lines = text.lines().count();
        } else {
            let first = self.shown.is_empty();
            let changed: Vec<Row> =
                rows.iter().filter(|row| !self.shown.contains(row)).cloned().collect();
            if !changed.is_empty() {
                let text = table::render(&changed, now);
                let text = if first { &*text } else { text.split_once('\n').map_or("", |s| s.1) };
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes())?;
                out.flush()?;
            }
        }
        self.shown = rows;
        Ok(())
    }

    /// Whether ages are redrawn as they grow.
    pub(super) fn is_live(&self) -> bool {
        self.in_place
    }

    /// Prints a line below the table.
    pub(super) fn say(&mut self, text: &str) -> io::Result<()> {
        self.drawn_lines = 0;
        writeln!(io::stdout().lock(), "{text}")
    }
}
