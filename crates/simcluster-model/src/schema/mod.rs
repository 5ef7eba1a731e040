//! Structural schemas: what a version's objects look like.
//!
//! One form serves CRDs (read from `openAPIV3Schema`) and built-in kinds (read from the real server's
//! OpenAPI, see `builtin`). Pruning, defaulting, validation, CEL, server-side apply and strategic
//! merge all walk it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

mod cel;
mod checks;
mod correlate;
mod defaults;
pub(crate) mod facts;
mod formats;
mod list_types;
pub mod numbers;
mod parse;
pub(crate) mod path;
mod prune;
#[cfg(test)]
mod tests;
mod validate;
mod values;

pub use cel::Condition;
pub(crate) use cel::{check_rule, unsupported_function};
pub use checks::Checks;
pub use defaults::fill_defaults;
pub use facts::{definition, object_meta};
pub(crate) use formats::go_regex;
pub use formats::is_go_duration;
pub(crate) use path::Path;
pub use prune::{prune, prune_nulls, prune_unknown};
pub(crate) use validate::default_value_faults;
pub use validate::{Validation, blocking_fault, validate};
pub(crate) use values::is_format_checked;

/// A node of a structural schema.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    /// The JSON type; `None` for nodes without one (int-or-string, preserve-unknown, unions in CEL).
    pub kind: Option<Type>,
    /// `format`, such as `int32` or `date-time`.
    pub format: Option<String>,
    /// Declared fields.
    pub properties: BTreeMap<String, SchemaRef>,
    /// Schema of the values of a map.
    pub additional_properties: Option<SchemaRef>,
    /// Schema of the items of a list.
    pub items: Option<SchemaRef>,
    /// Names of the fields that must be there, in the schema's order.
    pub required: Vec<String>,
    /// Value of a missing field.
    pub default: Option<Value>,
    /// Whether an explicit null is kept.
    pub nullable: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// `x-kubernetes-list-type`; `Atomic` unless said.
    pub list_type: ListType,
    /// `x-kubernetes-map-type: atomic`.
    pub atomic_map: bool,
    /// `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key`, for strategic merge patch.
    pub patch: PatchStrategy,
    /// The rest of the node as written (enum, minimum, pattern, anyOf, x-kubernetes-validations, ...),
    /// for validation.
    pub rules: Value,
    /// How the real server holds the value in Go; built-in kinds and `ObjectMeta` only.
    pub go: Option<Arc<GoForm>>,
    /// What validates objects of a custom resource; only at the root of a CRD version's schema.
    pub checks: Option<Arc<Checks>>,
}

/// A schema that may stand for itself further down (`JSONSchemaProps` does): resolved on first use.
#[derive(Clone, Default)]
pub struct SchemaRef(Arc<OnceLock<Arc<Schema>>>);

impl SchemaRef {
    /// A reference that is filled later by `set`.
    #[must_use]
    pub fn unresolved() -> Self {
        Self::default()
    }

    /// Fills the reference; the first call counts.
    pub fn set(&self, schema: Arc<Schema>) {
        let _ = self.0.set(schema);
    }

    /// The schema.
    #[must_use]
    pub fn get(&self) -> &Arc<Schema> {
        static ANYTHING: std::sync::LazyLock<Arc<Schema>> = std::sync::LazyLock::new(|| {
            Arc::new(Schema { preserve_unknown: true, ..Schema::default() })
        });
        self.0.get().unwrap_or(&ANYTHING)
    }
}

impl fmt::Debug for SchemaRef {
    /// Does not follow the reference: schemas may be recursive.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SchemaRef(..)")
    }
}

impl From<Schema> for SchemaRef {
    fn from(schema: Schema) -> Self {
        let reference = Self::default();
        reference.set(Arc::new(schema));
        reference
    }
}

impl std::ops::Deref for SchemaRef {
    type Target = Schema;

    fn deref(&self) -> &Schema {
        self.get()
    }
}

/// How a value of a built-in kind lives in a Go struct, which decides what is printed when it is empty
/// and how decoding errors call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoForm {
    /// The type as Go's reflection prints it, such as `[]v1.Container`.
    pub type_name: String,
    /// When the field is printed.
    pub presence: Presence,
    /// Types with a JSON form of their own.
    pub codec: Codec,
    /// Names of the embedded structs that the field comes from, joined by dots; empty for most.
    pub via: String,
}

/// When a field is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Unless empty: scalars, lists and maps with `omitempty`.
    NonEmpty,
    /// Whenever it was given: pointers.
    Given,
    /// Always; absent, it is the zero value of its type, or null for lists and maps.
    Always,
    /// Always; absent, it is null: pointers without `omitempty`.
    OrNull,
    /// Unless zero: structs with `omitzero`.
    NonZero,
}

/// How a value is read and printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// As its JSON type says.
    Plain,
    /// `metav1.Time`
    Time,
    /// `metav1.MicroTime`
    MicroTime,
    /// `resource.Quantity`
    Quantity,
    /// `intstr.IntOrString`
    IntOrString,
    /// Any JSON, kept as it is.
    Raw,
    /// `apiextensions.JSONSchemaPropsOrBool` and its siblings: a schema, or something else.
    SchemaOr,
}

/// JSON types of schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// `object`
    Object,
    /// `array`
    Array,
    /// `string`
    String,
    /// `integer`
    Integer,
    /// `number`
    Number,
    /// `boolean`
    Boolean,
}

/// How server-side apply sees a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ListType {
    /// One value.
    #[default]
    Atomic,
    /// A set of scalars.
    Set,
    /// Items identified by these keys.
    Map(Vec<String>),
}

/// How strategic merge patch sees a field (`k8s.io/apimachinery/pkg/util/strategicpatch`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// Lists merge, by `merge_key` if there is one.
    pub merge: bool,
    /// Unnamed keys of the map are dropped (`retainKeys`).
    pub retain_keys: bool,
    /// Maps are replaced instead of merged.
    pub replace: bool,
    /// The key that identifies items.
    pub merge_key: Option<String>,
}
