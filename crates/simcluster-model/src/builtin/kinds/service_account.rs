//! Service accounts.

use serde_json::{Value, json};

use crate::builtin::kind::Kind;
use crate::builtin::value::{items, text};
use crate::object;

/// `serviceaccounts`.
pub(super) static KIND: Kind = Kind {
    returns_deleted_object: true,
    prepare_for_create: clean_secrets,
    prepare_for_update: |_, _, account, _| clean_secrets(account),
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
