//! How the parts of a control plane are.

use serde_json::{Value, json};

use crate::builtin::cells::View;
use crate::builtin::kind::Kind;
use crate::builtin::value::text;

/// `componentstatuses`.
pub(super) static KIND: Kind = Kind {
    deprecation_warning: Some("v1 ComponentStatus is deprecated in v1.19+"),
    cells,
    ..Kind::new("", "componentstatuses")
};

fn cells(view: View<'_>) -> Vec<Value> {
    let mut conditions = view.list("/conditions").iter();
    let healthy = conditions.find(|condition| text(condition, &["type"]) == "Healthy");
    let Some(healthy) = healthy else {
        return view.named(vec![json!("Unknown"), json!(""), json!("")]);
    };
    let is_healthy = text(healthy, &["status"]) == "True";
    view.named(vec![
        json!(if is_healthy { "Healthy" } else { "Unhealthy" }),
        json!(text(healthy, &["message"])),
        json!(text(healthy, &["error"])),
    ])
}
