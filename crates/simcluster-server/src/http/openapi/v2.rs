//! The OpenAPI v2 document: what the documents of v3 say, all in one and in the older form.
//!
//! kubectl asks for it when v3 does not know a kind, and says then that there is no such kind.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::Response;
use http::header::{ACCEPT, ETAG, IF_NONE_MATCH, LAST_MODIFIED, VARY};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Document, all_versions, empty, find, gnostic, http_time, schemas};
use crate::http::accept;
use crate::http::pipeline::Exchange;
use crate::http::response::{self, Body, set_header};
use crate::resources::Resources;

/// Media type of documents in protobuf, as answers have it.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The document that was written last.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<Option<Written>>);

impl Kept {
    /// The document of a set of resources: made when it is first asked for.
    fn of(&self, exchange: &Exchange<'_>, served: Arc<Resources>) -> Written {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.as_ref().filter(|one| Arc::ptr_eq(&one.of, &served)) {
            return known.clone();
        }
        let value = value(exchange, &served);
        let json = Document::new(&value);
        let protobuf = Bytes::from(gnostic::encode(&value));
        let made = exchange.server.clock().now();
        kept.insert(Written { of: served, made, json, protobuf }).clone()
    }
}

/// A document in both of its forms.
#[derive(Debug, Clone)]
struct Written {
    /// The resources that it describes.
    of: Arc<Resources>,
    made: Timestamp,
    json: Document,
    protobuf: Bytes,
}

/// `/openapi/v2`.
pub(in crate::http) fn v2(exchange: &Exchange<'_>) -> Response<Body> {
    let answer = match accept::openapi_v2(exchange.header(&ACCEPT)) {
        Some(form) => document(exchange, form),
        None => empty(http::StatusCode::NOT_ACCEPTABLE),
    };
    with_header(answer, VARY, "Accept-Encoding, Accept")
}

fn document(exchange: &Exchange<'_>, form: accept::OpenApi) -> Response<Body> {
    let server = exchange.server;
    let written = server.openapi_v2().of(exchange, server.served());
    let etag = format!("\"{}\"", written.json.hash);
    let answer = match form {
        _ if exchange.header(&IF_NONE_MATCH) == etag => empty(http::StatusCode::NOT_MODIFIED),
        accept::OpenApi::Json => {
            response::response(200, "application/json", Body::full(written.json.text))
        }
        accept::OpenApi::Protobuf => {
            response::response(200, PROTOBUF, Body::full(written.protobuf))
        }
    };
    let answer = with_header(answer, ETAG, &etag);
    with_header(answer, LAST_MODIFIED, &http_time(written.made))
}

fn with_header(mut answer: Response<Body>, name: http::HeaderName, value: &str) -> Response<Body> {
    set_header(&mut answer, name, value);
    answer
}

fn value(exchange: &Exchange<'_>, served: &Resources) -> Value {
    let (mut paths, mut definitions) = (Map::new(), Map::new());
    for (group, version) in all_versions(served.all()) {
        let Some(written) = find(exchange, served.all(), &group, &version) else { continue };
        // What was written here can be read.
        let mut document = serde_json::from_slice(&written.text).unwrap_or_default();
        for (path, item) in taken(&mut document, "/paths") {
            paths.insert(path, path_item(item));
        }
        for (name, schema) in taken(&mut document, "/components/schemas") {
            definitions.entry(name).or_insert_with(|| schemas::in_v2(schema));
        }
    }
    json!({
        "swagger": "2.0",
        "info": { "title": "Kubernetes", "version": "1.37" },
        "paths": paths,
        "definitions": definitions,
        "securityDefinitions": { "BearerToken": {
            "description": "Bearer Token authentication",
            "type": "apiKey",
            "name": "authorization",
            "in": "header",
        } },
        "security": [{ "BearerToken": [] }],
    })
}

fn taken(document: &mut Value, pointer: &str) -> Map<String, Value> {
    match document.pointer_mut(pointer).map(Value::take) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

fn path_item(item: Value) -> Value {
    let Value::Object(item) = item else { return item };
    let each = |(key, value): (String, Value)| match key.as_str() {
        "parameters" => (key, parameters(value)),
        _ => (key, operation(value)),
    };
    item.into_iter().map(each).collect()
}

fn parameters(list: Value) -> Value {
    let Value::Array(list) = list else { return list };
    list.into_iter().map(parameter).collect()
}

/// The type of a parameter stands beside its name.
fn parameter(parameter: Value) -> Value {
    let Value::Object(mut parameter) = parameter else { return parameter };
    if let Some(Value::Object(schema)) = parameter.remove("schema") {
        parameter.extend(schema);
    }
    Value::Object(parameter)
}

/// Bodies are parameters, and media types stand in lists of their own.
fn operation(operation: Value) -> Value {
    let Value::Object(mut operation) = operation else { return operation };
    let mut list = match operation.remove("parameters").map(parameters) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    let mut consumes = json!(["*/*"]);
    if let Some(body) = operation.remove("requestBody") {
        let (types, schema) = content(&body);
        consumes = types;
        let mut parameter = json!({ "name": "body", "in": "body", "schema": schema });
        if let (Value::Object(map), Some(required)) = (&mut parameter, body.get("required")) {
            map.insert("required".to_owned(), required.clone());
        }
        list.insert(0, parameter);
    }
    let mut produces = Value::Null;
    if let Some(Value::Object(responses)) = operation.get_mut("responses") {
        for response in responses.values_mut() {
            let (types, schema) = content(response);
            let Value::Object(map) = response else { continue };
            if map.remove("content").is_some() {
                produces = types;
                map.insert("schema".to_owned(), schema);
            }
        }
    }
    let own = [("consumes", consumes), ("produces", produces), ("schemes", json!(["https"]))];
    operation.extend(own.map(|(key, value)| (key.to_owned(), value)));
    if !list.is_empty() {
        operation.insert("parameters".to_owned(), Value::Array(list));
    }
    Value::Object(operation)
}

/// The media types of a body and its schema.
fn content(body: &Value) -> (Value, Value) {
    let content = body.get("content").and_then(Value::as_object);
    let types = content.into_iter().flatten().map(|(media_type, _)| media_type.as_str()).collect();
    let schema = content.and_then(|content| content.values().next()?.get("schema")).cloned();
    (types, schemas::in_v2(schema.unwrap_or_default()))
}
