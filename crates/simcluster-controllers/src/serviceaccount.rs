//! What each namespace gets: the ServiceAccount `default`, without which no Pod is admitted, and the
//! ConfigMap `kube-root-ca.crt` with the API server's CA. Both come back when somebody deletes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::runtime::{
    Api, Doing, Failure, Key, Next, Object, OwnWrites, Queue, Reconcile, Store,
    namespace_is_terminating, status_of,
};
use super::{Informers, post_params};

/// Name of the ServiceAccount.
pub(super) const DEFAULT: &str = "default";
/// Name of the ConfigMap.
pub(super) const ROOT_CA: &str = "kube-root-ca.crt";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using \
     internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
     guaranteed across distributions of Kubernetes clusters.";

/// The controller's hands and memory.
pub(crate) struct Controller {
    accounts_client: Client,
    publisher_client: Client,
    root_ca: String,
    namespaces: Arc<Store<Namespace>>,
    accounts: Arc<Store<ServiceAccount>>,
    config_maps: Arc<Store<ConfigMap>>,
    own: OwnWrites,
}

impl Controller {
    /// Hooks the controller to the informers. The keys are namespaces.
    pub(crate) fn wire(
        accounts_client: Client,
        publisher_client: Client,
        root_ca: String,
        informers: &mut Informers,
    ) -> (Self, Arc<Queue<Key>>) {
        let queue = Arc::new(Queue::new());
        informers.namespaces.enqueue_present(&queue);
        let to = Arc::clone(&queue);
        informers.default_accounts.on_change(&queue, move |change| {
            if let Some(account) = change.states().last() {
                to.add(namespace_of(account.as_ref()));
            }
        });
        let to = Arc::clone(&queue);
        informers.root_cas.on_change(&queue, move |change| {
            if let Some(map) = change.states().last() {
                to.add(namespace_of(map.as_ref()));
            }
        });
        let controller = Self {
            accounts_client,
            publisher_client,
            root_ca,
            namespaces: Arc::clone(&informers.namespaces.store),
            accounts: Arc::clone(&informers.default_accounts.store),
            config_maps: Arc::clone(&informers.root_cas.store),
            own: OwnWrites::default(),
        };
        (controller, queue)
    }

    fn wanted_config_map(&self) -> ConfigMap {
        let annotation = ("kubernetes.io/description".to_owned(), DESCRIPTION.to_owned());
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(ROOT_CA.to_owned()),
                annotations: Some(BTreeMap::from([annotation])),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([("ca.crt".to_owned(), self.root_ca.clone())])),
            ..ConfigMap::default()
        }
    }

    /// Creates an object unless it is there; in a namespace that goes away nothing is to be done.
    async fn create<K>(
        &self,
        client: &Client,
        key: &Key,
        store: &Arc<Store<K>>,
        object: &K,
    ) -> Result<(), Failure>
    where
        K: Object + kube::Resource<Scope = NamespaceResourceScope> + Serialize + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(client.clone(), &key.name);
        match api.create(&post_params(), object).await {
            Ok(created) => {
                self.own.wrote(key, store, &created);
                Ok(())
            }
            Err(error)
                if namespace_is_terminating(&error)
                    || status_of(&error).is_some_and(|status| {
                        status.is_already_exists() || status.is_not_found()
                    }) =>
            {
                Ok(())
            }
            Err(error) => Err(error).doing("create what each namespace gets"),
        }
    }
}

impl Reconcile for Controller {
    const NAME: &'static str = "serviceaccount";
    type Key = Key;

    async fn ready(&self) {
        self.namespaces.synced().await;
        self.accounts.synced().await;
        self.config_maps.synced().await;
    }

    async fn reconcile(&self, key: Key) -> Result<Next, Failure> {
        let Some(namespace) = self.namespaces.get(&key) else {
            self.own.forget(&key);
            return Ok(Next::Done);
        };
        let phase = namespace.status.as_ref().and_then(|status| status.phase.as_deref());
        if namespace.metadata.deletion_timestamp.is_some() || phase == Some("Terminating") {
            return Ok(Next::Done);
        }
        if !self.own.all_heard(&key) {
            return Ok(Next::Wait);
        }
        if self.accounts.get(&Key::new(&key.name, DEFAULT)).is_none() {
            let metadata = ObjectMeta { name: Some(DEFAULT.to_owned()), ..ObjectMeta::default() };
            let account = ServiceAccount { metadata, ..ServiceAccount::default() };
            self.create(&self.accounts_client, &key, &self.accounts, &account).await?;
        }
        let wanted = self.wanted_config_map();
        match self.config_maps.get(&Key::new(&key.name, ROOT_CA)) {
            None => self.create(&self.publisher_client, &key, &self.config_maps, &wanted).await?,
            Some(found) if found.data != wanted.data => {
                let api: Api<ConfigMap> = Api::namespaced(self.publisher_client.clone(), &key.name);
                let mut changed = found.as_ref().clone();
                changed.data = wanted.data;
                changed
                    .metadata
                    .annotations
                    .get_or_insert_default()
                    .extend(wanted.metadata.annotations.unwrap_or_default());
                let written = api
                    .replace(ROOT_CA, &post_params(), &changed)
                    .await
                    .doing("put the CA back")?;
                self.own.wrote(&key, &self.config_maps, &written);
            }
            Some(_) => {}
        }
        Ok(Next::Done)
    }
}

fn namespace_of<K: Object>(object: &K) -> Key {
    Key::new("", object.meta().namespace.as_deref().unwrap_or_default())
}
