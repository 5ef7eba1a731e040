//! The facts of a built-in kind, and what most kinds have in common.

use serde_json::{Value, json};

use super::cells::View;
use super::decode_typed;
use super::defaults::Fields;
use super::labels::Labels;
use crate::error::ApiError;
use crate::field::FieldError;
use crate::names;
use crate::object::{at_path, put, same_but};
use crate::resource::{Resource, Surroundings};
use crate::schema::{self, Schema};

/// When `metadata.generation` rises.
#[derive(Debug, Clone, Copy)]
pub(super) enum Generation {
    /// The kind does not count it.
    None,
    /// Always 1.
    Constant,
    /// With the spec.
    Spec,
    /// With the spec of the form that this makes.
    SpecOf(fn(&Value) -> Value),
    /// With the spec or the annotations.
    SpecOrAnnotations,
    /// With anything beside the metadata.
    AllButMetadata,
}

impl Generation {
    /// Whether a change raises the generation.
    pub(super) fn rises(self, object: &Value, old: &Value) -> bool {
        let differs = |path: &str| at_path(object, path) != at_path(old, path);
        match self {
            Generation::None | Generation::Constant => false,
            Generation::Spec => differs("spec"),
            Generation::SpecOf(form) => Generation::Spec.rises(&form(object), &form(old)),
            Generation::SpecOrAnnotations => differs("spec") || differs("metadata.annotations"),
            Generation::AllButMetadata => !same_but(object, old, "metadata"),
        }
    }
}

/// The facts of one kind. Functions that a kind does not need do nothing.
#[derive(Debug)]
pub(super) struct Kind {
    /// API group, empty for the core group.
    pub(super) group: &'static str,
    /// The version that these are the facts of; empty: all that have no facts of their own.
    pub(super) version: &'static str,
    /// Plural name, as in paths.
    pub(super) plural: &'static str,
    /// Group of the type behind the kind: its objects are stored, and refused, as that type.
    pub(super) type_group: &'static str,
    /// Text of the warning that every request on a deprecated kind gets.
    pub(super) deprecation_warning: Option<&'static str>,
    /// Where objects are kept in etcd, if not under the plural name; some errors say it.
    pub(super) registry_path: Option<&'static str>,
    /// Fields that may not change in an immutable object, where an empty one differs from none at all.
    pub(super) frozen: &'static [&'static str],
    /// Fills the defaults that only this kind has; those of types that others have, too, follow.
    pub(super) default: fn(&mut Fields),
    /// What a new object gets from the cluster, or why it cannot have it.
    pub(super) allocate_for_create:
        fn(&Resource, &mut Value, &mut Surroundings<'_>) -> Result<(), ApiError>,
    /// What else a new object gets, after that.
    pub(super) prepare_for_create: fn(&mut Value),
    /// What an object that is changed through a subresource (empty: the main endpoint) gets from the
    /// cluster, or why it cannot have it.
    pub(super) allocate_for_update:
        fn(&Resource, &str, &mut Value, &Value, &mut Surroundings<'_>) -> Result<(), ApiError>,
    /// What a change through a subresource (empty: the main endpoint) may not do.
    pub(super) prepare_for_update: fn(&Resource, &str, &mut Value, &Value),
    /// All faults of a new object.
    pub(super) validate: fn(&Value) -> Vec<FieldError>,
    /// All faults of a changed object; those of a new one if there are no rules of change.
    pub(super) validate_update: Option<fn(&Value, &Value) -> Vec<FieldError>>,
    /// All faults of a changed status.
    pub(super) validate_status: fn(&Value, &Value) -> Vec<FieldError>,
    /// What is accepted but not good in a new object, or in a changed one beside the former.
    pub(super) warnings: fn(&Value, Option<&Value>) -> Vec<String>,
    /// What is accepted but not good in a changed status.
    pub(super) status_warnings: fn(&Value) -> Vec<String>,
    /// What is wrong with a name.
    pub(super) name_faults: fn(&str) -> Vec<String>,
    /// Whether finalizers without a domain must be the server's own.
    pub(super) knows_finalizers: bool,
    /// The version in which objects are stored, if it is another.
    pub(super) storage_version: Option<&'static str>,
    /// From the form of this kind to the stored one.
    pub(super) encode_stored: fn(&Resource, Value) -> Value,
    /// From the stored form to that of this kind, if they differ.
    pub(super) decode_stored: Option<fn(&Resource, Value) -> Value>,
    /// When `metadata.generation` rises.
    pub(super) generation: Generation,
    /// Whether the status is written through its subresource only.
    pub(super) status_subresource: bool,
    /// Whether a client may give the status when it creates an object.
    pub(super) keeps_status_on_create: bool,
    /// Whether a PUT without resourceVersion is accepted.
    pub(super) allow_unconditional_update: bool,
    /// Whether a PUT of a missing object creates it.
    pub(super) allow_create_on_update: bool,
    /// Whether DELETE answers the object instead of a Status.
    pub(super) returns_deleted_object: bool,
    /// Whether a DELETE that says nothing else leaves dependents alone.
    pub(super) orphans_by_default: bool,
    /// The period of a DELETE, for kinds that end gracefully.
    pub(super) grace_period_seconds: Option<fn(&Value, Option<i64>) -> i64>,
    /// Whether nothing but finalizers keeps an object that is being deleted.
    pub(super) may_be_removed: fn(&Value) -> bool,
    /// Field labels beside name and namespace.
    pub(super) field_labels: Labels,
    /// The cells of a Table's row.
    pub(super) cells: fn(View<'_>) -> Vec<Value>,
    /// The conditions of a Table's row.
    pub(super) row_conditions: fn(&Value) -> Vec<Value>,
}

impl Kind {
    /// A kind of which nothing is special.
    pub(super) const fn new(group: &'static str, plural: &'static str) -> Self {
        Self {
            group,
            version: "",
            plural,
            type_group: group,
            deprecation_warning: None,
            registry_path: None,
            frozen: &[],
            default: |_| {},
            allocate_for_create: |_, _, _| Ok(()),
            prepare_for_create: |_| {},
            allocate_for_update: |_, _, _, _, _| Ok(()),
            prepare_for_update: |_, _, _, _| {},
            validate: |_| Vec::new(),
            validate_update: None,
            validate_status: |_, _| Vec::new(),
            warnings: |_, _| Vec::new(),
            status_warnings: |_| Vec::new(),
            name_faults: names::dns1123_subdomain,
            knows_finalizers: true,
            storage_version: None,
            encode_stored: |_, object| object,
            decode_stored: None,
            generation: Generation::None,
            status_subresource: false,
            keeps_status_on_create: false,
            allow_unconditional_update: true,
            allow_create_on_update: false,
            returns_deleted_object: false,
            orphans_by_default: false,
            grace_period_seconds: None,
            may_be_removed: |_| true,
            field_labels: &[],
            cells: |view| view.named(vec![view.text("/metadata/creationTimestamp")]),
            row_conditions: |_| Vec::new(),
        }
    }
}

/// An empty list that Go prints always does not survive storage: it comes back as null.
pub(super) fn nil_lists(resource: &Resource, mut object: Value) -> Value {
    drop_empty_lists(&mut object, &resource.schema);
    object
}

fn drop_empty_lists(value: &mut Value, schema: &Schema) {
    let Some(fields) = value.as_object_mut() else { return };
    for (name, field) in &schema.properties {
        match fields.get_mut(name) {
            Some(list) if list.as_array().is_some_and(Vec::is_empty) => *list = Value::Null,
            Some(inner) => drop_empty_lists(inner, field),
            None => {}
        }
    }
}

/// An object of another version of its kind: the two differ in what is printed although empty, which
/// decoding settles.
pub(super) fn shaped(object: Value, api_version: &str, definition: &str) -> Value {
    let schema = schema::definition(definition).unwrap_or_default();
    let mut object =
        decode_typed(object.clone(), &schema, "").map_or(object, |decoded| decoded.object);
    put(&mut object, "apiVersion", json!(api_version));
    object
}
