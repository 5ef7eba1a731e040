//! What is compiled once from a CRD version's schema and used for every object.

use serde_json::Value;

use super::cel::Rules;
use super::values::Node;

/// The compiled checks of a CRD version's schema.
#[derive(Debug)]
pub struct Checks {
    source: Value,
    values: Node,
    rules: Option<Rules>,
}

impl Checks {
    /// Compiles `openAPIV3Schema`.
    #[must_use]
    pub fn compile(source: &Value) -> Self {
        Self {
            source: source.clone(),
            values: Node::compile(source),
            rules: Rules::compile(source),
        }
    }

    /// The schema as written in the CRD.
    #[must_use]
    pub fn source(&self) -> &Value {
        &self.source
    }

    /// Whether some node of the schema has CEL rules.
    #[must_use]
    pub fn has_rules(&self) -> bool {
        self.rules.is_some()
    }

    pub(super) fn values(&self) -> &Node {
        &self.values
    }

    pub(super) fn rules(&self) -> Option<&Rules> {
        self.rules.as_ref()
    }
}
