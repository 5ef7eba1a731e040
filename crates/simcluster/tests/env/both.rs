//! What every cluster gives to tests.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use simcluster::User;
use simcluster::env::{self, Needs};

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    }
}

#[test]
fn namespaces_are_fresh_and_requests_are_counted_by_user() {
    env::run(&Needs::default().requests(), async |cluster| {
        let first = cluster.namespace().await;
        let second = cluster.namespace().await;
        assert_ne!(first, second);

        let mut user = User::service_account(&first, "writer");
        user.groups.push("system:masters".to_owned());
        let api: Api<ConfigMap> = Api::namespaced(cluster.client_as(user.clone()).await, &first);
        api.create(&PostParams::default(), &config_map("a")).await.unwrap();
        let again = api.create(&PostParams::default(), &config_map("a")).await;
        assert!(again.is_err());

        let requests = cluster.requests(&user).await;
        let seen: Vec<(&str, &str, u16)> = requests
            .iter()
            .map(|one| (one.verb.as_str(), one.resource.as_str(), one.code))
            .collect();
        assert_eq!(seen, [("create", "configmaps", 201), ("create", "configmaps", 409)]);
        assert_eq!((requests[0].namespace.as_str(), requests[0].name.as_str()), (&*first, "a"));
    });
}

#[test]
fn a_user_without_rights_is_refused() {
    env::run(&Needs::default(), async |cluster| {
        let namespace = cluster.namespace().await;
        let user = User::service_account(&namespace, "nobody");
        let api: Api<ConfigMap> = Api::namespaced(cluster.client_as(user).await, &namespace);
        let error = api.get("a").await.unwrap_err();
        let kube::Error::Api(status) = error else { panic!("{error}") };
        assert!(status.is_forbidden(), "{status:?}");
    });
}
