//! An operator of your own, and its tests on a cluster that fits in a test.
//!
//! The operator is an ordinary one: a kind of its own by `#[derive(CustomResource)]`, kube's stock
//! `Controller`, a ConfigMap for each `Greeting`. It does not know what it runs on.
//!
//! ```sh
//! cargo test -p simcluster --example own_operator
//! # the same on a real etcd, kube-apiserver and kube-controller-manager:
//! TEST_CLUSTER=control-plane KUBEBUILDER_ASSETS=... cargo test -p simcluster --example own_operator
//! # and what the cluster saw of it, request by request:
//! cargo run -p simcluster --features control-plane,serve --example own_operator
//! ```
#![allow(clippy::print_stdout, reason = "it shows what it does")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::runtime::controller::Action;
use kube::runtime::{Controller, watcher};
use kube::{Client, CustomResource, CustomResourceExt as _, Resource as _, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use simcluster::SimCluster;
use tokio::task::JoinHandle;

/// What somebody is to be told.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced)]
#[kube(status = "GreetingStatus")]
struct GreetingSpec {
    /// Whom to greet.
    #[schemars(length(min = 1))]
    name: String,
}

/// What became of a greeting.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
struct GreetingStatus {
    /// The generation that was delivered last.
    delivered: Option<i64>,
}

const MANAGER: &str = "greeter";

/// One greeting as it should be: a ConfigMap by server-side apply, then the status if it is not true.
async fn reconcile(greeting: Arc<Greeting>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let namespace = greeting.namespace().unwrap_or_default();
    let name = greeting.name_any();
    let params = PatchParams::apply(MANAGER).force();

    let mut child = ConfigMap::default();
    child.metadata.name = Some(name.clone());
    child.metadata.owner_references = greeting.controller_owner_ref(&()).map(|owner| vec![owner]);
    let text = format!("Hello, {}!", greeting.spec.name);
    child.data = Some(BTreeMap::from([("text".to_owned(), text)]));
    let children: Api<ConfigMap> = Api::namespaced(Client::clone(&client), &namespace);
    children.patch(&name, &params, &Patch::Apply(&child)).await?;

    let delivered = greeting.status.as_ref().and_then(|status| status.delivered);
    if delivered != greeting.metadata.generation {
        let status = json!({ "status": { "delivered": greeting.metadata.generation } });
        let greetings: Api<Greeting> = Api::namespaced(Client::clone(&client), &namespace);
        greetings.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
    }
    Ok(Action::requeue(Duration::from_hours(1)))
}

/// Runs the operator in a namespace until the task is aborted.
fn start(client: Client, namespace: &str) -> JoinHandle<()> {
    let greetings: Api<Greeting> = Api::namespaced(client.clone(), namespace);
    let children: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let again = |_greeting, _error: &kube::Error, _client| Action::requeue(Duration::from_secs(5));
    let controller = Controller::new(greetings, watcher::Config::default())
        .owns(children, watcher::Config::default())
        .run(reconcile, again, Arc::new(client));
    tokio::spawn(controller.for_each(|_outcome| std::future::ready(())))
}

/// A greeting for the world.
fn greeting() -> Greeting {
    Greeting::new("world", GreetingSpec { name: "world".to_owned() })
}

/// Shows a day in the life of the operator, in virtual time.
#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> anyhow::Result<()> {
    let cluster = SimCluster::builder().crd(Greeting::crd()).start()?;
    let operator = start(cluster.client(), "default");
    let greetings: Api<Greeting> = Api::namespaced(cluster.client(), "default");
    greetings.create(&PostParams::default(), &greeting()).await?;
    cluster.settle().await?;

    let position = cluster.position();
    tokio::time::sleep(Duration::from_hours(24)).await;
    let requests = cluster.requests_since(position);
    let changes = requests.iter().filter(|request| request.changed.is_some()).count();
    println!("a day at rest: {} requests, {changes} changes", requests.len());
    for request in requests.iter().take(5) {
        println!("  {} {} {}", request.time, request.code, request.line);
    }
    operator.abort();
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use kube::api::DeleteParams;
    use simcluster::User;
    use simcluster::env::{self, Cluster, Needs};
    use simcluster::faults::{Effect, Failure, On, Rule};

    use super::*;

    /// An operator in a namespace of its own, under the rights that it would have.
    struct Scene {
        user: User,
        greetings: Api<Greeting>,
        children: Api<ConfigMap>,
        operator: JoinHandle<()>,
    }

    impl Scene {
        async fn new(cluster: &Cluster) -> Self {
            let namespace = cluster.namespace().await;
            let user = User::service_account(&namespace, "greeter");
            grant(&cluster.client(), &namespace).await;
            Self {
                greetings: Api::namespaced(cluster.client(), &namespace),
                children: Api::namespaced(cluster.client(), &namespace),
                operator: start(cluster.client_as(user.clone()).await, &namespace),
                user,
            }
        }

        async fn text(&self) -> Option<String> {
            let child = self.children.get_opt("world").await.unwrap()?;
            child.data?.remove("text")
        }
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            self.operator.abort();
        }
    }

    /// What the operator may do. RBAC is enforced: without this it is refused.
    async fn grant(client: &Client, namespace: &str) {
        use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
        let verbs = ["get", "list", "watch", "patch", "create"];
        let role: Role = serde_json::from_value(json!({
            "metadata": { "name": "greeter" },
            "rules": [
                { "apiGroups": ["example.com"], "resources": ["greetings"], "verbs": verbs },
                { "apiGroups": ["example.com"], "resources": ["greetings/status"], "verbs": ["patch"] },
                { "apiGroups": ["example.com"], "resources": ["greetings/finalizers"], "verbs": ["update"] },
                { "apiGroups": [""], "resources": ["configmaps"], "verbs": verbs },
            ],
        }))
        .unwrap();
        let binding: RoleBinding = serde_json::from_value(json!({
            "metadata": { "name": "greeter" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "greeter" },
            "subjects": [{ "kind": "ServiceAccount", "name": "greeter", "namespace": namespace }],
        }))
        .unwrap();
        let params = PostParams::default();
        Api::namespaced(client.clone(), namespace).create(&params, &role).await.unwrap();
        Api::namespaced(client.clone(), namespace).create(&params, &binding).await.unwrap();
    }

    fn needs() -> Needs {
        Needs::default().crd(Greeting::crd()).requests()
    }

    #[test]
    fn a_greeting_is_delivered_and_repaired() {
        env::run(&needs(), async |cluster| {
            let scene = Scene::new(&cluster).await;
            scene.greetings.create(&PostParams::default(), &greeting()).await.unwrap();
            let delivered = async || scene.text().await.filter(|text| text == "Hello, world!");
            cluster.eventually("it is delivered", delivered).await;

            scene.children.delete("world", &DeleteParams::default()).await.unwrap();
            cluster.eventually("it is delivered again", delivered).await;
        });
    }

    #[test]
    fn the_cluster_refuses_what_the_schema_does() {
        env::run(&needs(), async |cluster| {
            let greetings: Api<Greeting> =
                Api::namespaced(cluster.client(), &cluster.namespace().await);
            let nobody = Greeting::new("nobody", GreetingSpec { name: String::new() });
            let error = greetings.create(&PostParams::default(), &nobody).await.unwrap_err();
            assert!(error.to_string().contains("spec.name: Invalid value"), "{error}");
        });
    }

    #[test]
    fn a_day_at_rest_changes_nothing() {
        env::run(&needs().virtual_time(), async |cluster| {
            let scene = Scene::new(&cluster).await;
            scene.greetings.create(&PostParams::default(), &greeting()).await.unwrap();
            let sim = cluster.sim().unwrap();
            sim.settle().await.unwrap();

            let position = cluster.position().await;
            tokio::time::sleep(Duration::from_hours(24)).await;
            let requests = cluster.requests_since(&scene.user, position).await;
            let applies = requests.iter().filter(|request| request.is_write()).count();
            assert_eq!(applies, 24, "one look an hour");
            assert!(requests.iter().all(|request| request.changed.is_none()), "{requests:?}");
        });
    }

    #[test]
    fn an_answer_that_is_lost_does_no_harm() {
        env::run(&needs().virtual_time(), async |cluster| {
            let scene = Scene::new(&cluster).await;
            let sim = cluster.sim().unwrap();
            // Done, and answered as if it had not been.
            let applies = On::any().verb("patch").resource("configmaps");
            let lost = sim.faults().add(Rule::reply(applies, Effect::Fail(Failure::Internal)));

            scene.greetings.create(&PostParams::default(), &greeting()).await.unwrap();
            sim.settle().await.unwrap();
            assert_eq!(lost.hits(), 1);
            let world = scene.greetings.get("world").await.unwrap();
            assert_eq!(world.status.unwrap().delivered, world.metadata.generation);
        });
    }
}
