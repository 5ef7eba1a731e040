//! The end of an app: finalizer, audit record, children.

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use serde_json::json;
use simpleapp_operator::api::simpleapp::{FINALIZER, SimpleApp};

use crate::scene::{Scene, shown, with_operator};

#[test]
fn deletion_costs_a_record_and_a_patch_and_leaves_nothing_else() {
    with_operator(async |scene| {
        let spec = json!({ "image": "nginx:1.29", "replicas": 2, "host": "a.example.com" });
        let app = scene.app("web", spec).await;
        scene.available("web").await;
        let writes = scene
            .writes_of(async {
                scene.delete::<SimpleApp>("web").await;
                scene.gone("web").await;
            })
            .await;
        let kinds: Vec<(&str, &str)> =
            writes.iter().map(|w| (w.verb.as_str(), w.resource.as_str())).collect();
        assert_eq!(kinds, [("create", "configmaps"), ("patch", "simpleapps")], "{writes:#?}");
        let records = scene.records().await;
        assert_eq!(records.len(), 1);
        let record = &records[0];
        assert!(record.name_any().starts_with("audit-deleted-web-"), "{}", record.name_any());
        assert!(record.owner_references().is_empty(), "it would go with its owner");
        assert!(record.annotations().values().any(|value| Some(value) == app.uid().as_ref()));
        let data = record.data.clone().unwrap();
        assert_eq!(data["simpleApp"], "web");
        assert_eq!(data["image"], "nginx:1.29");
        assert_eq!(data["finalReplicas"], "2");
        assert_eq!(data["namespace"], scene.namespace);
        assert!(data.contains_key("deletedAt"));
    });
}

#[test]
fn finalizers_of_others_are_kept() {
    with_operator(async |scene| {
        scene.app("web", json!({ "image": "nginx" })).await;
        let app = scene.available("web").await;
        assert_eq!(app.finalizers(), [FINALIZER]);
        let both = json!({ "metadata": { "finalizers": [FINALIZER, "example.com/other"] } });
        scene.patch::<SimpleApp>("web", both).await;
        scene.delete::<SimpleApp>("web").await;
        let look =
            async || scene.get::<SimpleApp>("web").await.finalizers() == ["example.com/other"];
        scene.cluster.eventually("only the other finalizer", look).await;
        assert_eq!(scene.records().await.len(), 1);
        scene.patch::<SimpleApp>("web", json!({ "metadata": { "finalizers": null } })).await;
        scene.gone("web").await;
        assert_eq!(scene.records().await.len(), 1);
    });
}

#[test]
fn an_app_deleted_while_the_operator_was_away_is_finished() {
    with_operator(async |scene| {
        scene.app("web", json!({ "image": "nginx" })).await;
        scene.available("web").await;
        scene.stop().await;
        scene.delete::<SimpleApp>("web").await;
        assert!(scene.get::<SimpleApp>("web").await.metadata.deletion_timestamp.is_some());
        scene.start().await;
        scene.gone("web").await;
        assert_eq!(scene.records().await.len(), 1);
    });
}

#[test]
fn a_new_app_of_the_same_name_is_another_app() {
    with_operator(async |scene| {
        for round in 1..=2 {
            scene.app("web", json!({ "image": "nginx" })).await;
            scene.available("web").await;
            scene.delete::<SimpleApp>("web").await;
            scene.gone("web").await;
            assert_eq!(scene.records().await.len(), round);
            // Records are named by the second of the deletion.
            let second = Duration::from_millis(1100);
            scene.cluster.rest(second, second).await;
        }
    });
}

#[test]
fn a_namespace_goes_with_its_apps() {
    with_operator(async |scene| {
        scene.app("web", json!({ "image": "nginx" })).await;
        scene.available("web").await;
        end_namespace(scene).await;
        let failed: Vec<_> =
            scene.requests().await.into_iter().filter(|request| request.code >= 500).collect();
        assert_eq!(shown(&failed), Vec::<String>::new());
    });
}

/// Deletes the namespace and waits until it is gone. Its RBAC goes first, and the operator could do
/// nothing any more, so the deletion waits for the app.
async fn end_namespace(scene: &Scene) {
    let namespaces: Api<Namespace> = Api::all(scene.cluster.client());
    scene.delete::<SimpleApp>("web").await;
    namespaces.delete(&scene.namespace, &DeleteParams::default()).await.unwrap();
    let look = async || namespaces.get_opt(&scene.namespace).await.unwrap().is_none();
    scene.cluster.eventually("the end of the namespace", look).await;
}
