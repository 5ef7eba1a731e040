//! The answer to an apply that would change what others own.

use super::managers::Writer;
use super::path::{PathElement, shown_path};
use super::set::FieldSet;
use crate::error::{ApiError, Cause, Details};

/// The fields that an apply would take from others, by owner in the order of their identities.
#[derive(Debug)]
pub(super) struct Conflicts(Vec<(Writer, Vec<Vec<PathElement>>)>);

impl Conflicts {
    /// From the contested fields of each owner.
    pub(super) fn new(contested: Vec<(Writer, FieldSet)>) -> Self {
        let paths = |fields: &FieldSet| {
            let mut paths = Vec::new();
            fields.for_each(&mut |path| paths.push(path.to_vec()));
            paths
        };
        Self(contested.into_iter().map(|(writer, fields)| (writer, paths(&fields))).collect())
    }

    /// Drops the conflicts over fields of the set.
    pub(super) fn allow(&mut self, fields: &FieldSet) {
        for (_, paths) in &mut self.0 {
            paths.retain(|path| !fields.has_path(path));
        }
        self.0.retain(|(_, paths)| !paths.is_empty());
    }

    /// Whether no conflict is left.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The 409. A field of two owners counts twice.
    pub(super) fn into_error(self) -> ApiError {
        let causes: Vec<Cause> = self
            .0
            .iter()
            .flat_map(|(writer, paths)| {
                paths.iter().map(|path| Cause {
                    reason: "FieldManagerConflict".to_owned(),
                    message: format!("conflict with {}", writer.shown()),
                    field: shown_path(path),
                })
            })
            .collect();
        let message = match causes.as_slice() {
            [only] => format!("Apply failed with 1 conflict: {}: {}", only.message, only.field),
            several => {
                let lines: Vec<String> = self.0.iter().map(shown_owner).collect();
                format!("Apply failed with {} conflicts: {}", several.len(), lines.join("\n"))
            }
        };
        ApiError::new(409, "Conflict", message)
            .with_details(Details { causes, ..Details::default() })
    }
}

fn shown_owner((writer, paths): &(Writer, Vec<Vec<PathElement>>)) -> String {
    let mut lines = vec![format!("conflicts with {}:", writer.shown())];
    lines.extend(paths.iter().map(|path| format!("- {}", shown_path(path))));
    lines.join("\n")
}
