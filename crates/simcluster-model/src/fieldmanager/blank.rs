//! The object that is there before an object is created.

use serde_json::{Value, json};

use crate::builtin::decode_typed;
use crate::resource::Resource;

/// An object of the resource with nothing in it. A custom resource is then really empty; a built-in
/// one is a Go struct, and holds the fields that such a struct cannot leave out.
pub(super) fn object(resource: &Resource) -> Value {
    let blank = json!({ "apiVersion": resource.api_version(), "kind": resource.kind });
    if resource.custom {
        return blank;
    }
    decode_typed(blank.clone(), &resource.schema, "").map_or(blank, |decoded| decoded.object)
}
