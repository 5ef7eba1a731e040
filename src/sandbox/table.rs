//! The table of the sandbox: what `kubectl get simpleapp` shows.

use std::fmt::Write;

use jiff::Timestamp;
use kube::ResourceExt;

use crate::api::simpleapp::SimpleApp;

/// Column titles: those of the CRD, after the name.
const TITLES: [&str; 8] =
    ["NAMESPACE", "NAME", "IMAGE", "REPLICAS", "READY", "PHASE", "URL", "AGE"];

/// One line of the table, without the age, which changes by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    cells: [String; 7],
    created: Option<Timestamp>,
}

impl Row {
    /// The row of an app.
    pub(super) fn of(app: &SimpleApp) -> Self {
        let status = app.status.clone().unwrap_or_default();
        let phase = status.phase.map(|phase| format!("{phase:?}")).unwrap_or_default();
        Self {
            cells: [
                app.namespace().unwrap_or_default(),
                app.name_any(),
                app.spec.image.clone(),
                app.spec.replicas.to_string(),
                app.status.as_ref().map(|s| s.ready_replicas.to_string()).unwrap_or_default(),
                phase,
                status.url.unwrap_or_default(),
            ],
            created: app.metadata.creation_timestamp.as_ref().map(|time| time.0),
        }
    }

    fn cells(&self, now: Timestamp) -> Vec<String> {
        let age = self.created.map(|created| age(created, now)).unwrap_or_default();
        self.cells.iter().cloned().chain([age]).collect()
    }
}

/// An age as kubectl shows it: seconds up to two minutes, then minutes, hours, days.
fn age(created: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(created).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// The lines of the table, titles first, columns as wide as their widest cell.
pub(super) fn lines(rows: &[Row], now: Timestamp) -> Vec<String> {
    let lines: Vec<Vec<String>> = std::iter::once(TITLES.map(str::to_owned).to_vec())
        .chain(rows.iter().map(|row| row.cells(now)))
        .collect();
    let widths: Vec<usize> = (0..TITLES.len())
        .map(|column| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        })
        .collect();
    lines.iter().map(|cells| aligned(cells, &widths)).collect()
}

fn aligned(cells: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        // Writing to a String cannot fail.
        let _ = write!(line, "{cell:<width$}   ");
    }
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn app(name: &str, url: Option<&str>) -> SimpleApp {
        serde_json::from_value(json!({
            "apiVersion": "apps.bootcamp.local/v1", "kind": "SimpleApp",
            "metadata": {
                "name": name, "namespace": "default",
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": { "image": "nginx:1.29", "replicas": 2 },
            "status": { "phase": "Available", "readyReplicas": 2, "url": url },
        }))
        .unwrap()
    }

    #[test]
    fn columns_are_aligned_and_empty_cells_stay_empty() {
        let rows = [app("web", None), app("all-fields", Some("http://a.example.com"))];
        let rows: Vec<Row> = rows.iter().map(Row::of).collect();
        let now = "2026-01-01T00:03:00Z".parse().unwrap();
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots/sandbox"));
        settings.set_prepend_module_to_snapshot(false);
        settings.bind(|| insta::assert_snapshot!("table", lines(&rows, now).join("\n")));
    }

    #[test]
    fn ages_grow_coarser() {
        let created: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for (now, expected) in [
            ("2026-01-01T00:01:59Z", "119s"),
            ("2026-01-01T00:02:00Z", "2m"),
            ("2026-01-01T03:00:00Z", "3h"),
            ("2026-01-05T00:00:00Z", "4d"),
        ] {
            assert_eq!(age(created, now.parse().unwrap()), expected);
        }
    }
}
