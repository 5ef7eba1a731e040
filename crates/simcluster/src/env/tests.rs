//! What of the environments can be tested without a cluster.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::kubeconfig::may_touch;
use super::{Backend, Needs, audit};

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
fn only_clusters_for_tests_are_touched() {
    assert!(may_touch("kind-test", None));
    assert!(may_touch("mine", Some("mine")));
    assert!(!may_touch("mine", None));
    assert!(!may_touch("production", Some("mine")));
    assert!(!may_touch("not-kind-test", None));
    assert!(!may_touch("", Some("")));
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

#[test]
fn the_audit_log_is_read_as_a_record_of_requests() {
    let log = concat!(
        r#"{"stage":"ResponseComplete","requestURI":"/apis/apps/v1/namespaces/a/deployments/web?fieldManager=x","verb":"patch","user":{"username":"admin"},"impersonatedUser":{"username":"op"},"objectRef":{"resource":"deployments","namespace":"a","name":"web","apiGroup":"apps","apiVersion":"v1"},"responseStatus":{"metadata":{},"code":201},"stageTimestamp":"2026-01-01T00:00:00.123456Z"}"#,
        "\n",
        r#"{"stage":"ResponseStarted","requestURI":"/api/v1/pods?watch=1","verb":"watch","user":{"username":"op"},"objectRef":{"resource":"pods","apiVersion":"v1"},"responseStatus":{"metadata":{},"code":200},"stageTimestamp":"2026-01-01T00:00:01.000000Z"}"#,
        "\n",
        r#"{"stage":"ResponseComplete","requestURI":"/api/v1/pods?watch=1","verb":"watch","user":{"username":"op"},"objectRef":{"resource":"pods","apiVersion":"v1"},"responseStatus":{"metadata":{},"code":200},"stageTimestamp":"2026-01-01T00:00:02.000000Z"}"#,
        "\n",
        r#"{"stage":"ResponseComplete","requestURI":"/api/v1/po"#,
    );
    let requests = audit::requests(log);
    assert_eq!(requests.len(), 2);
    let first = &requests[0];
    assert_eq!((first.user.as_str(), first.verb.as_str(), first.code), ("op", "patch", 201));
    assert_eq!((first.group.as_str(), first.resource.as_str()), ("apps", "deployments"));
    assert_eq!((first.namespace.as_str(), first.name.as_str()), ("a", "web"));
    assert!(first.is_write());
    assert_eq!((requests[1].verb.as_str(), requests[1].resource.as_str()), ("watch", "pods"));
    assert!(!requests[1].is_write());
}
