//! What of the environments can be tested without a cluster.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::{Backend, Needs};

#[test]
fn the_backend_is_chosen_by_name() {
    let check = |name: &str, expected: Backend| {
        assert_eq!(Backend::named(name).unwrap(), expected, "{name}");
    };
    check("", Backend::Sim);
    check("sim", Backend::Sim);
    check("control-plane", Backend::ControlPlane);
    check("kubeconfig", Backend::Kubeconfig);
    let error = Backend::named("controlplane").unwrap_err().to_string();
    assert!(error.contains("controlplane is not known"), "{error}");
}

#[test]
fn a_need_that_is_not_met_has_a_reason() {
    let needs = Needs::default().virtual_time();
    assert_eq!(needs.unmet(Backend::Sim), None);
    assert_eq!(needs.unmet(Backend::ControlPlane), Some("its time is real"));
    let needs = Needs::default().pods().requests();
    assert_eq!(needs.unmet(Backend::ControlPlane), None);
    assert!(needs.unmet(Backend::Kubeconfig).unwrap().contains("no record"));
}
