//! Service accounts.

use serde_json::{Value, json};

use crate::builtin::kind::Kind;
use crate::builtin::value::{at, items, text};
use crate::object;

/// `serviceaccounts`.
pub(super) static KIND: Kind = Kind {
    returns_deleted_object: true,
    prepare_for_create: clean_secrets,
    prepare_for_update: |_, _, account, _| clean_secrets(account),
    warnings,
    cells: |view| view.named(vec![view.age()]),
    ..Kind::new("", "serviceaccounts")
};

/// References to secrets keep their names only.
fn clean_secrets(account: &mut Value) {
    let secrets: Vec<Value> = items(account, &["secrets"])
        .iter()
        .map(|secret| match text(secret, &["name"]) {
            "" => json!({}),
            name => json!({ "name": name }),
        })
        .collect();
    if !secrets.is_empty() {
        object::put(account, "secrets", json!(secrets));
    }
}

fn warnings(account: &Value, old: Option<&Value>) -> Vec<String> {
    const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";
    let annotated = |one: &Value| at(one, &["metadata", "annotations", ENFORCE]).is_some();
    let newly = annotated(account) && !old.is_some_and(annotated);
    let warning = newly.then(|| {
        format!(
            "metadata.annotations[{ENFORCE}]: deprecated in v1.32+; prefer separate namespaces to isolate \
             access to mounted secrets"
        )
    });
    warning.into_iter().collect()
}
