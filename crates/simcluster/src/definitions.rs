//! CRDs in the forms in which people have them.

use serde::Serialize;
use serde_json::Value;

/// Why something is no list of CRDs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDefinition {
    /// It cannot be written as JSON.
    #[error("a CRD cannot be written as JSON: {0}")]
    Unwritable(String),
    /// The text is no YAML.
    #[error("a CRD's text is no YAML: {0}")]
    Syntax(String),
    /// A document is something else.
    #[error("{0}, where only CustomResourceDefinitions of apiextensions.k8s.io/v1 may be")]
    OtherKind(String),
}

/// The CRDs in a typed definition, in JSON, in a list of either (one of Kubernetes' too), or in a text of YAML documents, of which
/// empty ones count for nothing.
pub(crate) fn parse(given: impl Serialize) -> Result<Vec<Value>, InvalidDefinition> {
    let value = serde_json::to_value(given)
        .map_err(|error| InvalidDefinition::Unwritable(error.to_string()))?;
    let documents = if let Value::String(text) = &value {
        serde_saphyr::from_multiple(text)
            .map_err(|error| InvalidDefinition::Syntax(error.to_string()))?
    } else if let Value::Array(all) = value {
        all
    } else {
        vec![value]
    };
    let documents = documents.into_iter().filter(|one| !one.is_null()).flat_map(items);
    let documents: Vec<Value> = documents.collect();
    match documents.iter().find_map(what_else) {
        Some(what) => Err(InvalidDefinition::OtherKind(what)),
        None => Ok(documents),
    }
}

/// The objects of a list, as kubectl prints several, or the document itself.
fn items(mut document: Value) -> Vec<Value> {
    let kind = document.get("kind").and_then(Value::as_str);
    let is_list = matches!(kind, Some("List" | "CustomResourceDefinitionList"));
    match document.get_mut("items") {
        Some(Value::Array(items)) if is_list => std::mem::take(items),
        _ => vec![document],
    }
}

/// What a document is that is no CRD of the version that is served. Without a version it is of that one.
fn what_else(document: &Value) -> Option<String> {
    let text = |key: &str| document.get(key).and_then(Value::as_str);
    match (text("kind"), text("apiVersion")) {
        (Some("CustomResourceDefinition"), None | Some("apiextensions.k8s.io/v1")) => None,
        (Some(kind @ "CustomResourceDefinition"), Some(version)) => {
            Some(format!("there is a {kind} of {version}"))
        }
        (Some(kind), _) => Some(format!("there is a {kind}")),
        (None, _) => Some("there is a document without a kind".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MAY_BE: &str = "where only CustomResourceDefinitions of apiextensions.k8s.io/v1 may be";

    fn crd(name: &str) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": name },
        })
    }

    fn names(given: impl Serialize) -> Vec<String> {
        let name = |one: Value| one["metadata"]["name"].as_str().unwrap().to_owned();
        parse(given).unwrap().into_iter().map(name).collect()
    }

    #[test]
    fn every_form_in_which_people_have_crds() {
        assert_eq!(names(crd("a")), ["a"]);
        assert_eq!(names(vec![crd("a")]), ["a"]);
        assert_eq!(names([crd("a"), crd("b")]), ["a", "b"]);
        let text = "---\nkind: CustomResourceDefinition\nmetadata: {name: a}\n---\n---\n\
                    kind: CustomResourceDefinition\nmetadata: {name: b}\n";
        assert_eq!(names(text), ["a", "b"]);
        assert_eq!(names(text.to_owned()), ["a", "b"]);
        assert!(names("").is_empty());
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": [crd("a"), crd("b")] });
        assert_eq!(names(list.to_string()), ["a", "b"]);
    }

    #[test]
    fn what_is_no_crd_is_named() {
        let text = |given: &str| parse(given).unwrap_err().to_string();
        assert_eq!(text("kind: ConfigMap"), format!("there is a ConfigMap, {MAY_BE}"));
        assert_eq!(
            text("kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1beta1"),
            format!(
                "there is a CustomResourceDefinition of apiextensions.k8s.io/v1beta1, {MAY_BE}"
            )
        );
        assert_eq!(text("plain text"), format!("there is a document without a kind, {MAY_BE}"));
        assert!(text("a: [").starts_with("a CRD's text is no YAML: "));
        let unwritable = std::collections::BTreeMap::from([(vec![1], 2)]);
        assert_eq!(
            parse(unwritable).unwrap_err().to_string(),
            "a CRD cannot be written as JSON: key must be a string"
        );
    }
}
