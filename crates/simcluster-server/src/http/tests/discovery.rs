use std::sync::Arc;

use crate::http::discovery::groups;
use simcluster_model::registry;

#[test]
fn groups_of_definitions_come_last_with_their_versions_in_order() {
    let mut resources = registry::built_in().to_vec();
    let template = resources.first().unwrap().as_ref().clone();
    for (group, version) in [
        ("zz.example.com", "v1beta1"),
        ("zz.example.com", "v2"),
        ("zz.example.com", "v10"),
        ("zz.example.com", "v1alpha1"),
        ("zz.example.com", "old"),
        ("zz.example.com", "v1beta2"),
        ("aa.example.com", "v1"),
    ] {
        let mut resource = template.clone();
        resource.custom = true;
        group.clone_into(&mut resource.group);
        version.clone_into(&mut resource.version);
        resources.push(Arc::new(resource));
    }
    let groups = groups(&resources);
    let names: Vec<&str> = groups.iter().rev().take(2).map(|group| group.name.as_str()).collect();
    assert_eq!(names, ["zz.example.com", "aa.example.com"]);
    let last = groups.last().unwrap();
    assert_eq!(last.versions, ["v10", "v2", "v1beta2", "v1beta1", "v1alpha1", "old"]);
    assert_eq!(groups.first().unwrap().name, "apps");
}
