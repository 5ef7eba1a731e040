//! Leases.

use serde_json::{Value, json};

use crate::builtin::check::Faults;
use crate::builtin::kind::Kind;
use crate::builtin::value::int;
use crate::field::FieldError;
use crate::object::{self, as_map};

/// `leases`.
pub(super) static KIND: Kind = Kind {
    allow_unconditional_update: false,
    allow_create_on_update: true,
    prepare_for_create: drop_election,
    prepare_for_update: |_, _, lease, _| drop_election(lease),
    knows_finalizers: false,
    validate,
    cells: |view| view.named(vec![view.text("/spec/holderIdentity"), view.age()]),
    ..Kind::new("coordination.k8s.io", "leases")
};

/// Leases have no fields of coordinated leader election, which is off.
fn drop_election(lease: &mut Value) {
    let spec = as_map(object::child(lease, "spec"));
    spec.remove("strategy");
    spec.remove("preferredHolder");
}

fn validate(lease: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let field = "spec.leaseDurationSeconds";
    if let Some(seconds) = int(lease, &["spec", "leaseDurationSeconds"]).filter(|one| *one <= 0) {
        faults.invalid(field, &json!(seconds), "must be greater than 0");
    }
    faults.not_negative("spec.leaseTransitions", int(lease, &["spec", "leaseTransitions"]));
    faults.0
}
