//! The endpoint controllers: `EndpointSlices` and the older Endpoints follow the Pods that a Service
//! selects.

use std::sync::Arc;

use crate::types::EndpointSlice;
use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use kube::Client;
use kube::api::{DeleteParams, Preconditions};

use self::slices::{Action, selects};
use super::runtime::selectors::Pairs;
use super::runtime::{
    Api, Doing, Failure, Key, Next, OwnWrites, Queue, Reconcile, Selectors, Store,
    namespace_is_terminating, status_of, unless_overtaken,
};
use super::{Informers, pods, post_params};

mod legacy;
mod slices;
#[cfg(test)]
mod tests;

/// Selects the slices that this controller keeps.
pub(super) fn slice_selector() -> String {
    format!("{}={}", slices::MANAGED_BY, slices::MANAGER)
}

/// The group that the slices of a Service are found under.
pub(super) fn service_of(slice: &EndpointSlice) -> Option<String> {
    let labels = slice.metadata.labels.as_ref()?;
    let name = labels.get(slices::SERVICE_NAME)?;
    Some(format!("{}/{name}", slice.metadata.namespace.as_deref().unwrap_or_default()))
}

/// The controllers' hands and memory.
pub(crate) struct Controller {
    slices_client: Client,
    endpoints_client: Client,
    services: Arc<Store<Service>>,
    selectors: Arc<Selectors>,
    pods: Arc<Store<Pod>>,
    slices: Arc<Store<EndpointSlice>>,
    endpoints: Arc<Store<Endpoints>>,
    own: OwnWrites,
}

impl Controller {
    /// Hooks the controllers to the informers. The keys are Services.
    pub(crate) fn wire(
        slices_client: Client,
        endpoints_client: Client,
        informers: &mut Informers,
    ) -> (Self, Arc<Queue<Key>>) {
        let queue = Arc::new(Queue::new());
        let controller = Self {
            slices_client,
            endpoints_client,
            services: Arc::clone(&informers.services.store),
            selectors: informers.services.enqueue_selecting(&queue, selects),
            pods: Arc::clone(&informers.pods.store),
            slices: Arc::clone(&informers.endpoint_slices.store),
            endpoints: Arc::clone(&informers.endpoints.store),
            own: OwnWrites::default(),
        };
        let (to, selectors) = (Arc::clone(&queue), Arc::clone(&controller.selectors));
        informers.pods.on_change(&queue, move |change| {
            for pod in change.states() {
                let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
                for key in selectors.matching(namespace, pod.metadata.labels.as_ref()) {
                    to.add(key);
                }
            }
        });
        let to = Arc::clone(&queue);
        informers.endpoint_slices.on_change(&queue, move |change| {
            for slice in change.states() {
                let labels = slice.metadata.labels.as_ref();
                let name = labels.and_then(|labels| labels.get(slices::SERVICE_NAME));
                let namespace = slice.metadata.namespace.as_deref().unwrap_or_default();
                if let Some(name) = name {
                    to.add(Key::new(namespace, name));
                }
            }
        });
        informers.endpoints.enqueue_changed(&queue);
        (controller, queue)
    }

    async fn write_slice(&self, key: &Key, action: Action) -> Result<(), Failure> {
        let api: Api<EndpointSlice> = Api::namespaced(self.slices_client.clone(), &key.namespace);
        match action {
            Action::Create(slice) => match api.create(&post_params(), &slice).await {
                Err(error) if namespace_is_terminating(&error) => {}
                result => {
                    self.own.wrote(key, &self.slices, &result.doing("create an EndpointSlice")?);
                }
            },
            Action::Update(slice) => {
                let name = slice.metadata.name.clone().unwrap_or_default();
                let result = api.replace(&name, &post_params(), &slice).await;
                self.own.wrote(key, &self.slices, &result.doing("update an EndpointSlice")?);
            }
            Action::Delete(slice) => {
                let params = precisely(slice.metadata.uid.clone());
                let name = slice.metadata.name.as_deref().unwrap_or_default();
                match api.delete(name, &params).await {
                    Err(error)
                        if status_of(&error).is_some_and(kube::core::Status::is_not_found) => {}
                    result => drop(result.doing("delete an EndpointSlice")?),
                }
                self.own.deleted(key, &self.slices, slice.as_ref());
            }
        }
        Ok(())
    }

    async fn write_endpoints(
        &self,
        key: &Key,
        wanted: &Endpoints,
        is_new: bool,
    ) -> Result<(), Failure> {
        let api = self.endpoints_api(key);
        let result = if is_new {
            api.create(&post_params(), wanted).await
        } else {
            api.replace(&key.name, &post_params(), wanted).await
        };
        match result {
            Err(error) if namespace_is_terminating(&error) => Ok(()),
            result => {
                self.own.wrote(key, &self.endpoints, &result.doing("write Endpoints")?);
                Ok(())
            }
        }
    }

    /// Endpoints have no owner reference: they are deleted when their Service is gone.
    async fn clear(&self, key: &Key) -> Result<Next, Failure> {
        let Some(endpoints) = self.endpoints.get(key) else { return Ok(Next::Done) };
        let labels = endpoints.metadata.labels.as_ref();
        let keeper = labels.and_then(|labels| labels.get(legacy::MANAGED_BY));
        if keeper.map(String::as_str) != Some(legacy::MANAGER) {
            return Ok(Next::Done);
        }
        let params = precisely(endpoints.metadata.uid.clone());
        let deleted = self.endpoints_api(key).delete(&key.name, &params).await;
        unless_overtaken(deleted).doing("delete the Endpoints of a Service that is gone")?;
        Ok(Next::Done)
    }

    fn endpoints_api(&self, key: &Key) -> Api<Endpoints> {
        Api::namespaced(self.endpoints_client.clone(), &key.namespace)
    }
}

impl Reconcile for Controller {
    const NAME: &'static str = "endpoints";
    type Key = Key;

    async fn ready(&self) {
        self.services.synced().await;
        self.pods.synced().await;
        self.slices.synced().await;
        self.endpoints.synced().await;
    }

    async fn reconcile(&self, key: Key) -> Result<Next, Failure> {
        if !self.own.all_heard(&key) {
            return Ok(Next::Wait);
        }
        let Some(service) = self.services.get(&key) else { return self.clear(&key).await };
        let Some(selector) = selects(&service) else { return Ok(Next::Done) };
        if service.metadata.deletion_timestamp.is_some() {
            return Ok(Next::Done);
        }
        let mut pods = pods::with_labels(&self.pods, &key.namespace, selector);
        pods.retain(|pod| is_selected(selector, pod));
        let existing = self.slices.group(&key.to_string());
        for action in slices::plan(&service, &pods, &existing) {
            self.write_slice(&key, action).await?;
        }
        let current = self.endpoints.get(&key);
        if let Some(wanted) = legacy::wanted(&service, &pods, current.as_deref()) {
            self.write_endpoints(&key, &wanted, current.is_none()).await?;
        }
        Ok(Next::Done)
    }
}

fn is_selected(selector: &Pairs, pod: &Pod) -> bool {
    let labels = pod.metadata.labels.as_ref();
    selector.iter().all(|(key, value)| labels.and_then(|all| all.get(key)) == Some(value))
}

fn precisely(uid: Option<String>) -> DeleteParams {
    let preconditions = Some(Preconditions { uid, resource_version: None });
    DeleteParams { preconditions, ..DeleteParams::default() }
}
