//! Rows that processes print for each other, and the table that is made of them.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;

/// Prints a line.
pub(crate) fn say(text: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{text}").context("standard output is closed")
}

/// Prints a row: CPU time of one of so many.
pub(crate) fn row(what: &str, took: Duration, count: u32) -> anyhow::Result<()> {
    say(&format!("{what} (µs)\t{}", took.as_secs_f64() * 1e6 / f64::from(count)))
}

/// Prints a row: KiB of memory for one of so many.
pub(crate) fn memory_row(what: &str, kib: u64, count: u32) -> anyhow::Result<()> {
    let kib = f64::from(u32::try_from(kib)?);
    say(&format!("{what} (KiB)\t{:.2}", kib / f64::from(count)))
}

/// Columns of rows; the first column says which rows there are.
pub(crate) struct Table {
    title: &'static str,
    columns: Vec<(String, Vec<(String, f64)>)>,
}

impl Table {
    pub(crate) fn new(title: &'static str) -> Self {
        Self { title, columns: Vec::new() }
    }

    pub(crate) fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Adds the rows that this program prints when it is called with these arguments.
    pub(crate) fn measure(
        &mut self,
        name: &str,
        arguments: &[&str],
        cluster: &str,
    ) -> anyhow::Result<()> {
        let output = Command::new(std::env::current_exe()?)
            .args(arguments)
            .env("TEST_CLUSTER", cluster)
            .stderr(Stdio::inherit())
            .output()?;
        anyhow::ensure!(output.status.success(), "measuring {name}: {}", output.status);
        let text = String::from_utf8(output.stdout)?;
        let mut rows = Vec::new();
        for line in text.lines() {
            let (what, number) = line.split_once('\t').context("a line that is no row")?;
            rows.push((what.to_owned(), number.parse()?));
        }
        self.columns.push((name.to_owned(), rows));
        Ok(())
    }

    /// Prints it: of two columns with their ratio.
    pub(crate) fn print(&self) -> anyhow::Result<()> {
        let compares = self.columns.len() == 2;
        let mut head: Vec<String> =
            self.columns.iter().map(|(name, _)| format!("{name:>14}")).collect();
        head.extend(compares.then(|| "  ratio".to_owned()));
        say(&format!("{:<42} {}", self.title, head.join(" ")))?;
        for (what, first) in self.columns.first().into_iter().flat_map(|(_, rows)| rows) {
            let of = |(_, rows): &(String, Vec<(String, f64)>)| {
                rows.iter().find(|(other, _)| other == what).map(|(_, number)| *number)
            };
            let numbers: Vec<Option<f64>> = self.columns.iter().map(of).collect();
            let cell = |number: &Option<f64>| match number {
                Some(number) => format!("{number:>14.2}"),
                None => format!("{:>14}", "-"),
            };
            let mut cells: Vec<String> = numbers.iter().map(cell).collect();
            if let (true, Some(Some(second))) = (compares, numbers.get(1)) {
                cells.push(format!("{:>6.1}x", second / first.max(0.01)));
            }
            say(&format!("{what:<42} {}", cells.join(" ")))?;
        }
        say("")
    }
}
