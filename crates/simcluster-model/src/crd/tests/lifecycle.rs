//! From the create of a definition to its end.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{definition, established, things};
use crate::crd::{self, Termination};
use crate::object::put;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn named(name: &str, names: &Value) -> Value {
    let mut crd = definition(&json!([]));
    put(&mut crd, "metadata", json!({ "name": format!("{name}.example.com") }));
    let spec = crd["spec"].as_object_mut().unwrap();
    spec.insert("names".to_owned(), names.clone());
    crd
}

fn step(crd: &mut Value, status: Option<Value>) {
    put(crd, "status", status.expect("the step changes something"));
}

/// The conditions as `type=status reason: message`.
fn conditions(crd: &Value) -> Vec<String> {
    let text = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
    let list = crd["status"]["conditions"].as_array().unwrap();
    list.iter()
        .map(|one| {
            let (kind, status) = (text(one, "type"), text(one, "status"));
            format!("{kind}={status} {}: {}", text(one, "reason"), text(one, "message"))
        })
        .collect()
}

#[test]
fn names_are_accepted_before_the_resource_is_established() {
    let names = json!({ "plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList" });
    let mut crd = named("things", &names);
    let status = crd::naming_conditions(&crd, &[], NOW);
    step(&mut crd, status);
    assert_eq!(
        conditions(&crd),
        [
            "NamesAccepted=True NoConflicts: no conflicts found",
            "Established=False Installing: the initial names have been accepted",
        ]
    );
    assert_eq!(crd["status"]["acceptedNames"], names);
    assert!(crd::resources(&crd).is_empty());
    assert_eq!(crd::naming_conditions(&crd, &[], NOW), None);
    let status = crd::established(&crd, NOW);
    step(&mut crd, status);
    assert_eq!(
        conditions(&crd)[1],
        "Established=True InitialNamesAccepted: the initial names have been accepted"
    );
    assert_eq!(crd::established(&crd, NOW), None);
    let status = crd::terminating(&crd, Termination::Pending, NOW);
    put(&mut crd, "status", status);
    assert!(crd::is_terminating(&crd));
    assert_eq!(
        conditions(&crd)[2],
        "Terminating=True InstanceDeletionPending: CustomResourceDefinition marked for deletion; \
         CustomResource deletion will begin soon"
    );
}

#[test]
fn one_conflict_of_several_is_told() {
    let first = json!({ "plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList" });
    let taken = Arc::new(established(named("things", &first)));
    for (names, reason, left) in [
        (
            json!({ "plural": "others", "singular": "other", "kind": "Thing", "listKind": "ThingList" }),
            "ListKindConflict: \"ThingList\" is already in use",
            json!({ "plural": "others", "singular": "other" }),
        ),
        (
            json!({ "plural": "others", "singular": "other", "kind": "Thing", "listKind": "OtherList" }),
            "KindConflict: \"Thing\" is already in use",
            json!({ "plural": "others", "singular": "other", "listKind": "OtherList" }),
        ),
        (
            json!({
                "plural": "others", "singular": "thing", "kind": "Other", "listKind": "OtherList",
                "shortNames": ["thing"],
            }),
            "ShortNamesConflict: \"thing\" is already in use",
            json!({ "plural": "others", "kind": "Other", "listKind": "OtherList" }),
        ),
    ] {
        let mut crd = named("others", &names);
        let status = crd::naming_conditions(&crd, &[Arc::clone(&taken)], NOW);
        step(&mut crd, status);
        assert_eq!(
            conditions(&crd),
            [
                format!("NamesAccepted=False {reason}"),
                "Established=False NotAccepted: not all names are accepted".to_owned(),
            ]
        );
        assert_eq!(crd["status"]["acceptedNames"], left);
        assert_eq!(crd::established(&crd, NOW), None);
        // The other definition goes.
        let status = crd::naming_conditions(&crd, &[], NOW);
        step(&mut crd, status);
        assert_eq!(conditions(&crd)[0], "NamesAccepted=True NoConflicts: no conflicts found");
    }
}

#[test]
fn a_bundle_that_is_no_certificate_keeps_a_definition_from_being_established() {
    let mut crd = established(definition(&json!([])));
    crd["status"]["conditions"][1]["status"] = json!("False");
    let config = json!({ "url": "https://127.0.0.1:9/x", "caBundle": "bm90IGEgY2VydA==" });
    crd["spec"]["conversion"] =
        json!({ "strategy": "Webhook", "webhook": { "clientConfig": config } });
    let status = crd::established(&crd, NOW);
    step(&mut crd, status);
    assert_eq!(
        crd["status"]["conditions"][1]["reason"],
        json!("InvalidCABundle"),
        "{}",
        crd["status"]
    );
    crd["spec"]["conversion"] = json!({ "strategy": "None" });
    let status = crd::established(&crd, NOW);
    step(&mut crd, status);
    assert!(crd::is_established(&crd));
}

#[test]
fn definitions_of_protected_groups_tell_whether_they_are_approved() {
    let mut crd = definition(&json!([]));
    assert_eq!(crd::approval(&crd, NOW), None);
    crd["spec"]["group"] = json!("a.k8s.io");
    let key = "api-approved.kubernetes.io";
    crd["metadata"]["annotations"] = json!({ key: "unapproved, testing" });
    let status = crd::approval(&crd, NOW);
    step(&mut crd, status);
    assert_eq!(
        conditions(&crd),
        [
            "KubernetesAPIApprovalPolicyConformant=False UnapprovedAnnotation: not approved: \"unapproved, \
          testing\""
        ]
    );
    assert_eq!(crd::approval(&crd, NOW), None);
}

#[test]
fn deprecated_versions_name_the_best_one_that_is_not() {
    let version = |name: &str, more: Value| {
        let mut version = json!({ "name": name, "served": true, "storage": name == "v1" });
        version.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        version
    };
    let served = things(&json!([
        version("v1", json!({})),
        version("v1beta1", json!({ "deprecated": true })),
        version("v1alpha1", json!({ "deprecated": true, "deprecationWarning": "go away" })),
        version("v2alpha1", json!({ "deprecated": true })),
        version("old", json!({ "served": false })),
    ]));
    let warnings: Vec<_> = served
        .iter()
        .map(|one| (one.version.as_str(), one.deprecation_warning.as_deref()))
        .collect();
    assert_eq!(
        warnings,
        [
            ("v1", None),
            ("v1beta1", Some("example.com/v1beta1 Thing is deprecated; use example.com/v1 Thing")),
            ("v1alpha1", Some("go away")),
            (
                "v2alpha1",
                Some("example.com/v2alpha1 Thing is deprecated; use example.com/v1 Thing")
            ),
        ]
    );
    let alone = things(&json!([version("v1", json!({ "deprecated": true }))]));
    assert_eq!(alone[0].deprecation_warning.as_deref(), Some("example.com/v1 Thing is deprecated"));
}

#[test]
fn versions_are_ordered_by_how_stable_they_are() {
    let mut versions = vec![
        "foo10",
        "v1alpha1",
        "v10beta3",
        "v3beta1",
        "v1",
        "foo1",
        "v12alpha1",
        "v2",
        "v11beta2",
        "v10",
    ];
    versions.sort_by(|left, right| crd::compare_kube_aware(right, left));
    let expected = [
        "v10",
        "v2",
        "v1",
        "v11beta2",
        "v10beta3",
        "v3beta1",
        "v12alpha1",
        "v1alpha1",
        "foo1",
        "foo10",
    ];
    assert_eq!(versions, expected);
}
