//! What of the real clusters can be tested without one.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::audit;
use super::kubeconfig::may_touch;

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
