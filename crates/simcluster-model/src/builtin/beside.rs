//! Decoding of kinds that paths of other kinds take: options of a delete, scales, requests for tokens.

use std::sync::Arc;

use serde_json::Value;

use super::decode::decode_typed;
use super::definition_name;
use crate::resource::{Decoded, Resource};
use crate::schema::{Schema, definition};

const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// Decodes a `DeleteOptions`. Any group may have one, and a body need not say that it is one; `Err` is
/// the text of the 400.
pub fn decode_delete_options(body: Value) -> Result<Value, String> {
    /// Kinds that, like `DeleteOptions`, belong to no version.
    const UNVERSIONED: [&str; 7] = [
        "Status",
        "APIVersions",
        "APIGroup",
        "APIGroupList",
        "APIResourceList",
        "CreateOptions",
        "UpdateOptions",
    ];
    let text = |key: &str| body.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let api_version = text("apiVersion").unwrap_or("meta.k8s.io/v1");
    if api_version.matches('/').count() > 1 {
        return Err(format!("unexpected GroupVersion string: {api_version}"));
    }
    match text("kind").unwrap_or("DeleteOptions") {
        "DeleteOptions" => {}
        kind if UNVERSIONED.contains(&kind) => {
            let why = "unknown conversion";
            return Err(format!("converting (v1.{kind}) to (v1.DeleteOptions): {why}"));
        }
        kind => return Err(not_registered(api_version, kind)),
    }
    let schema = definition(DELETE_OPTIONS).unwrap_or_default();
    decode_typed(body, schema.get(), "").map(|decoded| decoded.object)
}

/// A kind that paths of other kinds take.
#[derive(Debug)]
pub struct Beside {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    /// Go's package of its internal type.
    package: &'static str,
    definition: &'static str,
}

impl Beside {
    /// The name of its OpenAPI definition.
    #[must_use]
    pub fn definition(&self) -> &'static str {
        self.definition
    }

    /// Its schema.
    #[must_use]
    pub fn schema(&self) -> Arc<Schema> {
        Arc::clone(definition(self.definition).unwrap_or_default().get())
    }
}

/// `Scale`
pub static SCALE: Beside = Beside {
    group: "autoscaling",
    version: "v1",
    kind: "Scale",
    package: "autoscaling",
    definition: "io.k8s.api.autoscaling.v1.Scale",
};

/// `Binding`
pub static BINDING: Beside = Beside {
    group: "",
    version: "v1",
    kind: "Binding",
    package: "core",
    definition: "io.k8s.api.core.v1.Binding",
};

/// `Eviction`
pub static EVICTION: Beside = Beside {
    group: "policy",
    version: "v1",
    kind: "Eviction",
    package: "policy",
    definition: "io.k8s.api.policy.v1.Eviction",
};

/// `TokenRequest`
pub static TOKEN_REQUEST: Beside = Beside {
    group: "authentication.k8s.io",
    version: "v1",
    kind: "TokenRequest",
    package: "authentication",
    definition: "io.k8s.api.authentication.v1.TokenRequest",
};

impl Beside {
    /// A resource whose objects are of this kind, on the path of another one.
    #[must_use]
    pub fn resource(&self, path: &Resource) -> Resource {
        Resource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            kind: self.kind.to_owned(),
            custom: false,
            schema: self.schema(),
            ..Resource::clone(path)
        }
    }

    /// Decodes an object of the kind; `Err` is the text of Go's decoder.
    pub fn decode(&self, body: Value) -> Result<Decoded, String> {
        let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        if (group, version, kind) != (self.group, self.version, self.kind) {
            if definition_name(api_version, kind).is_none() {
                return Err(not_registered(api_version, kind));
            }
            let to = format!("{}.{}", self.package, self.kind);
            return Err(format!("converting ({version}.{kind}) to ({to}): unknown conversion"));
        }
        decode_typed(body, &self.schema(), "")
    }
}

/// The text of Go's scheme about a kind that it does not know.
pub(super) fn not_registered(api_version: &str, kind: &str) -> String {
    format!(
        "no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \
         \"pkg/runtime/scheme.go:111\""
    )
}
