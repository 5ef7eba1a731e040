//! Faults on demand: what goes wrong on a real cluster, at moments that a test chooses.
//!
//! A [`Rule`] says which requests or watch events it means ([`On`]) and what happens to them
//! ([`Effect`]): before the request does anything, after it did and before its answer goes out, or
//! before an event of a watch is delivered. Rules are plain data, so they can be generated, printed and
//! compared. They act on clients in the same process and over HTTPS alike.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::api::{Api, PostParams};
//! use simcluster::User;
//! use simcluster::SimCluster;
//! use simcluster::faults::{Effect, Failure, On, Rule};
//!
//! # let mut runtime = tokio::runtime::Builder::new_current_thread();
//! # runtime.enable_all().start_paused(true).build().unwrap().block_on(async {
//! let cluster = SimCluster::builder().start().unwrap();
//! // A client that does not try again by itself.
//! let client = cluster.client_without_retry(User::admin());
//! let api: Api<ConfigMap> = Api::namespaced(client, "default");
//! let mut object = ConfigMap::default();
//! object.metadata.name = Some("a".to_owned());
//!
//! // The next create is done, but its answer says that it took too long.
//! let creates = On::any().verb("create").resource("configmaps");
//! let faults = cluster.faults();
//! let late = faults.add(Rule::reply(creates, Effect::Fail(Failure::Timeout)));
//! let error = api.create(&PostParams::default(), &object).await.unwrap_err();
//! assert!(matches!(error, kube::Error::Api(status) if status.code == 504));
//! assert_eq!(late.hits(), 1);
//! assert!(api.get("a").await.is_ok());
//!
//! // The next watch event of `b` is held until the test lets it go.
//! let held = faults.add(Rule::event(On::any().name("b"), Effect::Hold));
//! // ...
//! held.remove();
//! # });
//! ```
//!
//! Which effects a real cluster shows, and when:
//!
//! | effect | on a request | on a reply | on an event |
//! |---|---|---|---|
//! | [`Fail`](Effect::Fail) | the error; nothing was done | the error; it was done | `ERROR`, the end |
//! | [`Reset`](Effect::Reset) | the connection breaks; nothing was done | it breaks; it was done | it breaks |
//! | [`CutShort`](Effect::CutShort) | as `Reset` | half an answer | half a line |
//! | [`Close`](Effect::Close) | as `Reset` | as `Reset` | the watch ends |
//! | [`Silence`](Effect::Silence) | the request is lost | the answer is lost | nothing comes any more |
//! | [`Delay`](Effect::Delay), [`Hold`](Effect::Hold) | it is done later | its answer comes later | it comes later |
//!
//! A request other than a watch that takes longer than its `?timeout=`, or a minute, is answered with a
//! 504, as a real server does.

pub use simcluster_server::gate::{
    ConnectionReset, Effect, Failure, Fault, Faults, On, Rule, Stage,
};
pub use simcluster_server::store::Compacted;
