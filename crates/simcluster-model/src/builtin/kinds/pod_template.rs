//! Pod templates as objects of their own.

use serde_json::{Value, json};

use crate::builtin::cells::{View, labels_text};
use crate::builtin::check::Faults;
use crate::builtin::kind::{Generation, Kind};
use crate::builtin::pod_template;
use crate::builtin::value::at;
use crate::field::FieldError;

/// `podtemplates`.
pub(super) static KIND: Kind = Kind {
    generation: Generation::AllButMetadata,
    returns_deleted_object: true,
    validate,
    warnings,
    cells,
    ..Kind::new("", "podtemplates")
};

fn validate(object: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let template = at(object, &["template"]).unwrap_or(&Value::Null);
    pod_template::validate(template, "template", &mut faults);
    faults.0
}

fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_some_and(|old| !KIND.generation.rises(object, old)) {
        return Vec::new();
    }
    pod_template::warnings(at(object, &["template"]).unwrap_or(&Value::Null), "template")
}

fn cells(view: View<'_>) -> Vec<Value> {
    let containers = "/template/spec/containers";
    view.named(vec![
        view.joined(containers, "name"),
        view.joined(containers, "image"),
        json!(labels_text(view.object.pointer("/template/metadata/labels"))),
    ])
}
