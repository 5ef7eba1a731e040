//! Controller revisions: states that DaemonSets and StatefulSets can go back to.

use serde_json::{Value, json};

use crate::builtin::cells::View;
use crate::builtin::check::Faults;
use crate::builtin::kind::Kind;
use crate::builtin::value::{at, flag, int, items, text};
use crate::field::FieldError;

/// `controllerrevisions`.
pub(super) static KIND: Kind = Kind {
    validate,
    validate_update: Some(validate_update),
    cells,
    ..Kind::new("apps", "controllerrevisions")
};

fn validate(revision: &Value) -> Vec<FieldError> {
    let mut faults = number(revision);
    match at(revision, &["data"]) {
        None => faults.required("data", "data is mandatory"),
        Some(Value::Object(_)) => {}
        Some(_) => faults.required("data", "data must be a valid JSON object"),
    }
    faults.0
}

fn validate_update(revision: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = number(revision);
    faults.immutable("data", at(revision, &["data"]), at(old, &["data"]));
    faults.0
}

fn number(revision: &Value) -> Faults {
    let mut faults = Faults::default();
    faults.not_negative("revision", int(revision, &["revision"]));
    faults
}

fn cells(view: View<'_>) -> Vec<Value> {
    let owners = items(view.object, &["metadata", "ownerReferences"]);
    let owner = owners.iter().find(|one| flag(one, &["controller"]));
    let shown = owner.map_or_else(
        || "<none>".to_owned(),
        |owner| {
            let kind = text(owner, &["kind"]).to_lowercase();
            let group = text(owner, &["apiVersion"]).split_once('/').map_or("", |(group, _)| group);
            let dot = if group.is_empty() { "" } else { "." };
            format!("{kind}{dot}{group}/{}", text(owner, &["name"]))
        },
    );
    view.named(vec![
        json!(shown),
        json!(int(view.object, &["revision"]).unwrap_or_default()),
        view.age(),
    ])
}
