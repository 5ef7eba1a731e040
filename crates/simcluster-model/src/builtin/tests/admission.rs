//! What admission asks of Pods and quotas, by itself.

use serde_json::{Value, json};

use crate::builtin::admission::pod_security::{Level, violations};
use crate::builtin::admission::quota::{self, Counted};
use crate::builtin::admission::{self, limits};
use crate::schema::Condition;

fn pod(container: Value) -> Value {
    let mut full = json!({ "name": "c", "image": "i" });
    full.as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
    json!({ "metadata": { "name": "p" }, "spec": { "containers": [full] } })
}

#[test]
fn conditions_see_the_object_and_the_old_one() {
    let check = |text: &str| {
        let (object, old) = (json!({ "spec": { "size": "L", "n": 2 } }), json!({ "spec": {} }));
        Condition::compile(text)?.holds(&object, &old, &json!({ "operation": "UPDATE" }))
    };
    assert_eq!(check("object.spec.size == 'L' && !has(oldObject.spec.size)"), Ok(true));
    assert_eq!(check("request.operation == 'DELETE'"), Ok(false));
    assert_eq!(check("object.spec.n + 1 == 3"), Ok(true));
    assert_eq!(
        check("object.spec.note == 'x'"),
        Err("expression 'object.spec.note == 'x'' resulted in error: no such key: note".to_owned())
    );
    assert_eq!(check("1 + 1"), Err("must evaluate to bool but got int".to_owned()));
    let undeclared = check("nope == 1").unwrap_err();
    let wanted = "compilation failed: ERROR: <input>:1:1: undeclared reference to 'nope'";
    assert!(undeclared.starts_with(wanted), "{undeclared}");
}

#[test]
fn a_quota_is_charged_with_the_difference() {
    let quota = json!({
        "metadata": { "name": "q" },
        "status": {
            "hard": { "services.nodeports": "2", "services": "5" },
            "used": { "services.nodeports": "1", "services": "1" },
        },
    });
    let service = |ports: usize| {
        let ports: Vec<Value> = (0..ports).map(|port| json!({ "port": port })).collect();
        json!({ "spec": { "type": "NodePort", "ports": ports } })
    };
    let (one, two, four) = (service(1), service(2), service(4));
    let counted = |object| Counted { group: "", plural: "services", object };
    let used = quota::charge(&quota, counted(&two), Some(counted(&one))).unwrap().unwrap();
    assert_eq!(used, json!({ "services": "1", "services.nodeports": "2" }));
    assert_eq!(
        quota::charge(&quota, counted(&four), Some(counted(&one))),
        Err("exceeded quota: q, requested: services.nodeports=3, used: services.nodeports=1, limited: \
             services.nodeports=2"
            .to_owned())
    );
    assert_eq!(quota::charge(&quota, counted(&one), Some(counted(&two))), Ok(None));
}

#[test]
fn a_quota_without_usage_lets_nothing_pass() {
    let quota = json!({ "metadata": { "name": "q" }, "status": { "hard": { "pods": "2" } } });
    let pod = pod(json!({}));
    let counted = Counted { group: "", plural: "pods", object: &pod };
    let refused = quota::charge(&quota, counted, None).unwrap_err();
    assert_eq!(refused, "status unknown for quota: q, resources: pods");
}

#[test]
fn scopes_choose_pods() {
    let quota = |scope: &str| {
        json!({
            "metadata": { "name": "q" }, "spec": { "hard": { "pods": "1" }, "scopes": [scope] },
        })
    };
    let plain = pod(json!({}));
    let used = |scope: &str| {
        let counted = Counted { group: "", plural: "pods", object: &plain };
        quota::status(&quota(scope), std::iter::once(counted))["used"]["pods"].clone()
    };
    assert_eq!(used("BestEffort"), "1");
    assert_eq!(used("NotBestEffort"), "0");
    assert_eq!(used("Terminating"), "0");
    assert_eq!(used("NotTerminating"), "1");
}

#[test]
fn limits_are_those_of_a_pod_as_a_whole_too() {
    let range = json!({ "spec": { "limits": [
        { "type": "Pod", "max": { "memory": "1Gi" }, "min": { "cpu": "100m" } },
    ] } });
    let mut pod = pod(json!({ "resources": { "limits": { "memory": "2Gi" } } }));
    limits::fill(&range, &mut pod);
    assert!(pod["metadata"].get("annotations").is_none());
    assert_eq!(
        limits::faults(&range, &pod),
        [
            "minimum cpu usage per Pod is 100m.  No request is specified",
            "maximum memory usage per Pod is 1Gi, but limit is 2Gi",
        ]
    );
}

#[test]
fn the_baseline_forbids_what_leads_out_of_a_container() {
    let bad = json!({
        "metadata": { "name": "p" },
        "spec": {
            "hostPID": true,
            "volumes": [{ "name": "v", "hostPath": { "path": "/" } }],
            "containers": [
                { "name": "a", "securityContext": { "privileged": true,
                    "capabilities": { "add": ["SYS_ADMIN", "CHOWN"] } } },
                { "name": "b", "ports": [{ "containerPort": 1, "hostPort": 80 }] },
            ],
        },
    });
    let shown = |level| -> Vec<String> {
        let found = violations(level, &bad).into_iter();
        found.map(|one| format!("{} ({})", one.reason, one.detail)).collect()
    };
    assert_eq!(
        shown(Level::Baseline),
        [
            "non-default capabilities (container \"a\" must not include \"SYS_ADMIN\" in \
             securityContext.capabilities.add)",
            "host namespaces (hostPID=true)",
            "hostPath volumes (volume \"v\")",
            "hostPort (container \"b\" uses hostPort 80)",
            "privileged (container \"a\" must not set securityContext.privileged=true)",
        ]
    );
    let restricted = shown(Level::Restricted);
    let volumes = "restricted volume types (volume \"v\" uses restricted volume type \"hostPath\")";
    assert!(restricted.contains(&volumes.to_owned()), "{restricted:?}");
    assert!(!restricted.iter().any(|one| one.starts_with("hostPath")), "{restricted:?}");
    assert_eq!(shown(Level::Privileged), Vec::<String>::new());
}

#[test]
fn tolerations_are_added_once() {
    let mut pod = pod(json!({}));
    admission::default_tolerations(&mut pod);
    admission::default_tolerations(&mut pod);
    assert_eq!(pod["spec"]["tolerations"].as_array().unwrap().len(), 2);
}
