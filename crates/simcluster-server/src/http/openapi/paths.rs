//! The paths of a resource with their operations.

use serde_json::{Map, Value, json};

use super::schemas::{meta, reference};
use simcluster_model::object::put;
use simcluster_model::resource::Resource;

/// Names of a resource's schemas.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) schema: String,
    pub(super) list_schema: String,
}

/// What an operation does, and to what.
struct Operation<'a> {
    resource: &'a Resource,
    method: &'static str,
    action: &'static str,
    subresource: &'a str,
    /// Schema of the body and of the answer.
    schema: Value,
    answer: Value,
    kind: Value,
}

const LIST_PARAMETERS: [&str; 11] = [
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "pretty",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
];

/// Adds the paths of a resource and its subresources; `verbs_of` tells the verbs of either by its name
/// in discovery.
pub(super) fn add(
    paths: &mut Map<String, Value>,
    resource: &Resource,
    kind: &Kind,
    verbs_of: &dyn Fn(&str) -> Vec<String>,
) {
    let root = if resource.group.is_empty() {
        format!("/api/{}", resource.version)
    } else {
        format!("/apis/{}/{}", resource.group, resource.version)
    };
    let plural = &resource.plural;
    let collection = if resource.namespaced {
        format!("{root}/namespaces/{{namespace}}/{plural}")
    } else {
        format!("{root}/{plural}")
    };
    let verbs = verbs_of(plural);
    let own = [
        (
            collection.clone(),
            vec![("get", "list"), ("post", "create"), ("delete", "deletecollection")],
        ),
        (
            format!("{collection}/{{name}}"),
            vec![("get", "get"), ("put", "update"), ("patch", "patch"), ("delete", "delete")],
        ),
    ];
    for (path, methods) in own {
        let operations =
            methods.into_iter().filter(|(_, verb)| verbs.iter().any(|one| one == verb));
        let operations = operations.map(|(method, verb)| main(resource, kind, method, verb));
        insert(paths, path, operations);
    }
    if resource.namespaced && verbs.iter().any(|verb| verb == "list") {
        let everywhere = std::iter::once(main(resource, kind, "get", "list"));
        insert(paths, format!("{root}/{plural}"), everywhere);
    }
    for subresource in &resource.subresources {
        let verbs = verbs_of(&format!("{plural}/{subresource}"));
        let methods = [("get", "get"), ("put", "update"), ("patch", "patch"), ("post", "create")];
        let operations =
            methods.into_iter().filter(|(_, verb)| verbs.iter().any(|one| one == verb));
        let operations =
            operations.map(|(method, verb)| below(resource, kind, subresource, method, verb));
        insert(paths, format!("{collection}/{{name}}/{subresource}"), operations);
    }
}

fn insert<'a>(
    paths: &mut Map<String, Value>,
    path: String,
    operations: impl Iterator<Item = Operation<'a>>,
) {
    let mut item: Map<String, Value> = operations
        .map(|operation| (operation.method.to_owned(), operation.describe(&path)))
        .collect();
    if item.is_empty() {
        return;
    }
    let mut parameters = Vec::new();
    for name in ["name", "namespace"] {
        if path.contains(&format!("{{{name}}}")) {
            let schema = json!({ "type": "string", "uniqueItems": true });
            parameters
                .push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
        }
    }
    parameters.push(query_parameter("pretty"));
    item.insert("parameters".to_owned(), Value::Array(parameters));
    paths.insert(path, Value::Object(item));
}

fn main<'a>(
    resource: &'a Resource,
    kind: &Kind,
    method: &'static str,
    verb: &'static str,
) -> Operation<'a> {
    let schema = reference(&kind.schema);
    let answer = match verb {
        "list" => reference(&kind.list_schema),
        "delete" | "deletecollection" => meta("Status"),
        _ => schema.clone(),
    };
    let kind = group_version_kind(&resource.group, &resource.version, &resource.kind);
    let action = action(method, verb);
    Operation { resource, method, action, subresource: "", schema, answer, kind }
}

fn below<'a>(
    resource: &'a Resource,
    kind: &Kind,
    subresource: &'a str,
    method: &'static str,
    verb: &'static str,
) -> Operation<'a> {
    let (schema, kind) = match subresource {
        "scale" => (
            reference("io.k8s.api.autoscaling.v1.Scale"),
            group_version_kind("autoscaling", "v1", "Scale"),
        ),
        "eviction" => (
            reference("io.k8s.api.policy.v1.Eviction"),
            group_version_kind("policy", "v1", "Eviction"),
        ),
        "binding" => {
            (reference("io.k8s.api.core.v1.Binding"), group_version_kind("", "v1", "Binding"))
        }
        "token" => (
            reference("io.k8s.api.authentication.v1.TokenRequest"),
            group_version_kind("authentication.k8s.io", "v1", "TokenRequest"),
        ),
        _ => (
            reference(&kind.schema),
            group_version_kind(&resource.group, &resource.version, &resource.kind),
        ),
    };
    let (action, answer) = (action(method, verb), schema.clone());
    Operation { resource, method, action, subresource, schema, answer, kind }
}

fn action(method: &'static str, verb: &'static str) -> &'static str {
    match verb {
        "list" | "deletecollection" => verb,
        _ => method,
    }
}

fn group_version_kind(group: &str, version: &str, kind: &str) -> Value {
    json!({ "group": group, "version": version, "kind": kind })
}

fn query_parameter(name: &str) -> Value {
    let kind = match name {
        "allowWatchBookmarks" | "force" | "orphanDependents" | "sendInitialEvents" | "watch" => {
            "boolean"
        }
        "gracePeriodSeconds" | "limit" | "timeoutSeconds" => "integer",
        _ => "string",
    };
    json!({ "name": name, "in": "query", "schema": { "type": kind, "uniqueItems": true } })
}

impl Operation<'_> {
    fn describe(&self, path: &str) -> Value {
        let mut operation = json!({
            "tags": [self.tag()],
            "operationId": self.id(path),
            "responses": self.responses(),
            "x-kubernetes-action": self.action,
            "x-kubernetes-group-version-kind": self.kind,
        });
        let parameters = self.parameters();
        if !parameters.is_empty() {
            let parameters = parameters.iter().map(|name| query_parameter(name)).collect();
            put(&mut operation, "parameters", parameters);
        }
        if let Some(body) = self.body() {
            put(&mut operation, "requestBody", body);
        }
        operation
    }

    fn parameters(&self) -> &'static [&'static str] {
        match self.action {
            "list" | "deletecollection" => &LIST_PARAMETERS,
            "post" | "put" => &["dryRun", "fieldManager", "fieldValidation"],
            "patch" => &["dryRun", "fieldManager", "fieldValidation", "force"],
            "delete" => &["dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"],
            _ => &["resourceVersion"],
        }
    }

    fn body(&self) -> Option<Value> {
        let content = match self.action {
            "post" | "put" => written_as(&["application/json", "application/yaml"], &self.schema),
            "patch" => {
                let mut types = vec![
                    "application/apply-patch+yaml",
                    "application/json-patch+json",
                    "application/merge-patch+json",
                ];
                if !self.resource.custom {
                    types.push("application/strategic-merge-patch+json");
                }
                written_as(&types, &meta("Patch"))
            }
            "delete" | "deletecollection" => {
                let content =
                    written_as(&["application/json", "application/yaml"], &meta("DeleteOptions"));
                return Some(json!({ "content": content }));
            }
            _ => return None,
        };
        Some(json!({ "content": content, "required": true }))
    }

    fn responses(&self) -> Value {
        let codes: &[(&str, &str)] = match (self.action, self.resource.custom) {
            ("post", _) => &[("200", "OK"), ("201", "Created"), ("202", "Accepted")],
            ("put", _) | ("patch", false) => &[("200", "OK"), ("201", "Created")],
            ("delete", _) => &[("200", "OK"), ("202", "Accepted")],
            _ => &[("200", "OK")],
        };
        let content = written_as(&["application/json", "application/yaml"], &self.answer);
        let mut responses: Map<String, Value> = codes
            .iter()
            .map(|(code, text)| {
                ((*code).to_owned(), json!({ "description": text, "content": content }))
            })
            .collect();
        responses.insert("401".to_owned(), json!({ "description": "Unauthorized" }));
        Value::Object(responses)
    }

    fn tag(&self) -> String {
        let group = capitalized(&self.resource.group, self.resource.custom);
        let mut letters = group.chars();
        let first = letters.next().map(|c| c.to_ascii_lowercase());
        let group: String = first.into_iter().chain(letters).collect();
        format!("{group}_{}", self.resource.version)
    }

    /// Unique in the document, such as `listAppsV1NamespacedDeployment`.
    fn id(&self, path: &str) -> String {
        let verb = match self.action {
            "get" => "read",
            "put" => "replace",
            "post" => "create",
            "deletecollection" => "delete",
            other => other,
        };
        let Resource { group, version, kind, namespaced, custom, .. } = self.resource;
        let group = capitalized(group, *custom);
        let version = capitalized_word(version);
        let collection = if self.action == "deletecollection" { "Collection" } else { "" };
        let in_namespace = path.contains("{namespace}");
        let scope = if in_namespace { "Namespaced" } else { "" };
        let everywhere = if *namespaced && !in_namespace { "ForAllNamespaces" } else { "" };
        let below = capitalized_word(self.subresource);
        format!("{verb}{group}{version}{collection}{scope}{kind}{below}{everywhere}")
    }
}

fn written_as(media_types: &[&str], schema: &Value) -> Value {
    media_types.iter().map(|one| ((*one).to_owned(), json!({ "schema": schema }))).collect()
}

/// `example.com` as `ExampleCom`; built-in groups drop `.k8s.io`, the core group is `Core`.
fn capitalized(group: &str, custom: bool) -> String {
    let group = match group {
        "" => "core",
        built_in if !custom => built_in.trim_end_matches(".k8s.io"),
        custom => custom,
    };
    group.split(['.', '-']).map(capitalized_word).collect()
}

fn capitalized_word(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}
