use super::*;
use crate::registry::built_in;
use crate::resource::Strategy;
use crate::schema::object_meta;

mod admission;
mod answers;

#[test]
fn every_resource_has_a_schema() {
    for resource in built_in() {
        assert!(resource.schema.properties.contains_key("metadata"), "{}", resource.plural);
        assert!(!resource.verbs.is_empty(), "{}", resource.plural);
    }
    assert_eq!(kubernetes_version(), "v1.37.2");
}

/// What a real server sends as the first bookmark of each kind, without the metadata.
#[test]
fn bookmarks_are_those_of_a_real_server() {
    let recorded: Map<String, Value> =
        serde_json::from_str(include_str!("bookmarks.json")).unwrap();
    let watched = built_in().iter().filter(|one| one.verbs.iter().any(|verb| verb == "watch"));
    let shown: Map<String, Value> = watched
        .map(|resource| {
            let mut object = empty_object(resource);
            object.as_object_mut().unwrap().remove("metadata");
            (format!("{}/{}", resource.api_version(), resource.kind), object)
        })
        .collect();
    for (kind, object) in &recorded {
        assert_eq!(shown.get(kind), Some(object), "{kind}");
    }
    assert_eq!(shown.len(), recorded.len());
}

#[test]
fn every_reference_is_defined() {
    fn walk(node: &Value) {
        match node {
            Value::Object(map) => {
                if let Some(Value::String(name)) = map.get("$ref") {
                    assert!(openapi_definitions().contains_key(name), "{name} is missing");
                }
                map.values().for_each(walk);
            }
            Value::Array(list) => list.iter().for_each(walk),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    openapi_definitions().values().for_each(walk);
}

#[test]
fn metadata_of_a_wrong_type() {
    let error = decode_typed(json!({"labels": {"a": 1}}), &object_meta(), "metadata").unwrap_err();
    assert_eq!(
        error,
        "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"
    );
}

#[test]
fn unknown_fields_of_metadata() {
    let decoded = decode_typed(
        json!({"name": "a", "lables": {}, "labels": null, "ownerReferences": [{"zip": 1, "uid": "u"}]}),
        &object_meta(),
        "metadata",
    )
    .unwrap();
    assert_eq!(decoded.unknown, ["metadata.lables", "metadata.ownerReferences[0].zip"]);
    assert_eq!(
        decoded.object,
        json!({"name": "a", "ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": "u"}]})
    );
}

fn kind(api_version: &str, plural: &str) -> Arc<Resource> {
    let all = built_in();
    let found = all.iter().find(|one| one.plural == plural && one.api_version() == api_version);
    Arc::clone(found.unwrap())
}

#[test]
fn events_of_both_groups_are_stored_in_one_form() {
    let newer = kind("events.k8s.io/v1", "events");
    let event = json!({
        "kind": "Event", "metadata": {"name": "e"}, "note": "n", "regarding": {"name": "p"},
        "reportingController": "c", "deprecatedCount": 2,
    });
    let event = newer.strategy.decode(&newer, event).unwrap().object;
    let stored = newer.strategy.encode_stored(&newer, event.clone());
    assert_eq!(stored["apiVersion"], "v1");
    assert_eq!(stored["message"], "n");
    assert_eq!(stored["involvedObject"], json!({"name": "p"}));
    assert_eq!(stored["reportingComponent"], "c");
    assert_eq!(stored["count"], 2);
    assert_eq!(newer.strategy.decode_stored(&newer, stored), event);
}

#[test]
fn a_namespace_keeps_its_label_and_waits_for_its_finalizers() {
    let resource = kind("v1", "namespaces");
    let old = json!({
        "metadata": {"name": "a", "labels": {"kubernetes.io/metadata.name": "a"}},
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
    });
    assert!(!resource.strategy.may_be_removed(&old));
    let mut new = json!({
        "metadata": {"name": "a", "labels": {"kubernetes.io/metadata.name": "b"}},
        "spec": {}, "status": {"phase": "Terminating"},
    });
    resource.strategy.prepare_for_update(&resource, "", &mut new, &old);
    assert_eq!(new, old);
    let mut finalized = json!({"metadata": {"name": "a"}, "spec": {}});
    resource.strategy.prepare_for_update(&resource, "finalize", &mut finalized, &old);
    assert!(resource.strategy.may_be_removed(&finalized));
    assert_eq!(finalized["status"], old["status"]);
}

#[test]
fn pods_end_gracefully_only_while_a_kubelet_runs_them() {
    let strategy = &kind("v1", "pods").strategy;
    let bound = json!({"spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30}});
    assert_eq!(strategy.grace_period_seconds(&bound, None), Some(30));
    assert_eq!(strategy.grace_period_seconds(&bound, Some(5)), Some(5));
    assert_eq!(strategy.grace_period_seconds(&bound, Some(0)), Some(0));
    assert_eq!(strategy.grace_period_seconds(&bound, Some(-5)), Some(1));
    let mut ended = bound.clone();
    ended["status"] = json!({"phase": "Succeeded"});
    assert_eq!(strategy.grace_period_seconds(&ended, None), Some(0));
    let unbound = json!({"spec": {"terminationGracePeriodSeconds": 30}});
    assert_eq!(strategy.grace_period_seconds(&unbound, Some(10)), Some(0));
    assert_eq!(kind("v1", "configmaps").strategy.grace_period_seconds(&json!({}), None), None);
}

/// Rows DE02, UP05 and UP06.
#[test]
fn facts_of_the_kinds() {
    let with = |fact: fn(&dyn Strategy) -> bool| -> Vec<String> {
        let all = built_in();
        let stored = all.iter().filter(|one| !one.custom && one.verbs.len() > 1);
        stored.filter(|one| fact(&*one.strategy)).map(|one| one.plural.clone()).collect()
    };
    assert_eq!(
        with(|one| one.returns_deleted_object()),
        [
            "namespaces",
            "persistentvolumeclaims",
            "persistentvolumes",
            "pods",
            "podtemplates",
            "resourcequotas",
            "serviceaccounts",
            "services",
            "storageclasses",
            "customresourcedefinitions",
        ]
    );
    assert_eq!(
        with(|one| !one.allow_unconditional_update()),
        [
            "poddisruptionbudgets",
            "mutatingwebhookconfigurations",
            "validatingwebhookconfigurations",
            "customresourcedefinitions",
            "leases",
        ]
    );
    assert_eq!(
        with(|one| one.allow_create_on_update()),
        [
            "endpoints",
            "events",
            "limitranges",
            "services",
            "events",
            "clusterrolebindings",
            "clusterroles",
            "rolebindings",
            "roles",
            "leases",
        ]
    );
    assert_eq!(
        with(|one| one.default_propagation_policy() == "Orphan"),
        ["replicationcontrollers", "jobs"]
    );
}

#[test]
fn a_deployment_is_new_work_with_its_spec_or_annotations() {
    let strategy = &kind("apps/v1", "deployments").strategy;
    let old = json!({"metadata": {"annotations": {"a": "b"}}, "spec": {"replicas": 1}});
    let changed = |pointer: &str, value: Value| {
        let mut new = old.clone();
        crate::object::set_path(&mut new, pointer, value);
        strategy.generation_changes(&new, &old)
    };
    assert!(changed("spec.replicas", json!(2)));
    assert!(changed("metadata.annotations", json!({"a": "c"})));
    assert!(!changed("metadata.labels", json!({"a": "c"})));
    assert!(!changed("status.replicas", json!(1)));
    assert!(!kind("v1", "configmaps").strategy.has_generation());
}

#[test]
fn a_config_map_holds_a_mebibyte() {
    let strategy = &kind("v1", "configmaps").strategy;
    let resource = kind("v1", "configmaps");
    let sized = |size: usize| json!({"data": {"a": "x".repeat(size)}});
    assert_eq!(strategy.create_faults(&resource, &sized(1_048_576), Vec::new()), []);
    let faults = strategy.create_faults(&resource, &sized(1_048_577), Vec::new());
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].field, "[]");
    assert_eq!(faults[0].body, "Too long: may not be more than 1048576 bytes");
}
