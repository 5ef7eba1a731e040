//! `SimpleApp`: an image that runs behind a Service and, if it has a host, an Ingress.
//!
//! Every rule that a schema or a CEL expression can hold stands here, so that it holds without a
//! webhook. The operator checks the same rules again in [`crate::simpleapp::validate`], because an
//! object may have been stored before a rule existed.

#![expect(unreachable_pub, reason = "the derive repeats the types in private scopes")]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, CustomResourceExt, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{crd, schema};

/// Group of the kind.
pub const GROUP: &str = "apps.bootcamp.local";
/// Version of the kind that is served and stored.
pub const VERSION: &str = "v1";
/// Name of the kind.
pub const KIND: &str = "SimpleApp";
/// Name of the kind in paths.
pub const PLURAL: &str = "simpleapps";
/// Keeps a deleted app until its clean-up is done.
pub const FINALIZER: &str = "apps.bootcamp.local/simpleapp-finalizer";

/// Longest image reference: a name of 255, a tag of 128, and a sha512 digest.
pub const IMAGE_LENGTH_MAX: usize = 255 + 1 + 128 + 1 + "sha512:".len() + 128;

/// An image reference as container runtimes parse it: registry, path, tag, digest.
pub const IMAGE_PATTERN: &str = concat!(
    r"^(([a-zA-Z0-9]|[a-zA-Z0-9][-a-zA-Z0-9]*[a-zA-Z0-9])(\.([a-zA-Z0-9]|[a-zA-Z0-9][-a-zA-Z0-9]*[a-zA-Z0-9]))*(:[0-9]+)?/|\[[a-fA-F0-9:]+\](:[0-9]+)?/)?",
    r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*",
    r"(:[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127})?",
    r"(@(sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}))?$",
);

/// A DNS name in lower case with labels of at most 63, and at most one leading `*.`.
pub const HOST_PATTERN: &str =
    r"^(\*\.)?[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$";

/// What a user asks for.
#[derive(CustomResource, KubeSchema, Deserialize, Serialize, Clone, Debug, PartialEq, Eq)]
#[kube(
    group = "apps.bootcamp.local",
    version = "v1",
    kind = "SimpleApp",
    plural = "simpleapps",
    singular = "simpleapp",
    shortname = "sapp",
    namespaced,
    status = "SimpleAppStatus",
    doc = "An image that runs behind a Service and, if it has a host, an Ingress.",
    derive = "PartialEq",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.image"),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".spec.replicas"),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "URL", type_ = "string", json_path = ".status.url"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")
        .message("metadata.name becomes the name of a Service: at most 63 characters of a-z, 0-9 and -, that start with a letter and do not end with -")
        .reason(Reason::FieldValueInvalid)
)]
#[serde(rename_all = "camelCase")]
pub struct SimpleAppSpec {
    /// The container image: `[registry[:port]/]path[:tag][@digest]`.
    #[schemars(length(min = 3, max = 520))]
    #[x_kube(
        validation = Rule::new(matches(IMAGE_PATTERN))
            .message("must be an image reference: [registry[:port]/]path[:tag][@digest], the path in lower case"),
        validation = Rule::new("self.size() <= 255 || self.matches('^[^@]{1,255}(:[^:/@]+)?(@.*)?$')")
            .message("the name before tag and digest has at most 255 characters"),
        validation = Rule::new("!self.matches('^[a-f0-9]{64}$')")
            .message("64 hexadecimal digits are an image ID, not a name")
    )]
    pub image: String,

    /// How many pods run; 0 switches the app off.
    #[serde(default = "default_replicas")]
    #[schemars(range(min = 0))]
    pub replicas: i32,

    /// Port of the container and of the Service.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,

    /// DNS name that the app is reachable at; absent: no Ingress. May start with `*.`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(
        validation = Rule::new(matches(HOST_PATTERN))
            .message("must be a DNS name in lower case, such as web.example.com or *.example.com: no scheme, port, path or trailing dot, labels of at most 63 characters, international names in punycode"),
        validation = Rule::new("!self.matches('^[0-9]+[.][0-9]+[.][0-9]+[.][0-9]+$')")
            .message("must be a DNS name, not an IP address")
    )]
    pub host: Option<String>,
}

/// A rule that says what `pattern` means: with `pattern` in the schema, the server's message would
/// be the expression itself.
fn matches(pattern: &str) -> String {
    format!("self.matches('{}')", pattern.replace('\\', r"\\"))
}

/// Replicas of an app that does not say.
#[must_use]
pub fn default_replicas() -> i32 {
    1
}

/// Port of an app that does not say.
#[must_use]
pub fn default_port() -> i32 {
    80
}

/// State of an app in one word.
#[derive(Deserialize, Serialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// There is no Deployment yet.
    Pending,
    /// The Deployment is on its way to what the spec says.
    Progressing,
    /// All replicas of the current spec are ready and no others are left.
    Available,
    /// Somebody has to look; `message` says at what.
    Failed,
}

/// What the operator sees.
#[derive(KubeSchema, Deserialize, Serialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SimpleAppStatus {
    /// State in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,

    /// What somebody on call needs to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,

    /// How many pods are ready.
    #[serde(default)]
    pub ready_replicas: i32,

    /// How many pods there are.
    #[serde(default)]
    pub replicas: i32,

    /// Label selector of the pods, as the scale subresource wants it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,

    /// Where the app is reachable, if it has a host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,

    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// When another field of this status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_updated: Option<Time>,

    /// Available, Progressing, Degraded, NameConflict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// The definition of the kind, as it is meant to be installed.
#[must_use]
pub fn definition() -> CustomResourceDefinition {
    serde_json::from_value(crd::to_json(&SimpleApp::crd()))
        .expect("tidying keeps a definition a definition")
}
