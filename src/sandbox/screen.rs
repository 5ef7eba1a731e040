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
        let lines = table::lines(&rows, now);
        let mut out = io::stdout().lock();
        if self.in_place {
            if self.drawn_lines > 0 {
                write!(out, "\x1b[{}A\x1b[J", self.drawn_lines)?;
            }
            // Without line wrap a long line takes one line, as the way back up expects.
            writeln!(out, "\x1b[?7l{}\x1b[?7h", lines.join("\n"))?;
            self.drawn_lines = lines.len();
        } else {
            let changed = rows.iter().map(|row| !self.shown.contains(row));
            let titles = self.shown.is_empty() && !rows.is_empty();
            for (line, wanted) in lines.iter().zip(std::iter::once(titles).chain(changed)) {
                if wanted {
                    writeln!(out, "{line}")?;
                }
            }
        }
        out.flush()?;
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
