#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use proptest::prelude::{prop_assert_eq, proptest};
use serde_json::{Value, json};

use super::graph::{Graph, Node, Owner, Verdict, Way};

fn node(uid: &str, more: &Value) -> Node {
    let mut meta = json!({ "name": uid, "namespace": "default", "uid": uid });
    simcluster_model::object::as_map(&mut meta).extend(more.as_object().unwrap().clone());
    Node {
        kind: (String::new(), "ConfigMap".to_owned()),
        meta: Arc::new(serde_json::from_value(meta).unwrap()),
    }
}

fn owned_by(uid: &str, owners: &[&str]) -> Node {
    node(uid, &json!({ "ownerReferences": references(owners) }))
}

fn references(owners: &[&str]) -> Vec<Value> {
    owners
        .iter()
        .map(|uid| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "name": uid, "uid": uid,
                "blockOwnerDeletion": true,
            })
        })
        .collect()
}

fn waiting(uid: &str, owners: &[&str]) -> Node {
    node(
        uid,
        &json!({
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["foregroundDeletion"],
            "ownerReferences": references(owners),
        }),
    )
}

fn judge(graph: &Graph, node: &Node) -> Verdict {
    let owners: BTreeMap<String, Owner> = node
        .owners()
        .map(|one| (one.uid.clone(), graph.owner(node, one).unwrap_or(Owner::Absent)))
        .collect();
    graph.judge(node, &owners)
}

fn looked_at(look: std::collections::BTreeSet<String>) -> Vec<String> {
    look.into_iter().collect()
}

#[test]
fn nothing_is_looked_at_while_owners_are_there() {
    let mut graph = Graph::default();
    assert!(graph.observe(&node("owner", &json!({}))).is_empty());
    let child = owned_by("child", &["owner"]);
    assert!(graph.observe(&child).is_empty());
    assert_eq!(judge(&graph, &child), Verdict::Keep);
}

#[test]
fn a_dependent_goes_with_its_last_owner() {
    let mut graph = Graph::default();
    graph.observe(&node("one", &json!({})));
    graph.observe(&node("two", &json!({})));
    let child = owned_by("child", &["one", "two"]);
    graph.observe(&child);
    assert_eq!(looked_at(graph.remove("one")), ["child"]);
    assert_eq!(judge(&graph, &child), Verdict::DropOwners(vec!["one".to_owned()]));
    assert_eq!(looked_at(graph.remove("two")), ["child"]);
    assert_eq!(judge(&graph, &child), Verdict::Delete(Way::Background));
}

#[test]
fn an_owner_counts_only_where_its_reference_reaches() {
    let mut graph = Graph::default();
    graph.observe(&node("owner", &json!({ "namespace": "elsewhere" })));
    let child = owned_by("child", &["owner"]);
    assert_eq!(looked_at(graph.observe(&child)), ["child"]);
    let reference = child.owners().next().unwrap();
    assert_eq!(graph.owner(&child, reference), None);
    assert!(graph.is_across_namespaces(&child, reference));
}

#[test]
fn an_owner_of_a_namespace_that_is_gone_is_not_absent_for_the_cluster() {
    let mut graph = Graph::default();
    graph.observe(&node("owner", &json!({})));
    let mut child = owned_by("child", &["owner"]);
    let mut meta = child.meta.as_ref().clone();
    meta.namespace = None;
    child.meta = Arc::new(meta);
    graph.observe(&child);
    graph.remove("owner");
    assert_eq!(graph.owner(&child, child.owners().next().unwrap()), None);
}

#[test]
fn foreground_waits_for_blocking_dependents() {
    let mut graph = Graph::default();
    graph.observe(&node("owner", &json!({})));
    let child = owned_by("child", &["owner"]);
    graph.observe(&child);
    let owner = waiting("owner", &[]);
    assert_eq!(looked_at(graph.observe(&owner)), ["child", "owner"]);
    assert_eq!(judge(&graph, &owner), Verdict::Keep, "it waits for the child");
    assert_eq!(judge(&graph, &child), Verdict::Delete(Way::Background));
    assert_eq!(looked_at(graph.remove("child")), ["owner"]);
    assert_eq!(judge(&graph, &owner), Verdict::Release);
}

#[test]
fn foreground_goes_down_the_tree_and_breaks_cycles() {
    let mut graph = Graph::default();
    graph.observe(&waiting("owner", &["child"]));
    let child = owned_by("child", &["owner"]);
    graph.observe(&child);
    assert_eq!(judge(&graph, &child), Verdict::DeleteInForeground { unblock: true });
    let mut graph = Graph::default();
    graph.observe(&waiting("owner", &[]));
    graph.observe(&child);
    graph.observe(&owned_by("grandchild", &["child"]));
    assert_eq!(judge(&graph, &child), Verdict::DeleteInForeground { unblock: false });
}

#[test]
fn a_reference_that_no_longer_blocks_lets_its_owner_be_looked_at() {
    let mut graph = Graph::default();
    graph.observe(&waiting("owner", &[]));
    graph.observe(&owned_by("child", &["owner"]));
    assert!(graph.observe(&owned_by("child", &[])).contains("owner"));
}

#[test]
fn orphans_are_set_free_before_their_owner_goes() {
    let mut graph = Graph::default();
    graph.observe(&node("owner", &json!({})));
    let child = owned_by("child", &["owner"]);
    graph.observe(&child);
    let leaving = node(
        "owner",
        &json!({
            "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["orphan"],
        }),
    );
    assert_eq!(looked_at(graph.observe(&leaving)), ["owner"]);
    assert_eq!(judge(&graph, &leaving), Verdict::SetFree(vec![child]));
}

#[test]
fn finalizers_choose_the_way_of_deletion() {
    let mut graph = Graph::default();
    let orphaning = node(
        "child",
        &json!({
            "finalizers": ["orphan"], "ownerReferences": references(&["gone"]),
        }),
    );
    graph.observe(&orphaning);
    assert_eq!(judge(&graph, &orphaning), Verdict::Delete(Way::Orphan));
}

proptest! {
    #[test]
    fn an_owner_is_held_by_exactly_those_that_block_it(
        changes in proptest::collection::vec((0..4_usize, 0..3_usize, 0..3_u8), 0..40),
    ) {
        let mut graph = Graph::default();
        let mut all: BTreeMap<String, Node> = BTreeMap::new();
        for owner in 0..3 {
            graph.observe(&waiting(&format!("owner-{owner}"), &[]));
        }
        for (child, owner, how) in changes {
            let (uid, owner) = (format!("child-{child}"), format!("owner-{owner}"));
            let mut references = references(&[&owner, "owner-0"]);
            references[0]["blockOwnerDeletion"] = json!(how == 1);
            references[1]["blockOwnerDeletion"] = json!(false);
            if how == 2 {
                graph.remove(&uid);
                all.remove(&uid);
            } else {
                let child = node(&uid, &json!({ "ownerReferences": references }));
                graph.observe(&child);
                all.insert(uid, child);
            }
        }
        for owner in 0..3 {
            let uid = format!("owner-{owner}");
            let holds = |one: &OwnerReference| one.uid == uid && one.block_owner_deletion == Some(true);
            let is_held = all.values().any(|child| child.owners().any(holds));
            let expected = if is_held { Verdict::Keep } else { Verdict::Release };
            prop_assert_eq!(judge(&graph, &waiting(&uid, &[])), expected);
        }
    }
}
