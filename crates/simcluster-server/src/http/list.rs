//! Lists as bodies: put together of the texts of their objects.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use serde_json::Value;
use simcluster_model::codec::declared::ItemForm;

use crate::http::accept::Format;
use crate::http::response::{self, Body, Writing};
use crate::http::texts::{TextForm, Texts};
use crate::verbs::List;

/// A list of whole objects, written.
pub(super) fn response(list: &List, writing: Writing, texts: &Texts) -> Response<Body> {
    if writing.format != Format::Json || writing.pretty {
        return response::value(200, writing, &list.to_value());
    }
    let form = ItemForm::new(&list.resource);
    let written =
        |object: &Value| Bytes::from(serde_json::to_vec(&form.of(object)).unwrap_or_default());
    let item = |stored: &Arc<Value>| {
        let write = || {
            if list.resource.shows_what_is_stored() {
                written(stored)
            } else {
                written(&list.object(stored))
            }
        };
        texts.of((stored, &list.resource, None), TextForm::Item, write)
    };
    let items: Vec<Bytes> = list.items.iter().map(item).collect();
    let kind = Value::from(list.resource.list_kind.as_str());
    let size = items.iter().map(|item| item.len() + 1).sum::<usize>();
    let mut text = Vec::with_capacity(size + 256);
    text.extend_from_slice(b"{\"kind\":");
    text.extend(json_of(&kind));
    text.extend_from_slice(b",\"apiVersion\":");
    text.extend(json_of(&Value::from(list.resource.api_version())));
    text.extend_from_slice(b",\"metadata\":");
    text.extend(json_of(&list.metadata));
    text.extend_from_slice(b",\"items\":[");
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            text.push(b',');
        }
        text.extend_from_slice(item);
    }
    text.extend_from_slice(b"]}\n");
    response::response(200, writing.content_type(), Body::full(text))
}

/// A value of JSON can always be written to memory.
fn json_of(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
