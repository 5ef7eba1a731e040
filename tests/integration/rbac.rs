//! The generated RBAC is enough, and none of it is too much.

use serde_json::json;
use simpleapp_operator::api::simpleapp::{Phase, SimpleApp};
use simpleapp_operator::ops::rbac::RULES;

use crate::scene::{phase, with_operator};

/// Rules for requests that no test here can make happen.
fn is_exempt(resource: &str, verb: &str) -> bool {
    match (resource, verb) {
        // Only clusters with OwnerReferencesPermissionEnforcement look at it.
        ("simpleapps/finalizers", _) |
        // Only after a crash between record and finalizer.
        ("configmaps", "get") |
        // Only for a series of equal Events.
        ("events", "patch") => true,
        _ => false,
    }
}

#[test]
fn every_rule_is_used_and_nothing_is_forbidden() {
    with_operator(async |scene| {
        let spec = json!({ "image": "nginx", "host": "a.example.com" });
        scene.app("web", spec).await;
        scene.available("web").await;
        scene.patch::<SimpleApp>("web", json!({ "spec": { "host": null } })).await;
        scene.quiet().await;
        scene.app("broken", json!({ "image": "nginx:not-exist" })).await;
        scene.until("broken", "failed", |app| phase(app) == Some(Phase::Failed)).await;
        scene.delete::<SimpleApp>("web").await;
        scene.gone("web").await;

        let requests = scene.requests().await;
        let forbidden: Vec<_> = requests.iter().filter(|request| request.code == 403).collect();
        assert!(forbidden.is_empty(), "{forbidden:#?}");
        let mut unused = Vec::new();
        for rule in RULES {
            for verb in rule.verbs {
                let used = requests.iter().any(|request| {
                    let resource = match request.subresource.as_str() {
                        "" => request.resource.clone(),
                        subresource => format!("{}/{subresource}", request.resource),
                    };
                    // An apply that creates is checked as a create, too.
                    let verb_fits = request.verb == *verb
                        || (*verb == "create" && request.verb == "patch" && request.code == 201);
                    request.group == rule.group && resource == rule.resource && verb_fits
                });
                if !used && !is_exempt(rule.resource, verb) {
                    unused.push(format!("{verb} {}", rule.resource));
                }
            }
        }
        assert!(unused.is_empty(), "rules that nothing used: {unused:?}");
    });
}
