use std::collections::BTreeSet;

use super::*;

#[test]
fn a_seed_gives_one_conversation() {
    for seed in 0..200 {
        assert_eq!(conversation(seed, None), conversation(seed, None));
    }
    assert_ne!(conversation(1, None), conversation(2, None));
}

#[test]
fn every_resource_and_method_comes() {
    let lines: Vec<String> =
        (0..300).flat_map(|seed| conversation(seed, None)).map(|step| step.line).collect();
    let methods: BTreeSet<&str> = lines.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(methods.into_iter().collect::<Vec<_>>(), ["DELETE", "GET", "PATCH", "POST", "PUT"]);
    for resource in resources::all() {
        assert!(lines.iter().any(|line| line.contains(&format!("/{}/", resource.plural))));
    }
}

/// Other people's namespaces are left alone.
#[test]
fn nothing_of_others_is_deleted() {
    for step in (0..2000).flat_map(|seed| conversation(seed, Some("namespaces"))) {
        let collection = step.line.contains("/namespaces?") || step.line.ends_with("/namespaces");
        if step.line.starts_with("DELETE") && collection {
            assert!(step.line.contains("{ns}"), "{}", step.line);
        }
    }
}

#[test]
fn one_resource_can_be_chosen() {
    for step in (0..50).flat_map(|seed| conversation(seed, Some("leases"))) {
        assert!(step.line.contains("/leases"), "{}", step.line);
    }
}
