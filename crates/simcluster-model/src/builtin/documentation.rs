//! What `kubectl explain` says of the built-in kinds: the comments of their Go types.
//!
//! The file is generated (hack/builtin-schemas/documentation.py), and unpacked when somebody asks.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use flate2::read::GzDecoder;
use serde::Deserialize;

/// What is said of a property.
#[derive(Debug, Deserialize)]
#[serde(from = "Vec<String>")]
pub struct Documentation {
    /// Its description.
    pub text: String,
    /// What it may be, if it is one of so many texts.
    pub values: Vec<String>,
}

impl From<Vec<String>> for Documentation {
    fn from(said: Vec<String>) -> Self {
        let mut said = said.into_iter();
        Self { text: said.next().unwrap_or_default(), values: said.collect() }
    }
}

type Properties = BTreeMap<String, Documentation>;

/// By definition and property; the definition itself has the empty name.
static DOCUMENTATION: LazyLock<BTreeMap<String, Properties>> = LazyLock::new(|| {
    let packed: &[u8] = include_bytes!("documentation.json.gz");
    serde_json::from_reader(GzDecoder::new(packed)).expect("generated and checked by a test")
});

/// What is said of a definition's properties by name, such as those of `io.k8s.api.core.v1.PodSpec`; the
/// empty name has what is said of the definition itself.
#[must_use]
pub fn documentation(definition: &str) -> Option<&'static Properties> {
    DOCUMENTATION.get(definition)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::openapi_definitions;

    #[test]
    fn nearly_everything_that_is_served_is_described() {
        let spec = documentation("io.k8s.api.core.v1.PodSpec").unwrap();
        assert_eq!(spec[""].text, "PodSpec is a description of a pod.");
        assert_eq!(spec["restartPolicy"].values, ["Always", "Never", "OnFailure"]);
        let (mut described, mut all) = (0, 0);
        for (name, definition) in openapi_definitions() {
            let texts = documentation(name).unwrap_or_else(|| panic!("{name} is not there"));
            let properties = definition.get("properties").and_then(serde_json::Value::as_object);
            for (property, _) in properties.into_iter().flatten() {
                all += 1;
                described += usize::from(texts.contains_key(property));
            }
        }
        // Some are not described by the real server either.
        assert!(described * 100 > all * 95, "{described} of {all}");
    }
}
